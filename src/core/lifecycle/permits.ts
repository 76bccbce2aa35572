/**
 * Permits in the log: gates as events move them, and what may be asked of them.
 *
 * The gate itself (gate/gate.ts) is a state machine of its own; here its verbs are tied to events, to projects
 * and to the attempts whose reservations the calls draw on. A grant is *logged behind*: the host answers
 * it when it is applied and it becomes durable with the next batch, so that a call never waits for a disk.
 * That is why a gate begins every life with a probe and a slow start: a crash may have forgotten calls
 * that are still out.
 *
 * An attempt may have calls at gates only while it lives. One that is lost takes its calls along (`strayPermits`), or
 * a worker that was killed would shut a gate for the time that its permits last.
 */

import type { GateId, Instant, PermitId } from "../base/brand.ts";
import type { Refusal } from "../base/refusal.ts";
import { isKeptForOthers, keptOf } from "../base/reserve.ts";
import { fail, ok, unreachable } from "../base/result.ts";
import { front, insert, remove } from "../collections/sorted-list.ts";
import { gateSettings } from "../config/config.ts";
import { askPermit, dropTicket, grantPermit, releasePermit, restartGate } from "../gate/gate.ts";
import { expiredPermits, isHeld, nextGateInstant, nextGrant } from "../gate/limits.ts";
import { classOf } from "../gate/settings.ts";
import { noteSettled, settledOf } from "../gate/settled.ts";
import type { Gate, ReadonlyGate } from "../gate/state.ts";
import type { Ticket } from "../gate/waiting-line.ts";
import { type AskPermit, type CommandOf, type Decided, REPEATED } from "../model/commands.ts";
import type { Event, EventOf } from "../model/events.ts";
import type { ReadonlyProject, ReadonlyState } from "../model/read-only.ts";
import type { State, Task } from "../model/state.ts";
import { fleetHasRoom, noteUsage, projectHasRoom, reserveForCall, setAside, usedBy } from "../turn/budget.ts";
import { chargeProject } from "../turn/fairness.ts";
import { projectFor } from "./admission.ts";
import { attemptOf, ensureGate, roomForGate } from "./gates.ts";
import { stopForBudget } from "./stop.ts";
import { summed } from "./usage.ts";

const NONE: readonly Event[] = [];
const TICKETS_MAX = 100_000;
const STRAYS_AT_ONCE_MAX = 256;
type PermitEvent = EventOf<"permit-asked" | "permit-granted" | "permit-dropped" | "permit-settled">;

export function evolvePermit(state: State, event: PermitEvent): void {
  const gate = ensureGate(state, event.gate);
  switch (event.kind) {
    case "permit-asked":
      state.permits.set(event.permit, event.gate);
      if (event.task === null) bookCall(state, event, 1);
      return ask(state, gate, ticketOf(event, state.seq), event.at);
    case "permit-granted":
      grantPermit(gate, event.permit, event.at);
      return;
    case "permit-dropped":
      release(state, gate.queue.entries.get(event.permit)?.ticket);
      dropTicket(gate, event.permit);
      state.permits.delete(event.permit);
      return;
    case "permit-settled":
      return settlePermit(state, gate, event);
    default:
      return unreachable(event);
  }
}

function ask(state: State, gate: Gate, ticket: Ticket, at: Instant): void {
  notePermit(state, ticket);
  askPermit(gate, ticket, at);
}

function ticketOf(event: EventOf<"permit-asked">, seq: number): Ticket {
  return {
    id: event.permit,
    class: event.class,
    project: event.project,
    weight: event.weight,
    tokens: event.tokens,
    askedAt: event.askedAt,
    order: event.order ?? seq,
    ...(event.order === null ? {} : { since: event.at }),
    ...(event.task === null ? {} : { task: event.task }),
    ...(event.attempt === null ? {} : { attempt: event.attempt }),
    ...(event.remote ? { remote: true as const } : {}),
  };
}

function settlePermit(state: State, gate: Gate, event: EventOf<"permit-settled">): void {
  const permit = releasePermit(gate, event.permit, event);
  state.permits.delete(event.permit);
  if (permit === null) return;
  if (permit.remote === true && !event.expired) {
    const until = event.at + gate.settings.permitTtlMs;
    noteSettled(state.settled, { id: event.permit, until, mayReturn: permit.throttled === true }, event.at);
  }
  release(state, permit);
  const tokens = event.tokens ?? permit.tokens;
  const attempt = attemptOf(state, permit);
  if (attempt !== null) {
    if (event.ok && event.gate === attempt.task.requirements.provider) attempt.gateTold = false;
    attempt.permitted += tokens;
    if (event.usage !== null) attempt.permitUsage = summed(attempt.permitUsage, event.usage);
    attempt.known = true;
    return noteUsage(state, attempt);
  }
  // The attempt it was taken for is over and was charged for all it did.
  if (permit.task !== undefined) return;
  state.spent.add(tokens, event.at);
  const project = state.projects.get(permit.project as Task["project"]["id"]);
  if (project === undefined) return;
  project.spent.add(tokens, event.at);
  project.recent.add(tokens, event.at);
  chargeProject(state, project, tokens, event.at);
}

