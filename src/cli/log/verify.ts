/**
 * `drover verify`: is this log what was written, and all of it?
 *
 * It reads the data directory itself, beside a server that runs or without one, and takes no lock: a person who doubts
 * a server should not have to ask it. Integrity is always checked; completeness only against an anchor that was kept
 * elsewhere, since a log that lost its end is a valid shorter log. So the head is printed, to be kept; and the key that
 * the signatures were checked with, since a program that can write the directory can put another there; and what no
 * signature covers yet. Where all of that holds, the newest snapshot is compared with what its events lead to, and the
 * key with those of the nodes, which are facts of the log.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { isSha256 } from "../../core/base/index.ts";
import type { FilesReport, verifyFiles } from "../../engine/files/index.ts";
import type { Drover } from "../../engine/index.ts";
import type { Replayed } from "../../engine/snapshots/index.ts";
import { DATABASE_FILE } from "../../std/index.ts";
import { dataSetting } from "../config/load.ts";
import { type LogTarget, logTargetOf } from "../serve/messages.ts";
import type { Output } from "../shell/output.ts";
import { CliProblem, EXIT, usageProblem } from "../shell/problem.ts";
import type { Terminal } from "../shell/terminal.ts";
import { plain } from "../shell/text.ts";
import type { Call, ConfigFlags, VerbBody } from "../shell/verb.ts";
import { progressOf } from "../show/progress.ts";
import { count, span } from "../show/time.ts";
import { loadFor } from "../verbs/config.ts";

type Flags = ConfigFlags & { readonly data?: string; readonly expect?: string; readonly key?: string };

const ASKS_NO_SERVER =
  "drover verify reads a data directory on this machine, and asks no server: run it where that is (--data), or " +
  "copy the log here first (drover log copy URL DIRECTORY). GET /events/verify has a server check its own log";

/** Log time that is ahead by less is not worth a line. */
const TELLING_MS = 1000;

export const verifyVerb: VerbBody<Flags> = {
  flags: [
    { flags: "-d, --data <directory>", about: "the data directory (default: that of the config, .drover)" },
    { flags: "--expect <seq:hash>", about: "an anchor you kept: the log must still hold it" },
    { flags: "--key <fingerprint>", about: "the key that you expect its signatures to be of" },
    { flags: "-c, --config <file>", about: "read this file instead of ./drover.yml" },
  ],
  examples: [
    ["drover verify", "the log in .drover here, whatever DROVER_URL says; a server may be running meanwhile"],
    ["drover verify --data backup --expect 4711:9f86d08…", "a backup, against a head printed earlier"],
  ],
  run: async (call) => {
    if (call.flags.url !== undefined) throw usageProblem(ASKS_NO_SERVER);
    const directory = directoryOf(call);
    const expect = call.flags.expect === undefined ? {} : { expect: anchorFrom(call.flags.expect) };
    const key = call.flags.key === undefined ? null : keyFrom(call.flags.key);
    const { LogFailure, openSqliteLog } = await import("../../engine/index.ts");
    const { lastEventAt } = await import("../../engine/writer/index.ts");
    try {
      const log = await openSqliteLog({ directory, readOnly: true });
      const bar = progressOf("verify", "events", call.terminal);
      try {
        const found = await log.verify({ ...(expect as Parameters<typeof log.verify>[0]), onProgress: bar.at });
        const endedAt = found.ok ? await lastEventAt(log) : null;
        const logTimeAheadMs = Math.max(0, (endedAt ?? 0) - call.terminal.now());
        bar.end();
        const { files, ...facts } = await factsOf(directory, log, found.ok, call.terminal);
        const whole = withSnapshot({ ...found, logTimeAheadMs, files: files.count, ...facts });
        const report = withIdentity(withFiles(withKey(whole, key), files), await identityProblem(directory));
        call.output.answer(report, () => shownReport(report, directory, call.output));
        return report.ok ? EXIT.ok : EXIT.failed;
      } finally {
        bar.end();
        await log.close();
      }
    } catch (error) {
      if (!(error instanceof LogFailure)) throw error;
      const exit = error.code === "corrupt" ? EXIT.failed : EXIT.broken;
      throw new CliProblem({ message: error.message, code: `log_${error.code}`, exit });
    }
  },
};

type OpenLog = NonNullable<Parameters<typeof verifyFiles>[1]>["log"];
/** What follows from the events; of a log that is not whole, what it says means nothing. */
async function factsOf(
  directory: string,
  log: OpenLog,
  isWhole: boolean,
  terminal: Terminal,
): Promise<Facts & { files: FilesReport }> {
  const engineFiles = await import("../../engine/files/index.ts");
  const { nodeKeys, readWhole } = await import("../../engine/snapshots/index.ts");
  const replay = progressOf("replay", "events", terminal);
  const { state, snapshot } = isWhole ? await readWhole(log, replay.at) : { state: null, snapshot: null };
  replay.end();
  const look = progressOf("verify", "files", terminal);
  const files = await engineFiles.verifyFiles(directory, state === null ? null : { log, state }, look.at);
  look.end();
  return { files, snapshot, nodes: state === null ? [] : nodeKeys(state) };
}

function directoryOf({ flags, terminal }: Call<Flags>): string {
  const url =
    flags.data === undefined
      ? loadFor({ flags, terminal }).settings.log.url
      : String(dataSetting(flags.data, { kind: "flag", flag: "--data" }).value);
  const log: LogTarget = logTargetOf(url, terminal.cwd);
  if (log.kind === "memory") throw usageProblem("a log in memory cannot be verified from outside", "--data DIR");
  // Opening what is not there would create it, or complain of a file that means nothing to a person.
  if (!existsSync(join(log.directory, DATABASE_FILE)))
    throw usageProblem(`there is no log in ${log.directory}`, "name the data directory of a server: --data DIR");
  return log.directory;
}

