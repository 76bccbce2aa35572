/**
 * What a plan would do: `drover run --dry-run`.
 *
 * The tasks in waves, what each waits for, what it runs, and where the log of an earlier run has it. It reads, and
 * changes nothing.
 */

import {
  type Command,
  hasEnded,
  type Known,
  type Matched,
  matchTasks,
  orderOf,
  type PlanTask,
} from "../../plan/index.ts";
import { present } from "../../std/index.ts";
import type { PlanFile } from "../plan/plan-file.ts";
import type { Output } from "../shell/output.ts";

type Preview = {
  readonly plan: PlanFile;
  readonly tasks: readonly PlanTask[];
  /** How many at once; or the server it would run on, and what ids begin with there. */
  readonly where: { readonly slots: number } | { readonly server: string };
  /** What the ids of its tasks begin with. */
  readonly prefix: string;
  readonly known: readonly Known[];
  readonly retriesFailed: boolean;
};

type Line = { readonly wave: number; readonly matched: Matched };

export function showPreview(preview: Preview, output: Output): void {
  const { plan, tasks, where } = preview;
  const byName = new Map(matchTasks(tasks, preview.known, preview).map((matched) => [matched.task.name, matched]));
  const { waves } = orderOf(tasks);
  const lines = waves.flatMap((wave, index) =>
    wave.map(({ name }): Line => ({ wave: index + 1, matched: byName.get(name) as Matched })),
  );
  const open = lines.filter(({ matched }) => planned(matched) === "run");
  const warnings = warningsOf(open, plan);
  const shown = lines.map(jsonOf);
  const at = "slots" in where ? { slots: where.slots } : { server: where.server };
  const value = { plan: plan.name, ...at, waves: waves.length, tasks: shown, warnings };
  output.answer(value, () => {
    const counts = `${tasks.length} tasks in ${waves.length} waves, ${open.length} to run, ${placeOf(where)}`;
    const notes = warnings.map((warning) => `\nnote: ${warning}\n`).join("");
    return `${plan.name}: ${counts}\n\n${tableOf(lines, output)}${specialsOf(
      lines.map(({ matched }) => matched.task),
      output,
    )}${notes}`;
  });
}

const placeOf = (where: Preview["where"]): string =>
  "slots" in where ? `${where.slots} at once` : `on the server at ${where.server}`;

function warningsOf(open: readonly Line[], { maxWorktrees }: PlanFile): string[] {
  const count = open.filter(({ matched }) => matched.task.work.worktree !== null).length;
  if (count <= maxWorktrees) return [];
  return [
    `${count} tasks have a worktree, and at most ${maxWorktrees} are kept (workers.maxWorktrees): ` +
      "once so many have work in them, no other of these tasks starts",
  ];
}

/** What the run would do with it. */
function planned({ phase, fate }: Matched): "run" | "done before" | "left as it is" {
  if (fate !== "keep" || phase === null || !hasEnded(phase)) return "run";
  return phase === "done" ? "done before" : "left as it is";
}

function tableOf(lines: readonly Line[], output: Output): string {
  const hasBefore = lines.some(({ matched }) => matched.phase !== null);
  return output.table(lines, [
    { title: "WAVE", align: "right", of: ({ wave }) => String(wave) },
    { title: "TASK", of: ({ matched }) => matched.task.name },
    { title: "NEEDS", shrinks: true, of: ({ matched }) => matched.task.needs.join(", ") },
    { title: "LOCKS", shrinks: true, of: ({ matched }) => matched.task.rules.locks.join(", ") },
    { title: "LOG", of: ({ matched }) => (hasBefore ? standing(matched) : "") },
    { title: "RUNS", shrinks: true, of: ({ matched }) => commandText(matched.task.work.command) },
  ]);
}

/** Below the table: what there is to say of a task beside its command has too little room in it. */
function specialsOf(tasks: readonly PlanTask[], output: Output): string {
  const special = tasks.map((task) => ({ task, how: conditionsText(task) })).filter(({ how }) => how !== "");
  if (special.length === 0) return "";
  const table = output.table(special, [
    { title: "TASK", of: ({ task }) => task.name },
    { title: "HOW", shrinks: true, of: ({ how }) => how },
  ]);
  return `\n${table}`;
}

function standing(matched: Matched): string {
  const { phase } = matched;
  if (phase === null) return "new";
  const would = planned(matched);
  const how = hasEnded(phase) ? phase : "unfinished";
  return would === "done before" ? would : would === "run" ? `${how}, again` : how;
}

/** `asks first; worktree from code; up to 5 rounds; leaves spec.md; if needs.a.ok`: empty for a plain command. */
function conditionsText({ work, rules }: PlanTask): string {
  const { if: condition, outputs = [] } = work;
  const { maxRounds, approval, wait, capabilities = [] } = rules;
  return [
    ...(approval === undefined ? [] : ["asks first"]),
    ...(work.worktree === null ? [] : [worktreeText(work.worktree)]),
    ...(maxRounds === undefined
      ? []
      : [`up to ${maxRounds} rounds${work.until === undefined ? "" : ` until ${firstLine(work.until)}`}`]),
    ...(wait === undefined ? [] : ["waits for its children"]),
    ...(capabilities.length === 0 ? [] : [`on ${capabilities.join(", ")}`]),
    ...(outputs.length === 0 ? [] : [`leaves ${outputs.join(", ")}`]),
    ...(condition === undefined ? [] : [`if ${firstLine(condition)}`]),
  ].join("; ");
}

function worktreeText({ base, from, merge }: NonNullable<PlanTask["work"]["worktree"]>): string {
  if (from !== undefined) return `worktree from ${from}`;
  if (merge !== undefined) return `worktree of ${merge.join(", ")}`;
  return base === "HEAD" ? "worktree" : `worktree from ${base}`;
}

/** The first line of what is run. */
function commandText(command: Command): string {
  switch (command.kind) {
    case "line":
      return firstLine(command.line);
    case "words":
      return command.words.join(" ");
    case "agent":
      return `${command.preset}: ${firstLine(command.prompt)}`;
    case "call":
      return `${command.action} ${JSON.stringify(command.params)}`;
    case "nothing":
      return "";
    default:
      return command satisfies never;
  }
}

function firstLine(text: string): string {
  const [first = "", ...rest] = text.trim().split("\n");
  return rest.length === 0 ? first : `${first} …`;
}

function jsonOf({ wave, matched }: Line): unknown {
  const { task, id, phase } = matched;
  const { locks, project, type, priority, attempts, maxRounds, approval, wait, capabilities, zone } = task.rules;
  const { if: condition, worktree, until, outputs } = task.work;
  return {
    task: task.name,
    taskId: id,
    wave,
    needs: task.needs,
    locks,
    project,
    type,
    priority,
    attempts,
    ...present({ if: condition, approval, wait, capabilities, zone, outputs }),
    ...(worktree === null ? {} : { worktree }),
    ...(maxRounds === undefined ? {} : { loop: { max: maxRounds, ...present({ until }) } }),
    runs: commandText(task.work.command),
    would: planned(matched),
    ...(phase === null ? {} : { log: phase }),
  };
}