/** A call of no task sets its estimate aside from when it asks until it settles. */
export function bookCall(state: State, call: { readonly project: string; readonly tokens: number }, by: 1 | -1): void {
  const reserve = by * reserveForCall(call.tokens);
  const project = state.projects.get(call.project as Task["project"]["id"]);
  if (project !== undefined) project.callsReserved += reserve;
  state.callsReserved += reserve;
}

/** It is known which calls an attempt has at gates, so that none of them outlives it. */
export function notePermit(state: State, ticket: Ticket): void {
  if (ticket.attempt === undefined) return;
  const attempt = attemptOf(state, ticket);
  const id = ticket.id as PermitId;
  if (attempt === null) return insert(state.strayPermits, id);
  attempt.permits ??= new Set();
  attempt.permits.add(id);
}

/** The call neither waits nor is out any more. */
function release(state: State, ticket: Ticket | undefined): void {
  if (ticket === undefined) return;
  if (ticket.task === undefined) bookCall(state, ticket, -1);
  if (ticket.attempt === undefined) return;
  const id = ticket.id as PermitId;
  if (attemptOf(state, ticket)?.permits?.delete(id) !== true) remove(state.strayPermits, id);
}

/** After a restart no call waits any more, and every gate begins with a probe. */
export function restartGates(state: State): void {
  for (const gate of state.gates.values()) {
    for (const { ticket } of gate.queue.entries.values()) release(state, ticket);
    restartGate(gate);
  }
  for (const [permit, id] of state.permits) {
    if (state.gates.get(id)?.held.has(permit) !== true) state.permits.delete(permit);
  }
}

/** Whether one more may wait at a gate; the last tenth of the line is kept for projects that have few. */
function refusalForLine(
  state: ReadonlyState,
  { queue }: ReadonlyGate,
  { gate, task, project }: AskPermit,
): Refusal | null {
  const waiting = queue.entries.size;
  if (waiting < TICKETS_MAX - keptOf(TICKETS_MAX)) return null;
  const full = { type: "too-many", what: `calls waiting at gate ${gate}`, max: TICKETS_MAX } as const;
  if (waiting >= TICKETS_MAX) return full;
  const whose = task === null ? project : (state.tasks.get(task)?.project.id ?? project);
  const mine = queue.shares.get(whose)?.queued ?? 0;
  return isKeptForOthers(TICKETS_MAX, waiting, mine) ? { ...full, kept: keptOf(TICKETS_MAX) } : null;
}

export function decidePermit(state: ReadonlyState, command: AskPermit, now: Instant): Decided {
  const gate = state.gates.get(command.gate);
  const crowded = gate === undefined ? null : refusalForLine(state, gate, command);
  if (crowded !== null) return fail(crowded);
  if (command.permit !== null && state.permits.has(command.permit))
    return fail({ type: "permit-exists", permit: command.permit });
  const over = command.permit === null ? undefined : settledOf(state.settled, command.permit, now);
  if (over?.mayReturn === false) return fail({ type: "permit-settled", permit: over.id });
  const task = command.task === null ? undefined : state.tasks.get(command.task);
  if (command.task !== null) {
    if (task === undefined) return fail({ type: "task-unknown", task: command.task });
    // A later task may have taken the id of one that was forgotten.
    const current = task.seq === (command.taskSeq ?? task.seq) ? (task.attempt?.number ?? null) : null;
    if (current !== command.attempt || task.attempt?.state === "stopping") {
      return fail({ type: "attempt-stale", task: task.id, attempt: command.attempt ?? 0, current });
    }
  }
  const project = task?.project ?? state.projects.get(command.project);
  const room = roomForGate(state, command.gate, project?.id ?? command.project, now);
  if (!room.ok) return room;
  if (task === undefined) {
    const full = refusalForBudget(state, project, reserveForCall(command.tokens), now);
    if (full !== null) return fail(full);
  }
  // A project that only makes calls is made like one that submits: what it spends is booked from the first call on.
  const plan = projectFor(state, project?.id ?? command.project, null);
  if (!plan.ok) return plan;
  const { settings, source } = plan.value;
  const first: Event[] = [...room.value];
  if (project === undefined) first.push({ kind: "project-put", at: now, project: command.project, settings, source });
  const permit = command.permit ?? (`p${state.seq + first.length + 1}` as PermitId);
  if (state.permits.has(permit)) return fail({ type: "permit-exists", permit });
  const asked: Event = {
    kind: "permit-asked",
    at: now,
    permit,
    gate: command.gate,
    task: command.task,
    attempt: command.attempt,
    project: project?.id ?? command.project,
    weight: settings.weight,
    class: classOf({
      callClass: command.class ?? undefined,
      priority:
        task !== undefined && (task.requirements.prioritised || task.priority !== 0) ? task.priority : undefined,
      type: task?.requirements.type,
      fallback: gateSettings(state.config, command.gate).defaultPriority,
      maxPriority: settings.maxPriority,
    }),
    tokens: command.tokens,
    askedAt: command.askedAt ?? now,
    remote: command.remote ?? false,
    order: command.order ?? null,
  };
  return ok({ events: [...first, asked], id: permit });
}

