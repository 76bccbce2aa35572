/**
 * Requests to other nodes, over connections that are kept.
 *
 * The answer is given when its head is there. Of a failure it says what must be known before the same is sent again:
 * whether the other side can have got anything.
 */
import { Agent, type ClientRequest, type IncomingMessage, request as overHttp } from "node:http";
import { request as overHttps, Agent as SecureAgent } from "node:https";
import type { Readable } from "node:stream";
import { type Clock, ringAfter } from "../../std/index.ts";

/** A node that takes no connection within this time is out of reach. */
const CONNECT_MS = 2000;
/** Connections that are kept for the next request. */
const KEPT_MAX = 256;

export type PeerRequest = {
  /** The base URL of the node: host and port alone. */
  readonly base: string;
  /** With its query. */
  readonly path: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Bytes are sent as they are; a stream as it comes. */
  readonly body: Buffer | Readable | null;
  readonly signal: AbortSignal;
};
export type Peers = {
  /** Rejects with a PeerFailure. */
  ask(request: PeerRequest): Promise<IncomingMessage>;
  close(): void;
};

/** No answer came. */
export class PeerFailure extends Error {
  override readonly name: string = "PeerFailure";
  /** Nothing can have reached the other side. */
  readonly isUnsent: boolean;
  /** A kept connection was gone, so it may be another one that is not. */
  readonly wasKept: boolean;

  constructor(cause: unknown, { isUnsent = false, wasKept = false }: { isUnsent?: boolean; wasKept?: boolean } = {}) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
    this.isUnsent = isUnsent;
    this.wasKept = wasKept;
  }
}

export function createPeers(clock: Clock): Peers {
  const kept = { keepAlive: true, maxFreeSockets: KEPT_MAX };
  const agents = { plain: new Agent(kept), secure: new SecureAgent(kept) };

  function open({ base, path, method, headers }: PeerRequest): ClientRequest {
    const url = new URL(base);
    const options = { method, headers, path };
    return url.protocol === "https:"
      ? overHttps(url, { ...options, agent: agents.secure })
      : overHttp(url, { ...options, agent: agents.plain });
  }

  return {
    ask(asked) {
      const { body, signal } = asked;
      return new Promise((resolve, reject) => {
        const request = open(asked);
        let isConnected = false;
        const isUnsent = (): boolean => !isConnected && !request.reusedSocket;
        const fail = (error: unknown): void =>
          reject(new PeerFailure(error, { isUnsent: isUnsent(), wasKept: request.reusedSocket }));
        const abort = (): void => void request.destroy(asError(signal.reason));
        const giveUp = (): void => void request.destroy(new Error(`no connection within ${CONNECT_MS} ms`));
        const cancel = ringAfter(clock, CONNECT_MS, () => (isUnsent() ? giveUp() : undefined), { keepAlive: false });
        request.once("socket", (socket) => {
          // One that was kept does not connect again: a listener for that would stay, and hold its request.
          if (socket.connecting) socket.once("connect", () => (isConnected = true));
          else isConnected = true;
        });
        request.once("response", (answer) => {
          // Without a listener, an answer that breaks off before anybody reads it would end the process.
          answer.on("error", () => {});
          resolve(answer);
        });
        request.on("error", fail);
        request.once("upgrade", (_answer, socket) => socket.destroy());
        request.once("close", () => {
          cancel();
          signal.removeEventListener("abort", abort);
          fail(new Error("the connection was closed without an answer"));
        });
        signal.addEventListener("abort", abort, { once: true });
        if (signal.aborted) abort();
        else if (body === null || Buffer.isBuffer(body)) request.end(body ?? undefined);
        else body.on("error", (error) => request.destroy(error)).pipe(request);
      });
    },
    close() {
      agents.plain.destroy();
      agents.secure.destroy();
    },
  };
}

const asError = (reason: unknown): Error => (reason instanceof Error ? reason : new Error(String(reason)));
