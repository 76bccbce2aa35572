/**
 * One HTTP request to somebody else's server, and what came of it.
 *
 * Made with node:http rather than `fetch`, for three things `fetch` does not give: the connection can be bound to
 * addresses that were checked before; nothing is followed, pooled or repeated behind the caller's back (a request that
 * moves a mouse must go out once); and there is no limit of time but the caller's signal. Of a failure it says the one
 * thing a caller must know before trying again: whether the other side can have got anything.
 *
 * The answer is given as soon as its head is there. The body comes only if it is asked for, up to a size; a caller that
 * does not want all of it still lets go of the connection by reading or by `drop`.
 */
import { type IncomingHttpHeaders, type IncomingMessage, request as overHttp, type RequestOptions } from "node:http";
import { request as overHttps } from "node:https";
import type { LookupFunction } from "node:net";
import { createGrowingBytes } from "./growing-bytes.ts";

export type ResolvedAddress = { readonly address: string; readonly family: number };
export type OutboundRequest = {
  readonly url: URL;
  readonly method: "GET" | "POST";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Where its name leads. Absent: whatever the system's resolver says. */
  readonly addresses?: readonly ResolvedAddress[];
  readonly signal: AbortSignal;
};
export type OutboundAnswer = {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** The body, or its first `bytesMax` bytes. Rejects if it breaks off. */
  read(bytesMax: number): Promise<{ readonly bytes: Buffer; readonly isWhole: boolean }>;
  drop(): void;
};
export type Exchange = (request: OutboundRequest) => Promise<OutboundAnswer>;

/** How far a request that failed had come: with `none` nothing was sent; with `connection` it may have been. */
export class ExchangeFailure extends Error {
  override readonly name: string = "ExchangeFailure";
  readonly reached: "none" | "connection" | "head";
  /** Somebody took the connection, though perhaps nothing could be sent over it yet. */
  readonly isTaken: boolean;
  constructor(reached: ExchangeFailure["reached"], cause: unknown, isTaken: boolean = reached !== "none") {
    super(messageOf(cause), { cause });
    this.reached = reached;
    this.isTaken = isTaken;
  }
}

/** Every address a name has may have failed on its own; then the first says enough. */
function messageOf(cause: unknown): string {
  const first = cause instanceof AggregateError ? cause.errors[0] : cause;
  if (!(first instanceof Error)) return String(first);
  return first.message || (first as { code?: string }).code || first.name;
}

/** A name as a header may hold it: what is not plain ASCII is percent-encoded, `%` included, so it can be read back. */
export const headerText = (name: string): string =>
  name.toWellFormed().replaceAll(/[^\x21-\x24\x26-\x7e]/gu, encodeURIComponent);

export function exchange({ url, method, headers, body, addresses, signal }: OutboundRequest): Promise<OutboundAnswer> {
  const isSecure = url.protocol === "https:";
  const bytes = body === undefined ? undefined : Buffer.from(body);
  const options: RequestOptions = {
    method,
    headers: { ...headers, ...(bytes === undefined ? {} : { "Content-Length": String(bytes.length) }) },
    // A connection of its own: one from a pool may have been opened to an address that was not checked, or be dead.
    agent: false,
    ...(addresses === undefined ? {} : { lookup: lookupIn(addresses) }),
  };
  return new Promise((resolve, reject) => {
    let reached: ExchangeFailure["reached"] = "none";
    let isTaken = false;
    const request = (isSecure ? overHttps : overHttp)(url, options);
    const abort = (): void => void request.destroy(asError(signal.reason));
    request.once("socket", (socket) => {
      socket.once("connect", () => {
        isTaken = true;
      });
      socket.once(isSecure ? "secureConnect" : "connect", () => {
        reached = "connection";
      });
    });
    request.once("response", (response) => {
      reached = "head";
      resolve(answerOf(response));
    });
    request.on("error", (error) => reject(new ExchangeFailure(reached, error, isTaken)));
    request.once("upgrade", (_response, socket) => {
      socket.destroy();
      reject(new ExchangeFailure("head", new Error("it answered 101, to go on in another protocol")));
    });
    request.once("close", () => {
      signal.removeEventListener("abort", abort);
      // Whatever else may end a request without an error; it has been settled long ago in every other case.
      reject(new ExchangeFailure(reached, new Error("the connection was closed without an answer"), isTaken));
    });
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
    else request.end(bytes);
  });
}

const asError = (reason: unknown): Error => (reason instanceof Error ? reason : new Error(String(reason)));

/** Answers with what was resolved and checked already, whatever a resolver would say by now. */
function lookupIn(addresses: readonly ResolvedAddress[]): LookupFunction {
  return (_hostname, { all }, callback) => {
    const [first] = addresses;
    if (first === undefined) callback(new Error("the name has no address"), "", 0);
    else if (all === true) callback(null, [...addresses]);
    else callback(null, first.address, first.family);
  };
}

function answerOf(response: IncomingMessage): OutboundAnswer {
  // Without a listener, an answer that breaks off before anybody reads it would end the process.
  response.on("error", () => {});
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    drop: () => void response.destroy(),
    read: (bytesMax) => readUpTo(response, bytesMax),
  };
}

async function readUpTo(response: IncomingMessage, bytesMax: number): Promise<{ bytes: Buffer; isWhole: boolean }> {
  const kept = createGrowingBytes(bytesMax);
  let isWhole = true;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      isWhole = kept.add(chunk) !== null;
      if (isWhole) continue;
      kept.add(chunk.subarray(0, bytesMax - kept.bytes().length));
      break;
    }
  } catch (error) {
    throw new ExchangeFailure("head", error);
  }
  response.destroy();
  return { bytes: kept.bytes(), isWhole };
}
