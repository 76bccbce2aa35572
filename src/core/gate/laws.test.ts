/**
 * Laws of the gate, for histories nobody thought of.
 *
 * A naive gate keeps every ticket in one list, every grant in another, and works everything out anew for each
 * decision. The real one must agree with it after every step. Few ids, few projects and a short clock on purpose:
 * collisions are where the bugs are.
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { admitAtOnce, askPermit, dropTicket, grantPermit, releasePermit, restartGate, throttleGate } from "./gate.ts";
import { expiredPermits, gateStanding, nextGateInstant, nextGrant, queuedTickets, ticketPosition } from "./limits.ts";
import { CLASS_RANK, DEFAULT_GATE_SETTINGS, GATE_CLASSES, type GateSettings } from "./settings.ts";
import { type Gate, type GrantedPermit, gateFacts, gateFromFacts, newGate } from "./state.ts";
import type { Ticket } from "./waiting-line.ts";

const RUNS = { numRuns: process.env.DROVER_QUICK === "1" ? 150 : 1000 };

type Step =
  | { type: "ask"; id: number; class: number; project: number; tokens: number }
  | { type: "drop" | "again"; id: number }
  | { type: "release"; id: number; ok: boolean; tokens: number | null }
  | { type: "throttle"; id: number | null; retryAfterMs: number }
  | { type: "restart" }
  | { type: "pause"; ms: number };

const id = fc.nat(11);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      type: fc.constant("ask" as const),
      id,
      class: fc.nat(3),
      project: fc.nat(2),
      tokens: fc.nat(40),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constant("release" as const),
      id,
      ok: fc.boolean(),
      tokens: fc.option(fc.nat(60), { nil: null }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ type: fc.constantFrom("drop" as const, "again" as const), id }) },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant("throttle" as const),
      id: fc.option(id, { nil: null }),
      retryAfterMs: fc.nat(4000),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ type: "restart" as const }) },
  { weight: 5, arbitrary: fc.record({ type: fc.constant("pause" as const), ms: fc.nat(1500) }) },
);
const history = fc.array(step, { maxLength: 80 });
const settings: fc.Arbitrary<GateSettings> = fc
  .record({
    maxConcurrent: fc.integer({ min: 1, max: 5 }),
    requests: fc.integer({ min: 1, max: 8 }),
    windowMs: fc.integer({ min: 1, max: 3000 }),
    agingPerClassMs: fc.integer({ min: 1, max: 2000 }),
    permitTtlMs: fc.integer({ min: 1, max: 5000 }),
    perMinute: fc.option(fc.integer({ min: 1, max: 200 }), { nil: null }),
  })
  .map(({ perMinute, ...rest }) => ({
    ...DEFAULT_GATE_SETTINGS,
    ...rest,
    tokens: { ...DEFAULT_GATE_SETTINGS.tokens, perMinute },
  }));

/** The rules as they are written down, on plain lists. */
type Naive = {
  settings: GateSettings;
  queue: Ticket[];
  held: GrantedPermit[];
  grants: number[];
  used: { tokens: number; at: number }[];
  levels: Map<string, number>;
  served: number;
};

function naiveOrder(naive: Naive, now: number): Ticket[] {
  const { agingPerClassMs } = naive.settings;
  const keys = new Map(
    naive.queue.map((ticket) => {
      const rank = Math.max(0, CLASS_RANK[ticket.class] - Math.floor((now - ticket.askedAt) / agingPerClassMs));
      return [ticket, [rank, naive.levels.get(ticket.project) ?? 0, ticket.askedAt, ticket.order]] as const;
    }),
  );
  return [...naive.queue].sort((a, b) => {
    const [x, y] = [keys.get(a) ?? [], keys.get(b) ?? []];
    const at = x.findIndex((value, index) => value !== y[index]);
    return at < 0 ? 0 : (x[at] ?? 0) - (y[at] ?? 0);
  });
}

