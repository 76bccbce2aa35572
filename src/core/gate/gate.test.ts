/**
 * The gate's rules as stories with a clock turned by hand.
 *
 * The laws for histories nobody thought of are in laws.test.ts, the live gate is tested in src/gate/.
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import { BrokenInvariant } from "../base/result.ts";
import { askPermit, dropTicket, grantPermit, releasePermit, restartGate, throttleGate } from "./gate.ts";
import {
  expiredPermits,
  gateStanding,
  isHeld,
  nextGateInstant,
  nextGrant,
  queuedTickets,
  ticketPosition,
} from "./limits.ts";
import { classOf, DEFAULT_GATE_SETTINGS, type GateClass, type GateSettings } from "./settings.ts";
import { configureGate, type Gate, newGate } from "./state.ts";
import type { Ticket } from "./waiting-line.ts";

let orders = 0;

function gateWith(settings: Partial<GateSettings> = {}): Gate {
  return newGate({ ...DEFAULT_GATE_SETTINGS, ...settings });
}

function ticket(id: string, fields: Partial<Ticket> = {}): Ticket {
  return { id, class: "normal", project: "p", weight: 1, tokens: 0, askedAt: 0, order: orders++, ...fields };
}

function ask(gate: Gate, id: string, fields: Partial<Ticket> = {}): void {
  askPermit(gate, ticket(id, fields));
}

/** Grants all that may go now, and says who. */
function pump(gate: Gate, now: number): string[] {
  const granted: string[] = [];
  for (let next = nextGrant(gate, now); next !== null; next = nextGrant(gate, now)) {
    granted.push(grantPermit(gate, next.id, now).id);
  }
  return granted;
}

const done = (gate: Gate, id: string, at: number, ok = true): unknown =>
  releasePermit(gate, id, { ok, tokens: null, at });
const tokens = (limits: Partial<GateSettings["tokens"]>): Partial<GateSettings> => ({
  tokens: { ...DEFAULT_GATE_SETTINGS.tokens, ...limits },
});

const classes: { name: string; call: Parameters<typeof classOf>[0]; gives: GateClass }[] = [
  { name: "the call's own class wins", call: { callClass: "low", priority: -500, type: "plan" }, gives: "low" },
  { name: "-200 is critical", call: { priority: -200, type: "code" }, gives: "critical" },
  { name: "-199 is high", call: { priority: -199 }, gives: "high" },
  { name: "-100 is high", call: { priority: -100 }, gives: "high" },
  { name: "-99 is normal", call: { priority: -99 }, gives: "normal" },
  { name: "a priority beats the type", call: { priority: 0, type: "plan" }, gives: "normal" },
  { name: "99 is normal", call: { priority: 99 }, gives: "normal" },
  { name: "100 is low", call: { priority: 100 }, gives: "low" },
  { name: "a plan faces a person", call: { type: "plan" }, gives: "high" },
  { name: "any other type is normal", call: { type: "code" }, gives: "normal" },
  { name: "nothing known is the gate's default", call: { fallback: "low" }, gives: "low" },
  { name: "no call is above its project's most", call: { callClass: "critical", maxPriority: -199 }, gives: "high" },
  { name: "nor is a plan, nor the gate's default", call: { type: "plan", maxPriority: 0 }, gives: "normal" },
  { name: "what is below the most stays", call: { callClass: "low", maxPriority: -100 }, gives: "low" },
  { name: "-200 allows all", call: { callClass: "critical", maxPriority: -200 }, gives: "critical" },
];
for (const { name, call, gives } of classes) test(`class: ${name}`, () => assert.equal(classOf(call), gives));

