/**
 * Which worker of a planned round: feasible, ranked, chosen, with the reason.
 *
 * The same strategies as the scheduler's own placement, over a plain list. Where ranks tie the order of the list
 * decides. Least-loaded first spares: a worker that is the only one another ready task fits, and that would have no
 * room for it afterwards, is left to that task while any other worker will do.
 */

import { invariant } from "../base/result.ts";
import type { Strategy } from "../config/config.ts";
import { fnv1a } from "../fleet/shape.ts";
import type { Reason } from "../model/events.ts";
import type { PlanWorker, ReadyTask, RoundDemand } from "./plan-round-input.ts";

/** What is still asked for, and how often. */
export type PlanShapes = Map<string, { readonly demand: RoundDemand; count: number }>;
export type Chosen = { readonly worker: PlanWorker; readonly reason: Reason };
type Fleet = { readonly workers: readonly PlanWorker[]; readonly shapes: PlanShapes; readonly cursor: number };

export function countShapes(tasks: readonly ReadyTask[]): PlanShapes {
  const shapes: PlanShapes = new Map();
  for (const task of tasks) {
    const shape = shapes.get(task.shape);
    if (shape === undefined) shapes.set(task.shape, { demand: task, count: 1 });
    else shape.count++;
  }
  return shapes;
}

export function takeShape(shapes: PlanShapes, task: ReadyTask): void {
  const shape = shapes.get(task.shape);
  if (shape !== undefined && --shape.count === 0) shapes.delete(task.shape);
}

function fits(worker: PlanWorker, demand: RoundDemand): boolean {
  return (
    worker.isTaking &&
    worker.inFlight < worker.slots &&
    worker.cpu >= demand.cpu &&
    worker.memory >= demand.memory &&
    demand.capabilities.every((capability) => worker.capabilities.has(capability))
  );
}

/** Whether any worker has room for a task, asked once per shape. */
export function fitsSomewhere(workers: readonly PlanWorker[]): (task: ReadyTask) => boolean {
  const known = new Map<string, boolean>();
  return (task) => {
    const answer = known.get(task.shape) ?? workers.some((worker) => fits(worker, task));
    known.set(task.shape, answer);
    return answer;
  };
}

/** Where a task that fits somewhere goes. */
export function placeTask(fleet: Fleet, task: ReadyTask, strategy: Strategy): Chosen {
  const feasible = fleet.workers.filter((worker) => fits(worker, task));
  const [only] = feasible;
  invariant(only !== undefined, `a task that was chosen (${task.id}) has a worker with room`);
  if (feasible.length === 1) return { worker: only, reason: { type: "only-worker-available" } };
  const total = fleet.workers.length;
  switch (strategy) {
    case "round-robin":
      return { worker: atOrAfter(feasible, fleet.cursor, total), reason: { type: "round-robin" } };
    case "random":
      return { worker: atOrAfter(feasible, fnv1a(`${task.id}#1`) % total, total), reason: { type: "random" } };
    case "best-fit":
      return tightest(feasible, task);
    case "affinity": {
      const near = task.zone === null ? [] : feasible.filter((worker) => worker.zone === task.zone);
      const worker = near.length === 0 ? null : lightest(fleet, near, task).worker;
      return worker === null
        ? lightest(fleet, feasible, task)
        : { worker, reason: { type: "affinity", reason: "same-zone" } };
    }
    case "least-loaded":
      return lightest(fleet, feasible, task);
  }
}

function atOrAfter(feasible: readonly PlanWorker[], index: number, total: number): PlanWorker {
  const distance = (worker: PlanWorker): number => (worker.index - index + total) % total;
  return feasible.reduce((best, worker) => (distance(worker) < distance(best) ? worker : best));
}

function tightest(feasible: readonly PlanWorker[], task: ReadyTask): Chosen {
  const worker = feasible.reduce((best, other) => (other.cpu < best.cpu ? other : best));
  const availableCpu = Number.isFinite(worker.cpu) ? worker.cpu : null;
  return { worker, reason: { type: "resource-fit", availableCpu, requiredCpu: task.cpu } };
}

function lightest(fleet: Fleet, feasible: readonly PlanWorker[], task: ReadyTask): Chosen {
  const spared = soleWorkers(fleet, task);
  const rank = (worker: PlanWorker): readonly number[] => [
    spared.has(worker) ? 1 : 0,
    worker.inFlight,
    worker.capabilities.size,
  ];
  const isBefore = (left: readonly number[], right: readonly number[]): boolean => {
    const at = left.findIndex((value, index) => value !== right[index]);
    return at >= 0 && (left[at] as number) < (right[at] as number);
  };
  const worker = feasible.reduce((best, other) => (isBefore(rank(other), rank(best)) ? other : best));
  return { worker, reason: { type: "least-loaded", queueDepth: worker.inFlight } };
}

/** Workers that another ready task could not do without if this one were placed there. */
function soleWorkers({ workers, shapes }: Fleet, task: ReadyTask): ReadonlySet<PlanWorker> {
  const sole = new Set<PlanWorker>();
  for (const [shape, { demand }] of shapes) {
    if (shape === task.shape) continue;
    const able = workers.filter((worker) => fits(worker, demand));
    const [worker] = able;
    if (worker === undefined || able.length > 1) continue;
    const { inFlight, cpu, memory } = worker;
    const after = { ...worker, inFlight: inFlight + 1, cpu: cpu - task.cpu, memory: memory - task.memory };
    if (!fits(after, demand)) sole.add(worker);
  }
  return sole;
}
