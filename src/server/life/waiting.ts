/**
 * What answers before there is anything to serve: a node whose log is out of reach, or far ahead, may wait for long.
 *
 * Who watches the process sees that it lives and is not ready; every other call is told to try again. A browser shows
 * that as a sentence and looks again by itself, until the page is there. Nothing is let in and nothing is told that
 * is not for everybody. When the service begins, it takes the address over.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { CONNECTION_LIMITS, createListener, JSON_TYPE, problem, SAFE_HEADERS } from "../../http/index.ts";
import { ENDPOINTS } from "../../protocol/wire/index.ts";
import { versionText } from "../../std/index.ts";
import { type Listening, listen } from "./listening.ts";

const TEXT_TYPE = "text/plain; charset=utf-8";
/** A browser that gets this header asks again after so many seconds. */
const LOOK_AGAIN_S = "2";

export type Waiting = Listening & {
  /** Frees the address. */
  close(): Promise<void>;
};

/** `why`: what is waited for, as a sentence. */
export async function listenWhileWaiting(
  { host, port }: { readonly host: string; readonly port: number },
  why: () => string,
): Promise<Waiting> {
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    const isHealth = request.url === ENDPOINTS.health.path;
    const refusal = problem("no_leader", why());
    const { status, body } = isHealth ? { status: 200, body: { status: "ok", version: versionText() } } : refusal;
    const isForPeople = !isHealth && request.headers.accept?.includes("text/html") === true;
    const later = isHealth ? {} : { "retry-after": String(refusal.retryAfterS) };
    const shown = isForPeople ? { refresh: LOOK_AGAIN_S, "content-type": TEXT_TYPE } : { "content-type": JSON_TYPE };
    response.writeHead(status, { ...SAFE_HEADERS, ...later, ...shown, connection: "close" });
    response.end(
      isForPeople ? `Drover is not ready: ${why()}.\nThis page looks again by itself.\n` : JSON.stringify(body),
    );
  };
  const listener = createListener(CONNECTION_LIMITS, answer);
  const listening = await listen(listener, host, port);
  return {
    ...listening,
    async close() {
      const closed = listener.close();
      listener.closeAllConnections();
      await closed;
    },
  };
}
