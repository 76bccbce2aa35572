/**
 * How a run ended: a table of its tasks, what went wrong with the last lines of its output, and one sentence.
 *
 * Of a long plan only what did not go well is listed, and not a thousand lines that say "done". The same, whole,
 * is one JSON object with --json.
 */
import type { Output } from "../shell/output.ts";
import { asTyped, EXIT, type ExitCode } from "../shell/problem.ts";
import { asWord, plain, shortPath, type Tint } from "../shell/text.ts";
import { count, cost as shownCost, span } from "../show/time.ts";
import type { Kept, Leavings } from "./leavings.ts";
import { countWords, indented, waitsFor } from "./lines.ts";
import type { RunEnd } from "./session.ts";
import type { Where } from "./show.ts";
import { type Counts, inTree, isLive, type Row, type RunState, sumOf, type Used } from "./state.ts";

export type Ended = {
  readonly runState: RunState;
  readonly end: RunEnd;
  readonly name: string;
  /** The command that runs the plan again; null if only its name is known. */
  readonly command: string | null;
  /** Whether other commands find its tasks as PLAN/TASK from here. */
  readonly isFound: boolean;
  readonly where: Where;
  readonly tookMs: number;
  readonly exit: ExitCode;
};
type Tools = { readonly left: Leavings; readonly output: Output; readonly cwd: string };

const LISTED_MAX = 50;
const TAILS_MAX = 10;
const TAIL_LINES = 15;

export function exitOf(runState: RunState, end: RunEnd, signal: string | null): ExitCode {
  if (end.kind === "interrupted" || end.kind === "detached")
    return signal === "SIGINT" ? EXIT.interrupted : EXIT.terminated;
  return end.kind !== "stalled" && ownOf(runState).every(isWell) ? EXIT.ok : EXIT.failed;
}

/** How its children ended is for the task that submitted them to judge. */
const ownOf = ({ rows }: RunState): readonly Row[] => rows.filter(({ parent }) => parent === null);

/** It is done, or was not to be done. */
const isWell = ({ state, isUnwanted }: Row): boolean =>
  state === "done" || (state === "skipped" && isUnwanted === true);

/** In the words of the table. */
function stateText(row: Row): string {
  if (!isLive(row) || row.state === "parked") return row.state;
  return row.attempts > 0 || row.state === "awaiting" ? "unfinished" : "not started";
}

const TINTS: Readonly<Partial<Record<Row["state"], Tint>>> = {
  done: "green",
  failed: "red",
  skipped: "yellow",
  parked: "yellow",
};

/** Of a plan that was done before nothing more is said to people than that. */
export async function showSummary(ended: Ended, tools: Tools): Promise<void> {
  const { runState } = ended;
  const { output } = tools;
  const { before, all } = runState.counts();
  if (before === all && runState.rows.length === all && !output.isJson) return;
  const kept = await tools.left.kept(runState.rows);
  if (output.isJson) return output.line(jsonSummary(ended, tools, kept), () => "");
  if (ended.end.kind === "detached") return output.say(detachedText(ended));
  const tree = inTree(runState.rows);
  const bad = tree.filter(({ row }) => row.state !== "done");
  const listed = tree.length <= LISTED_MAX ? tree : bad.slice(0, LISTED_MAX);
  if (listed.length > 0) output.say(`\n${tableOf(listed, output)}`.trimEnd());
  if (listed.length < runState.rows.length) output.say(leftOut(runState.rows.length, bad.length, listed.length));
  const failed = runState.rows.filter(({ state, attempts }) => state === "failed" && attempts > 0);
  for (const row of failed.slice(0, TAILS_MAX)) output.say(await failureText(row, tools));
  const more = failed.length - TAILS_MAX;
  if (more > 0)
    output.say(`\n… and ${more} more that failed; the log of one: ${tools.left.wholeLog(failed[TAILS_MAX] as Row)}`);
  if (kept.size > 0)
    output.say(`\n${runState.rows.flatMap((row) => keptText(row, kept.get(row.id), tools.cwd)).join("\n")}`);
  output.say(`\n${sentenceOf(ended)}`);
}

function leftOut(all: number, bad: number, listed: number): string {
  const more = bad - listed;
  return more > 0 ? `… and ${more} more that are not done` : `(${all - bad} that are done are not listed)`;
}

type Listed = ReturnType<typeof inTree>[number];

function tableOf(listed: readonly Listed[], output: Output): string {
  const of =
    (text: (row: Row) => string) =>
    ({ row }: Listed): string =>
      text(row);
  return output.table(listed, [
    { title: "TASK", of: ({ row, depth }) => indented(row.name, depth) },
    { title: "STATE", of: of(stateText), tint: ({ row }) => TINTS[row.state] ?? null },
    { title: "ATTEMPTS", align: "right", of: of(({ attempts }) => (attempts === 0 ? "" : String(attempts))) },
    {
      title: "ROUNDS",
      align: "right",
      of: of(({ round, maxRounds }) => (round === 0 ? "" : `${round} of ${maxRounds}`)),
    },
    { title: "TOOK", align: "right", of: of(({ tookMs }) => (tookMs === null ? "" : span(tookMs))) },
    { title: "TOKENS", align: "right", of: of(({ usage }) => (usage === null ? "" : count(usage.tokens))) },
    { title: "COST", align: "right", of: of(({ usage }) => (usage === null ? "" : costText(usage))) },
    { title: "WHY", shrinks: true, of: of((row) => (row.isBefore && row.state === "done" ? "done before" : row.why)) },
  ]);
}

