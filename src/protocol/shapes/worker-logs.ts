/** The logs of attempts, as their workers hand them in. */
import type * as wire from "../generated/worker-logs.ts";
import * as s from "../schema/schema.ts";
import { SESSION_MAX } from "./workers.ts";

/** The end of a log has no more than this, as JSON. */
export const LOG_BYTES_MAX = 262_144;
export const LOG_ERROR_MAX = 1024;

export const logBody: s.Schema<wire.LogBody> = s.namedObject("LogBody", {
  session: s.optional(s.text(1, SESSION_MAX), "As joining gave it. A worker token must say it."),
  id: s.described(s.name(), "As the answer of a sync named it."),
  text: s.described(s.nullable(s.text(0, LOG_BYTES_MAX)), "The last lines; null: there is no such log."),
  truncated: s.optional(s.flag(), "Whether there was more before.", { default: false }),
  error: s.optional(s.text(0, LOG_ERROR_MAX), "Why it could not be read, beside a text of null."),
});
export const logStatus: s.Schema<wire.LogStatus> = s.answer({
  status: s.described(s.oneOf("taken", "late"), "late: no caller waits for it any more."),
  id: s.name(),
});