test("order: class, then level, then first come", () => {
  const gate = gateWith({ maxConcurrent: 1 });
  ask(gate, "low", { class: "low" });
  ask(gate, "b1", { project: "b" });
  ask(gate, "a1", { project: "a" });
  ask(gate, "a2", { project: "a" });
  ask(gate, "critical", { class: "critical", project: "z" });
  ask(gate, "high", { class: "high", project: "z" });
  const served: string[] = [];
  for (let at = 1; at < 7; at++) {
    served.push(...pump(gate, at));
    done(gate, served.at(-1) ?? "", at);
  }
  assert.deepEqual(served, ["critical", "high", "b1", "a1", "a2", "low"]);
});

test("equal weights alternate however unequal the queues, and weight 2 gets twice as much", () => {
  const gate = gateWith({ maxConcurrent: 1, requests: 1000 });
  for (let index = 0; index < 60; index++) ask(gate, `a${index}`, { project: "a", weight: 2 });
  for (let index = 0; index < 30; index++) ask(gate, `b${index}`, { project: "b" });
  const counts = { a: 0, b: 0 };
  for (let round = 0; round < 45; round++) {
    const [id = ""] = pump(gate, 1);
    counts[id[0] as "a" | "b"]++;
    done(gate, id, 1);
  }
  assert.deepEqual(counts, { a: 30, b: 15 });
});

test("a project that comes back starts at the level last served: idleness banks no credit", () => {
  const gate = gateWith({ maxConcurrent: 1, requests: 1000 });
  ask(gate, "b", { project: "b" });
  pump(gate, 0);
  done(gate, "b", 0);
  for (let index = 0; index < 50; index++) {
    ask(gate, `a${index}`, { project: "a" });
    pump(gate, 0);
    done(gate, `a${index}`, 0);
  }
  ask(gate, "a-next", { project: "a" });
  pump(gate, 1);
  for (let index = 0; index < 4; index++) ask(gate, `A${index}`, { project: "a" });
  for (let index = 0; index < 4; index++) ask(gate, `B${index}`, { project: "b" });
  done(gate, "a-next", 1);
  const served: string[] = [];
  for (let round = 0; round < 6; round++) {
    const [id = ""] = pump(gate, 1);
    served.push(id[0] ?? "");
    done(gate, id, 1);
  }
  assert.ok(served.filter((name) => name === "B").length <= 4 && served.includes("A"), served.join(""));
  assert.ok(Math.abs(served.indexOf("A") - served.indexOf("B")) <= 3, served.join(""));
});

test("a costly critical call does not lift the level at which newcomers to other classes start", () => {
  const gate = gateWith({ maxConcurrent: 1, requests: 1000 });
  ask(gate, "busy", { project: "a" });
  pump(gate, 0);
  ask(gate, "a1", { project: "a" });
  ask(gate, "x", { project: "x", class: "critical", tokens: 1_000_000 });
  done(gate, "busy", 0);
  pump(gate, 0);
  ask(gate, "x2", { project: "x", class: "critical", tokens: 1 });
  done(gate, "x", 0);
  pump(gate, 0);
  ask(gate, "n1", { project: "new" });
  ask(gate, "a2", { project: "a" });
  done(gate, "x2", 0);
  const [first = ""] = pump(gate, 0);
  done(gate, first, 0);
  assert.deepEqual([first, ...pump(gate, 0)].sort(), ["a1", "n1"], "one each, although x was served at a million");
});

test("T1 a queued caller keeps its place", () => {
  const gate = gateWith({ maxConcurrent: 1 });
  ask(gate, "first");
  pump(gate, 0);
  ask(gate, "second", { askedAt: 1 });
  ask(gate, "third", { askedAt: 2 });
  assert.deepEqual([ticketPosition(gate, "second", 3), ticketPosition(gate, "third", 3)], [1, 2]);
  done(gate, "first", 3);
  assert.deepEqual(pump(gate, 3), ["second"]);
  assert.throws(() => ask(gate, "second"), BrokenInvariant, "it cannot ask again while it runs");
  assert.throws(() => ask(gate, "third"), BrokenInvariant, "nor while it waits");
});

