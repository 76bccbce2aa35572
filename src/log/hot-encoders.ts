/**
 * The three events every task costs, written without looking fields up by name.
 *
 * `codec.ts` writes any event by the order in `FIELDS`; reading thirty properties by a computed name takes longer
 * than writing them. These spell the same order out for submit, assign and finish. A test holds them to `FIELDS`.
 */
import type { Event } from "../core/events.ts";

type Of<Kind extends Event["kind"]> = Extract<Event, { kind: Kind }>;

/** The values of a frequent event in the order of `FIELDS`, behind what every event begins with; null for others. */
export function hotValues(event: Event, format: number, cause: number | null): unknown[] | null {
  switch (event.kind) {
    case "task-submitted":
      return submitted(event, format, cause);
    case "task-assigned": {
      const { kind, at, task, attempt, worker, reason, rank, charge, reserve } = event;
      return [format, kind, at, cause, task, attempt, worker, reason, rank, charge, reserve];
    }
    case "task-done": {
      const { kind, at, task, attempt, tokens, resultHash, resultSize } = event;
      return [format, kind, at, cause, task, attempt, tokens, resultHash, resultSize];
    }
    default:
      return null;
  }
}

function submitted(event: Of<"task-submitted">, format: number, cause: number | null): unknown[] {
  const { task, project, agent, named, bodyHash, bodySize, type, capabilities, cpu, memory } = event;
  const { provider, locks, zone, tab, priority, prioritised, depth, parent, needs, artifact, notBefore } = event;
  const { deadline, estimatedTokens, iteration, maxAttempts, timeoutMs, onDependencyFailure, runnable, pin } = event;
  // biome-ignore format: one row per row of FIELDS
  return [
    format, event.kind, event.at, cause,
    task, project, agent, named, bodyHash, bodySize, type, capabilities, cpu, memory,
    provider, locks, zone, tab, priority, prioritised, depth, parent, needs, artifact, notBefore,
    deadline, estimatedTokens, iteration, maxAttempts, timeoutMs, onDependencyFailure, runnable, pin,
  ];
}
