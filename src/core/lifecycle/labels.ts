/**
 * Labels: who has which, so that looking for them costs what is found.
 *
 * A label is one text, `key=value`; a key has no `=` in it. Each is kept once, with the tasks that have it in the
 * order of submission, for as long as one of them is readable.
 *
 * What different labels take in memory has a bound, since a task may have many that no other has: so many are known at
 * a time, and the last tenth is for agents that have few. A label counts as one of the agent whose task is the oldest
 * that has it. Labels that are known already cost little, and are always taken.
 */

import type { Refusal } from "../base/refusal.ts";
import { isKeptForOthers, keptOf } from "../base/reserve.ts";
import { first, insert, remove, sortedList } from "../collections/sorted-list.ts";
import type { Ahead } from "../model/ahead.ts";
import type { Submission } from "../model/commands.ts";
import type { ReadonlyState } from "../model/read-only.ts";
import type { Label, State, Task, TaskExtra } from "../model/state.ts";
import { compareSeqs } from "../turn/total-orders.ts";

export const newExtra = (): TaskExtra => ({
  labels: null,
  group: null,
  usage: null,
  attempts: null,
  loop: null,
  growth: null,
  wait: null,
  files: null,
  approval: null,
});

/** What few tasks have, of one that has some of it from here on: an object of its own, to be written. */
export function extraOf(task: Task): TaskExtra {
  const { extra } = task;
  if (extra === null) task.extra = newExtra();
  else if (extra === extra.group?.extra) task.extra = { ...extra };
  return task.extra as TaskExtra;
}

/** Different labels that are known at a time: some hundred megabytes of the longest. */
const LABELS_MAX = 200_000;

/** Whether there is room for those labels of a task that no other has. */
export function refusalForLabels(
  { labels, loads }: ReadonlyState,
  { labels: texts = [], agent }: Pick<Submission, "labels" | "agent">,
  ahead: Pick<Ahead, "labels" | "labelsOf"> | null,
): Refusal | null {
  let fresh = 0;
  for (const text of texts) if (!labels.has(text) && ahead?.labels.has(text) !== true) fresh++;
  if (fresh === 0) return null;
  const used = labels.size + (ahead?.labels.size ?? 0);
  const mine = (loads.get(agent)?.labels ?? 0) + (ahead?.labelsOf.get(agent) ?? 0);
  const what = "different labels of tasks";
  const remedy = `agent ${agent} has ${mine} of them; give fewer tasks labels of their own`;
  if (used + fresh > LABELS_MAX) return { type: "too-many", what, max: LABELS_MAX, used, remedy };
  if (!isKeptForOthers(LABELS_MAX, used + fresh, mine + fresh)) return null;
  return { type: "too-many", what, max: LABELS_MAX, kept: keptOf(LABELS_MAX), remedy };
}

export function putLabels(state: State, task: Task, texts: readonly string[]): void {
  extraOf(task).labels = texts.map((text) => {
    const label = state.labels.get(text) ?? newLabel(state, text, task.agent);
    insert(label.tasks, task);
    return label;
  });
}

function newLabel(state: State, text: string, { load }: Task["agent"]): Label {
  const label: Label = { text, tasks: sortedList<Task>(compareSeqs) };
  state.labels.set(text, label);
  load.labels++;
  return label;
}

/** The task's record goes. */
export function dropLabels(state: State, task: Task): void {
  for (const { text, tasks } of task.extra?.labels ?? []) {
    const isOldest = first(tasks) === task;
    remove(tasks, task);
    if (!isOldest) continue;
    task.agent.load.labels--;
    const oldest = first(tasks);
    if (oldest === undefined) state.labels.delete(text);
    else oldest.agent.load.labels++;
  }
}
