/**
 * Rows about whose turn it is, and where: scores, shares, placement, the fleet's budget.
 */
import { STRATEGIES, type Strategy } from "../../../src/core/config/config.ts";
import type { Reason } from "../../../src/core/model/events.ts";
import { AT, hang, type Knob, note, rankAfter, runningOf, type Story, startsOf, task } from "./story.ts";

const TYPES = ["plan", "spec", "phase", "code", "ralph", "other"];
const MINUTES = 60_000;
/** The reason by which each strategy shows that it chose the worker. */
const REASON_OF: Readonly<Record<Strategy, Reason["type"]>> = {
  "least-loaded": "least-loaded",
  "round-robin": "round-robin",
  random: "random",
  "best-fit": "resource-fit",
  affinity: "affinity",
};

const scored = (waitMs: number, more: object): Knob["tell"] => {
  return async (kit) => (await rankAfter(kit, waitMs, more)).score;
};

/** The level of the one project after one start, later. */
const levelAfter = (waitMs: number): Knob["tell"] => {
  return async (kit) => {
    await runningOf(kit, 1);
    await kit.clock.advance(waitMs);
    return (await kit.drover.projects())[0]?.level;
  };
};

/** The order in which queued tasks run on one slot. */
async function orderOf(kit: Story, ...tasks: [id: string, more: object][]): Promise<string> {
  await kit.drover.pause();
  for (const [id, more] of tasks) await kit.drover.submit(task(id, more));
  const starts = await note(kit);
  await kit.drover.resume();
  await kit.settle();
  return starts.map((line) => line.split(" ")[0]).join(" ");
}

/** A parent that ran on w2, and a child that is ready when w1 is there too. */
async function family(kit: Story, holdW2: boolean): Promise<void> {
  const only = { capabilities: ["only-w2"] };
  await kit.drover.worker({ id: "w2", ...only }, ({ taskId }, context) =>
    taskId === "hog" ? hang({} as never, context) : undefined,
  );
  await kit.drover.submit(task("parent"));
  await kit.settle();
  await kit.drover.worker({ id: "w1", capabilities: ["a"] }, () => {});
  if (holdW2) await kit.drover.submit(task("hog", only));
  await kit.settle();
  await kit.drover.submit(task("child", { parent: "parent" }));
  await kit.clock.advance(10_000);
}

/** When a task that needs the room of a spent one starts, in whole seconds. */
export async function startAfterSpending(kit: Story): Promise<number> {
  const starts = await note(kit, (_, { usage }) => usage({ inputTokens: 100 }));
  await kit.drover.submit(task("a", { estimatedTokens: 100 }));
  await kit.settle();
  await kit.drover.submit(task("b", { estimatedTokens: 100 }));
  await kit.clock.advance(60_000);
  return Math.floor(Number(starts[1]?.split(" ")[1]) / 1000);
}

