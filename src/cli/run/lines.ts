/**
 * What happens in a run, a line each: for people, and with --json for programs.
 *
 * The first word says what, the second to which task; the rest is how long it took or why. The lines are the whole
 * story in a file or a pipe; on a terminal they stand above the live picture.
 */
import { asTyped } from "../shell/problem.ts";
import { asWord, type Paint, padEnd, plain, type Tint, widthOf } from "../shell/text.ts";
import { span } from "../show/time.ts";
import type { Fact, Row } from "./state.ts";

const WORDS: Readonly<Record<Fact["kind"], readonly [word: string, tint: Tint]>> = {
  started: ["start", "dim"],
  done: ["done", "green"],
  retried: ["retried", "yellow"],
  awaiting: ["awaiting", "dim"],
  again: ["again", "yellow"],
  round: ["round", "yellow"],
  stopped: ["stopped", "yellow"],
  failed: ["failed", "red"],
  skipped: ["skipped", "yellow"],
  cancelled: ["cancelled", "yellow"],
  parked: ["parked", "yellow"],
  approved: ["approved", "green"],
  used: ["used", "dim"],
};
const WORD_WIDTH = 9;
const NAME_WIDTH_MAX = 40;

/** `3 done`, `1 failed`: those that are not none. */
export const countWords = (counts: Readonly<Record<string, number>>): string[] =>
  Object.entries(counts).flatMap(([word, count]) => (count > 0 ? [`${count} ${word}`] : []));

/**
 * `waits for approval of ship: drover approve release/ship`. With the command that runs the plan, how it goes on by
 * that too; without its name (null: it is not found by it), by that alone.
 */
export function waitsFor(asks: readonly string[], plan: string | null, run: string | null = null): string {
  const ways = [
    ...(run === null ? [] : [`${run} --approve ${asks.map(asWord).join(",")}`]),
    ...(plan === null ? [] : [`drover approve ${asks.map((one) => asWord(`${plan}/${one}`)).join(" ")}`]),
  ];
  return `waits for approval of ${asks.map(plain).join(", ")}: ${asTyped(ways.join(", or "))}`;
}

/** How wide the column of names is. */
export const nameWidth = (names: readonly string[]): number =>
  Math.min(
    NAME_WIDTH_MAX,
    names.reduce((widest, name) => Math.max(widest, widthOf(plain(name))), 0),
  );

/** A child stands below its parent, as deep as it is. */
export const indented = (name: string, depth: number): string => `${"  ".repeat(depth)}${name}`;

export function lineOf(
  fact: Fact,
  row: Row,
  { paint, width, parent }: { readonly paint: Paint; readonly width: number; readonly parent?: string | undefined },
): string {
  const [word, tint] = WORDS[fact.kind];
  const details = [timeOf(fact, row), reasonOf(fact, row)].filter((text) => text !== "").join("  ");
  const name = plain(parent === undefined ? row.name : `${parent} > ${row.name}`);
  const line = `${paint(tint, padEnd(word, WORD_WIDTH))} ${details === "" ? name : padEnd(name, width)}`;
  return details === "" ? line : `${line}  ${plain(details)}`;
}

function timeOf(fact: Fact, { tookMs, attempts }: Row): string {
  const hasRun = (fact.kind === "done" || fact.kind === "failed") && attempts > 0;
  return hasRun && tookMs !== null ? span(tookMs) : "";
}

/** `round 2 of 5`, of a task with a loop that has begun; else empty. */
export const roundText = ({ round, maxRounds }: Row): string =>
  maxRounds === null || round === 0 ? "" : `round ${round} of ${maxRounds}`;

function reasonOf(fact: Fact, row: Row): string {
  const { why, attempts, maxAttempts, round } = row;
  if (fact.kind === "round") return `${why === "" ? "" : `${why}; `}${roundText(row)} is next`;
  if (fact.kind === "started") {
    if (round > 1) return `(${roundText(row)})`;
    // Requeues count as attempts here, and not against the most there may be.
    return attempts > 1 ? `(attempt ${attempts}${attempts > maxAttempts ? "" : ` of ${maxAttempts}`})` : "";
  }
  if (fact.kind === "stopped") return "";
  if (fact.kind !== "again") return why;
  const rest = fact.until > fact.at ? `next in ${span(fact.until - fact.at)}` : "";
  return rest === "" ? why : `${why} (${rest})`;
}

/** The same for programs: one object a line. */
export function jsonOf(fact: Fact, row: Row): Readonly<Record<string, unknown>> {
  const { name, id, parent, attempt, round, maxRounds, tookMs, why } = row;
  return {
    event: fact.kind,
    task: name,
    taskId: id,
    ...(parent === null ? {} : { parent }),
    at: new Date(fact.at).toISOString(),
    ...(attempt === 0 ? {} : { attempt }),
    ...(round === 0 ? {} : { round, maxRounds }),
    ...(fact.kind === "started" || tookMs === null ? {} : { tookMs }),
    ...(why === "" ? {} : { why }),
    ...(fact.kind === "again" ? { nextAt: new Date(fact.until).toISOString() } : {}),
  };
}
