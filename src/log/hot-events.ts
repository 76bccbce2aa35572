/**
 * The three events every task costs, without looking fields up by name.
 *
 * `codec.ts` writes and reads any event by the order in `FIELDS`; taking thirty properties by a computed name takes
 * longer than writing them. These spell the same order out for submit, assign and finish (`hot-bytes.ts` writes the
 * latter two). A test holds them to `FIELDS`.
 */
import type { Event, TaskSubmitted } from "../core/events.ts";

/** Filled anew for each submit, since it is read at once: an array of thirty values apiece is garbage worth saving. */
const submitValues: unknown[] = [];

/** The values of a submit in the order of `FIELDS`, behind what every event begins with; good until the next call. */
export function submittedValues(e: TaskSubmitted, format: number, cause: number | null): readonly unknown[] {
  const v = submitValues;
  v[0] = format;
  v[1] = e.kind;
  v[2] = e.at;
  v[3] = cause;
  v[4] = e.task;
  v[5] = e.project;
  v[6] = e.agent;
  v[7] = e.named;
  v[8] = e.bodyHash;
  v[9] = e.bodySize;
  v[10] = e.type;
  v[11] = e.capabilities;
  v[12] = e.cpu;
  v[13] = e.memory;
  v[14] = e.provider;
  v[15] = e.locks;
  v[16] = e.zone;
  v[17] = e.tab;
  v[18] = e.priority;
  v[19] = e.prioritised;
  v[20] = e.depth;
  v[21] = e.parent;
  v[22] = e.needs;
  v[23] = e.artifact;
  v[24] = e.notBefore;
  v[25] = e.deadline;
  v[26] = e.estimatedTokens;
  v[27] = e.iteration;
  v[28] = e.maxAttempts;
  v[29] = e.timeoutMs;
  v[30] = e.onDependencyFailure;
  v[31] = e.runnable;
  v[32] = e.pin;
  return v;
}

/**
 * The same events read back as object literals, so that all of a kind have one shape for the engine that runs them;
 * null for others. The values have been counted by the caller.
 */
export function hotEvent(values: readonly unknown[]): Event | null {
  switch (values[1]) {
    case "task-submitted":
      return readSubmitted(values) as Event;
    case "task-assigned": {
      const [, kind, at, , task, attempt, worker, reason, rank, charge, reserve] = values;
      return { kind, at, task, attempt, worker, reason, rank, charge, reserve } as Event;
    }
    case "task-done": {
      const [, kind, at, , task, attempt, tokens, resultHash, resultSize] = values;
      return { kind, at, task, attempt, tokens, resultHash, resultSize } as Event;
    }
    default:
      return null;
  }
}

function readSubmitted(v: readonly unknown[]): unknown {
  // biome-ignore format: one row per row of FIELDS
  return {
    kind: v[1], at: v[2],
    task: v[4], project: v[5], agent: v[6], named: v[7], bodyHash: v[8], bodySize: v[9], type: v[10],
    capabilities: v[11], cpu: v[12], memory: v[13],
    provider: v[14], locks: v[15], zone: v[16], tab: v[17], priority: v[18], prioritised: v[19], depth: v[20],
    parent: v[21], needs: v[22], artifact: v[23], notBefore: v[24],
    deadline: v[25], estimatedTokens: v[26], iteration: v[27], maxAttempts: v[28], timeoutMs: v[29],
    onDependencyFailure: v[30], runnable: v[31], pin: v[32],
  };
}