test("T4 completing promotes the next only if the request window has room", () => {
  const gate = gateWith({ maxConcurrent: 1, requests: 2, windowMs: 1000 });
  for (const id of ["a", "b", "c"]) ask(gate, id);
  assert.deepEqual(pump(gate, 0), ["a"]);
  done(gate, "a", 10);
  assert.deepEqual(pump(gate, 10), ["b"]);
  done(gate, "b", 20);
  assert.deepEqual(pump(gate, 20), []);
  assert.equal(nextGateInstant(gate, 20), 1000);
  assert.deepEqual(pump(gate, 999), []);
  assert.deepEqual(pump(gate, 1000), ["c"]);
});

test("T5 releasing an unknown id, or twice, admits nobody", () => {
  const gate = gateWith({ maxConcurrent: 2 });
  for (const id of ["a", "b", "c", "d"]) ask(gate, id);
  assert.deepEqual(pump(gate, 0), ["a", "b"]);
  assert.equal(done(gate, "nobody", 1), null);
  assert.deepEqual(pump(gate, 1), []);
  assert.notEqual(done(gate, "a", 1), null);
  assert.equal(done(gate, "a", 1), null);
  assert.deepEqual(pump(gate, 1), ["c"]);
});

test("T7 a 429 blocks for what the provider asked and leaves the request window alone", () => {
  for (const [retryAfterMs, until] of [
    [2000, 2000],
    [300_000, 300_000],
    [10, 2000],
    [null, 2000],
  ] as const) {
    const gate = gateWith();
    throttleGate(gate, { at: 0, retryAfterMs });
    assert.equal(gate.blockedUntil, until);
    assert.equal(gateStanding(gate, 0).requestsUsed, 0);
    assert.deepEqual([isHeld(gate, until - 1), isHeld(gate, until)], [true, false]);
  }
});

test("T15 low is not starved: it rises one class per agingPerClass", () => {
  const gate = gateWith({ maxConcurrent: 1, requests: 1000, agingPerClassMs: 1000 });
  ask(gate, "busy");
  pump(gate, 0);
  ask(gate, "low", { class: "low", askedAt: 0 });
  const firstAt = (at: number): string | undefined => {
    ask(gate, `critical-${at}`, { class: "critical", askedAt: at });
    const [first] = queuedTickets(gate, at);
    dropTicket(gate, `critical-${at}`);
    return first?.id;
  };
  assert.equal(firstAt(2999), "critical-2999");
  assert.equal(firstAt(3000), "low", "after three classes it is critical itself, and came first");
  ask(gate, "normal", { class: "normal", askedAt: 1500 });
  assert.deepEqual(
    queuedTickets(gate, 2000).map(({ id }) => id),
    ["low", "normal"],
  );
});

test("T17 a permit is a lease: it runs out at its TTL, not before, and is charged at its estimate", () => {
  const gate = gateWith({ ...tokens({ perMinute: 100 }), permitTtlMs: 1000 });
  ask(gate, "lost", { tokens: 70 });
  pump(gate, 5);
  assert.equal(nextGateInstant(gate, 5), 1005);
  assert.deepEqual(expiredPermits(gate, 1004), []);
  const [expired] = expiredPermits(gate, 1005);
  assert.equal(expired?.id, "lost");
  releasePermit(gate, "lost", { ok: false, tokens: null, at: 1005 });
  assert.deepEqual(gateStanding(gate, 1005).tokensUsed.perMinute, { limit: 100, used: 70 });
  assert.equal(gateStanding(gate, 1005).running, 0);
});

test("L8 a later, smaller retry-after never shortens the block", () => {
  const gate = gateWith();
  throttleGate(gate, { at: 0, retryAfterMs: 30_000 });
  throttleGate(gate, { at: 1000, retryAfterMs: 1000 });
  assert.equal(gate.blockedUntil, 30_000);
  throttleGate(gate, { at: 2000, retryAfterMs: 40_000 });
  assert.equal(gate.blockedUntil, 42_000);
});

