/**
 * A real engine behind a bare HTTP server: just the calls a worker makes, and a place to break them.
 *
 * It is the least that speaks the protocol, so that what is tested is the worker and not the service. A fault is chosen
 * per request: the request is lost before the engine hears of it, or the answer is lost after the engine has acted.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Drover } from "../../src/engine/index.ts";
import { WIRE_CODES, type WireCode } from "../../src/protocol/index.ts";
import { answering, type Listening } from "./loopback.ts";

export type Fault = "lose-request" | "lose-answer" | null;
export type Asked = { readonly method: string; readonly path: string; readonly body: unknown };
export type WorkerServer = Listening & {
  /** Everything that was asked, in order. */
  readonly asked: Asked[];
  /** Another engine, as after a restart. */
  use(drover: Drover): void;
};
export type WorkerServerOptions = {
  readonly port?: number;
  readonly token?: string;
  readonly fault?: (asked: Asked) => Fault;
};

export async function startWorkerServer(drover: Drover, options: WorkerServerOptions = {}): Promise<WorkerServer> {
  const asked: Asked[] = [];
  let engine = drover;
  const server = await answering(
    (request, response) => void serve(() => engine, { ...options, asked }, request, response),
    options.port,
  );
  return {
    ...server,
    asked,
    use: (next) => {
      engine = next;
    },
  };
}

type Serving = WorkerServerOptions & { readonly asked: Asked[] };

async function serve(
  engine: () => Drover,
  serving: Serving,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString();
  const { method = "", url: path = "" } = request;
  const one: Asked = { method, path, body: text === "" ? {} : (JSON.parse(text) as unknown) };
  serving.asked.push(one);
  const fault = serving.fault?.(one) ?? null;
  if (fault === "lose-request") return void request.socket.destroy();
  const gone = new AbortController();
  response.once("close", () => gone.abort(new Error("the caller has gone")));
  const { status, body } = await answer(engine(), serving, request, one, gone.signal);
  if (fault === "lose-answer") return void request.socket.destroy();
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

type Reply = { readonly status: number; readonly body: unknown };

async function answer(
  drover: Drover,
  { token }: Serving,
  { headers }: IncomingMessage,
  asked: Asked,
  signal: AbortSignal,
): Promise<Reply> {
  if (token !== undefined && headers.authorization !== `Bearer ${token}`)
    return { status: 401, body: { error: "no such token", code: "unauthorized" } };
  try {
    return (await route(drover, asked, signal)) ?? { status: 404, body: { error: "no such path", code: "not_found" } };
  } catch (error) {
    const { code = "internal", message, details } = error as { code?: string; message: string; details?: unknown };
    const known = Object.hasOwn(WIRE_CODES, code) ? (code as WireCode) : "internal";
    return { status: WIRE_CODES[known].status, body: { error: message, code: known, details } };
  }
}

async function route(drover: Drover, { method, path, body }: Asked, signal: AbortSignal): Promise<Reply | null> {
  const { pathname, searchParams } = new URL(path, "http://any");
  const [kind, rawId = "", verb = ""] = pathname.slice(1).split("/");
  const id = decodeURIComponent(rawId);
  const given = body as never;
  switch (`${method} ${kind}${id === "" ? "" : "/id"}${verb === "" ? "" : `/${verb}`}`) {
    case "POST workers":
      return { status: 201, body: await drover.remote.join(given) };
    case "POST workers/id/sync":
      return { status: 200, body: await drover.remote.sync(id, given, { signal }) };
    case "DELETE workers/id":
      await drover.remote.leave(id, Object.fromEntries(searchParams));
      return { status: 200, body: { status: "left", workerId: id } };
    case "POST permits":
      return { status: 200, body: await drover.permits.ask(given, { signal }) };
    case "POST permits/id/settle":
      await drover.permits.settle(id, given);
      return { status: 200, body: { status: "settled", permitId: id } };
    case "DELETE permits/id":
      await drover.permits.drop(id);
      return { status: 200, body: { status: "dropped", permitId: id } };
    default:
      return null;
  }
}
