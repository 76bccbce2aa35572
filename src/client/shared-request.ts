/**
 * What calls and waits that share a request have in common: how it is refused as a whole, and how one of them is.
 */
import type { BulkItem } from "../protocol/index.ts";
import type { ClientError } from "./client-error.ts";
import { refusalFrom } from "./exchange.ts";

/** The server does not know such a request. */
export const UNKNOWN: ReadonlySet<number> = new Set([404, 405, 415]);
export const TOO_LARGE = 413;
/** What is refused for the size or form of the whole; a part of it may be right. */
export const FOR_THE_WHOLE: ReadonlySet<number> = new Set([400, TOO_LARGE, ...UNKNOWN]);

export const refusalOfOne = ({ status, body, retryAfterS }: BulkItem): ClientError =>
  refusalFrom(status, body, retryAfterS === undefined ? undefined : retryAfterS * 1000);