test("L9 six 429s of one burst are one throttle, named or not", () => {
  for (const named of [true, false]) {
    const gate = gateWith();
    const ids = ["a", "b", "c", "d", "e", "f"];
    for (const id of ids) ask(gate, id);
    pump(gate, 0);
    for (const id of ids) throttleGate(gate, { at: 10, retryAfterMs: 0, id: named ? id : undefined });
    assert.deepEqual([gate.throttles, gate.blockedUntil], [1, 2010]);
  }
});

test("throttles rise first and double the rest up to 64 s; a failed probe is a new throttle", () => {
  const gate = gateWith({ requests: 1000 });
  const rests: number[] = [];
  let now = 0;
  for (let round = 0; round < 8; round++) {
    ask(gate, `probe-${round}`);
    const [id = ""] = pump(gate, now);
    throttleGate(gate, { at: now, retryAfterMs: null, id });
    done(gate, id, now, false);
    rests.push((gate.blockedUntil ?? 0) - now);
    now = gate.blockedUntil ?? 0;
  }
  assert.deepEqual(rests, [2000, 4000, 8000, 16_000, 32_000, 64_000, 64_000, 64_000]);
});

test("L10 a late success of a call that began before the episode proves nothing", () => {
  const gate = gateWith();
  for (const id of ["old", "throttled"]) ask(gate, id);
  pump(gate, 0);
  throttleGate(gate, { at: 0, retryAfterMs: 1000, id: "throttled" });
  done(gate, "throttled", 0, false);
  done(gate, "old", 0);
  assert.deepEqual(
    [gate.throttles, gate.slowStart, isHeld(gate, 1)],
    [1, 1, true],
    "the same millisecond, and yet before",
  );
});

test("one probe after the block, though old calls are still out; then 2, 4, 8 and the whole limit", () => {
  const gate = gateWith({ requests: 1000 });
  for (let index = 0; index < 40; index++) ask(gate, `c${index}`);
  pump(gate, 0);
  throttleGate(gate, { at: 0, retryAfterMs: 0, id: "c0" });
  for (let index = 0; index < 8; index++) done(gate, `c${index}`, 1, false);
  assert.deepEqual(pump(gate, 1999), []);
  const [probe = "", ...more] = pump(gate, 2000);
  assert.deepEqual(more, []);
  assert.equal(gate.held.get(probe)?.probe, true);
  assert.equal(gateStanding(gate, 2000).held, "probe");
  const limits: (number | null)[] = [];
  done(gate, probe, 2001);
  assert.equal(gate.throttles, 0);
  for (let at = 2001; at < 2005; at++) {
    limits.push(gate.slowStart);
    const [next = ""] = pump(gate, at);
    done(gate, next, at);
  }
  assert.deepEqual(limits, [2, 4, 8, null]);
  assert.equal(gate.held.size + pump(gate, 2010).length, 10);
});

test("D12 a success reported for a call that was throttled does not clear the back-off", () => {
  const gate = gateWith();
  ask(gate, "a");
  pump(gate, 0);
  throttleGate(gate, { at: 0, retryAfterMs: 0, id: "a" });
  done(gate, "a", 0, true);
  ask(gate, "probe");
  pump(gate, 2000);
  throttleGate(gate, { at: 2001, retryAfterMs: 0, id: "probe" });
  done(gate, "probe", 2001, true);
  assert.deepEqual([gate.throttles, gate.blockedUntil, gate.slowStart], [2, 6001, 1]);
});

test("a probe that fails for another reason is neither a success nor a throttle: the next probe may go", () => {
  const gate = gateWith();
  throttleGate(gate, { at: 0, retryAfterMs: 0 });
  for (const id of ["a", "b"]) ask(gate, id);
  assert.deepEqual(pump(gate, 2000), ["a"]);
  done(gate, "a", 2100, false);
  assert.deepEqual([gate.throttles, ...pump(gate, 2100)], [1, "b"]);
});

