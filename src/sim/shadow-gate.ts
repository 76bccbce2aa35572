/**
 * Gates as the auditor understands them: who waits, who is out, and what the provider said.
 *
 * An episode begins with a 429 that nothing had warned of, or with a new engine. Calls of an older episode are out
 * still, but prove nothing: their 429s are no new throttles and their successes end nothing. Within an episode at most
 * `slow` calls may be out: one at first (the probe), doubled by every success, without bound once it
 * reaches the gate's own limit.
 */

import type { Event } from "../core/model/index.ts";
import { addToLevel, book, gateSettingsOf, noteUsage, type Shadow, type ShadowGate } from "./shadow.ts";

const THROTTLES_THAT_COUNT = 6;

export function gateOf(shadow: Shadow, id: string): ShadowGate {
  const known = shadow.gates.get(id);
  if (known !== undefined) return known;
  const fresh: ShadowGate = {
    waiting: new Map(),
    out: new Map(),
    grants: [],
    spent: [],
    blockedUntil: -1,
    throttles: 0,
    episode: 0,
    slow: Number.POSITIVE_INFINITY,
  };
  shadow.gates.set(id, fresh);
  return fresh;
}

export function noteGates(shadow: Shadow, event: Event): void {
  switch (event.kind) {
    case "engine-started":
      for (const gate of shadow.gates.values()) {
        gate.waiting.clear();
        begin(gate);
      }
      return;
    case "permit-asked": {
      const { project, task, attempt, tokens } = event;
      gateOf(shadow, event.gate).waiting.set(event.permit, { project, task, attempt, tokens, episode: -1 });
      return;
    }
    case "permit-granted":
      return noteGrant(shadow, gateOf(shadow, event.gate), event.permit);
    case "permit-dropped":
      gateOf(shadow, event.gate).waiting.delete(event.permit);
      return;
    case "permit-settled":
      return noteSettled(shadow, event);
    case "gate-throttled":
      return noteThrottle(gateOf(shadow, event.gate), event);
    case "gate-reset": {
      const gate = gateOf(shadow, event.gate);
      begin(gate);
      gate.blockedUntil = -1;
      gate.throttles = 0;
      return;
    }
    case "gate-removed":
      shadow.gates.delete(event.gate);
      return;
    default:
  }
}

function begin(gate: ShadowGate): void {
  gate.episode++;
  gate.slow = 1;
}

function noteGrant(shadow: Shadow, gate: ShadowGate, id: string): void {
  const permit = gate.waiting.get(id);
  if (permit === undefined) return;
  gate.waiting.delete(id);
  gate.out.set(id, { ...permit, episode: gate.episode });
  gate.grants.push(shadow.at);
}

function noteSettled(shadow: Shadow, event: Extract<Event, { kind: "permit-settled" }>): void {
  const gate = gateOf(shadow, event.gate);
  const permit = gate.out.get(event.permit);
  if (permit === undefined) return;
  gate.out.delete(event.permit);
  const tokens = event.tokens ?? permit.tokens;
  if (gateSettingsOf(shadow, event.gate).tokens.perMinute !== null) gate.spent.push({ at: shadow.at, tokens });
  const attempt = permit.task === null ? null : (shadow.tasks.get(permit.task)?.attempt ?? null);
  if (attempt !== null && attempt.number === permit.attempt) noteUsage(attempt, { permitted: tokens });
  // A call whose attempt is over was paid for with it; a call of no task pays for itself.
  else if (permit.task === null) payFor(shadow, permit.project, tokens);
  if (!event.ok || permit.episode !== gate.episode || gate.slow === Number.POSITIVE_INFINITY) return;
  gate.throttles = 0;
  const doubled = gate.slow * 2;
  gate.slow = doubled >= gateSettingsOf(shadow, event.gate).maxConcurrent ? Number.POSITIVE_INFINITY : doubled;
}

function payFor(shadow: Shadow, id: string, tokens: number): void {
  const project = shadow.projects.get(id);
  book(shadow, project, tokens);
  if (project !== undefined) addToLevel(shadow, project, tokens);
}

/**
 * A task that began after the block and ended well, while no call has or wants a permit: its provider answers again.
 */
export function noteAnswered(shadow: Shadow, provider: string | null, assignedAt: number): void {
  const gate = provider === null ? undefined : shadow.gates.get(provider);
  if (gate === undefined || gate.out.size > 0 || gate.waiting.size > 0) return;
  if (gate.blockedUntil >= 0 && assignedAt >= gate.blockedUntil) gate.throttles = 0;
}

function noteThrottle(gate: ShadowGate, event: Extract<Event, { kind: "gate-throttled" }>): void {
  const permit = event.permit === null ? undefined : gate.out.get(event.permit);
  const isOfThisEpisode = permit === undefined ? event.at < gate.blockedUntil : permit.episode !== gate.episode;
  if (gate.throttles === 0 || !isOfThisEpisode) {
    gate.throttles++;
    gate.episode++;
  }
  gate.slow = 1;
  const rest = Math.max(event.retryAfterMs, 1000 * 2 ** Math.min(gate.throttles, THROTTLES_THAT_COUNT));
  gate.blockedUntil = Math.max(gate.blockedUntil, event.at + rest);
}