async function failureText(row: Row, { left, output }: Tools): Promise<string> {
  const { paint } = output;
  const lines = await left.tail(row, TAIL_LINES);
  const head = `\n${paint("red", `${plain(row.name)} failed`)}: ${plain(row.why)}`;
  const body = (lines ?? []).map((line) => `  ${paint("dim", "|")} ${plain(line.replaceAll("\t", "  "))}`);
  const whole = lines === null ? [] : [`  ${paint("dim", "whole log:")} ${left.wholeLog(row)}`];
  return [head, ...body, ...whole].join("\n");
}

function keptText({ name }: Row, kept: Kept | undefined, cwd: string): string[] {
  if (kept === undefined) return [];
  const path = kept.path === undefined ? "" : `, in ${shortPath(kept.path, cwd)}`;
  return [`${plain(name)} left work on branch ${kept.branch}${path}`];
}

function detachedText({ runState, name }: Ended): string {
  const { all, done, running } = runState.counts();
  const plan = asTyped(`drover plan ${name}`);
  const next = `${plan} attaches again, ${plan} --cancel ends it.`;
  return `\n${name} goes on without this: ${done} of ${all} done, ${running} running. ${next}`;
}

const costText = ({ cost }: Used): string => shownCost(cost ?? undefined);

/** `12 345 tokens, cost 0.42`; empty where no task says what it used. */
function usedText(rows: readonly Row[]): string {
  const sum = sumOf(rows.map(({ usage }) => usage));
  if (sum === null) return "";
  return ` It used ${count(sum.tokens)} tokens${sum.cost === null ? "" : `, cost ${costText(sum)}`}.`;
}

function sentenceOf(ended: Ended): string {
  const { runState, name, tookMs } = ended;
  const { all, done, failed, skipped, cancelled, before, children } = runState.counts();
  const own = ownOf(runState);
  const left = own.filter(isLive).length;
  const parts = [
    `${done} of ${all} done${before > 0 ? ` (${before} before)` : ""}`,
    ...countWords({ failed, skipped, cancelled, "not finished": left }),
  ];
  const grown = children.all === 0 ? "" : ` ${childrenText(children)}`;
  const first = `${name}: ${parts.join(", ")}, in ${span(tookMs)}.${grown}${usedText(runState.rows)}`;
  const isWhole = ended.end.kind === "over" || runState.isAllOver();
  return own.every(isWell) && isWhole ? first : `${first}\n${nextStep(ended)}`;
}

/** `Its tasks submitted 3 more: 2 done, 1 failed.` */
function childrenText({ all, done, failed, skipped, cancelled }: Counts["children"]): string {
  const left = all - done - failed - skipped - cancelled;
  const words = countWords({ done, failed, skipped, cancelled, "not finished": left });
  return `Its tasks submitted ${all} more: ${words.join(", ")}.`;
}

function nextStep({ runState, end, name, command, isFound }: Ended): string {
  const again = "Run the same command again to go on: what is done is not run again.";
  if (command !== null && end.kind === "over" && runState.isReplanned())
    return asTyped(
      `The plan was put again meanwhile: drover plan ${name} shows it as it is, the same command puts its file.`,
    );
  switch (end.kind) {
    case "over":
      if (command === null) return asTyped(`drover plan ${name} --retry tries what is not done.`);
      return "Run the same command again to try what is not done; the rest is not run again.";
    case "halted":
      return `A task failed, so nothing more was started (--fail-fast). ${command === null ? goesOn(name) : again}`;
    case "stalled":
      if (end.asks.length > 0) return `It ${waitsFor(end.asks, isFound ? name : null, command)}`;
      return `Nothing more can start by itself. ${end.why}\n${remedyFor(isFound ? name : null, end.misfits)}`;
    case "detached":
    case "interrupted":
      return `Interrupted. ${again}`;
    default:
      return end satisfies never;
  }
}

/** Of children that no worker here takes; else the plan is to be changed. */
function remedyFor(plan: string | null, misfits: readonly string[]): string {
  if (plan === null || misfits.length === 0) return "Change the plan (a budget, a limit) and run it again.";
  const cancel = asTyped(`drover cancel ${misfits.map((task) => asWord(`${plan}/${task}`)).join(" ")}`);
  return `${cancel} ends what no worker here takes.`;
}

const goesOn = (name: string): string =>
  asTyped(`drover plan ${name} --resume goes on without it, drover plan ${name} --retry tries it again.`);

function jsonSummary(
  { runState, end, name, where, tookMs, exit }: Ended,
  { left }: Tools,
  kept: ReadonlyMap<string, Kept>,
): unknown {
  const { children, ...counts } = runState.counts();
  return {
    event: "ended",
    plan: name,
    how: end.kind,
    exitCode: exit,
    tookMs,
    ...("server" in where ? { server: where.server } : { data: where.data }),
    counts: { ...counts, ...(children.all === 0 ? {} : { children }) },
    ...(end.kind === "stalled" ? { why: end.why, asks: end.asks } : {}),
    tasks: runState.rows.map((row) => ({
      task: row.name,
      taskId: row.id,
      ...(row.parent === null ? {} : { parent: row.parent }),
      state: stateText(row),
      ...(row.isBefore ? { before: true } : {}),
      attempts: row.attempts,
      ...(row.round === 0 ? {} : { rounds: row.round }),
      ...(row.usage === null ? {} : { usage: row.usage }),
      ...(row.tookMs === null ? {} : { tookMs: row.tookMs }),
      ...(row.why === "" ? {} : { why: row.why }),
      ...(row.attempts === 0 || left.logFile(row) === null ? {} : { log: left.logFile(row) }),
      ...(kept.has(row.id) ? { workspace: kept.get(row.id) } : {}),
    })),
  };
}