function anchorFrom(text: string): { readonly seq: number; readonly hash: string } {
  const [, digits = "", hash = ""] = /^(\d{1,15}):([0-9a-f]{64})$/.exec(text) ?? [];
  if (digits === "") throw usageProblem(`--expect is "${text}"`, "write SEQ:HASH, the head that drover verify prints");
  return { seq: Number(digits), hash };
}

function keyFrom(text: string): string {
  if (isSha256(text)) return text;
  throw usageProblem(`--key is "${text}"`, "write the key that drover verify prints");
}

/** The report, unless it rests on another key than the one expected. */
function withKey(report: Report, expected: string | null): Report {
  if (expected === null || report.key === expected) return report;
  const message = `the signatures were checked with the key ${report.key ?? "(none)"}, not with ${expected}`;
  return { ...report, ok: false, problems: [...report.problems, { seq: 0 as Report["head"]["seq"], message }] };
}

/** The report, unless the newest snapshot is not what its events lead to. */
function withSnapshot(report: Report): Report {
  const { snapshot } = report;
  if (snapshot === null || snapshot.from === null || snapshot.message === null) return report;
  const message = `the snapshot is not what its events lead to: ${snapshot.message}`;
  const problem = { seq: snapshot.seq as Report["head"]["seq"], message };
  return { ...report, ok: false, problems: [...report.problems, problem] };
}

/** The report, unless a file that a task left is not what it was, or not there. */
function withFiles(report: Report, { damaged, missing }: FilesReport): Report {
  const messages = [
    ...damaged.map((hash) => `the file ${hash} is not what was stored`),
    ...missing.map(({ hash, task, path }) => `the file ${hash}, which ${task} has left as ${path}, is not there`),
  ];
  if (messages.length === 0) return report;
  const seq = 0 as Report["head"]["seq"];
  return { ...report, ok: false, problems: [...report.problems, ...messages.map((message) => ({ seq, message }))] };
}

/** The report, unless the file that says whose directory this is would be refused by a start. */
function withIdentity(report: Report, message: string | null): Report {
  if (message === null) return report;
  const problem = { seq: 0 as Report["head"]["seq"], message };
  return { ...report, ok: false, problems: [...report.problems, problem] };
}

async function identityProblem(directory: string): Promise<string | null> {
  const { identityIn } = await import("../../engine/base/index.ts");
  try {
    identityIn(directory);
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

type Facts = {
  /** How the newest snapshot compares with its events; null if there is none. */
  readonly snapshot: Replayed | null;
  /** The nodes of a cluster that the log knows of, and the sha256 of the key of each. */
  readonly nodes: readonly { readonly node: string; readonly key: string }[];
};
/** With how far the log ends in the future, by the clock of this machine. */
type Report = Facts &
  Awaited<ReturnType<Drover["verify"]>> & { readonly logTimeAheadMs: number; readonly files: number };

function shownReport(report: Report, directory: string, { paint }: Output): string {
  const { ok, base, head, events, checkpoints, payloads, files, unsigned, key, logTimeAheadMs, problems } = report;
  const pruned = base.seq === 0 ? "" : `, the first ${count(base.seq)} pruned`;
  const signed = checkpoints === 1 ? "1 snapshot" : `${checkpoints} snapshots`;
  const kept = files === 0 ? "" : `, ${files === 1 ? "1 file" : `${count(files)} files`}`;
  const what = `${count(events)} events${pruned}, ${count(payloads)} payloads, ${signed}${kept}`;
  const covered =
    unsigned === null
      ? "every event is signed"
      : `events ${unsigned.from} to ${unsigned.to} are not signed yet; the signed head covers all before them`;
  // A server that runs beside may have written since the clock was read.
  const ahead =
    logTimeAheadMs < TELLING_MS ? "" : `  log time is ${span(logTimeAheadMs)} ahead of this machine's clock\n`;
  const vouched = `${shownSnapshot(report)}  key ${key ?? "(none)"}${ownerOf(report)}\n`;
  const ends = `${vouched}${ahead}  head ${head.seq}:${head.hash}\n`;
  if (ok) return `${paint("green", "✔")} the log in ${directory} is whole: ${what}\n  ${covered}\n${ends}`;
  const rows = problems.map(({ seq, message }) => `  ${seq === 0 ? "" : `at event ${seq}: `}${plain(message)}\n`);
  const uncovered = unsigned === null ? "" : `  no signature covers events ${unsigned.from} to ${unsigned.to}\n`;
  const faults = [...rows, uncovered].join("");
  return `${paint("red", "✘")} the log in ${directory} is not what was written (${what}):\n${faults}`;
}

function shownSnapshot({ snapshot }: Report): string {
  if (snapshot === null) return "";
  const { seq, from, message } = snapshot;
  if (from === null) return `  the snapshot of event ${seq} was not compared with its events: ${message}\n`;
  const since = from === 0 ? "" : ` behind ${from}`;
  return `  the snapshot of event ${seq} is what the events${since} lead to\n`;
}

/** Whose key it is, where the log knows of nodes. */
function ownerOf({ key, nodes }: Report): string {
  if (nodes.length === 0) return "";
  const owner = nodes.find((node) => node.key === key);
  return owner === undefined ? ", of none of the nodes that the log names" : `, that of node ${owner.node}`;
}
