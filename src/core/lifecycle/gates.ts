/**
 * The gates there are: when one is made and when it goes, what its provider said, and what that means for tasks.
 *
 * A gate is made by the first call or report that names it. Those that the config names are always there; of the others
 * there is a maximum, and one that has not been used lately gives way to a new one. While a gate is blocked no task of
 * its provider starts.
 */

import type { GateId, Instant, TaskId } from "../base/brand.ts";
import type { Refusal } from "../base/refusal.ts";
import { isKeptForOthers, keptOf } from "../base/reserve.ts";
import { fail, ok, type Result } from "../base/result.ts";
import { gateSettings } from "../config/config.ts";
import { gateUse, setGateHeld } from "../fleet/shape.ts";
import { resetGate, throttleGate } from "../gate/gate.ts";
import { isHeld } from "../gate/limits.ts";
import { type Gate, newGate, type ReadonlyGate } from "../gate/state.ts";
import { type CommandOf, type Decided, REPEATED } from "../model/commands.ts";
import type { Event, EventOf } from "../model/events.ts";
import type { ReadonlyState } from "../model/read-only.ts";
import type { Attempt, State } from "../model/state.ts";

const GATES_MAX = 1000;
/** So long after its block an unused gate is still known as throttled: it does not give way to a new one. */
const THROTTLES_KEPT_MS = 3_600_000;

export function ensureGate(state: State, id: GateId): Gate {
  let gate = state.gates.get(id);
  if (gate === undefined) {
    gate = newGate(gateSettings(state.config, id));
    state.gates.set(id, gate);
  }
  return gate;
}

export function throttle(state: State, { at, gate: id, permit, retryAfterMs }: EventOf<"gate-throttled">): void {
  const gate = ensureGate(state, id);
  throttleGate(gate, { at, retryAfterMs, id: permit ?? undefined });
  const held = permit === null ? undefined : gate.held.get(permit);
  if (held !== undefined) {
    gate.held.set(held.id, { ...held, throttled: true });
    const attempt = attemptOf(state, held);
    if (attempt?.task.requirements.provider === id) attempt.gateTold = true;
  }
  setGateHeld(state.shapes, gateUse(state.shapes, id), isHeld(gate, at));
}

/** The live attempt a permit was taken for. */
export function attemptOf<Live extends { readonly number: number }>(
  { tasks }: { readonly tasks: { get(id: TaskId): { readonly attempt: Live | null } | undefined } },
  ticket: { readonly task?: string; readonly attempt?: number },
): Live | null {
  const attempt = ticket.task === undefined ? null : (tasks.get(ticket.task as TaskId)?.attempt ?? null);
  return attempt !== null && attempt.number === ticket.attempt ? attempt : null;
}

/**
 * A task of this provider that began after the block has ended well. Where no call asks for permits, this is
 * the only sign that a provider answers again, and the throttles are forgotten.
 */
export function noteAnswered(state: State, { task, assignedAt }: Attempt): void {
  const gate = state.gates.get(task.requirements.provider as GateId);
  if (gate === undefined || gate.throttles === 0 || gate.held.size > 0 || gate.queue.entries.size > 0) return;
  if (gate.blockedUntil !== null && assignedAt >= gate.blockedUntil) gate.throttles = 0;
}

export function openGate(state: State, id: GateId): void {
  setGateHeld(state.shapes, gateUse(state.shapes, id), false);
}

/** What its provider said is forgotten: the gate begins with a probe, and those that wait keep their positions. */
export function forgiveGate(state: State, id: GateId): void {
  resetGate(ensureGate(state, id));
  openGate(state, id);
}

export function removeGate(state: State, id: GateId): void {
  if (state.shapes.gates.has(id)) openGate(state, id);
  state.gates.delete(id);
}

export const isConfigured = ({ config }: ReadonlyState, id: string): boolean => Object.hasOwn(config.gates.named, id);

/**
 * Whether a gate that is not there yet may be made for a project, and what happens first. Those that the config names
 * always may. Where the project may have no more, the oldest gate that was not used lately gives way.
 */
export function roomForGate(
  state: ReadonlyState,
  id: GateId,
  project: string | null,
  now: Instant,
): Result<readonly Event[], Refusal> {
  if (state.gates.has(id) || isConfigured(state, id)) return NOTHING_FIRST;
  let [used, mine] = [0, 0];
  let idle: GateId | null = null;
  for (const [other, gate] of state.gates) {
    if (isConfigured(state, other)) continue;
    used++;
    if (project === null || gate.queue.shares.has(project)) mine++;
    if (idle === null && isIdle(gate, now)) idle = other;
  }
  const isKept = isKeptForOthers(GATES_MAX, used, mine);
  if (used < GATES_MAX && !isKept) return NOTHING_FIRST;
  if (idle !== null) return ok([{ kind: "gate-removed", at: now, gate: idle }]);
  const kept = used < GATES_MAX ? { kept: keptOf(GATES_MAX) } : {};
  return fail({ type: "too-many", what: "gates", max: GATES_MAX, ...kept });
}
const NOTHING_FIRST: Result<readonly Event[], Refusal> = ok([]);

/** Nothing is lost with it: no call is out or waits, none counts in its windows, no word of its provider is fresh. */
function isIdle(gate: ReadonlyGate, now: Instant): boolean {
  const { held, queue, throttles, blockedUntil, requests, tokens } = gate;
  if (held.size + queue.entries.size > 0 || isHeld(gate, now) || requests.total(now) > 0) return false;
  if (throttles > 0 && now < (blockedUntil ?? 0) + THROTTLES_KEPT_MS) return false;
  for (const used of tokens.values()) if (used.total(now) > 0) return false;
  return true;
}

export function decideThrottle(state: ReadonlyState, command: CommandOf<"throttle-gate">, now: Instant): Decided {
  const { gate, permit, retryAfterMs } = command;
  const room = roomForGate(state, gate, null, now);
  if (!room.ok) return room;
  return ok({ events: [...room.value, { kind: "gate-throttled", at: now, gate, permit, retryAfterMs }] });
}

export function decideReset(state: ReadonlyState, { gate: id }: CommandOf<"reset-gate">, now: Instant): Decided {
  const gate = state.gates.get(id);
  if (gate === undefined) return isConfigured(state, id) ? REPEATED : fail({ type: "gate-unknown", gate: id });
  // Nothing to forgive: a gate that recovers by itself must not begin again with a probe.
  if (gate.throttles === 0 && !isHeld(gate, now)) return REPEATED;
  return ok({ events: [{ kind: "gate-reset", at: now, gate: id }] });
}

export function decideRemoval(state: ReadonlyState, { gate: id }: CommandOf<"remove-gate">, now: Instant): Decided {
  if (isConfigured(state, id)) return fail({ type: "gate-configured", gate: id });
  const gate = state.gates.get(id);
  if (gate === undefined) return fail({ type: "gate-unknown", gate: id });
  const [running, queued] = [gate.held.size, gate.queue.entries.size];
  if (running + queued > 0) return fail({ type: "gate-in-use", gate: id, running, queued });
  return ok({ events: [{ kind: "gate-removed", at: now, gate: id }] });
}
