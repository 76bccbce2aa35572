/**
 * Whose a permit is, for tokens that are tied to a project or an agent.
 *
 * The log knows the project of a permit, and its task where the call is a task's. A permit without a task has no agent
 * there, and the ids that Drover gives can be counted up by anybody. So this process remembers which agent it answered
 * to, and what it does not know is not that agent's: after a restart such a permit comes back by itself.
 */
import type { GateId, PermitId, TaskId } from "../core/brand.ts";
import type { Drover } from "../engine/drover.ts";
import { refused } from "../engine/drover-error.ts";
import { type Caller, isTied } from "./access.ts";
import { isOwn } from "./own-work.ts";

/** From so many on, those that are no longer queued or held are looked for and forgotten. */
const SWEEP_AT = 1000;

export type OwnPermits = {
  /** Throws, as if there were no such permit, unless it is the caller's own, or nobody's yet. */
  check(caller: Caller, permit: string): void;
  /** It was asked for by this caller. */
  note(caller: Caller, permit: string): void;
};

export function createOwnPermits({ state }: Pick<Drover, "state">): OwnPermits {
  const askedBy = new Map<string, string>();
  let sweepAt = SWEEP_AT;

  function ticketOf(permit: string): { readonly project: string; readonly task?: string } | undefined {
    const gate = state.gates.get(state.permits.get(permit as PermitId) as GateId);
    return gate?.held.get(permit) ?? gate?.queue.entries.get(permit)?.ticket;
  }

  function sweep(): void {
    for (const permit of askedBy.keys()) if (!state.permits.has(permit as PermitId)) askedBy.delete(permit);
    sweepAt = Math.max(SWEEP_AT, askedBy.size * 2);
  }

  return {
    check(caller, permit) {
      const ticket = isTied(caller) ? ticketOf(permit) : undefined;
      if (ticket === undefined) return;
      const task = ticket.task === undefined ? undefined : state.tasks.get(ticket.task as TaskId);
      const agentId = task?.agent.id ?? askedBy.get(permit);
      if (!isOwn(caller, { agentId, project: ticket.project })) throw refused({ type: "permit-unknown", permit });
    },
    note({ agentId }, permit) {
      if (agentId === null) return;
      askedBy.set(permit, agentId);
      if (askedBy.size >= sweepAt) sweep();
    },
  };
}
