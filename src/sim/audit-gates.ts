/**
 * The rules of a gate, asked at every grant: not while blocked, within maxConcurrent and the request window, one
 * probe after a block and a slow start after that; and no call is granted that did not ask.
 */
import type { Event } from "../core/model/index.ts";
import type { Complain } from "./audit-life.ts";
import { gateSettingsOf, type Shadow, spentWithin } from "./shadow.ts";
import { gateOf } from "./shadow-gate.ts";

const MINUTE_MS = 60_000;

export function auditGates(shadow: Shadow, event: Event, complain: Complain): void {
  if (event.kind === "permit-settled" && !gateOf(shadow, event.gate).out.has(event.permit)) {
    complain("permit-once", `${event.permit} is settled at ${event.gate}, which it does not hold`);
  }
  if (event.kind === "permit-asked") auditFreeCall(shadow, event, complain);
  if (event.kind !== "permit-granted") return;
  const gate = gateOf(shadow, event.gate);
  const { maxConcurrent, requests, windowMs } = gateSettingsOf(shadow, event.gate);
  const say = (rule: string, claim: string): void =>
    complain(rule, `${event.permit} is granted at ${event.gate}${claim}`);
  const permit = gate.waiting.get(event.permit);
  if (permit === undefined) return say("permit-once", ", but it does not wait there");
  if (event.at < gate.blockedUntil) say("gate-block", `, which is blocked until ${gate.blockedUntil}`);
  if (gate.out.size >= maxConcurrent) say("gate-concurrency", ` with ${gate.out.size} out of ${maxConcurrent}`);
  const used = gate.grants.filter((at) => at > event.at - windowMs).length;
  if (used >= requests) say("gate-window", ` as number ${used + 1} of ${requests} in ${windowMs} ms`);
  const fresh = [...gate.out.values()].filter(({ episode }) => episode === gate.episode).length;
  if (fresh >= gate.slow) say("gate-probe", ` with ${fresh} out; after a block ${gate.slow} may be`);
  auditTokens(shadow, event, permit.tokens, say);
}

/** What was used in a minute, what is out and this call stay within the limit; a call alone is always let out. */
function auditTokens(
  shadow: Shadow,
  event: Extract<Event, { kind: "permit-granted" }>,
  tokens: number,
  say: (rule: string, claim: string) => void,
): void {
  const gate = gateOf(shadow, event.gate);
  const { perMinute } = gateSettingsOf(shadow, event.gate).tokens;
  if (perMinute === null) return;
  const out = [...gate.out.values()].reduce((sum, permit) => sum + permit.tokens, 0);
  const used = spentWithin(gate.spent, MINUTE_MS, event.at) + out;
  if (used > 0 && used + Math.max(1, tokens) > perMinute)
    say("gate-tokens", ` with ${used} of ${perMinute} tokens used`);
}

/** A call of no task sets its estimate aside when it asks: with all that is used and set aside it fits the budget. */
function auditFreeCall(shadow: Shadow, event: Extract<Event, { kind: "permit-asked" }>, complain: Complain): void {
  const project = shadow.projects.get(event.project);
  if (event.task !== null || project === undefined) return;
  const { limit, window } = project.settings.budget;
  const attempts = [...shadow.tasks.values()].filter(({ spec }) => spec.project === project.id);
  const reserved = attempts.reduce((sum, { attempt }) => sum + (attempt?.reserve ?? 0), 0);
  const used = spentWithin(project.spent, window, event.at) + reserved + setAsideByCalls(shadow, project.id);
  if (limit !== null && used + Math.max(1, event.tokens) > limit) {
    complain("gate-budget", `${event.permit} asks with ${used} of ${limit} used in project ${event.project}`);
  }
}

/** What calls of no task have set aside, waiting or out: of one project, or of all. */
export function setAsideByCalls(shadow: Shadow, project: string | null): number {
  const calls = [...shadow.gates.values()].flatMap(({ waiting, out }) => [...waiting.values(), ...out.values()]);
  const mine = calls.filter((call) => call.task === null && (project === null || call.project === project));
  return mine.reduce((sum, { tokens }) => sum + Math.max(1, tokens), 0);
}
