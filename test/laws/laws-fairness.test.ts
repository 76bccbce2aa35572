/**
 * The promise among projects: nobody gets more than one charge ahead, and idleness banks no credit.
 *
 * Projects of unequal weights submit tasks of unequal cost that all run on the same workers. Costs are known (what
 * is used is what was charged) and nothing fades, so that what was charged can be added up here, apart from the
 * core. A project with nothing left to start also finishes what it runs at once: then each is either backlogged or
 * idle.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { AgentId, Instant, ProjectId, TaskId, WorkerId } from "../../src/core/base/brand.ts";
import { type Config, DEFAULT_CONFIG } from "../../src/core/config/config.ts";
import { emptyState } from "../../src/core/empty-state.ts";
import type { Submission } from "../../src/core/model/commands.ts";
import type { Event } from "../../src/core/model/events.ts";
import type { State } from "../../src/core/model/state.ts";
import { holds } from "../kits/laws/cases.ts";
import { type Dice, diceFrom, STARTED_AT } from "../kits/laws/histories.ts";
import { type Life, pumpDry, step, type Watcher } from "../kits/laws/live.ts";

const PROJECTS = ["p1", "p2", "p3", "p4"] as ProjectId[];
const AGENTS = ["a1", "a2"] as AgentId[];
const FOR_EVER = 31_556_952_000_000;
/** Sums of quotients are not exact. */
const SLACK = 1e-6;

const { scheduler, projects } = DEFAULT_CONFIG;
const CONFIG: Config = {
  ...DEFAULT_CONFIG,
  scheduler: { ...scheduler, perType: {}, fairness: { ...scheduler.fairness, halfLife: FOR_EVER, startCost: 10 } },
};

type Start = Extract<Event, { kind: "task-assigned" }>;
type Check = {
  readonly onStart: (state: State, start: Start) => void;
  readonly onReturn: (state: State, id: string) => void;
};

function rushHour(seeds: readonly number[], check: Check): void {
  const life: Life = { state: emptyState(), log: [], story: [] };
  const { state } = life;
  const watcher: Watcher = {
    onDecision: (_, _command, events) => {
      for (const event of events) if (event.kind === "task-assigned") check.onStart(state, event);
    },
  };
  const now = STARTED_AT as Instant;
  step(life, { type: "set-config", config: CONFIG }, now, watcher);
  const [first = 0, ...rest] = seeds;
  setUp(life, diceFrom(first), now, watcher);
  for (const [index, seed] of rest.entries()) {
    const at = (now + index) as Instant;
    act(life, diceFrom(seed), at, { ...watcher, ...returnsTo(check) });
    pumpDry(life, at, watcher);
    finishIdle(life, at, watcher);
  }
}

function returnsTo({ onReturn }: Check): Watcher {
  return {
    onEvent: (state, event) => {
      if (event.kind !== "task-submitted") return;
      const project = state.projects.get(event.project);
      if (project?.ready === 1 && project.inFlight === 0) onReturn(state, event.project);
    },
  };
}

function setUp(life: Life, dice: Dice, now: Instant, watcher: Watcher): void {
  for (const project of PROJECTS) {
    const settings = { ...projects.default, weight: dice.pick([0.3, 1, 1, 2, 3, 7]) };
    step(life, { type: "put-project", project, settings }, now, watcher);
  }
  for (let count = 1 + dice.below(3); count > 0; count--) {
    const settings = { capabilities: [], cpu: null, memory: null, zone: null, status: "ready" as const };
    const worker = `w${count}` as WorkerId;
    const slots = dice.pick([1, 2]);
    step(
      life,
      { type: "join-worker", worker, kind: "pull", session: "s", settings: { ...settings, slots } },
      now,
      watcher,
    );
  }
}

/** A burst of tasks of one project, or the end of an attempt. */
function act(life: Life, dice: Dice, now: Instant, watcher: Watcher): void {
  const live = life.state.fleet.order.flatMap(({ attempts }) => [...attempts]);
  if (live.length > 0 && dice.chance(75)) {
    const { task } = dice.pick(live);
    return finish(life, task.id, now, watcher);
  }
  const project = dice.pick(PROJECTS);
  for (let count = 1 + dice.below(8); count > 0; count--) {
    step(life, { type: "submit-task", submission: submissionOf(dice, project) }, now, watcher);
  }
}

