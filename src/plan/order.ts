/**
 * The order in which tasks can go, and the cycles in which none can.
 *
 * A wave is what could start once the waves before it are done. A cycle is named by its path, since that is what a
 * person must cut.
 */

import { atOnce } from "../std/index.ts";

type Ordered = { readonly name: string; readonly needs: readonly string[] };
export type Order<Task> = {
  /** Tasks that stand on or behind a cycle are in no wave. */
  readonly waves: readonly (readonly Task[])[];
  /** Each a path whose last name is its first. */
  readonly cycles: readonly (readonly string[])[];
};

/** Every need must be the name of one of the tasks. */
export const orderOf = <Task extends Ordered>(tasks: readonly Task[]): Order<Task> => atOnce(orderSteps(tasks));

/** The same step by step: there may be many tasks. */
export function* orderSteps<Task extends Ordered>(tasks: readonly Task[]): Generator<unknown, Order<Task>> {
  const unmet = new Map(tasks.map(({ name, needs }) => [name, new Set(needs).size]));
  const dependents = new Map<string, Task[]>(tasks.map(({ name }) => [name, []]));
  for (const task of tasks) {
    yield;
    for (const need of new Set(task.needs)) dependents.get(need)?.push(task);
  }
  const waves: Task[][] = [];
  let wave = tasks.filter(({ needs }) => needs.length === 0);
  while (wave.length > 0) {
    waves.push(wave);
    const next: Task[] = [];
    for (const { name } of wave) {
      yield;
      unmet.delete(name);
      for (const dependent of dependents.get(name) ?? []) {
        const left = (unmet.get(dependent.name) ?? 0) - 1;
        unmet.set(dependent.name, left);
        if (left === 0) next.push(dependent);
      }
    }
    wave = next;
  }
  return { waves, cycles: cyclesIn(tasks.filter(({ name }) => unmet.has(name))) };
}

/** From any task that never comes up, going on to what it needs ends on a cycle. Each cycle is reported once. */
function cyclesIn(stuck: readonly Ordered[]): string[][] {
  const needsOf = new Map(stuck.map(({ name, needs }) => [name, needs]));
  const seen = new Set<string>();
  const cycles: string[][] = [];
  for (const { name } of stuck) {
    const path: string[] = [];
    let next: string | undefined = name;
    while (next !== undefined && !seen.has(next)) {
      seen.add(next);
      path.push(next);
      next = needsOf.get(next)?.find((need) => needsOf.has(need));
    }
    const from = next === undefined ? -1 : path.indexOf(next);
    if (from >= 0) cycles.push([...path.slice(from), next as string]);
  }
  return cycles;
}

/** The tasks with these names, and all that they need, however far. */
export function withNeeds<Task extends Ordered>(tasks: readonly Task[], names: Iterable<string>): Task[] {
  const byName = new Map(tasks.map((task) => [task.name, task]));
  const wanted = new Set<string>(names);
  for (const name of wanted) for (const need of byName.get(name)?.needs ?? []) wanted.add(need);
  return tasks.filter(({ name }) => wanted.has(name));
}