/** The parts of the back-off are taken from the gate: its stories are told in gate.test.ts. */
function naiveNext(naive: Naive, gate: Gate, now: number): Ticket | null {
  const { maxConcurrent, requests, windowMs, tokens } = naive.settings;
  if (gate.blockedUntil !== null && now < gate.blockedUntil) return null;
  if (naive.held.length >= maxConcurrent) return null;
  const fresh = naive.held.filter(({ episode }) => episode === gate.episode).length;
  if (gate.slowStart !== null && fresh >= gate.slowStart) return null;
  if (naive.grants.filter((at) => now - at < windowMs).length >= requests) return null;
  const [next] = naiveOrder(naive, now);
  if (next === undefined) return null;
  const inFlight = naive.held.reduce((sum, permit) => sum + permit.tokens, 0);
  const used = naive.used.reduce((sum, use) => sum + (now - use.at < 60_000 ? use.tokens : 0), inFlight);
  const fits = tokens.perMinute === null || used === 0 || used + Math.max(1, next.tokens) <= tokens.perMinute;
  return fits ? next : null;
}

function naiveAsk(naive: Naive, ticket: Ticket): void {
  const isIdle = ![...naive.queue, ...naive.held].some(({ project }) => project === ticket.project);
  if (isIdle) {
    const waiting = naive.queue.map(({ project }) => naive.levels.get(project) ?? 0);
    const entry = Math.min(naive.served, ...waiting);
    naive.levels.set(ticket.project, Math.max(naive.levels.get(ticket.project) ?? 0, entry));
  }
  naive.queue.push(ticket);
}

function naiveGrant(naive: Naive, permit: GrantedPermit): void {
  naive.queue = naive.queue.filter((ticket) => ticket.id !== permit.id);
  const level = naive.levels.get(permit.project) ?? 0;
  naive.served = Math.max(naive.served, level);
  naive.levels.set(permit.project, level + Math.max(1, permit.tokens) / permit.weight);
  naive.held.push(permit);
  naive.grants.push(permit.grantedAt);
}

function naiveRelease(naive: Naive, released: string, tokens: number | null, at: number): void {
  const permit = naive.held.find((held) => held.id === released);
  if (permit === undefined) return;
  naive.held = naive.held.filter((held) => held !== permit);
  const spent = tokens ?? permit.tokens;
  naive.used.push({ tokens: spent, at });
  const correction = (Math.max(1, spent) - Math.max(1, permit.tokens)) / permit.weight;
  naive.levels.set(permit.project, (naive.levels.get(permit.project) ?? 0) + correction);
}

type World = { gate: Gate; naive: Naive; now: number; order: number; throttled: GrantedPermit | null };

function newWorld(chosen: GateSettings): World {
  const naive: Naive = { settings: chosen, queue: [], held: [], grants: [], used: [], levels: new Map(), served: 0 };
  return { gate: newGate(chosen), naive, now: 0, order: 0, throttled: null };
}

function releaseBoth(world: World, name: string, ok: boolean, tokens: number | null): void {
  const permit = releasePermit(world.gate, name, { ok, tokens, at: world.now });
  naiveRelease(world.naive, name, tokens, world.now);
  if (permit !== null && !ok) world.throttled = permit;
}

function askBoth(world: World, ticket: Ticket): void {
  if (world.gate.held.has(ticket.id) || world.gate.queue.entries.has(ticket.id)) return;
  askPermit(world.gate, ticket);
  naiveAsk(world.naive, ticket);
}

