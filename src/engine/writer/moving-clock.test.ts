/**
 * Nothing that time brings about is slept through, though the clock moves on with every reading.
 *
 * Each story leaves something that only time can move, and then nobody says a word to the engine. It is played again
 * and again, with a clock that moves faster or slower, so that the instant falls between any two readings of a turn.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createHandClock, type Moves } from "../../std/hand-clock.ts";
import { type Drover, openDrover } from "../drover.ts";

const MOVES_MAX = 3;
const STARTED_AT = 1_000_000;
const task = { agentId: "ann", action: "x" };
const throttled = (retryAfterMs: number): Error => Object.assign(new Error("too many"), { status: 429, retryAfterMs });

type Story = {
  readonly name: string;
  readonly config?: object;
  /** What is left waiting; `done` is to be called so many times by the end. */
  readonly begin: (drover: Drover, done: () => void) => Promise<unknown>;
  readonly times?: number;
  readonly waitMs: number;
};

const gateOf = (limits: object): object => ({ gates: { g: { maxConcurrent: 9, ...limits } } });
async function calls(drover: Drover, done: () => void, count: number, tokens = 0): Promise<void> {
  for (let call = 0; call < count; call++) void drover.withPermit("g", done, { tokens });
}

/** Three tasks, of which a budget of 1000 tokens bears one at a time. */
const overBudget: Omit<Story, "name" | "config"> = {
  async begin(drover, done) {
    await drover.worker({}, (_, { usage }) => {
      usage({ outputTokens: 900 });
      done();
    });
    for (let count = 0; count < 3; count++) await drover.submit({ ...task, estimatedTokens: 900 });
  },
  times: 3,
  waitMs: 40_000,
};

const stories: Story[] = [
  {
    name: "a window of requests has room again",
    config: gateOf({ requests: 2, window: "1s" }),
    begin: (drover, done) => calls(drover, done, 8),
    times: 8,
    waitMs: 4000,
  },
  {
    name: "a window of tokens has room again",
    config: gateOf({ tokens: { perMinute: 100 } }),
    begin: (drover, done) => calls(drover, done, 3, 100),
    times: 3,
    waitMs: 130_000,
  },
  {
    name: "a gate that was throttled opens again",
    config: gateOf({}),
    async begin(drover, done) {
      let tries = 0;
      const call = (): void => {
        if (++tries < 3) throw throttled(700);
        done();
      };
      void drover.withPermit("g", call);
    },
    waitMs: 60_000,
  },
  {
    name: "a permit that nobody settles comes back",
    config: gateOf({ maxConcurrent: 1, permitTtl: "2s" }),
    async begin(drover, done) {
      const never = (): Promise<never> => new Promise(() => {});
      void drover.withPermit("g", never);
      await calls(drover, done, 1);
    },
    waitMs: 3000,
  },
  {
    name: "a project's budget has room again",
    config: { projects: { default: { budget: { limit: 1000, window: "10s" } } } },
    ...overBudget,
  },
  {
    name: "the fleet's budget has room again",
    config: { budget: { limit: 1000, window: "10s" } },
    ...overBudget,
  },
  {
    name: "a rest after a failure is over",
    async begin(drover, done) {
      await drover.worker({}, ({ attempt }) => {
        if (attempt < 3) throw new Error("not yet");
        done();
      });
      await drover.submit({ ...task, maxAttempts: 3 });
    },
    waitMs: 60_000,
  },
  {
    name: "a task may begin by now",
    async begin(drover, done) {
      await drover.worker({}, done);
      await drover.submit({ ...task, notBefore: STARTED_AT + 5000 });
    },
    waitMs: 6000,
  },
  {
    name: "a deadline has passed",
    async begin(drover, done) {
      const { taskId } = await drover.submit({ ...task, deadline: STARTED_AT + 5000 });
      void drover.wait(taskId).then(done);
    },
    waitMs: 6000,
  },
  {
    name: "an attempt has run for too long",
    async begin(drover, done) {
      await drover.worker({}, (_, { signal }) => new Promise((_, stop) => signal.addEventListener("abort", stop)));
      const { taskId } = await drover.submit({ ...task, timeoutMs: 5000, maxAttempts: 1 });
      void drover.wait(taskId).then(done);
    },
    waitMs: 6000,
  },
  {
    name: "a schedule is due",
    async begin(drover, done) {
      await drover.worker({}, done);
      await drover.schedules.put("often", { cron: "* * * * *", task });
    },
    times: 3,
    waitMs: 181_000,
  },
  {
    name: "a worker over the wire has been silent for a lease",
    config: { workers: { lease: "5s" } },
    async begin(drover, done) {
      await drover.remote.join({ id: "w", slots: 1 });
      drover.watch((batch) => {
        for (const { event } of batch) if (event.kind === "worker-left") done();
      });
    },
    waitMs: 6000,
  },
  {
    name: "an artifact may have come",
    config: { workers: { artifactPoll: "2s" } },
    async begin(drover, done) {
      await drover.worker({}, done);
      await drover.submit({ ...task, inputArtifact: "there" });
    },
    waitMs: 6100,
  },
];

const moves: Moves[] = [];
for (let perReadingMs = 1; perReadingMs <= MOVES_MAX; perReadingMs++)
  for (let earlyMs = 0; earlyMs <= perReadingMs; earlyMs++) moves.push({ perReadingMs, earlyMs });

for (const { name, config = {}, begin, times = 1, waitMs } of stories)
  test(`it is noticed by itself when ${name}`, async () => {
    for (const move of moves) {
      const clock = createHandClock({ at: STARTED_AT, moves: move });
      let looks = 0;
      const artifactExists = async (): Promise<boolean> => ++looks > 2;
      const drover = await openDrover({ clock, config, artifactExists });
      let heard = 0;
      await begin(drover, () => void heard++);
      await clock.advance(waitMs);
      assert.equal(heard, times, JSON.stringify(move));
      const closing = drover.close();
      await clock.advance(60_000);
      await closing;
    }
  });
