/**
 * How a child ended becomes what is reported of its attempt.
 *
 * Exit codes are a contract: 0 is done; 75 asks to come back later; 76 needs a human; 77 is out of budget; 78, 126 and
 * 127 will not get better by trying again; 124 is a timeout; 128 + n, like a signal, is a death. One that we stopped is
 * told apart from one that died: stopped is not failed. Asking to come back and running out of budget do not count as
 * failures of the task.
 */
import { constants } from "node:os";
import { isRecord } from "../../core/base/index.ts";
import type { Usage } from "../../protocol/index.ts";
import { isAgain, present, spanOf } from "../../std/index.ts";
import { type Failure, saysRateLimited, textOr } from "../output/events.ts";
import { shorten } from "../output/lines.ts";
import type { Redactor } from "../output/redact.ts";
import type { WorkspaceReport } from "../worktree/worktree.ts";
import type { ExecOutcome } from "./contract.ts";
import { type Answer, bounded } from "./result.ts";

/** Why we stopped it. */
export type CommandStop =
  | { readonly kind: "cancelled"; readonly reason: string }
  | { readonly kind: "closing" }
  | { readonly kind: "idle"; readonly spanMs: number }
  | { readonly kind: "start"; readonly spanMs: number };

export type Ending = {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stop: CommandStop | null;
  readonly answer: Answer;
  /** What the tool itself says went wrong. */
  readonly failure: Failure | null;
  /** Its stderr repeats a provider's 429 or 529. */
  readonly isRateLimited: boolean;
  /** The last line it wrote. */
  readonly lastWords: string;
  /** The end of its output, for one that says nothing else. */
  readonly output: string;
};

const WORDS_MAX = 1000;
const SIGNAL_BASE = 128;
const FILES_LISTED_MIN = 20;

export function outcomeOf(ending: Ending): ExecOutcome {
  const { code, signal, stop, failure } = ending;
  if (stop !== null) return stopped(ending, stop);
  if (signal !== null) return failed(`it died by ${signal}${oomHint(signal)}${words(ending)}`);
  switch (code) {
    case 0:
      return failure === null ? done(ending) : failedByItself(ending, failure);
    case 75:
      return comeBack(ending);
    case 76:
      return askOf(ending);
    case 77:
      return { ...requeue(`its budget is exhausted (exit code 77)${words(ending)}`), ...retryAfter(ending.answer) };
    case 78:
      return permanent(`its configuration is wrong (exit code 78)${words(ending)}`);
    case 124:
      return failed(`it timed out (exit code 124)${words(ending)}`);
    case 126:
      return permanent(`a program is not executable (exit code 126)${words(ending)}; make it so with chmod +x`);
    case 127:
      return permanent(`a program was not found (exit code 127)${words(ending)}; ${PATH_ADVICE}`);
    default:
      return failure === null ? failedWith(ending, code ?? -1) : failedByItself(ending, failure);
  }
}

const PATH_ADVICE = "install it, or add its directory to the PATH of the worker";

function stopped(ending: Ending, stop: CommandStop): ExecOutcome {
  switch (stop.kind) {
    case "cancelled":
      return { outcome: "cancelled", error: stop.reason };
    case "closing":
      // It was asked to end and used the time to finish: that counts, if it says so on purpose.
      if (ending.code === 0 && ending.failure === null && ending.answer.kind === "value") return done(ending);
      return requeue("its worker is closing");
    case "idle":
      return failed(`it wrote nothing for ${stop.spanMs} ms and was stopped (idle timeout)${words(ending)}`);
    case "start":
      return failed(`it wrote nothing in its first ${stop.spanMs} ms and was stopped (start timeout)`);
    default:
      return stop satisfies never;
  }
}

function done({ answer, output }: Ending): ExecOutcome {
  if (answer.kind === "value" && isAgain(answer.value))
    return { outcome: "again", ...present({ note: answer.value.note }) };
  if (answer.kind === "value") return { outcome: "done", result: answer.value };
  if (answer.kind === "none") return { outcome: "done", result: { exitCode: 0, ...(output === "" ? {} : { output }) } };
  return answer.permanent ? permanent(answer.error) : failed(answer.error);
}

/** With a provider's 429 or 529 in its result or on its stderr it is the provider that asks. */
function comeBack(ending: Ending): ExecOutcome {
  const { answer, failure } = ending;
  const inResult = answer.kind === "value" && saysRateLimited(JSON.stringify(answer.value) ?? "");
  const isRateLimited = inResult || ending.isRateLimited || failure?.later?.isRateLimited === true;
  return {
    ...requeue(`it asks to come back later (exit code 75)${words(ending)}`),
    ...(isRateLimited ? throttled(retryAfter(answer)) : retryAfter(answer)),
  };
}

/** What a program prints is no header of a provider: it shuts a gate for so long at most. */
const PRINTED_MS_MAX = 10 * 60_000;
const throttled = ({ retryAfterMs }: { readonly retryAfterMs?: number }): Partial<ExecOutcome> => ({
  rateLimited: true,
  ...(retryAfterMs === undefined ? {} : { retryAfterMs: Math.min(retryAfterMs, PRINTED_MS_MAX) }),
});

function failedByItself(ending: Ending, { error, later }: Failure): ExecOutcome {
  const message = shorten(error, WORDS_MAX);
  if (later === undefined) return withResult(failed(message), ending.answer);
  const { isRateLimited, ...rest } = later;
  return { ...requeue(message), ...(isRateLimited ? throttled(rest) : rest) };
}

function failedWith(ending: Ending, code: number): ExecOutcome {
  const signal = code > SIGNAL_BASE ? signalName(code - SIGNAL_BASE) : null;
  const death = signal === null ? "" : `, died by ${signal}${oomHint(signal)}`;
  return withResult(failed(`exit code ${code}${death}${words(ending)}`), ending.answer);
}

