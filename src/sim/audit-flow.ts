/**
 * The rules of what flows: inputs are what the log says of the tasks that were needed, files that a task lists are
 * there, and a task that waits for a person holds nothing.
 */

import type { State } from "../core/model/index.ts";
import type { Inputs } from "../engine/index.ts";
import { awaited } from "./audit-life.ts";
import type { Complain, Shadow, ShadowTask } from "./shadow.ts";
import type { SimFiles } from "./sim-files.ts";

/** An attempt was given these inputs. */
export function auditInputs(shadow: Shadow, id: string, inputs: Inputs, complain: Complain): void {
  const task = shadow.tasks.get(id);
  // Of a worker that works on for an engine which is gone.
  if (task === undefined || task.attempt === null) return;
  const needed = new Set<string>(awaited(task.spec));
  const say = (claim: string): void => complain("inputs", `${id} ${claim}`);
  for (const { taskId } of Object.values(inputs))
    if (!needed.has(taskId)) say(`was given ${taskId}, which it does not need`);
  for (const need of needed) {
    const other = shadow.tasks.get(need);
    const isSteady = other !== undefined && other.seq < task.seq && hasEndedBefore(other, task.attempt.start.at);
    if (!isSteady) continue;
    const input = Object.values(inputs).find(({ taskId }) => taskId === need);
    // One that had ended before the task was submitted may be forgotten but for its outcome.
    auditInput(other, input, other.endedAt > task.openedAt, say);
  }
}

/** It has ended, and was not to run again since. */
const hasEndedBefore = ({ phase, openedAt, endedAt }: ShadowTask, at: number): boolean =>
  phase === "ended" && endedAt < at && openedAt <= endedAt;

function auditInput(
  need: ShadowTask,
  input: Inputs[string] | undefined,
  isRemembered: boolean,
  say: (claim: string) => void,
): void {
  const { spec, outcome, attempts, files } = need;
  if (input === undefined) return isRemembered ? say(`was not given ${spec.task}`) : undefined;
  if (input.state !== outcome) say(`was given ${spec.task} as ${input.state}, and it is ${outcome}`);
  const { attempt } = (input.result ?? {}) as { attempt?: number };
  if (outcome === "done" && attempt !== attempts && (isRemembered || attempt !== undefined))
    say(`was given the result of attempt ${attempt} of ${spec.task}, and ${attempts} was the last`);
  if ((isRemembered || input.files !== undefined) && !isSame(input.files ?? [], files))
    say(`was given other files of ${spec.task} than it has left`);
}

const isSame = (left: unknown, right: unknown): boolean => JSON.stringify(left) === JSON.stringify(right);

/** What nobody listed is kept for an hour, and looked at every ten minutes. */
const KEPT_MS = 3_600_000 + 2 * 600_000;

/** Every file that a known task lists is there, and what none lists goes in the end. */
export function auditFiles(shadow: Shadow, state: State, files: SimFiles, now: number, complain: Complain): void {
  for (const { id, extra } of state.tasks.values()) {
    const [ours, theirs] = [shadow.tasks.get(id)?.files ?? [], extra?.files ?? []];
    if (JSON.stringify(ours) !== JSON.stringify(theirs))
      complain("files", `${id} lists other files than were reported`);
    for (const { hash, path } of ours)
      if (!files.has(hash)) complain("files", `${id} lists ${path}, and that is not there`);
  }
  if ([...state.tasks.values()].some(({ attempt }) => attempt !== null)) return;
  for (const [hash, at] of files.all())
    if (!state.files.has(hash) && at < now - KEPT_MS) complain("files", `${hash} is there, and no task lists it`);
}

/** A task that waits for a person has no slot, no tokens, no locks, no hold. */
export function auditParked(shadow: Shadow, state: State, complain: Complain): void {
  for (const [id, { phase, attempt }] of shadow.tasks) {
    if (phase !== "parked") continue;
    const task = state.tasks.get(id as never);
    if (attempt !== null || task?.attempt != null) complain("parked", `${id} is parked, and has an attempt`);
    if (shadow.holds.has(id)) complain("parked", `${id} is parked, and a worker is kept free for it`);
  }
  for (const { id, attempts } of state.fleet.order)
    for (const { task } of attempts)
      if (task.phase === "parked") complain("parked", `${task.id} is parked, and has a slot of ${id}`);
}
