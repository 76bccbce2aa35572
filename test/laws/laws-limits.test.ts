/**
 * No limit, budget, window or lock is exceeded by a start or a grant, by a second bookkeeping kept from events alone.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Event } from "../../src/core/model/events.ts";
import type { State, Task } from "../../src/core/model/state.ts";
import { holds } from "../kits/laws/cases.ts";
import { history } from "../kits/laws/histories.ts";
import {
  book,
  booked,
  FLEET,
  forget,
  gateName,
  type Ledger,
  newLedger,
  type Out,
  projectName,
} from "../kits/laws/ledger.ts";
import { live } from "../kits/laws/live.ts";
import { takes } from "../kits/laws/naive.ts";

type Start = Extract<Event, { kind: "task-assigned" }>;
type Judge = (state: State, ledger: Ledger, start: Start, task: Task) => void;

const outWhere = (ledger: Ledger, isIt: (out: Out) => boolean): Out[] => [...ledger.out.values()].filter(isIt);
const sum = (outs: readonly Out[], of: (out: Out) => number): number => outs.reduce((total, out) => total + of(out), 0);

function atEveryStart(cases: number, judge: Judge): void {
  holds(cases, history, (seeds) => {
    const ledger = newLedger();
    live(seeds, {
      onDecision: (state, _command, events) => {
        for (const event of events) {
          if (event.kind === "task-assigned") judge(state, ledger, event, state.tasks.get(event.task) as Task);
        }
      },
      onEvent: (state, event) => book(ledger, state, event),
    });
  });
}

test("no start exceeds a limit on what is in flight: fleet, project, agent, type, express lane", () => {
  atEveryStart(9000, (state, ledger, start, { project, agent, requirements }) => {
    const { scheduler } = state.config;
    const mine = outWhere(ledger, (out) => out.project === project.id);
    assert.ok(ledger.out.size < scheduler.maxInFlight, "maxInFlight");
    assert.ok(mine.length < project.settings.maxConcurrent, "maxConcurrent");
    const ofAgent = outWhere(ledger, (out) => out.agent === agent.id).length;
    assert.ok(ofAgent < scheduler.maxPerAgentInFlight, "maxPerAgentInFlight, over all projects");
    const ofType = outWhere(ledger, (out) => out.type === requirements.type).length;
    assert.ok(ofType < (scheduler.perType[requirements.type] ?? Number.POSITIVE_INFINITY), "perType");
    if (start.rank.express) assert.ok(outWhere(ledger, (out) => out.express).length < scheduler.critical.maxInFlight);
    assert.ok(!state.paused && project.status === "active" && !agentless(start), "nothing starts while paused");
  });
});

const agentless = ({ attempt }: Start): boolean => attempt < 1;

test("no start that reserves tokens overspends a budget: used in the window, plus reserved, plus its own", () => {
  atEveryStart(9000, (state, ledger, { at, reserve }, { project }) => {
    if (reserve === 0) return;
    const { limit } = project.settings.budget;
    const reserved = sum(
      outWhere(ledger, (out) => out.project === project.id),
      (out) => out.reserve,
    );
    if (limit !== null) assert.ok(booked(ledger, projectName(project.id), at) + reserved + reserve <= limit, "project");
    const all = sum([...ledger.out.values()], (out) => out.reserve);
    const whole = state.config.budget.limit;
    if (whole !== null) assert.ok(booked(ledger, FLEET, at) + all + reserve <= whole, "fleet");
  });
});

test("no start finds its worker full, unfit, unwilling or held for another, a lock taken, or its gate blocked", () => {
  atEveryStart(9000, (state, ledger, start, { requirements, project }) => {
    const worker = state.fleet.byId.get(start.worker);
    assert.ok(worker !== undefined && worker.status === "ready", "it takes work");
    const there = outWhere(ledger, (out) => out.worker === worker.id);
    assert.ok(there.length < worker.slots + state.config.scheduler.placement.maxQueuePerWorker, "slots");
    assert.ok(sum(there, (out) => out.cpu) + requirements.cpu <= worker.cpu, "cpu");
    assert.ok(sum(there, (out) => out.memory) + requirements.memory <= worker.memory, "memory");
    assert.ok(
      requirements.capabilities.every((capability) => worker.capabilities.includes(capability)),
      "capabilities",
    );
    assert.ok(takes(worker, { requirements, project }), "what it takes");
    assert.ok(worker.hold === null || worker.hold === project.hold, "held");
    const taken = [...ledger.out.values()].flatMap((out) => out.locks);
    assert.ok(!requirements.locks.some((lock) => taken.includes(lock)), "locks");
    const gate = requirements.provider === null ? undefined : state.gates.get(requirements.provider as never);
    assert.ok(gate === undefined || gate.blockedUntil === null || gate.blockedUntil <= start.at, "gate");
  });
});

test("no grant exceeds its gate's limits, goes out while that is blocked, or is for an attempt that is over", () => {
  holds(9000, history, (seeds) => {
    const ledger = newLedger();
    live(seeds, {
      onDecision: (state, command, events) => {
        for (const event of events) {
          if (event.kind === "permit-granted") judgeGrant(state, ledger, event);
          // An admin who removes a gate gives up what it knew; one that gives way had nothing in its windows.
          else if (event.kind === "gate-removed" && command.type === "remove-gate")
            forget(ledger, gateName(event.gate));
        }
      },
      onEvent: (state, event) => book(ledger, state, event),
    });
  });
});

function judgeGrant(state: State, ledger: Ledger, granted: Extract<Event, { kind: "permit-granted" }>): void {
  const { gate: id, permit, at } = granted;
  const { task = null, attempt = null } = ledger.calls.get(permit) ?? {};
  assert.ok(attempt === null || ledger.out.get(task ?? "")?.number === attempt, "its attempt");
  const gate = state.gates.get(id);
  assert.ok(gate !== undefined, "a permit is granted by a gate that is there");
  const out = [...ledger.calls.values()].filter((call) => call.gate === id && call.granted);
  assert.ok(out.length < gate.settings.maxConcurrent, "maxConcurrent");
  assert.ok(booked(ledger, gateName(id), at) < gate.settings.requests, "requests in the window");
  assert.ok(gate.blockedUntil === null || gate.blockedUntil <= at, "blocked");
}

test("no call is more urgent than its project's maxPriority lets its tasks be, with a task or without one", () => {
  const needed = { critical: -200, high: -100, normal: 99, low: Number.POSITIVE_INFINITY };
  holds(9000, history, (seeds) => {
    live(seeds, {
      onEvent: (state, event) => {
        if (event.kind !== "permit-asked") return;
        const { maxPriority } = state.projects.get(event.project)?.settings ?? {};
        assert.ok(maxPriority !== undefined && maxPriority <= needed[event.class], `${event.class} at ${maxPriority}`);
      },
    });
  });
});

test("a gate that somebody resets has no block and no throttles, and lets one call out to see", () => {
  let resets = 0;
  holds(9000, history, (seeds) => {
    live(seeds, {
      onEvent: (state, event) => {
        if (event.kind !== "gate-reset") return;
        resets++;
        const gate = state.gates.get(event.gate);
        assert.deepEqual([gate?.blockedUntil, gate?.throttles, gate?.slowStart, gate?.fresh], [null, 0, 1, 0]);
        assert.notEqual(state.shapes.gates.get(event.gate)?.held, true, "tasks of this provider may start");
      },
    });
  });
  if (process.env.DROVER_QUICK === undefined) assert.ok(resets > 0, "no history resets a gate that was throttled");
});

test("holds are one per project and at most a tenth of the workers, one at least, when they are placed", () => {
  holds(9000, history, (seeds) => {
    live(seeds, {
      onDecision: (state, _command, events) => {
        for (const event of events) {
          if (event.kind !== "hold-placed") continue;
          assert.ok(state.holds.size < Math.max(1, Math.floor(state.fleet.order.length / 10)));
          assert.equal(state.tasks.get(event.task)?.project.hold, null);
        }
      },
    });
  });
});