test("after a restart nobody waits, what was out stays out, and the gate begins with a probe", () => {
  const gate = gateWith();
  for (const id of ["a", "b"]) ask(gate, id);
  pump(gate, 0);
  ask(gate, "waiting");
  restartGate(gate);
  assert.deepEqual([gate.held.size, queuedTickets(gate, 5).length, ticketPosition(gate, "waiting", 5)], [2, 0, null]);
  for (const id of ["c", "d"]) ask(gate, id);
  assert.deepEqual(pump(gate, 5), ["c"]);
  done(gate, "a", 6);
  assert.deepEqual(pump(gate, 6), [], "a began before the restart and proves nothing");
  done(gate, "c", 7);
  assert.deepEqual(pump(gate, 7), ["d"]);
});

test("token windows count what was used, what is in flight by estimate, and the call itself", () => {
  const gate = gateWith(tokens({ perMinute: 100 }));
  ask(gate, "a", { tokens: 60 });
  ask(gate, "b", { tokens: 41 });
  ask(gate, "small", { tokens: 1, askedAt: 1 });
  assert.deepEqual(pump(gate, 10), ["a"], "nobody overtakes the one next in line");
  assert.equal(gateStanding(gate, 10).held, "tokens-perMinute");
  releasePermit(gate, "a", { ok: true, tokens: 59, at: 20 });
  assert.deepEqual(pump(gate, 20), ["b"], "59 + 41 is the limit");
  releasePermit(gate, "b", { ok: true, tokens: 41, at: 30 });
  assert.deepEqual(pump(gate, 30), []);
  assert.equal(nextGateInstant(gate, 30), 60_020);
  assert.deepEqual(pump(gate, 60_020), ["small"]);
});

test("a call larger than the whole window goes out alone instead of never", () => {
  const gate = gateWith(tokens({ perHour: 100 }));
  ask(gate, "a", { tokens: 1 });
  ask(gate, "huge", { tokens: 500, askedAt: 1 });
  assert.deepEqual(pump(gate, 1), ["a"]);
  releasePermit(gate, "a", { ok: true, tokens: 0, at: 2 });
  assert.deepEqual(pump(gate, 2), ["huge"]);
});

test("aging can put a smaller call next in line, so it is an instant that matters", () => {
  const gate = gateWith({ ...tokens({ perMinute: 100 }), agingPerClassMs: 10_000 });
  ask(gate, "used", { tokens: 90 });
  pump(gate, 0);
  releasePermit(gate, "used", { ok: true, tokens: 90, at: 0 });
  ask(gate, "large", { tokens: 50, askedAt: 5000, class: "high", project: "q" });
  ask(gate, "small", { tokens: 5, askedAt: 0, project: "p" });
  assert.deepEqual(pump(gate, 9999), []);
  assert.equal(nextGateInstant(gate, 9999), 10_000);
});

test("every knob binds at once", () => {
  const gate = gateWith({ maxConcurrent: 1, requests: 1000 });
  for (let index = 0; index < 9; index++) ask(gate, `c${index}`);
  assert.equal(pump(gate, 0).length, 1);
  configureGate(gate, { ...gate.settings, maxConcurrent: 3 });
  assert.equal(pump(gate, 1).length, 2);
  configureGate(gate, { ...gate.settings, maxConcurrent: 9, requests: 4 });
  assert.equal(pump(gate, 2).length, 1);
  configureGate(gate, { ...gate.settings, windowMs: 1 });
  assert.equal(pump(gate, 2).length, 3, "the three of instants 0 and 1 have left the window");
  configureGate(gate, { ...gate.settings, permitTtlMs: 50 });
  assert.equal(expiredPermits(gate, 50).length, 1);
  configureGate(gate, { ...gate.settings, ...tokens({ perDay: 1 }), requests: 1000 });
  assert.equal(gateStanding(gate, 60).tokensUsed.perDay?.limit, 1);
});
