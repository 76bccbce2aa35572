/**
 * Whose a permit is, for worker tokens and for tokens that are scoped to a project or an agent.
 *
 * The log knows the project of a permit, and its task where the call is a task's. A permit without a task has no agent
 * and no worker there. So this process remembers whom it made a ticket for, once there is one: an id that was named in
 * vain has no owner. What it does not know is not the caller's: after a restart such a permit comes back by itself. The
 * position that a call had in the line before its 429 is owned in the same way, though its permit is settled.
 */
import type { GateId, PermitId, TaskId } from "../../core/base/index.ts";
import type { Ticket } from "../../core/gate/index.ts";
import { refused } from "../../engine/base/index.ts";
import type { Drover } from "../../engine/index.ts";
import { type Caller, isScoped } from "../../http/index.ts";
import { remember } from "../../std/index.ts";
import { checkSaid, isOwn, sessionOf } from "./token-scope.ts";

/** The engine keeps so many positions of calls that met a 429. */
const POSITIONS_MAX = 10_000;
/** From so many on, those that are no longer queued or held are looked for and forgotten. */
const SWEEP_AT = 1000;

export type OwnPermits = {
  /** Throws, as if there were no such permit, unless it is the caller's own, or has no owner yet. */
  check(caller: Caller, permit: string, session: string | undefined): void;
  /** Whether the position that the call of this permit had before its 429 is the caller's. */
  isPositionOf(caller: Caller, permit: string, session: string | undefined): boolean;
  /** The call of this permit meets a 429, and may come back for its position. */
  keepPosition(permit: string): void;
  isThere(permit: string): boolean;
  /** Whether this caller may know of it: a scoped one knows its own only. */
  isSeen(caller: Caller, permit: string): boolean;
  /** A ticket was made for this caller. */
  note(caller: Caller, permit: string, session: string | undefined): void;
};
type Owner = { readonly agentId: string | undefined; readonly session: string | null; readonly project: string };
type Asker = { readonly agentId: string | null; readonly session: string | null };

const seesAll = (caller: Caller): boolean => caller.role !== "worker" && !isScoped(caller);

export function createOwnPermits({ state }: Pick<Drover, "state">): OwnPermits {
  const askedBy = new Map<string, Asker>();
  const positions = new Map<string, Owner>();
  let sweepAt = SWEEP_AT;

  function ticketOf(permit: string): Ticket | undefined {
    const gate = state.gates.get(state.permits.get(permit as PermitId) as GateId);
    return gate?.held.get(permit) ?? gate?.queue.entries.get(permit)?.ticket;
  }

  function ownerOf(permit: string): Owner | undefined {
    const ticket = ticketOf(permit);
    if (ticket === undefined) return undefined;
    const asker = askedBy.get(permit);
    const task = ticket.task === undefined ? undefined : state.tasks.get(ticket.task as TaskId);
    return {
      agentId: task?.agent.id ?? asker?.agentId ?? undefined,
      session: asker?.session ?? sessionOf(state, ticket.task, ticket.attempt),
      project: ticket.project,
    };
  }

  const isCallers = (caller: Caller, owner: Owner | undefined, session: string | undefined): boolean =>
    owner === undefined || (caller.role === "worker" ? session === owner.session : isOwn(caller, owner));

  function sweep(): void {
    for (const permit of askedBy.keys()) if (!state.permits.has(permit as PermitId)) askedBy.delete(permit);
    sweepAt = Math.max(SWEEP_AT, askedBy.size * 2);
  }

  return {
    check(caller, permit, session) {
      checkSaid(caller, session);
      if (seesAll(caller)) return;
      if (!isCallers(caller, ownerOf(permit), session)) throw refused({ type: "permit-unknown", permit });
    },
    isPositionOf(caller, permit, session) {
      const owner = positions.get(permit);
      return seesAll(caller) || (owner !== undefined && isCallers(caller, owner, session));
    },
    keepPosition(permit) {
      const owner = ownerOf(permit);
      if (owner === undefined) return;
      remember(positions, permit, owner, POSITIONS_MAX);
    },
    isThere: (permit) => state.permits.has(permit as PermitId),
    isSeen: (caller, permit) => !isScoped(caller) || isCallers(caller, ownerOf(permit), undefined),
    note({ agentId }, permit, session = undefined) {
      // The owner of a permit of this name before has it no more, also if no one caller owns it now.
      askedBy.delete(permit);
      if (agentId === null && session === undefined) return;
      askedBy.set(permit, { agentId, session: session ?? null });
      if (askedBy.size >= sweepAt) sweep();
    },
  };
}