/** It used what it was charged for, or nobody knows what it used. */
function finish(life: Life, id: TaskId, now: Instant, watcher: Watcher): void {
  const attempt = life.state.tasks.get(id)?.attempt;
  if (attempt === null || attempt === undefined) return;
  const tokens = attempt.number % 2 === 0 ? null : attempt.charge - CONFIG.scheduler.fairness.startCost;
  const report = { task: id, attempt: attempt.number, outcome: "done" as const, error: null, tokens };
  const rest = { retryAfterMs: null, resultHash: null, resultSize: 0, permanent: false };
  step(life, { type: "finish-attempt", report: { ...report, ...rest } }, now, watcher);
}

function finishIdle(life: Life, now: Instant, watcher: Watcher): void {
  const { state } = life;
  for (const project of state.projects.values()) {
    if (project.queued > 0) continue;
    for (const task of [...state.tasks.values()]) if (task.project === project) finish(life, task.id, now, watcher);
  }
}

const submissionOf = (dice: Dice, project: ProjectId): Submission => ({
  ...{ id: null, project, agent: dice.pick(AGENTS), bodyHash: "", bodySize: 0, type: "code", capabilities: [] },
  ...{ cpu: 0, memory: 0, provider: null, locks: [], zone: null, tab: null, priority: null, parent: null, needs: [] },
  ...{ artifact: null, artifactReady: false, notBefore: null, deadline: null, iteration: 1, maxAttempts: null },
  ...{
    timeoutMs: null,
    onDependencyFailure: "skip",
    action: "",
    estimatedTokens: dice.pick([null, 0, 1, 50, 200, 1000, 9000]),
  },
});

const seeds = fc.array(fc.nat(0xffff_ffff), { minLength: 10, maxLength: 60, size: "max" });

test("two projects with a backlog never differ in charged ÷ weight by more than one charge each", () => {
  holds(4000, seeds, (given) => {
    /** Per pair, what each was charged ÷ weight since both have had a backlog. */
    const pairs = new Map<string, Map<string, number>>();
    const dearest = new Map<string, number>();
    const pairOf = (left: string, right: string): string => [left, right].sort().join(" ");
    rushHour(given, {
      onReturn: (state, id) => {
        for (const other of PROJECTS) {
          if (other === id) continue;
          if ((state.projects.get(other)?.queued ?? 0) > 0)
            pairs.set(
              pairOf(id, other),
              new Map([
                [id, 0],
                [other, 0],
              ]),
            );
        }
      },
      onStart: (state, { task, charge }) => {
        const project = state.tasks.get(task)?.project.id as ProjectId;
        const weight = state.projects.get(project)?.settings.weight as number;
        dearest.set(project, Math.max(dearest.get(project) ?? 0, charge / weight));
        for (const [pair, sums] of pairs) {
          if (PROJECTS.some((id) => sums.has(id) && state.projects.get(id)?.queued === 0)) pairs.delete(pair);
          else if (sums.has(project)) {
            sums.set(project, (sums.get(project) as number) + charge / weight);
            const [[left, leftSum], [right, rightSum]] = [...sums] as [[string, number], [string, number]];
            const allowed = (dearest.get(left) ?? 0) + (dearest.get(right) ?? 0);
            assert.ok(Math.abs(leftSum - rightSum) <= allowed + SLACK, `${left} ${leftSum}, ${right} ${rightSum}`);
          }
        }
      },
    });
  });
});

test("a project that was idle comes back at the highest level yet served, or at its own if that is higher", () => {
  holds(4000, seeds, (given) => {
    let highest = 0;
    const floor = new Map<string, number>();
    rushHour(given, {
      onReturn: (_, id) => floor.set(id, highest),
      onStart: (state, { task, rank }) => {
        const project = state.tasks.get(task)?.project.id as string;
        assert.ok(
          rank.level >= (floor.get(project) ?? 0),
          `${project} starts at ${rank.level}, below ${floor.get(project)}`,
        );
        highest = Math.max(highest, rank.level);
      },
    });
  });
});

test("the project that starts has the lowest level of all that could start on the same workers", () => {
  holds(4000, seeds, (given) => {
    rushHour(given, {
      onReturn: () => {},
      onStart: (state, { task }) => {
        const mine = state.tasks.get(task)?.project.level as number;
        for (const { queued, level, id } of state.projects.values()) {
          assert.ok(queued === 0 || level >= mine, `${id} at ${level} was passed over for ${mine}`);
        }
      },
    });
  });
});
