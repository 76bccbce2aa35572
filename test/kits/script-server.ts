/**
 * A server that follows a script, for tests of the client: it answers, refuses, breaks off and falls silent as told.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export type Heard = {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: unknown;
};
/** What to do with a request; the last step of a script is repeated. */
export type Step = (response: ServerResponse, heard: Heard) => void;
export type ScriptServer = AsyncDisposable & { readonly url: string; readonly heard: readonly Heard[] };

export async function startScript(...steps: readonly Step[]): Promise<ScriptServer> {
  const heard: Heard[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("error", () => response.destroy());
    request.on("end", () => {
      const text = Buffer.concat(chunks).toString();
      const { method = "", url = "", headers } = request;
      const one: Heard = { method, url, headers, body: text === "" ? undefined : (JSON.parse(text) as unknown) };
      heard.push(one);
      const step = steps[Math.min(heard.length, steps.length) - 1];
      step?.(response, one);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    heard,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export const answers =
  (status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): Step =>
  (response) =>
    response
      .writeHead(status, { "content-type": "application/json", "drover-protocol": "1", ...headers })
      .end(JSON.stringify(body));

/** The server has acted, and its answer is lost on the way. */
export const losesTheAnswer: Step = (response) => response.destroy();

/** Half of an answer, and then nothing more. */
export const answersHalf: Step = (response) => {
  response.writeHead(200, { "content-type": "application/json", "content-length": "1000" });
  response.write('{"taskId":"t1"', () => response.destroy());
};

export const neverAnswers: Step = () => {};

/** These pieces as a stream of events; then the connection is cut, ends well, or stays open. */
export const streams =
  (pieces: readonly (string | Uint8Array)[], then: "cut" | "end" | "stay"): Step =>
  (response) => {
    response.writeHead(200, { "content-type": "text/event-stream", "drover-protocol": "1" });
    response.flushHeaders();
    const next = (index: number): void => {
      const piece = pieces[index];
      if (piece !== undefined) response.write(piece, () => setImmediate(next, index + 1));
      else if (then === "end") response.end();
      else if (then === "cut") response.destroy();
    };
    next(0);
  };