export const rowsOfTurn: Readonly<Record<string, Knob>> = {
  ...Object.fromEntries(
    TYPES.map((type): [string, Knob] => [
      `scheduler.priority.base.${type}`,
      {
        cases: [
          [7, 7],
          [500, 500],
        ],
        tell: scored(0, { type }),
      },
    ]),
  ),
  "scheduler.priority.agePerMinute": {
    cases: [
      [0, 100],
      [2, 120],
    ],
    tell: scored(10 * MINUTES, {}),
  },
  "scheduler.priority.ageMax": {
    cases: [
      [3, 103],
      [50, 110],
    ],
    tell: scored(10 * MINUTES, {}),
  },
  "scheduler.priority.depthBoost": {
    cases: [
      [10, 110],
      [25, 125],
    ],
    tell: async (kit) => {
      await note(kit);
      await kit.drover.submit(task("parent"));
      await kit.drover.submit(task("t", { parent: "parent" }));
      await kit.settle();
      return (await startsOf(kit, "t"))[0]?.rank.score;
    },
  },
  "scheduler.priority.retryPenalty": {
    cases: [
      [5, 90],
      [7, 86],
    ],
    tell: scored(0, { iteration: 3 }),
  },
  "scheduler.priority.retryMax": {
    cases: [
      [30, 70],
      [12, 88],
    ],
    tell: scored(0, { iteration: 100 }),
  },
  "scheduler.priority.starvationAfter": {
    cases: [
      ["10m", 0],
      ["60m", 100],
    ],
    tell: async (kit) => (await rankAfter(kit, 10 * MINUTES, { priority: 100 })).priority,
  },
  "scheduler.fairness.rule": {
    // By level a newcomer starts where the others are; by deficit it is owed what they had before it came.
    cases: [
      ["level", "b1 a4 b2 a5"],
      ["deficit", "b1 b2 a4 a5"],
    ],
    tell: async (kit) => {
      const starts = await note(kit);
      for (const id of ["a1", "a2", "a3"]) await kit.drover.submit(task(id, { project: "a" }));
      await kit.settle();
      await kit.drover.pause();
      for (const id of ["a4", "a5", "b1", "b2"]) await kit.drover.submit(task(id, { project: id[0] }));
      await kit.drover.resume();
      await kit.settle();
      return starts
        .slice(3)
        .map((line) => line.split(" ")[0])
        .join(" ");
    },
  },
  "scheduler.fairness.agents": {
    cases: [
      ["fair", "a1 b1 a2"],
      ["none", "a1 a2 b1"],
    ],
    tell: (kit) => orderOf(kit, ["a1", {}], ["a2", {}], ["b1", { agentId: "bob" }]),
  },
  "scheduler.fairness.halfLife": {
    cases: [
      ["10m", 5500],
      ["5m", 2750],
    ],
    tell: levelAfter(10 * MINUTES),
  },
  "scheduler.fairness.startCost": {
    cases: [
      [1000, 11_000],
      [0, 10_000],
    ],
    tell: levelAfter(0),
  },
  "scheduler.fairness.defaultTokens": {
    cases: [
      [10_000, 11_000],
      [500, 1500],
    ],
    tell: levelAfter(0),
  },
  "scheduler.fairness.window": {
    base: { scheduler: { fairness: { rule: "deficit" } } },
    cases: [
      ["24h", "b1 a2"],
      ["30m", "a2 b1"],
    ],
    tell: async (kit) => {
      const starts = await note(kit);
      await kit.drover.submit(task("a1", { project: "a" }));
      await kit.settle();
      await kit.clock.advance(60 * MINUTES);
      await kit.drover.pause();
      for (const id of ["a2", "b1"]) await kit.drover.submit(task(id, { project: id[0] }));
      await kit.drover.resume();
      await kit.settle();
      return starts
        .slice(1)
        .map((line) => line.split(" ")[0])
        .join(" ");
    },
  },
  "scheduler.placement.strategy": {
    cases: STRATEGIES.map((strategy) => [strategy, REASON_OF[strategy]]),
    tell: async (kit) => {
      await family(kit, false);
      return (await startsOf(kit, "child"))[0]?.reason.type;
    },
  },
  "scheduler.placement.preferLocality": {
    cases: [
      [false, "w1"],
      [true, "w2"],
    ],
    tell: async (kit) => {
      await family(kit, false);
      return (await startsOf(kit, "child"))[0]?.worker;
    },
  },
  "scheduler.placement.maxQueuePerWorker": {
    cases: [
      [0, 1],
      [2, 3],
    ],
    tell: async (kit) => {
      await kit.drover.worker({}, hang);
      for (const id of ["a", "b", "c", "d"]) await kit.drover.submit(task(id));
      await kit.settle();
      return kit.drover.state.inFlight;
    },
  },
  "scheduler.placement.affinityWait": {
    base: { scheduler: { placement: { strategy: "affinity" } } },
    cases: [
      [0, ["w1", 0]],
      [5000, ["w1", 5000]],
      [60_000, []],
    ],
    tell: async (kit) => {
      await family(kit, true);
      const starts = (await startsOf(kit, "child")) as unknown as { worker: string; at: number }[];
      return starts.flatMap(({ worker, at }) => [worker, at - AT]);
    },
  },
  "scheduler.placement.unresolvedAfter": {
    cases: [
      [1000, "failed"],
      [1001, "queued"],
    ],
    tell: async (kit) => {
      await kit.drover.worker({ capabilities: ["tab:mine"] }, () => {});
      await kit.drover.submit(task("t", { tabId: "yours" }));
      await kit.clock.advance(1000);
      return (await kit.drover.task("t")).state;
    },
  },
  "budget.limit": {
    cases: [
      [100, 2],
      [40, 1],
      [null, 5],
    ],
    tell: (kit) => runningOf(kit, 5, { estimatedTokens: 40 }),
  },
  "budget.window": {
    base: { budget: { limit: 100 } },
    cases: [
      ["10s", 10],
      ["20s", 20],
    ],
    tell: startAfterSpending,
  },
};
