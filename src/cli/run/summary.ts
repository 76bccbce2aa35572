/**
 * How a run ended: a table of its tasks, what went wrong with the last lines of its output, and one sentence.
 *
 * Of a long plan only what did not go well is listed, and not a thousand lines that say "done". The same, whole,
 * is one JSON object with --json.
 */
import type { Output } from "../shell/output.ts";
import { EXIT, type ExitCode } from "../shell/problem.ts";
import { plain, type Tint } from "../shell/text.ts";
import { span } from "../show/time.ts";
import type { Attempts } from "./attempts.ts";
import { countWords, shownPath } from "./lines.ts";
import type { RunEnd } from "./session.ts";
import { isLive, type Row, type RunState } from "./state.ts";

export type Ended = {
  readonly runState: RunState;
  readonly end: RunEnd;
  readonly name: string;
  readonly data: string;
  readonly tookMs: number;
  readonly exit: ExitCode;
};
type Tools = { readonly attempts: Attempts; readonly output: Output; readonly cwd: string };

const LISTED_MAX = 50;
const TAILS_MAX = 10;
const TAIL_LINES = 15;

export function exitOf(runState: RunState, end: RunEnd, signal: string | null): ExitCode {
  if (end.kind === "interrupted") return signal === "SIGINT" ? EXIT.interrupted : EXIT.terminated;
  return runState.rows.every(isWell) ? EXIT.ok : EXIT.failed;
}

/** It is done, or was not to be done. */
const isWell = ({ state, isUnwanted }: Row): boolean =>
  state === "done" || (state === "skipped" && isUnwanted === true);

/** In the words of the table. */
const stateText = (row: Row): string => (isLive(row) ? (row.attempts > 0 ? "unfinished" : "not started") : row.state);

const TINTS: Readonly<Partial<Record<Row["state"], Tint>>> = { done: "green", failed: "red", skipped: "yellow" };

export async function showSummary(ended: Ended, tools: Tools): Promise<void> {
  const { runState } = ended;
  const { output } = tools;
  if (output.isJson) return output.line(jsonSummary(ended, tools), () => "");
  const bad = runState.rows.filter(({ state }) => state !== "done");
  const listed = runState.rows.length <= LISTED_MAX ? runState.rows : bad.slice(0, LISTED_MAX);
  if (listed.length > 0) output.say(`\n${tableOf(listed, output)}`.trimEnd());
  if (listed.length < runState.rows.length) output.say(leftOut(runState.rows.length, bad.length, listed.length));
  const failed = runState.rows.filter(({ state, attempts }) => state === "failed" && attempts > 0);
  for (const row of failed.slice(0, TAILS_MAX)) output.say(await failureText(row, tools));
  const more = failed.length - TAILS_MAX;
  const logs = `${shownPath(ended.data, tools.cwd)}/logs`;
  if (more > 0) output.say(`\n… and ${more} more that failed; their logs are in ${logs}`);
  const kept = runState.rows.map((row) => keptText(row, tools)).filter((line) => line !== "");
  if (kept.length > 0) output.say(`\n${kept.join("\n")}`);
  output.say(`\n${sentenceOf(ended)}`);
}

function leftOut(all: number, bad: number, listed: number): string {
  const more = bad - listed;
  return more > 0 ? `… and ${more} more that are not done` : `(${all - bad} that are done are not listed)`;
}

function tableOf(rows: readonly Row[], output: Output): string {
  return output.table(rows, [
    { title: "TASK", of: ({ task }) => task.name },
    { title: "STATE", of: stateText, tint: ({ state }) => TINTS[state] ?? null },
    { title: "ATTEMPTS", align: "right", of: ({ attempts }) => (attempts === 0 ? "" : String(attempts)) },
    { title: "TOOK", align: "right", of: ({ tookMs }) => (tookMs === null ? "" : span(tookMs)) },
    { title: "WHY", shrinks: true, of: (row) => (row.isBefore ? "done before" : row.why) },
  ]);
}

async function failureText(row: Row, { attempts, output, cwd }: Tools): Promise<string> {
  const { paint } = output;
  const lines = await attempts.tail(row.id, row.attempt, TAIL_LINES);
  const head = `\n${paint("red", `${plain(row.task.name)} failed`)}: ${plain(row.why)}`;
  const body = lines.map((line) => `  ${paint("dim", "|")} ${plain(line.replaceAll("\t", "  "))}`);
  return [
    head,
    ...body,
    `  ${paint("dim", "whole log:")} ${shownPath(attempts.logPath(row.id, row.attempt), cwd)}`,
  ].join("\n");
}

function keptText({ task, id }: Row, { attempts, cwd }: Tools): string {
  const kept = attempts.kept(id);
  return kept === null ? "" : `${plain(task.name)} left work on branch ${kept.branch}, in ${shownPath(kept.path, cwd)}`;
}

function sentenceOf({ runState, end, name, tookMs }: Ended): string {
  const { all, done, failed, skipped, cancelled, before } = runState.counts();
  const left = runState.rows.filter(isLive).length;
  const parts = [
    `${done} of ${all} done${before > 0 ? ` (${before} before)` : ""}`,
    ...countWords({ failed, skipped, cancelled, "not finished": left }),
  ];
  const first = `${name}: ${parts.join(", ")}, in ${span(tookMs)}.`;
  return runState.rows.every(isWell) ? first : `${first}\n${nextStep(end)}`;
}

function nextStep(end: RunEnd): string {
  const again = "Run the same command again to go on: what is done is not run again.";
  switch (end.kind) {
    case "over":
      return "Run the same command again to try what is not done; what is done is not run again.";
    case "halted":
      return `A task failed, so nothing more was started (--fail-fast). ${again}`;
    case "stalled":
      return `Nothing more can start by itself. ${end.why}\nChange the plan (a budget, a limit) and run it again.`;
    case "interrupted":
      return `Interrupted. ${again}`;
    default:
      return end satisfies never;
  }
}

function jsonSummary({ runState, end, name, data, tookMs, exit }: Ended, { attempts }: Tools): unknown {
  return {
    event: "ended",
    plan: name,
    how: end.kind,
    exitCode: exit,
    tookMs,
    data,
    counts: runState.counts(),
    ...(end.kind === "stalled" ? { why: end.why } : {}),
    tasks: runState.rows.map((row) => ({
      task: row.task.name,
      taskId: row.id,
      state: stateText(row),
      ...(row.isBefore ? { before: true } : {}),
      attempts: row.attempts,
      ...(row.tookMs === null ? {} : { tookMs: row.tookMs }),
      ...(row.why === "" ? {} : { why: row.why }),
      ...(row.attempts === 0 ? {} : { log: attempts.logPath(row.id, row.attempt) }),
      ...(attempts.kept(row.id) === null ? {} : { workspace: attempts.kept(row.id) }),
    })),
  };
}
