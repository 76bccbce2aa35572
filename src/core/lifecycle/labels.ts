/**
 * Labels: who has which, so that looking for them costs what is found.
 *
 * A label is one text, `key=value`; a key has no `=` in it. Each is kept once, with the tasks that have it in the
 * order of submission, for as long as one of them is readable.
 */

import { insert, remove, sortedList } from "../collections/sorted-list.ts";
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

export function putLabels(state: State, task: Task, texts: readonly string[]): void {
  extraOf(task).labels = texts.map((text) => {
    const label = state.labels.get(text) ?? newLabel(state, text);
    insert(label.tasks, task);
    return label;
  });
}

function newLabel(state: State, text: string): Label {
  const label: Label = { text, tasks: sortedList<Task>(compareSeqs) };
  state.labels.set(text, label);
  return label;
}

/** The task's record goes. */
export function dropLabels(state: State, task: Task): void {
  for (const label of task.extra?.labels ?? []) {
    remove(label.tasks, task);
    if (label.tasks.size === 0) state.labels.delete(label.text);
  }
}
