/**
 * The three events every task costs, read without looking fields up by name.
 *
 * `codec.ts` reads any event by the order in `FIELDS`; giving thirty properties by a computed name takes longer than
 * parsing them. These spell the same order out for submit, assign and finish. A test holds them to `FIELDS`.
 */
import type { Event } from "../core/events.ts";

/**
 * The frequent events as object literals, so that all of a kind have one shape for the engine that runs them;
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
