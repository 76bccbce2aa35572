/**
 * What a worker over the wire may say, read at the door.
 *
 * Joining is what any worker says of itself, and for a push worker where it is. A sync says all that is new since the
 * last one: what runs, what has ended, how much more it wants.
 */

import {
  badField,
  type Fields,
  fail,
  finite,
  flag,
  isRecord,
  name,
  ok,
  oneOf,
  orNull,
  type Reader,
  readSection,
  SPAN_MS_MAX,
  section,
  setOf,
  text,
  whole,
} from "../../core/base/index.ts";
import type { PushTarget, Takes, WorkerSettings } from "../../core/model/index.ts";
import type { ResultReport, RunningReport, SyncBody, Usage } from "../../protocol/index.ts";
import { tokensOf } from "../permits/local-permits.ts";
import { canonical } from "../writer/canonical-json.ts";
import { badInput, DroverError, reading, refused } from "../writer/drover-error.ts";
import { capability, readWorker } from "./worker-options.ts";

export const WAIT_MS_MAX: number = 60_000;
export const SESSION_MAX = 256;
const REPORTS_MAX = 10_000;
const PROGRESS_BYTES_MAX = 16 * 1024;
const ATTEMPT_MAX = 1_000_000_000;
const NOTE_MAX = 1000;

export function readJoin(body: unknown): {
  id: string | null;
  settings: WorkerSettings;
  takes: Takes | null;
  target: PushTarget | null;
} {
  return reading(body, "", () => {
    if (!isRecord(body)) throw badInput("(body)", body, "an object");
    const { endpoint, path, ...rest } = body;
    const target = readTarget(endpoint, path);
    return { ...readWorker(rest), target };
  });
}

function readTarget(endpoint: unknown, path: unknown): PushTarget | null {
  if (endpoint === undefined || endpoint === null) {
    if (path === undefined || path === null) return null;
    throw badInput("path", path, "absent without an endpoint");
  }
  const read = text(1, 2048)(endpoint, "endpoint");
  const url = read.ok && URL.canParse(read.value) ? new URL(read.value) : null;
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "")
    throw badInput("endpoint", endpoint, "an http or https URL without credentials, such as http://127.0.0.1:9222");
  const where = path === undefined ? ok(null) : orNull(text(1, 2048))(path, "path");
  if (!where.ok) throw refused(where.failure);
  if (where.value !== null && !where.value.startsWith("/")) throw badInput("path", path, "a path that begins with /");
  return { endpoint: url.href, path: where.value };
}

export const usage: Reader<Usage> = (value, field) => {
  try {
    tokensOf(value as Usage);
    return ok(value as Usage);
  } catch (error) {
    if (!(error instanceof DroverError) || error.refusal === null || !("field" in error.refusal)) throw error;
    return fail({ ...error.refusal, field: `${field}${error.refusal.field.slice("usage".length)}` });
  }
};
const anything: Reader<unknown> = (value) => ok(value);
const progress: Reader<unknown> = (value, field) => {
  const size = canonical(value, field).length;
  return size <= PROGRESS_BYTES_MAX
    ? ok(value)
    : fail(badField(field, `${size} characters`, `at most ${PROGRESS_BYTES_MAX} characters of JSON`));
};
const attempt = { taskId: name(), attempt: whole(1, ATTEMPT_MAX) };
const RUNNING: Fields<Required<RunningReport>> = { ...attempt, progress, usage };
const RESULT: Fields<Required<ResultReport>> = {
  ...attempt,
  outcome: oneOf("done", "failed", "cancelled", "requeue"),
  result: anything,
  error: text(0, 1024 * 1024),
  usage,
  retryAfterMs: finite(0, SPAN_MS_MAX),
  rateLimited: flag,
  permanent: flag,
};

/** A list of reports, each with the fields that it must have. */
function reports<Report extends { taskId: string }>(
  fields: Fields<Required<Report>>,
  needed: readonly string[],
): Reader<readonly Report[]> {
  return (value, field) => {
    if (!Array.isArray(value) || value.length > REPORTS_MAX)
      return fail(badField(field, value, `a list of at most ${REPORTS_MAX} objects`));
    const read: Report[] = [];
    for (const [index, item] of value.entries()) {
      const at = `${field}[${index}]`;
      const one = readSection<Report>(fields as unknown as Fields<Report>, {} as Report, item, at);
      if (!one.ok) return one;
      const missing = needed.find((key) => !Object.hasOwn(one.value, key));
      if (missing !== undefined) return fail(badField(`${at}.${missing}`, undefined, "there"));
      read.push(one.value);
    }
    return ok(read);
  };
}

type Room = { readonly cpuMillicores: number | null; readonly memoryBytes: number | null };
const unlimited: Room = { cpuMillicores: null, memoryBytes: null };
const SYNC: Fields<Required<Omit<SyncBody, "logPlace">>> = {
  session: text(1, SESSION_MAX),
  n: whole(0),
  want: whole(0, 100_000),
  waitMs: whole(0, WAIT_MS_MAX),
  status: oneOf("ready", "overloaded", "draining"),
  note: text(0, NOTE_MAX),
  capabilities: setOf(capability, 10_000),
  resources: section<Room>({ cpuMillicores: orNull(whole(0)), memoryBytes: orNull(whole(0)) }, unlimited),
  running: reports<RunningReport>(RUNNING, ["taskId", "attempt"]),
  results: reports<ResultReport>(RESULT, ["taskId", "attempt", "outcome"]),
};

export function readSync(body: unknown): SyncBody {
  const read = readSection<SyncBody>(SYNC as unknown as Fields<SyncBody>, {}, body ?? {}, "");
  if (!read.ok) throw refused(read.failure);
  return read.value;
}
