/**
 * How every answer leaves: its head and its body in one piece, and then the observers hear of it.
 *
 * A caller that takes nothing of its answer for a while is cut off. Nearly always the connection takes all of it at
 * once, so the timer for that is set where it did not: one for every request would be among the dearest parts of a
 * small one. What was not taken is counted too (unread-answers.ts).
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { PROTOCOL_HEADER, PROTOCOL_VERSION } from "../protocol/wire/index.ts";
import { realClock, ringAfter } from "../std/index.ts";
import type { Problem } from "./problem.ts";
import type { UnreadAnswers } from "./unread-answers.ts";

/** Headers that every answer has: the version of the protocol, and that nothing is to be guessed or kept. */
export const SAFE_HEADERS: Readonly<Record<string, string>> = {
  [PROTOCOL_HEADER]: String(PROTOCOL_VERSION),
  "x-content-type-options": "nosniff",
  "cache-control": "no-store",
};
export const JSON_TYPE = "application/json; charset=utf-8";

/** Hears that one request of a route was answered. */
export type OnAnswered = (status: number, ms: number, traceparent: string | undefined) => void;
export type SendParts = {
  /** Whether each answer is the last of its connection. */
  readonly isClosing: () => boolean;
  readonly problemOf: (error: unknown) => Problem;
  /** The observer of a route. */
  readonly observerOf: (method: string, route: string) => OnAnswered;
  /** Something that should never happen has; the log should have it. */
  readonly onBug: (error: unknown, route: string) => void;
  /** A caller that takes nothing for so long is gone. */
  readonly silenceMs: number;
  readonly unread: UnreadAnswers;
};
/** A request under way; the route is the pattern, never the path itself. */
export type RequestContext = {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly route: string;
  readonly startedAt: number;
};
/** An answer that is written already, as the text of its JSON. */
export class AnswerText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  toString(): string {
    return this.text;
  }
}
/** To the compiler it is still the answer, so it can be given wherever one is taken. */
export const asText = <Value>(text: string): Value => new AnswerText(text) as unknown as Value;

type Answer = {
  readonly status: number;
  /** Text is this answer's own; bytes are shared with other callers of the same. */
  readonly body: string | Buffer;
  /** Each name followed by its value. */
  readonly headers: readonly string[];
};

/** A longer text is turned into bytes before it is handed over: on the way Node would copy it more than once. */
const TEXT_MAX = 64 * 1024;
const SAFE: readonly string[] = Object.entries(SAFE_HEADERS).flat();
/** The headers of an answer of this kind. */
export const headersOf = (media: string): readonly string[] => [...SAFE, "content-type", media];
const PROBLEM = headersOf(JSON_TYPE);

export function sendAnswer(parts: SendParts, context: RequestContext, answer: Answer, onAnswered: OnAnswered): void {
  const { request, response, route, startedAt } = context;
  const { status, body, headers } = answer;
  const size = Buffer.byteLength(body);
  const head = headers.concat("content-length", String(size));
  if (parts.isClosing()) head.push("connection", "close");
  response.writeHead(status, head);
  response.end(typeof body === "string" && size > TEXT_MAX ? Buffer.from(body) : body);
  if (response.writableLength > 0 && !response.destroyed) {
    cutOffSilent(response, parts.silenceMs);
    if (typeof body === "string") response.once("close", parts.unread.hold(response, size));
  }
  try {
    onAnswered(status, performance.now() - startedAt, request.headers.traceparent as string | undefined);
  } catch (error) {
    // The answer has gone out; an observer that fails changes nothing about it.
    parts.onBug(error, route);
  }
}

/** Ends the connection if nothing moves on it for so long. */
export const cutOffSilent = (response: ServerResponse, ms: number): void =>
  void response.setTimeout(ms, () => response.destroy());

/** A body that is no longer is read to its end, and dropped, for its connection to be of use again. */
const REST_BYTES_MAX = 1024 * 1024;
/** For the caller to take the answer: a connection closed with bytes unread is reset, and that may overtake it. */
const LINGER_MS = 1000;

/** Nobody makes this server read on what it has refused: a longer body, or one of unknown length, ends with it. */
export function leaveRest({ request, response }: Pick<RequestContext, "request" | "response">): void {
  if (Number(request.headers["content-length"]) <= REST_BYTES_MAX) return;
  const cutOff = (): void => void (request.complete || request.socket.destroy());
  response.once("finish", () => {
    request.once("close", ringAfter(realClock, LINGER_MS, cutOff, { keepAlive: false }));
  });
}

/** A label for each of these; whatever else HTTP knows has one together. */
const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

/** Says no; `more` are further headers. */
export function sendProblem(
  parts: SendParts,
  context: RequestContext,
  error: unknown,
  more: readonly string[] = [],
): void {
  const { status, body, retryAfterS, isBug } = parts.problemOf(error);
  const isLate = context.response.headersSent;
  if (isBug || isLate) parts.onBug(error, context.route);
  // In the middle of another answer nothing can be said any more.
  if (isLate) return void context.response.destroy();
  const headers = PROBLEM.concat(
    retryAfterS === undefined ? [] : ["retry-after", String(retryAfterS)],
    status === 401 ? ["www-authenticate", "Bearer"] : [],
    more,
  );
  const { method = "", complete, socket } = context.request;
  if (!complete) {
    // Where the body is still on its way: with a server that closes meanwhile, nothing comes after it.
    context.request.once("end", () => void (parts.isClosing() && socket.end()));
    leaveRest(context);
  }
  const onAnswered = parts.observerOf(METHODS.has(method) ? method : "other", context.route);
  sendAnswer(parts, context, { status, body: JSON.stringify(body), headers }, onAnswered);
}