/** A call of no task is refused when its budget cannot bear it: the end of no task would let it go. */
function refusalForBudget(
  state: ReadonlyState,
  project: ReadonlyProject | undefined,
  tokens: number,
  now: Instant,
): Refusal | null {
  const whose = project !== undefined && !projectHasRoom(project, tokens, now) ? project : null;
  if (whose === null && fleetHasRoom(state, tokens, now)) return null;
  const { limit } = whose === null ? state.config.budget : whose.settings.budget;
  const used = (whose ?? state).spent.total(now) + setAside(whose ?? state);
  return { type: "budget-exhausted", project: whose?.id ?? "(fleet)", limit: limit ?? 0, used };
}

/** One that was granted is given back unused; one that nobody has heard of is as one that ran out, and may return. */
export function decideDrop(state: ReadonlyState, command: CommandOf<"drop-permit">, now: Instant): Decided {
  const { permit, isUnheard: expired = false } = command;
  const gate = state.permits.get(permit);
  if (gate === undefined) return REPEATED;
  if (state.gates.get(gate)?.held.has(permit) === true) {
    const unused = { ok: false, tokens: 0, expired, usage: null };
    return ok({ events: [{ kind: "permit-settled", at: now, permit, gate, ...unused }] });
  }
  return ok({ events: [{ kind: "permit-dropped", at: now, permit, gate }] });
}

export function decideSettle(state: ReadonlyState, command: CommandOf<"settle-permit">, now: Instant): Decided {
  const id = state.permits.get(command.permit);
  const held = id === undefined ? undefined : state.gates.get(id)?.held.get(command.permit);
  // Settling twice, or after the permit ran out, is no fault: the first word counted.
  if (id === undefined || held === undefined) return REPEATED;
  const { permit, tokens, usage = null } = command;
  const said = { ok: command.ok, tokens, expired: false, usage };
  const settled: Event = { kind: "permit-settled", at: now, permit, gate: id, ...said };
  const attempt = attemptOf(state, held);
  if (attempt === null) return ok({ events: [settled] });
  const used = Math.max(usedBy(attempt), attempt.permitted + (tokens ?? held.tokens));
  return ok({ events: [settled, ...stopForBudget(state, attempt, used, now)] });
}

/**
 * The calls of attempts that are over, whatever ended them: those that wait leave the line before any of them is
 * granted, and those that are out come back at their estimate, as if their time were over.
 */
export function strayPermits(state: ReadonlyState, now: Instant): readonly Event[] {
  if (state.strayPermits.size === 0) return NONE;
  return front(state.strayPermits, STRAYS_AT_ONCE_MAX).map((permit): Event => {
    const gate = state.permits.get(permit) as GateId;
    const isOut = state.gates.get(gate)?.held.has(permit) === true;
    const given = { at: now, permit, gate };
    return isOut
      ? { kind: "permit-settled", ...given, ok: false, tokens: null, expired: true, usage: null }
      : { kind: "permit-dropped", ...given };
  });
}

/** The next permit that may be granted at any gate. */
export function nextPermit(state: ReadonlyState, now: Instant): Event | null {
  if (state.permits.size === 0) return null;
  for (const [id, gate] of state.gates) {
    const ticket = nextGrant(gate, now);
    if (ticket !== null) return { kind: "permit-granted", at: now, permit: ticket.id as PermitId, gate: id };
  }
  return null;
}

/** What time alone has changed at the gates: permits that ran out, a block that ended. */
export function dueAtGates(state: ReadonlyState, now: Instant): readonly Event[] {
  if (state.permits.size === 0 && state.shapes.gatesHeld === 0) return NONE;
  for (const [id, gate] of state.gates) {
    const [permit] = expiredPermits(gate, now);
    if (permit !== undefined) {
      const settled = { permit: permit.id as PermitId, gate: id, ok: false, tokens: null, expired: true, usage: null };
      return [{ kind: "permit-settled", at: now, ...settled }];
    }
    if (state.shapes.gates.get(id)?.held === true && !isHeld(gate, now))
      return [{ kind: "gate-opened", at: now, gate: id }];
  }
  return [];
}

export function nextInstantAtGates(state: ReadonlyState, now: Instant): number {
  let next = Number.POSITIVE_INFINITY;
  for (const gate of state.gates.values()) next = Math.min(next, nextGateInstant(gate, now) ?? next);
  return next;
}