function play(world: World, next: Step): void {
  const { gate, naive } = world;
  switch (next.type) {
    case "ask": {
      const project = `p${next.project}`;
      const fields = { class: GATE_CLASSES[next.class] ?? "normal", project, weight: next.project + 1 };
      return askBoth(world, {
        ...fields,
        id: `c${next.id}`,
        tokens: next.tokens,
        askedAt: world.now,
        order: world.order++,
      });
    }
    case "again": {
      if (world.throttled === null) return;
      const { grantedAt: _g, expiresAt: _e, probe: _p, episode: _o, ...ticket } = world.throttled;
      return askBoth(world, ticket);
    }
    case "drop":
      naive.queue = naive.queue.filter((ticket) => ticket.id !== `c${next.id}`);
      return void dropTicket(gate, `c${next.id}`);
    case "release":
      return releaseBoth(world, `c${next.id}`, next.ok, next.tokens);
    case "throttle": {
      const named = next.id === null ? {} : { id: `c${next.id}` };
      return throttleGate(gate, { at: world.now, retryAfterMs: next.retryAfterMs, ...named });
    }
    case "restart":
      naive.queue = [];
      return restartGate(gate);
    case "pause":
      world.now += next.ms;
  }
}

function pumpBoth(world: World): void {
  const { gate, naive, now } = world;
  for (const permit of expiredPermits(gate, now)) releaseBoth(world, permit.id, false, null);
  for (;;) {
    const expected = naiveNext(naive, gate, now);
    const next = nextGrant(gate, now);
    assert.equal(next?.id ?? null, expected?.id ?? null);
    if (next === null) return;
    naiveGrant(naive, grantPermit(gate, next.id, now));
  }
}

test("the gate decides as one that sorts all tickets, and keeps every limit", () => {
  fc.assert(
    fc.property(settings, history, (chosen, steps) => {
      const world = newWorld(chosen);
      for (const next of steps) {
        play(world, next);
        const order = naiveOrder(world.naive, world.now).map((ticket) => ticket.id);
        assert.deepEqual(
          queuedTickets(world.gate, world.now).map((ticket) => ticket.id),
          order,
        );
        for (const [index, name] of order.entries()) {
          assert.equal(ticketPosition(world.gate, name, world.now), index + 1);
        }
        pumpBoth(world);
        assert.ok(world.gate.held.size <= chosen.maxConcurrent);
        assert.deepEqual([...world.gate.held.keys()].sort(), world.naive.held.map((permit) => permit.id).sort());
      }
      const { grants } = world.naive;
      for (const [index, start] of grants.entries()) {
        const inWindow = grants.slice(index).filter((at) => at - start < chosen.windowMs).length;
        assert.ok(inWindow <= chosen.requests, `${inWindow} grants in one window`);
      }
    }),
    RUNS,
  );
});

test("a gate restored from its facts goes on alike", () => {
  fc.assert(
    fc.property(settings, history, history, (chosen, before, after) => {
      const world = newWorld(chosen);
      for (const next of before) {
        play(world, next);
        pumpBoth(world);
      }
      const facts = JSON.parse(JSON.stringify(gateFacts(world.gate)));
      const other: World = { ...world, gate: gateFromFacts(chosen, facts), naive: structuredClone(world.naive) };
      assert.deepEqual(gateFacts(other.gate), facts);
      for (const next of after) {
        for (const each of [world, other]) {
          play(each, next);
          pumpBoth(each);
        }
        assert.deepEqual(gateFacts(other.gate), gateFacts(world.gate));
        assert.equal(nextGateInstant(other.gate, other.now), nextGateInstant(world.gate, world.now));
      }
    }),
    RUNS,
  );
});

test("between two instants that matter, time alone changes no decision; and asking leaves no mark", () => {
  fc.assert(
    fc.property(settings, history, fc.nat(999), (chosen, steps, part) => {
      const world = newWorld(chosen);
      for (const next of steps) {
        play(world, next);
        pumpBoth(world);
      }
      const before = JSON.stringify(gateFacts(world.gate));
      const next = nextGateInstant(world.gate, world.now);
      const end = next ?? world.now + 1_000_000;
      assert.ok(end > world.now);
      const between = world.now + Math.floor(((end - 1 - world.now) * part) / 1000);
      for (const at of [between, end - 1]) {
        assert.equal(nextGrant(world.gate, at), null);
        assert.deepEqual(expiredPermits(world.gate, at), []);
        gateStanding(world.gate, at);
        queuedTickets(world.gate, at);
      }
      assert.equal(JSON.stringify(gateFacts(world.gate)), before);
    }),
    RUNS,
  );
});

