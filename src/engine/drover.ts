/**
 * Drover embedded in a program: open it, give it tasks, run them, ask it why.
 *
 *     const drover = await openDrover({ data: ".drover" });
 *     await drover.worker({ slots: 4 }, async (task, context) => work(task.params));
 *     const { taskId } = await drover.submit({ agentId: "ann", action: "build" });
 *     const task = await drover.wait(taskId);
 *
 * Without `data` everything is in memory and ends with the process. Every answer is durable when it
 * arrives. What a Drover consists of is in life.ts.
 */
import { randomUUID } from "node:crypto";
import type { Reader } from "../core/base/index.ts";
import { badField, fail, flag, isRecord, milliseconds, ok, readSection, whole } from "../core/base/index.ts";
import { type Config, readConfig } from "../core/config/index.ts";
import { type Log, LogFailure } from "../log/index.ts";
import { createMemoryLog } from "../log/memory/index.ts";
import { openSqliteLog as open, type SqliteLogOptions } from "../log/sqlite/index.ts";
import type { ConfigInput } from "../protocol/index.ts";
import { type Clock, clockFrom, realClock } from "../std/index.ts";
import { accepted, badInput, reading, refused } from "./base/drover-error.ts";
import { identityIn } from "./base/node-identity.ts";
import { apiOf, type Drover } from "./drover-api.ts";
import type { FileMedium } from "./files/medium.ts";
import { startLife } from "./life.ts";
import type { ArtifactExists } from "./tasks/artifacts.ts";
import { createClockWatch } from "./writer/clock-watch.ts";
import { logClockOver } from "./writer/log-clock.ts";
import { recover } from "./writer/recovery.ts";

export type { Drover, LogTime } from "./drover-api.ts";

const LEAD_MS = 10_000;
/** What a log, a clock or a medium must at least be able to do. */
const METHODS = {
  log: ["append", "read", "readRecord", "head", "loadSnapshot", "acquireLead", "verify", "close"],
  clock: ["now", "elapsed", "defer", "ringAt"],
  fileMedium: ["sweep", "list", "look", "receive", "read", "touch", "remove"],
} as const;

/** How a Drover is opened. */
export type OpenOptions = {
  /** The data directory; absent: in memory. */
  readonly data?: string;
  /** A log that is open already; it is closed with the Drover. */
  readonly log?: Log;
  /** What differs from the defaults; see docs/reference/config.md. Absent: what the log has stays in force. */
  readonly config?: ConfigInput | Config;
  /** The wall clock in milliseconds, for tests. */
  readonly now?: () => number;
  /** Whether an input artifact is there; by default, whether the file exists under `artifacts.root`. */
  readonly artifactExists?: ArtifactExists;
  /** Called with what went wrong though Drover goes on, such as a snapshot; by default a warning of the process. */
  readonly onWarning?: (message: string) => void;
  /** The time, the next turn and the alarms, for simulators and tests. */
  readonly clock?: Clock;
  /** Makes a name that no other batch or session has, for simulators and tests. */
  readonly newId?: () => string;
  /** Where the contents of files lie, for simulators and tests. */
  readonly fileMedium?: FileMedium;
};

/** Opens a Drover inside this program: in memory, or with its data in a directory. */
export async function openDrover(options: OpenOptions = {}): Promise<Drover> {
  const config = reading(options, "", () => {
    checkOptions(options);
    return accepted(readConfig(options.config));
  });
  if (options.data !== undefined) checkOwnLog(options.data);
  const log =
    options.log ?? (options.data === undefined ? createMemoryLog() : await openSqliteLog({ directory: options.data }));
  try {
    return await openOver(options, log, options.config === undefined ? null : config);
  } catch (error) {
    await log.close();
    throw error;
  }
}

async function openOver(options: OpenOptions, log: Log, config: Config | null): Promise<Drover> {
  const { newId = randomUUID, clock = options.now ? clockFrom(options.now) : realClock } = options;
  const onWarning = options.onWarning ?? ((message: string) => process.emitWarning(message, "DroverWarning"));
  const recovered = await recover(log);
  const { epoch } = await log.acquireLead(newId(), milliseconds(LEAD_MS));
  const role = { type: "leader", epoch, config } as const;
  const onReading = createClockWatch((text) => (text === null ? undefined : onWarning(text)));
  const logClock = logClockOver(clock, () => recovered.state, onReading);
  return apiOf(await startLife({ ...options, ...recovered, log, logClock, role, clock, newId, onWarning }));
}

/** What is written into the replica of a node is not in the log that it is a replica of. */
function checkOwnLog(data: string): void {
  const node = identityIn(data);
  if (node === null) return;
  throw new LogFailure(
    "refused",
    `the data directory ${data} is that of node ${node.id} of a cluster, whose log is elsewhere. ` +
      "Nothing was changed. Serve it with --log and the address of that log; to go on without the cluster, " +
      "copy the directory of a stopped node and remove node.json from the copy.",
  );
}

function checkOptions(options: OpenOptions): void {
  if (!isRecord(options)) throw badInput("options", options, "an object such as { data: …, config: … }");
  const known = ["data", "log", "config", "now", "artifactExists", "onWarning", "clock", "newId", "fileMedium"];
  for (const key of Object.keys(options)) {
    if (!known.includes(key)) throw refused({ type: "unknown-field", field: key, known });
  }
  if (options.data !== undefined) accepted(directoryPath(options.data, "data"));
  if (options.data !== undefined && options.log !== undefined)
    throw badInput("log", "a log", "absent where data names a directory: one or the other");
  for (const key of ["log", "clock", "fileMedium"] as const) {
    const given: unknown = options[key];
    const able = (typeof given === "object" && given !== null ? given : {}) as Readonly<Record<string, unknown>>;
    const missing = METHODS[key].filter((method) => typeof able[method] !== "function");
    if (given !== undefined && missing.length > 0)
      throw badInput(key, given, `a ${key}: an object with the functions ${missing.join(", ")}`);
  }
  for (const key of ["now", "artifactExists", "onWarning", "newId"] as const) {
    if (options[key] !== undefined && typeof options[key] !== "function")
      throw badInput(key, options[key], "a function");
  }
}

const directoryPath: Reader<string> = (value, field) =>
  typeof value === "string" && !/^$|\0/.test(value)
    ? ok(value)
    : fail(badField(field, value, "the path of a directory, without NUL characters"));

/** Opens the log in a directory, to open Drover with or to read beside it: also for reading only. */
export async function openSqliteLog(options: SqliteLogOptions): Promise<Log> {
  const fields = { directory: directoryPath, readOnly: flag, maxBytes: whole(1) };
  const read = readSection<Partial<SqliteLogOptions>>(fields as never, {}, options, "options");
  const { directory, ...rest } = accepted(read);
  if (directory === undefined) throw badInput("options.directory", directory, "the path of a directory");
  return open({ directory, ...rest });
}
