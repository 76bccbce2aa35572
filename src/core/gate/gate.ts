/**
 * One gate: which LLM call may go out now.
 *
 * A gate stands before one provider account, or any named scarce thing, and hands out permits. A caller
 * asks with a ticket and keeps its position until that is granted; nothing polls and nothing asks twice.
 *
 *     ask ─► queued ─► granted ─► released        (drop: out of the queue; an expired permit: released unused)
 *
 * This is a state machine without a clock: the host calls `nextGrant` until it says null, after everything that
 * happens and at `nextGateInstant`. `drover/gate` is one host, the event-sourced core is another. The verbs here
 * change the gate they are given and choose nothing; all choosing is in waiting-line.ts and limits.ts.
 *
 * When the provider says 429 or 529 an episode begins. Throttles rise first, then the gate is blocked for
 * max(what the provider asked, 2^min(throttles, 6) s), never less than it already was. All calls that were out at that
 * moment belong to the same episode: their 429s are no further throttles and their successes prove nothing. After the
 * block one probe goes out. If it succeeds the throttles are forgotten and the limit doubles with each success until it
 * is maxConcurrent again; if it is throttled too, the next episode begins one throttle higher.
 *
 * A permit is charged at its estimate when granted and corrected when released; a release that does not know its
 * tokens stays at the estimate. Every permit runs out, so an abandoned one returns by itself.
 */

import { invariant } from "../base/result.ts";
import { admissible, isHeld, isOpen, rateLimitedUntil } from "./limits.ts";
import type { Gate, GrantedPermit } from "./state.ts";
import type { Ticket } from "./waiting-line.ts";
import { chargeShare, clearQueue, enqueue, joinShare, type Share, settleShare, takeOut } from "./waiting-line.ts";

/** What became of a call; unknown tokens (null) are charged at the estimate. */
type PermitOutcome = {
  readonly ok: boolean;
  readonly tokens: number | null;
  readonly at: number;
  /** It was not given back: its time was over, or that of its attempt. */
  readonly expired?: boolean;
};

const THROTTLES_THAT_COUNT = 6;

/** The id must be new here: neither queued nor held. `at` is when it joins the line; its age may be older. */
export function askPermit(gate: Gate, ticket: Ticket, at: number = ticket.askedAt): void {
  const isNew = !gate.held.has(ticket.id) && !gate.queue.entries.has(ticket.id);
  // The claim is put into words only when it fails: this is a hot path.
  if (!isNew) invariant(false, `${ticket.id} asks once`);
  const { totals, queue } = gate;
  enqueue(queue, ticket);
  if (ticket.since === undefined && rateLimitedUntil(gate, ticket.tokens, at) !== null) totals.rateLimited++;
  if (queue.entries.size <= totals.peakQueued) return;
  const waiting = queue.entries.size - admissible(gate, ticket.tokens, at);
  if (waiting > totals.peakQueued) totals.peakQueued = waiting;
}

export function grantPermit(gate: Gate, id: string, now: number): GrantedPermit {
  const entry = takeOut(gate.queue, id);
  if (entry === null) invariant(false, `${id} is queued when it is granted`);
  return hold(gate, entry.ticket, entry.lane.share, now);
}

/** Ask and grant in one step, past the queue, if no call waits and no limit is in the way. */
export function admitAtOnce(gate: Gate, ticket: Ticket, now: number): GrantedPermit | null {
  if (!isOpen(gate, ticket.tokens, now)) return null;
  return hold(gate, ticket, joinShare(gate.queue, ticket.project), now);
}

export function dropTicket(gate: Gate, id: string): boolean {
  return takeOut(gate.queue, id) !== null;
}

/** Releasing twice, or what was never held, changes nothing and says null. */
export function releasePermit(gate: Gate, id: string, outcome: PermitOutcome): GrantedPermit | null {
  const permit = gate.held.take(id);
  if (permit === undefined) return null;
  if (outcome.expired !== true) {
    gate.totals.completed++;
    gate.totals.serviceMs += Math.max(0, outcome.at - permit.grantedAt);
  }
  const spent = outcome.tokens ?? permit.tokens;
  gate.reserved -= permit.tokens;
  if (gate.tokens.size > 0) for (const sum of gate.tokens.values()) sum.add(spent, outcome.at);
  settleShare(gate.queue, permit.project, Math.max(1, spent) - Math.max(1, permit.tokens), permit.weight);
  if (permit.episode === gate.episode) {
    gate.fresh--;
    if (outcome.ok) recover(gate);
  }
  return permit;
}

/** The provider said 429 or 529, to the call that holds permit `id` if given. */
export function throttleGate(
  gate: Gate,
  throttle: { readonly at: number; readonly retryAfterMs: number | null; readonly id?: string | undefined },
): void {
  gate.totals.rateLimited++;
  const permit = throttle.id === undefined ? undefined : gate.held.get(throttle.id);
  // A call without a permit is taken to belong to the episode whose block still lasts.
  const isOfThisEpisode = permit === undefined ? isHeld(gate, throttle.at) : permit.episode !== gate.episode;
  if (gate.throttles === 0 || !isOfThisEpisode) {
    gate.throttles++;
    beginEpisode(gate);
  }
  gate.slowStart = 1;
  const restMs = Math.max(throttle.retryAfterMs ?? 0, 1000 << Math.min(gate.throttles, THROTTLES_THAT_COUNT));
  gate.blockedUntil = Math.max(gate.blockedUntil ?? throttle.at, throttle.at + restMs);
}

/**
 * After a restart no call waits any more, what is out may still be out, and how the provider feels is unknown. Held
 * permits stay until they are settled or run out; the gate begins with a probe, and a block ends when it ends.
 */
export function restartGate(gate: Gate): void {
  clearQueue(gate.queue);
  beginEpisode(gate);
  gate.slowStart = 1;
}

/** The throttles and the block are forgotten; whether that was right the first call will show. */
export function resetGate(gate: Gate): void {
  gate.blockedUntil = null;
  gate.throttles = 0;
  beginEpisode(gate);
  gate.slowStart = 1;
}

function hold(gate: Gate, ticket: Ticket, share: Share, now: number): GrantedPermit {
  const { settings, episode } = gate;
  const probe = gate.slowStart === 1;
  const expiresAt = now + settings.permitTtlMs;
  const { id, project, weight, tokens, askedAt, order } = ticket;
  // Spelled out, since this is the hot path and a spread is not.
  const permit: GrantedPermit =
    ticket.task === undefined && ticket.attempt === undefined && ticket.remote === undefined
      ? { id, class: ticket.class, project, weight, tokens, askedAt, order, grantedAt: now, expiresAt, probe, episode }
      : { ...ticket, grantedAt: now, expiresAt, probe, episode };
  chargeShare(gate.queue, share, Math.max(1, tokens), weight);
  gate.held.add(id, permit);
  gate.requests.add(1, now);
  gate.reserved += tokens;
  gate.fresh++;
  const { totals } = gate;
  totals.scheduled++;
  totals.waitMs += Math.max(0, now - (ticket.since ?? askedAt));
  if (gate.held.size > totals.peakRunning) totals.peakRunning = gate.held.size;
  return permit;
}

/** A call that began after the episode did has succeeded. */
function recover(gate: Gate): void {
  if (gate.slowStart === null) return;
  gate.throttles = 0;
  const doubled = gate.slowStart * 2;
  gate.slowStart = doubled >= gate.settings.maxConcurrent ? null : doubled;
}

function beginEpisode(gate: Gate): void {
  gate.episode++;
  gate.fresh = 0;
}