test("nobody is lost: left alone, every ticket is granted in the end", () => {
  fc.assert(
    fc.property(settings, history, (chosen, steps) => {
      const world = newWorld(chosen);
      for (const next of steps) {
        play(world, next);
        pumpBoth(world);
      }
      for (let turn = 0; world.gate.queue.entries.size > 0; turn++) {
        assert.ok(turn < 2000, "it must end");
        for (const name of [...world.gate.held.keys()]) releaseBoth(world, name, true, 0);
        pumpBoth(world);
        const next = world.gate.held.size > 0 ? world.now : nextGateInstant(world.gate, world.now);
        assert.ok(next !== null || world.gate.queue.entries.size === 0, "someone waits and nothing will happen");
        world.now = Math.max(world.now, next ?? 0);
      }
    }),
    RUNS,
  );
});

test("admitting at once is asking, choosing and granting", () => {
  fc.assert(
    fc.property(settings, history, fc.nat(40), (chosen, steps, tokens) => {
      const world = newWorld(chosen);
      for (const next of steps) {
        play(world, next);
        pumpBoth(world);
      }
      const twin = gateFromFacts(chosen, gateFacts(world.gate));
      const ticket: Ticket = {
        ...{ id: "new", class: "normal", project: "p1", weight: 2, tokens },
        ...{ askedAt: world.now, order: world.order },
      };
      const isEmpty = twin.queue.entries.size === 0;
      const permit = admitAtOnce(world.gate, ticket, world.now);
      askPermit(twin, ticket);
      const next = nextGrant(twin, world.now);
      if (isEmpty) assert.equal(permit === null, next === null);
      if (permit !== null) {
        assert.deepEqual(grantPermit(twin, "new", world.now), permit);
        assert.deepEqual(gateFacts(twin), gateFacts(world.gate));
      }
    }),
    RUNS,
  );
});

test("choosing stays cheap with 100 000 waiting, also when they leave from the middle", () => {
  const gate = newGate({ ...DEFAULT_GATE_SETTINGS, maxConcurrent: 1, requests: 1_000_000 });
  for (let index = 0; index < 100_000; index++) {
    askPermit(gate, {
      id: `c${index}`,
      class: "normal",
      project: `p${index % 10}`,
      weight: 1,
      tokens: 0,
      askedAt: index,
      order: index,
    });
  }
  for (let index = 99_999; index > 50_000; index -= 2) assert.ok(dropTicket(gate, `c${index}`));
  let granted = 0;
  for (let next = nextGrant(gate, 100_000); next !== null; next = nextGrant(gate, 100_000)) {
    grantPermit(gate, next.id, 100_000);
    releasePermit(gate, next.id, { ok: true, tokens: null, at: 100_000 });
    granted++;
  }
  assert.equal(granted, 75_000);
});

test("admitting at once keeps the task's fields and never jumps the queue", () => {
  const gate = newGate({ ...DEFAULT_GATE_SETTINGS, maxConcurrent: 1 });
  const ticket: Ticket = { id: "a", class: "normal", project: "", weight: 1, tokens: 0, askedAt: 0, order: 0 };
  assert.equal(admitAtOnce(gate, { ...ticket, task: "t", attempt: 2 }, 7)?.attempt, 2);
  assert.equal(admitAtOnce(gate, { ...ticket, id: "b" }, 7), null);
  askPermit(gate, { ...ticket, id: "b" });
  releasePermit(gate, "a", { ok: true, tokens: null, at: 8 });
  assert.equal(admitAtOnce(gate, { ...ticket, id: "c" }, 8), null, "b came first");
});
