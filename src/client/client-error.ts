/**
 * The one error a caller of the client sees.
 *
 * Where the server refused, it is the server's own word: `code` for programs, the message for people, `details` as
 * data. Where something on the way refused, the code is no more than what its status means, and `isForeign` says so.
 * Where no answer came, the code says so and the status is 0. `retryable` says whether the very same call may succeed
 * later and is safe to make again; the client has then tried as often as it was told to.
 */
import type { WireCode } from "../protocol/wire/index.ts";

/**
 * `network`: no answer came; `timeout`: none came in time, or the request did not arrive in time (status 408);
 * `bad_answer`: one came that is not Drover's.
 */
export type ClientErrorCode = WireCode | "network" | "timeout" | "bad_answer";

type More = {
  readonly status?: number;
  readonly retryable?: boolean;
  readonly details?: Readonly<Record<string, unknown>>;
  readonly retryAfterMs?: number | undefined;
  readonly isForeign?: boolean;
  readonly cause?: unknown;
};

/** Why a call did not succeed. */
export class ClientError extends Error {
  override readonly name: string = "ClientError";
  /** The HTTP status; 0 where no answer came. */
  readonly status: number;
  /** What is wrong, for programs. */
  readonly code: ClientErrorCode;
  /** Whether the very same call may succeed later. */
  readonly retryable: boolean;
  /** The facts, such as field, value and expected. */
  readonly details: Readonly<Record<string, unknown>>;
  /** How long the server asked to wait. */
  readonly retryAfterMs: number | undefined;
  /** Whether the refusal is not in Drover's words, as that of a proxy: its code is only what its status means. */
  readonly isForeign: boolean;

  constructor(code: ClientErrorCode, message: string, more: More = {}) {
    super(message, more.cause === undefined ? {} : { cause: more.cause });
    this.code = code;
    this.status = more.status ?? 0;
    this.retryable = more.retryable ?? false;
    this.details = more.details ?? {};
    this.retryAfterMs = more.retryAfterMs;
    this.isForeign = more.isForeign ?? false;
  }
}
