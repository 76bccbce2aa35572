/**
 * Rows about projects and gates: their defaults, and those with a name.
 */
import { codeOf, type Knob, runningOf, type Story, task } from "./story.ts";
import { startAfterSpending } from "./turn.ts";

export type { Knob } from "./story.ts";

export const rowsOfProjects: Readonly<Record<string, Knob>> = {
  "projects.autoCreate": {
    cases: [
      [true, "ok"],
      [false, "not_found"],
    ],
    tell: ({ drover }) => codeOf(drover.submit(task("t", { project: "new" }))),
  },
  "projects.default.weight": {
    cases: [
      [1, 11_000],
      [2, 5500],
    ],
    tell: async (kit) => {
      await runningOf(kit, 1);
      return (await kit.drover.projects())[0]?.level;
    },
  },
  "projects.default.maxConcurrent": {
    cases: [
      [1, 1],
      [3, 3],
    ],
    tell: (kit) => runningOf(kit, 5),
  },
  "projects.default.budget.limit": {
    cases: [
      [100, 2],
      [40, 1],
      [null, 5],
    ],
    tell: (kit) => runningOf(kit, 5, { estimatedTokens: 40 }),
  },
  "projects.default.budget.window": {
    base: { projects: { default: { budget: { limit: 100 } } } },
    cases: [
      ["10s", 10],
      ["20s", 20],
    ],
    tell: startAfterSpending,
  },
  "projects.default.maxPriority": {
    cases: [
      ["high", -100],
      ["critical", -200],
      [5, 5],
    ],
    tell: async (kit) => {
      await kit.drover.submit(task("t", { priority: -300 }));
      return kit.drover.state.tasks.get("t" as never)?.priority;
    },
  },
  "projects.default.provider": {
    cases: [
      [null, 1],
      ["llm", 0],
    ],
    tell: async (kit) => {
      await throttle(kit);
      return runningOf(kit, 1);
    },
  },
  "projects.default.bytesPerMinute": {
    cases: [
      ["64KiB", "bytes_per_minute"],
      [null, "ok"],
    ],
    tell: async ({ drover }) => {
      const big = { params: { text: "x".repeat(40_000) } };
      await drover.submit(task("t0", big));
      return codeOf(drover.submit(task("t1", big)));
    },
  },
  "projects.named": {
    cases: [
      [{}, 5],
      [{ p: { maxConcurrent: 2 } }, 2],
    ],
    tell: (kit) => runningOf(kit, 5, { project: "p" }),
  },
};

async function throttle(kit: Story): Promise<void> {
  const throttled = kit.drover.withPermit("llm", () => {
    throw Object.assign(new Error("slow down"), { status: 429, retryAfterMs: 60_000 });
  });
  throttled.catch(() => {}); // It is still in the queue when the story ends.
  await kit.settle();
}

/** How many of so many calls are out at once. */
async function callsOut(kit: Story, count: number, options: object = {}): Promise<number> {
  for (let index = 0; index < count; index++) void hold(kit, options).catch(() => {});
  await kit.settle();
  return kit.drover.state.gates.get("llm" as never)?.held.size ?? 0;
}

const hold = (kit: Story, options: object): Promise<unknown> =>
  kit.drover.withPermit("llm", () => new Promise(() => {}), options);

const tokensBind = (path: string): [string, Knob] => [
  `gates.default.tokens.${path}`,
  {
    cases: [
      [100, 1],
      [120, 2],
      [null, 5],
    ],
    tell: (kit) => callsOut(kit, 5, { tokens: 60 }),
  },
];

/** Who goes first when the one slot comes free: who asked without a class first, or who asked as `rival` later. */
async function firstOf(kit: Story, asked: object, laterMs: number, rival: object): Promise<string | undefined> {
  const order: string[] = [];
  const slot = Promise.withResolvers<void>();
  const calls = [kit.drover.withPermit("llm", () => slot.promise)];
  await kit.settle();
  calls.push(kit.drover.withPermit("llm", () => void order.push("first"), asked));
  await kit.clock.advance(laterMs);
  calls.push(kit.drover.withPermit("llm", () => void order.push("rival"), rival));
  await kit.settle();
  slot.resolve();
  await Promise.all(calls);
  return order[0];
}

const oneSlot = { gates: { default: { maxConcurrent: 1 } } };

export const rowsOfGates: Readonly<Record<string, Knob>> = {
  "gates.default.maxConcurrent": {
    cases: [
      [1, 1],
      [3, 3],
    ],
    tell: (kit) => callsOut(kit, 5),
  },
  "gates.default.requests": {
    cases: [
      [1, 1],
      [3, 3],
    ],
    tell: (kit) => callsOut(kit, 5),
  },
  "gates.default.windowMs": {
    base: { gates: { default: { requests: 1 } } },
    cases: [
      [5000, 2],
      [5001, 1],
    ],
    tell: async (kit) => {
      await callsOut(kit, 2);
      await kit.clock.advance(5000);
      return callsOut(kit, 0);
    },
  },
  ...Object.fromEntries(["perMinute", "perHour", "perDay"].map(tokensBind)),
  "gates.default.tokens.kind": {
    base: { gates: { default: { tokens: { perMinute: 100 } } } },
    // A fixed window that began 50 seconds ago is over in ten; a sliding one still counts what came last.
    cases: [
      ["fixed", 1],
      ["sliding", 0],
    ],
    tell: async (kit) => {
      await kit.drover.withPermit("llm", (permit) => permit.usage({ inputTokens: 1 }));
      await kit.clock.advance(50_000);
      await kit.drover.withPermit("llm", (permit) => permit.usage({ inputTokens: 99 }));
      await callsOut(kit, 1, { tokens: 50 });
      await kit.clock.advance(15_000);
      return callsOut(kit, 0);
    },
  },
  "gates.default.defaultPriority": {
    base: oneSlot,
    cases: [
      ["normal", "first"],
      ["low", "rival"],
    ],
    tell: (kit) => firstOf(kit, {}, 1, { class: "normal" }),
  },
  "gates.default.agingPerClassMs": {
    base: oneSlot,
    cases: [
      ["5s", "first"],
      ["60s", "rival"],
    ],
    tell: (kit) => firstOf(kit, { class: "low" }, 10_000, { class: "normal" }),
  },
  "gates.default.permitTtlMs": {
    cases: [
      [5000, 0],
      [5001, 1],
    ],
    tell: async (kit) => {
      await callsOut(kit, 1);
      await kit.clock.advance(5000);
      return callsOut(kit, 0);
    },
  },
  "gates.named": {
    cases: [
      [{}, 5],
      [{ llm: { maxConcurrent: 2 } }, 2],
    ],
    tell: (kit) => callsOut(kit, 5),
  },
};
