/**
 * Calls over plain connections that are kept, where a request is a text and its answer is read whole.
 *
 * `node:http` makes a stream of each, with an agent, some twenty listeners and as many objects in between: a fifth of
 * the time that a worker takes for its syncs. Here a request is written as one text, and an answer is read as far as
 * HTTP/1.1 needs (lean-answer.ts). Anything else breaks the connection and fails the call. As with `node:http`, a
 * connection that is idle is closed after some seconds, and keeps no process alive. Streams, TLS and proxies stay with
 * `node:http` (http-fetch.ts).
 */
import type { Socket } from "node:net";
import type { Fetched } from "./fetch.ts";
import { LeanAnswer } from "./lean-answer.ts";

/** Connections that are kept for a server; more are closed when they have nothing to do. */
const IDLE_MAX = 256;
/** As long as the global `fetch` waits. */
const CONNECT_MS = 10_000;
/** A peer that is gone without a word is noticed, as by node:http: calls may be held for a minute. */
const SOCKET_OPTIONS = { noDelay: true, keepAlive: true, keepAliveInitialDelay: 1000 } as const;
/** What may stand in a head; node:http knows how to refuse or to write the rest. */
const IN_PATH = /^[\x21-\x7e]+$/;
const IN_HEAD = /^[\t\x20-\x7e]*$/;

type LeanServer = { readonly hostname: string; readonly port: string };
type LeanRequest = {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
};

/**
 * The request as it is sent, of any method but HEAD; the names of its headers are the client's own. Null if something
 * in its head is not to be sent as it is.
 */
export function leanText({ hostname, port }: LeanServer, request: LeanRequest): string | null {
  const { method, path, headers, body = "" } = request;
  const name = hostname.includes(":") ? `[${hostname}]` : hostname;
  const host = port === "" ? name : `${name}:${port}`;
  if (!IN_PATH.test(path)) return null;
  let text = `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: keep-alive\r\n`;
  for (const field in headers) {
    const value = headers[field] as string;
    if (!IN_HEAD.test(value)) return null;
    text += `${field}: ${value}\r\n`;
  }
  if (body !== "" || method !== "GET") text += `content-length: ${Buffer.byteLength(body)}\r\n`;
  return `${text}\r\n${body}`;
}

type Connect = (to: typeof SOCKET_OPTIONS & { readonly host: string; readonly port: number }) => Socket;
export type LeanHttp = (server: LeanServer, text: string, signal: AbortSignal) => Promise<Fetched>;

export function createLeanHttp(connect: Connect): LeanHttp {
  /** Those that are idle, by their server: of these a program knows a few. */
  const kept = new Map<string, LeanConnection[]>();
  return ({ hostname, port }, text, signal) => {
    const name = `${hostname} ${port}`;
    const idle = kept.get(name) ?? [];
    kept.set(name, idle);
    for (let found = idle.pop(); found !== undefined; found = idle.pop())
      if (found.isKept()) return found.ask(text, signal);
    const socket = connect({ ...SOCKET_OPTIONS, host: hostname, port: port === "" ? 80 : Number(port) });
    return new LeanConnection(socket, idle).ask(text, signal);
  };
}

type UnderWay = {
  readonly signal: AbortSignal;
  readonly resolve: (answer: Fetched) => void;
  readonly reject: (error: unknown) => void;
};

class LeanConnection {
  private readonly socket: Socket;
  /** Where it is found while it is idle. */
  private readonly idle: LeanConnection[];
  private answer = new LeanAnswer();
  private underWay: UnderWay | null = null;
  private keptUntil = 0;
  private readonly giveUp = (): void => void this.fail(this.underWay?.signal.reason);
  private readonly close = (): void => void this.fail(new Error("the answers of its connection are mixed up"));

  constructor(socket: Socket, idle: LeanConnection[]) {
    this.socket = socket;
    this.idle = idle;
    limitConnecting(socket, (error) => void socket.destroy(error));
    socket.on("data", (bytes: Buffer) => this.read(bytes));
    // A refusal that is cut is one all the same.
    socket.on("error", (error) => (this.answer.isRefusalSoFar() ? this.finish() : this.fail(error)));
    socket.on("timeout", () => void socket.destroy());
    // What is still to be sent may keep the connection from closing for as long as nobody reads it.
    socket.on("end", () => this.onEnded());
    socket.on("close", () => this.onEnded());
  }

  /** Whether it can carry a call. A busy thread may be late to close what has been idle for too long. */
  isKept(): boolean {
    if (this.socket.writable && performance.now() < this.keptUntil) return true;
    this.socket.destroy();
    return false;
  }

  ask(text: string, signal: AbortSignal): Promise<Fetched> {
    const { promise, resolve, reject } = Promise.withResolvers<Fetched>();
    this.underWay = { signal, resolve, reject };
    signal.addEventListener("abort", this.giveUp, { once: true });
    this.socket.setTimeout(0);
    this.socket.ref();
    this.socket.write(text);
    return promise;
  }

  private read(bytes: Buffer): void {
    // What nobody has asked for.
    if (this.underWay === null) return void this.socket.destroy();
    try {
      if (!this.answer.add(bytes)) return;
    } catch (error) {
      return this.fail(error);
    }
    this.finish();
  }

  /** It carries another only if all of this request has left. */
  private finish(): void {
    const { answer, socket, idle } = this;
    this.answer = new LeanAnswer();
    try {
      const fetched = answer.fetched();
      this.over()?.resolve({ ...fetched, close: this.close });
    } catch (error) {
      // More than a text can hold.
      return this.fail(error);
    }
    const isFree = socket.writable && socket.writableLength === 0;
    if (answer.keptMs === 0 || !isFree || idle.length >= IDLE_MAX) return void socket.destroy();
    this.keptUntil = performance.now() + answer.keptMs;
    socket.setTimeout(answer.keptMs);
    socket.unref();
    idle.push(this);
  }

  private fail(error: unknown): void {
    this.over()?.reject(error);
    this.socket.destroy();
  }

  private over(): UnderWay | null {
    const { underWay } = this;
    underWay?.signal.removeEventListener("abort", this.giveUp);
    this.underWay = null;
    return underWay;
  }

  /** Nobody is to take it from now on, and nothing more comes. */
  private onEnded(): void {
    const at = this.idle.indexOf(this);
    if (at >= 0) this.idle.splice(at, 1);
    if (this.underWay === null) return;
    if (this.answer.isWholeAtEnd()) this.finish();
    else this.fail(Object.assign(new Error("the connection was closed before the answer"), { code: "ECONNRESET" }));
  }
}

/** A connection that is not there in time is given up. */
export function limitConnecting(socket: Socket, giveUp: (error: Error) => void): void {
  if (!socket.connecting) return;
  const late = setTimeout(() => {
    const error = new Error(`no connection within ${CONNECT_MS} ms`);
    giveUp(Object.assign(error, { code: "CONNECT_TIMEOUT" }));
  }, CONNECT_MS);
  const isOver = (): void => clearTimeout(late);
  socket.once("connect", isOver).once("close", isOver);
}
