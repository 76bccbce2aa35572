/**
 * How a server says no: every error becomes `{error, code, retryable?, details?}` with the right status.
 *
 * A code has its status in the protocol. What was not expected is a bug: the caller hears that it is one and nothing of
 * the inside, the log hears the rest. Where the same request may succeed later the answer says when: `Retry-After`
 * holds whole seconds, from the refusal if it knows, else one.
 */
import { WIRE_CODES, type WireCode, type WireError } from "../protocol/wire/index.ts";

const RETRY_AFTER_S = 1;

export type Problem = {
  readonly status: number;
  readonly body: WireError;
  readonly retryAfterS?: number;
  /** Something that was not expected: the log should have it. */
  readonly isBug: boolean;
};
type Details = Readonly<Record<string, unknown>>;

/** A refusal of the server itself, where the engine has not been asked. */
export class ServerRefusal extends Error {
  override readonly name: string = "ServerRefusal";
  readonly code: WireCode;
  readonly details: Details | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(code: WireCode, message: string, details?: Details, retryAfterMs?: number) {
    super(message);
    this.code = code;
    this.details = details;
    this.retryAfterMs = retryAfterMs;
  }
}

export const forbidden = (message: string, details: Details = {}): ServerRefusal =>
  new ServerRefusal("forbidden", message, details);

export const badHeader = (name: string, message: string): ServerRefusal =>
  new ServerRefusal("bad_request", message, { field: `header ${name}` });

/** `retryAfterMs` counts if it is a number. */
export function problem(code: WireCode, error: string, details: Details = {}, retryAfterMs?: unknown): Problem {
  const { status, retryable } = WIRE_CODES[code];
  const body: WireError = {
    error,
    code,
    ...(retryable ? { retryable } : {}),
    ...(Object.keys(details).length === 0 ? {} : { details }),
  };
  const isLater = status === 429 || status === 503;
  return { status, body, ...(isLater ? { retryAfterS: secondsOf(retryAfterMs) } : {}), isBug: code === "internal" };
}

const secondsOf = (ms: unknown): number =>
  typeof ms === "number" && Number.isFinite(ms) ? Math.max(RETRY_AFTER_S, Math.ceil(ms / 1000)) : RETRY_AFTER_S;

export const bug = (): Problem => problem("internal", "this is a bug of Drover; the server's log says more");
