/**
 * A plan file, read: the plan, and where it stands.
 *
 *     const plan = readPlan({ file: "release.yml", text, directory: "/home/ann/app" });
 *
 * Every mistake is found before anything runs, and all of them are reported at once, each with its line.
 */

import { basename } from "node:path";
import { type Plan, readPlanValue } from "../../plan/index.ts";

import type { ConfigProblem } from "../config/problem.ts";
import { oncePerLine } from "../config/yaml-complaint.ts";
import { BadPlan, type PlanProblem, readPlanSource } from "./source.ts";

export { BadPlan } from "./source.ts";

export type PlanFile = Plan & {
  readonly file: string;
  /** What paths in the plan start from. */
  readonly directory: string;
  /** What stands in the file, as plain values. */
  readonly document: Readonly<Record<string, unknown>>;
};

const PROBLEMS_MAX = 50;

/** Throws a `BadPlan` with everything that is wrong. */
export function readPlan(given: {
  readonly file: string;
  readonly text: string;
  readonly directory: string;
}): PlanFile {
  const { file, text, directory } = given;
  const source = readPlanSource(file, text);
  const read = readPlanValue(source.value, basename(file).replace(/\.(ya?ml|json)$/i, ""));
  if (!read.ok) throw new BadPlan(file, inSequence(read.failure.map(source.complaint)));
  return { ...read.value, file, directory, document: source.value as PlanFile["document"] };
}

/** As they stand in the file, from top to bottom; each once. */
function inSequence(all: readonly PlanProblem[]): readonly ConfigProblem[] {
  const sorted = oncePerLine(
    all.toSorted(({ origin: left }, { origin: right }) => left.line - right.line || left.column - right.column),
  );
  if (sorted.length <= PROBLEMS_MAX) return sorted;
  const more = { message: `and ${sorted.length - PROBLEMS_MAX} more`, origin: null };
  return [...sorted.slice(0, PROBLEMS_MAX), more];
}
