/**
 * A server that follows a script, for tests of the client: it answers, refuses, breaks off and falls silent as told.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { answering } from "./loopback.ts";

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
  const server = await answering(async (request, response) => {
    const said = await text(request).catch(() => null);
    if (said === null) return void response.destroy();
    const { method = "", url = "", headers } = request;
    const one: Heard = { method, url, headers, body: said === "" ? undefined : (JSON.parse(said) as unknown) };
    heard.push(one);
    const step = steps[Math.min(heard.length, steps.length) - 1];
    step?.(response, one);
  });
  return { ...server, heard };
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
