/**
 * What the engine refuses, as the server answers it.
 */

import { DroverError, type DroverErrorCode } from "../engine/base/index.ts";
import { LogFailure } from "../engine/index.ts";
import { bug, type Problem, problem, ServerRefusal } from "../http/index.ts";
import type { WireCode } from "../protocol/index.ts";
import { isoTime } from "../std/index.ts";

/** The wire has the engine's code, but for these two; another that it does not have does not compile. */
const wireCode = (code: DroverErrorCode): WireCode =>
  code === "stopped" ? "closed" : code === "broken" ? "internal" : code;

export function problemOf(error: unknown): Problem {
  if (error instanceof DroverError) return ofEngine(error);
  if (error instanceof ServerRefusal) return problem(error.code, error.message, error.details, error.retryAfterMs);
  return error instanceof LogFailure ? ofLog(error) : bug();
}

const GOING = "the server is shutting down; try again later";

function ofEngine(error: DroverError): Problem {
  if (error.code === "broken") return bug();
  // Its own words are for whoever embeds it, who could open it again; over HTTP nobody can.
  if (error.code === "closed") return problem("closed", GOING, {}, error.details.retryAfterMs);
  return problem(wireCode(error.code), error.message, detailsOf(error), error.details.retryAfterMs);
}

/** A log that cannot be read: the caller may try later, and the server's log has why. */
function ofLog({ code }: LogFailure): Problem {
  if (code === "closed") return problem("closed", GOING);
  return { ...problem("log_failed", "the log cannot be read; the server's log says why"), isBug: true };
}

/** The core's short names are not those of the wire, and its instants are numbers. */
const ON_THE_WIRE: ReadonlyMap<string, string> = new Map([
  ["agent", "agentId"],
  ["task", "taskId"],
  ["worker", "workerId"],
  ["permit", "permitId"],
  ["schedule", "scheduleId"],
]);

function detailsOf({ details, refusal }: DroverError): Readonly<Record<string, unknown>> {
  if (refusal?.type === "past-deadline") {
    const { field, deadline, now } = refusal;
    return { field, deadline: isoTime(deadline), now: isoTime(now) };
  }
  const named = Object.entries(details).map(([key, value]) => [ON_THE_WIRE.get(key) ?? key, value]);
  return Object.fromEntries(named) as Record<string, unknown>;
}