/** In the words of its result, else its last line. */
function askOf({ answer, lastWords }: Ending): ExecOutcome {
  const { question, timeoutMs } = answer.kind === "value" && isRecord(answer.value) ? answer.value : {};
  const isSpan = Number.isSafeInteger(timeoutMs) && Number(timeoutMs) > 0;
  const said = textOr(question, "") || words({ answer, lastWords }).slice(2) || "it needs a human (exit code 76)";
  return { outcome: "ask", question: said, ...(isSpan ? { timeoutMs: Number(timeoutMs) } : {}) };
}

const failed = (error: string): ExecOutcome => ({ outcome: "failed", error });
const permanent = (error: string): ExecOutcome => ({ outcome: "failed", error, permanent: true });
const requeue = (error: string): ExecOutcome => ({ outcome: "requeue", error });
const withResult = (outcome: ExecOutcome, answer: Answer): ExecOutcome =>
  answer.kind === "value" ? { ...outcome, result: answer.value } : outcome;

function signalName(number: number): string | null {
  return Object.entries(constants.signals).find(([, value]) => value === number)?.[0] ?? null;
}

const oomHint = (signal: string): string =>
  signal === "SIGKILL" ? ", which this worker did not send: likely out of memory" : "";

/** In its own words, if it has any: what its result says, else the last line it wrote. */
function words({ answer, lastWords }: Pick<Ending, "answer" | "lastWords">): string {
  const value = answer.kind === "value" && isRecord(answer.value) ? answer.value : {};
  const said = textOr(value.error, "") || textOr(value.reason, "") || textOr(value.message, "") || lastWords;
  return said === "" ? "" : `: ${shorten(said, WORDS_MAX)}`;
}

/** `retryAfterMs`, or `retry_after` in seconds as HTTP has it. */
function retryAfter(answer: Answer): { retryAfterMs?: number } {
  if (answer.kind !== "value" || !isRecord(answer.value)) return {};
  const { retryAfterMs, retry_after_ms: alsoMs, retry_after: seconds, retryAfter: alsoSeconds } = answer.value;
  const ms = printedSpan(retryAfterMs ?? alsoMs, 1) ?? printedSpan(seconds ?? alsoSeconds, 1000);
  return ms === null ? {} : { retryAfterMs: ms };
}

function printedSpan(value: unknown, unit: number): number | null {
  const count = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  return typeof count === "number" ? spanOf(count * unit) : null;
}

/** The system would not start it at all. */
export function outcomeOfSpawnError(error: unknown, argv: readonly string[], cwd: string): ExecOutcome {
  const { code, message } = error as NodeJS.ErrnoException;
  const program = argv[0] ?? "";
  switch (code) {
    case "ENOENT":
      return permanent(`the program ${program} was not found; ${PATH_ADVICE}`);
    case "ENOTDIR":
      return permanent(`the program ${program} was not found, or ${cwd} is not a directory`);
    case "EACCES":
    case "EPERM":
      return permanent(`the program ${program} may not be run by this user; make it executable with chmod +x`);
    case "ENOEXEC":
      return permanent(`the program ${program} is not one this machine can run; does its first line name a shell?`);
    case "E2BIG":
      return permanent(`the command line of ${program} is too long; pass what is long on stdin or in a file`);
    case "EAGAIN":
    case "EMFILE":
    case "ENFILE":
    case "ENOMEM":
      return { ...requeue(`this machine has no room for another process (${code})`), retryAfterMs: 5000 };
    default:
      return failed(`${program} could not be started: ${message}`);
  }
}

/** The last touch on an outcome before it leaves: where work was kept, and no secrets. */
export function finishedOutcome(
  outcome: ExecOutcome,
  extras: { readonly workspace: WorkspaceReport | null; readonly usage: Usage | null; readonly redact: Redactor },
): ExecOutcome {
  const { workspace, usage, redact } = extras;
  const placed = workspace === null ? outcome : withWorkspace(outcome, workspace);
  return {
    ...placed,
    ...(placed.result === undefined ? {} : { result: redact.value(placed.result) }),
    ...(placed.error === undefined ? {} : { error: redact.line(placed.error) }),
    ...(placed.question === undefined ? {} : { question: redact.line(placed.question) }),
    ...(placed.note === undefined ? {} : { note: redact.line(placed.note) }),
    ...present({ usage }),
  };
}

/** Beside what the child returned, under a name of its own; and in the error, since failures are read there. */
function withWorkspace(outcome: ExecOutcome, workspace: WorkspaceReport): ExecOutcome {
  const { isKept, path, branch } = workspace;
  const hint = isKept ? `; its work is kept in ${path} on branch ${branch}` : "";
  const error = outcome.error === undefined ? {} : { error: `${outcome.error}${hint}` };
  if (outcome.outcome === "again" || outcome.outcome === "ask" || (outcome.outcome !== "done" && !isKept))
    return outcome;
  const full = besides(outcome.result, workspace);
  const isSmallEnough = bounded(full, "result").kind === "value";
  const shortList = { ...workspace, changedFiles: workspace.changedFiles.slice(0, FILES_LISTED_MIN) };
  return { ...outcome, ...error, result: isSmallEnough ? full : fitting(outcome.result, shortList) };
}

function besides(result: unknown, workspace: WorkspaceReport): unknown {
  if (result === undefined) return { workspace };
  return isRecord(result) && !("workspace" in result) ? { ...result, workspace } : { result, workspace };
}

/** A result that just fits by itself goes before the place of the work, which is in the log too. */
function fitting(result: unknown, workspace: WorkspaceReport): unknown {
  const both = besides(result, workspace);
  return bounded(both, "result").kind === "value" ? both : result;
}
