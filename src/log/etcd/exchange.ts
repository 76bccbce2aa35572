/**
 * One request to one member of etcd, by the JSON gateway: `POST /v3/…`, its path in 3.4 and all later versions.
 *
 * Connections are kept. Every exchange has a limit of time, by a timer of this machine, and every answer one of size.
 * What happens before the connection stands is `unsent`; from then on a failure is `lost`. A connection that was kept
 * may have been closed by the other side in the very moment: that is `lost` too, since nobody can tell.
 */
import { type ClientRequest, Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import type { Socket } from "node:net";
import { errorText, isRecord } from "../../core/base/index.ts";
import type { HostAndPort } from "../journal/address.ts";
import type { TlsTexts } from "./address.ts";
import { EtcdFault, faultOf } from "./fault.ts";

export type Ask = {
  readonly endpoint: HostAndPort;
  readonly path: string;
  readonly body: string;
  /** Null or empty: none. */
  readonly token: string | null;
  /** How long until the answer is there; of a stream, until it begins. */
  readonly limitMs: number;
  readonly signal: AbortSignal;
};

export type Wire = {
  /** The whole answer. */
  ask(ask: Ask): Promise<unknown>;
  /** An answer that goes on: what comes in, one JSON text a line. The connection ends with whoever iterates. */
  stream(ask: Ask): Promise<AsyncIterable<unknown>>;
  close(): void;
};

const ANSWER_BYTES_MAX: number = 64 * 1024 * 1024;
const LINE_LENGTH_MAX: number = 4 * 1024 * 1024;
const TEXT_MAX = 200;

export function createWire(tls: TlsTexts | null): Wire {
  const agent = tls === null ? new HttpAgent({ keepAlive: true }) : new HttpsAgent({ keepAlive: true, ...tls });
  /** Whether it is this scheme that is spoken there. */
  let isUnderstood = false;
  const begin = (ask: Ask): ClientRequest => {
    const { endpoint, path, token, signal } = ask;
    const { host, port } = endpoint;
    const headers = {
      "content-type": "application/json",
      ...(token === null || token === "" ? {} : { authorization: token }),
    };
    const options = { agent, host, port, path, method: "POST", headers, signal };
    return tls === null ? httpRequest(options) : httpsRequest(options);
  };
  return {
    ask: async (ask) => {
      const answer = await exchanged(begin(ask), ask, readWhole).catch((error: unknown) => {
        throw isUnderstood ? error : withHint(error, tls !== null);
      });
      isUnderstood = true;
      return parsed(answer);
    },
    stream: (ask) => exchanged(begin(ask), ask, async (answer) => linesOf(answer)),
    close: () => agent.destroy(),
  };
}

/** Sends it, and what `read` makes of the answer. The limit ends when that is there. */
function exchanged<Read>(
  request: ClientRequest,
  { body, limitMs }: Ask,
  read: (answer: IncomingMessage) => Promise<Read>,
): Promise<Read> {
  let isSent = false;
  const { promise, resolve, reject } = Promise.withResolvers<Read>();
  const late = setTimeout(() => request.destroy(new Error(`no answer in ${limitMs} ms`)), limitMs);
  request.once("socket", (socket: Socket & { secureConnecting?: boolean }) => {
    isSent = !socket.connecting && socket.secureConnecting !== true;
    if (isSent) return;
    socket.once("encrypted" in socket ? "secureConnect" : "connect", () => {
      isSent = true;
    });
  });
  request.on("error", (error) => reject(connectionFault(error, isSent)));
  request.once("response", (answer) => {
    answer.on("error", (error) => reject(new EtcdFault("lost", errorText(error))));
    read(answer).then(resolve, reject);
  });
  request.end(body);
  return promise.finally(() => clearTimeout(late));
}

type Whole = { readonly status: number; readonly text: string };

async function readWhole(answer: IncomingMessage): Promise<Whole> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > ANSWER_BYTES_MAX) throw new EtcdFault("lost", `the answer has more than ${ANSWER_BYTES_MAX} bytes`);
    chunks.push(chunk);
  }
  return { status: answer.statusCode ?? 0, text: Buffer.concat(chunks).toString("utf8") };
}

async function* linesOf(answer: IncomingMessage): AsyncGenerator<unknown> {
  answer.setEncoding("utf8");
  let rest = "";
  try {
    for await (const chunk of answer as AsyncIterable<string>) {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop() ?? "";
      if (rest.length > LINE_LENGTH_MAX) throw new EtcdFault("lost", `a line has more than ${LINE_LENGTH_MAX} signs`);
      yield* lines.map(jsonOf);
    }
  } catch (error) {
    // A connection that breaks ends the stream with an error of Node's own.
    throw error instanceof EtcdFault ? error : new EtcdFault("lost", errorText(error));
  }
}

const OK = 200;

function parsed({ status, text }: Whole): unknown {
  const value = jsonOf(text);
  if (status === OK && value !== undefined) return value;
  const { code, message } = isRecord(value) ? value : {};
  if (typeof code === "number" && typeof message === "string") throw faultOf(code, message);
  // A 5xx may come from something between, with the request behind it already.
  if (status >= 500) throw new EtcdFault("lost", `it answers with status ${status}`);
  const said = text.trim().split("\n", 1)[0]?.slice(0, TEXT_MAX) ?? "";
  throw new EtcdFault("answered", `it answers with status ${status} and not as etcd 3.4 and later do: ${said}`);
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Why there is no connection, in words. A scheme or a certificate that is wrong stays so until a person acts. */
function connectionFault(error: Error, isSent: boolean): EtcdFault {
  const { code = "" } = error as NodeJS.ErrnoException;
  if (code === "EPROTO" || code === "ERR_SSL_WRONG_VERSION_NUMBER")
    return new EtcdFault("answered", "it does not speak TLS: leave tls, ca, cert and key out, or check the port");
  if (/ALERT_(CERTIFICATE_REQUIRED|BAD_CERTIFICATE|UNKNOWN_CA)/.test(code))
    return new EtcdFault("answered", "it asks for a certificate that it trusts: give cert and key");
  if (/CERT|SELF_SIGNED|ISSUER|SIGNATURE/.test(code))
    return new EtcdFault(
      "answered",
      `its certificate is not trusted (${errorText(error)}): name the authority that signed it with ca`,
    );
  return new EtcdFault(isSent ? "lost" : "unsent", TEXTS[code] ?? errorText(error));
}

/** A member that gets the wrong scheme hangs up and says nothing. */
function withHint(error: unknown, isTls: boolean): unknown {
  if (!(error instanceof EtcdFault) || error.message !== HUNG_UP) return error;
  const hint = isTls ? "does not speak TLS, leave out tls, ca, cert and key" : "speaks TLS, give tls=true";
  return new EtcdFault(error.type, `${HUNG_UP}; if it ${hint}`);
}

const HUNG_UP = "it hung up";
const TEXTS: Readonly<Record<string, string>> = {
  ECONNRESET: HUNG_UP,
  ECONNREFUSED: "nothing listens there",
  ENOTFOUND: "there is no such host",
};
