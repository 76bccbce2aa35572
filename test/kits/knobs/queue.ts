/**
 * Rows about what is let in, what is kept and what is tried again.
 */
import { basename, dirname } from "node:path";
import { openDrover, TaskRequeue } from "../../../src/engine/index.ts";
import { acceptedOf, codeOf, hang, type Knob, note, runningOf, type Story, task } from "./story.ts";

const [ownFolder, ownFile] = [import.meta.dirname, basename(import.meta.filename)];

/** With real files: a kit for tests says itself which artifacts are there. */
async function stateWithArtifact({ drover }: Story, inputArtifact: string): Promise<unknown> {
  await using real = await openDrover({ config: drover.effectiveConfig() });
  return await real.submit(task("t", { inputArtifact })).then(
    ({ state }) => state,
    ({ code }: { code: string }) => code,
  );
}

const keptOrNot = (putting: Promise<unknown>): Promise<unknown> =>
  putting.then(
    () => "kept",
    ({ code }: { code: string }) => code,
  );

/** How a task ends that a worker over the wire says has left these. */
async function stateWithFiles(kit: Story, contents: readonly string[]): Promise<unknown> {
  const { drover } = kit;
  const { session } = await drover.remote.join({ id: "far" });
  await drover.submit(task("t"));
  await kit.settle();
  const stored = await Promise.all(contents.map((content) => drover.files.put(content)));
  const files = stored.map((one, index) => ({ path: `f${index}`, ...one }));
  await drover.remote.sync("far", { session, results: [{ taskId: "t", attempt: 1, outcome: "done", files }] });
  return (await drover.task("t")).state;
}

const countOf = (kinds: readonly string[], end: string): number => kinds.filter((line) => line.startsWith(end)).length;

export const rowsOfQueue: Readonly<Record<string, Knob>> = {
  "scheduler.maxInFlight": {
    cases: [
      [1, 1],
      [3, 3],
    ],
    tell: (kit) => runningOf(kit, 5),
  },
  "scheduler.maxPerAgentInFlight": {
    cases: [
      [1, 1],
      [3, 3],
    ],
    // In several projects: an agent's limits count over all of them.
    tell: async (kit) => {
      await runningOf(kit, 2, { project: "one" });
      for (const id of ["u", "v"]) await kit.drover.submit(task(id, { project: "two" }));
      await kit.settle();
      return kit.drover.state.inFlight;
    },
  },
  "scheduler.maxQueue": {
    cases: [
      [2, 2],
      [4, 4],
    ],
    tell: acceptedOf,
  },
  "scheduler.maxPerAgent": {
    cases: [
      [2, 2],
      [4, 4],
    ],
    tell: (kit) => acceptedOf(kit, (index) => ({ project: `p${index % 3}` })),
  },
  "scheduler.maxBatch": {
    cases: [
      [2, "batch_too_large"],
      [3, "ok"],
    ],
    tell: ({ drover }) =>
      codeOf(drover.submitBatch({ agentId: "ann", tasks: [{ action: "a" }, { action: "b" }, { action: "c" }] })),
  },
  "scheduler.resultTtl": {
    cases: [
      [1000, 0],
      [1001, 1],
    ],
    tell: async (kit) => {
      await note(kit);
      await kit.drover.submit(task("t"));
      await kit.settle();
      await kit.clock.advance(1000);
      return kit.drover.state.tasks.size;
    },
  },
  "scheduler.resultMax": {
    cases: [
      [1, 1],
      [2, 2],
    ],
    tell: async (kit) => {
      await note(kit);
      for (const id of ["a", "b", "c"]) await kit.drover.submit(task(id));
      await kit.settle();
      return kit.drover.state.tasks.size;
    },
  },
  "scheduler.failedTtl": {
    cases: [
      [1000, "conflict"],
      [1001, "ok"],
    ],
    tell: async (kit) => {
      await kit.drover.worker({}, () => {
        throw Object.assign(new Error("no"), { permanent: true });
      });
      await kit.drover.submit(task("t"));
      await kit.settle();
      await kit.clock.advance(1000);
      return codeOf(kit.drover.retry("t"));
    },
  },
  "scheduler.failedMax": {
    cases: [
      [1, 1],
      [2, 2],
    ],
    tell: async (kit) => {
      await kit.drover.worker({}, () => {
        throw Object.assign(new Error("no"), { permanent: true });
      });
      for (const id of ["a", "b", "c"]) await kit.drover.submit(task(id));
      await kit.settle();
      return kit.drover.state.tasks.size;
    },
  },
  "scheduler.planTtl": {
    cases: [
      [1000, "not_found"],
      [1001, "ok"],
    ],
    tell: async (kit) => {
      await kit.drover.plans.put("p", { tasks: { a: "true" } });
      await kit.drover.plans.cancel("p");
      await kit.clock.advance(1000);
      return codeOf(kit.drover.plans.get("p"));
    },
  },
  "scheduler.plansMax": {
    cases: [
      [1, "limit"],
      [2, "ok"],
    ],
    tell: async (kit) => {
      await kit.drover.plans.put("p", { tasks: { a: "true" } });
      return codeOf(kit.drover.plans.put("q", { tasks: { a: "true" } }));
    },
  },
  "scheduler.remember": {
    base: { scheduler: { resultTtl: 1 } },
    cases: [
      [5000, "not_found"],
      [5001, "ok"],
    ],
    tell: async (kit) => {
      await note(kit);
      await kit.drover.submit(task("t"));
      await kit.settle();
      await kit.clock.advance(5000);
      return codeOf(kit.drover.task("t"));
    },
  },
  ...Object.fromEntries(
    ["plan", "spec", "phase", "code"].map((type): [string, Knob] => [
      `scheduler.perType.${type}`,
      {
        cases: [
          [1, 1],
          [2, 2],
          [null, 5],
        ],
        tell: (kit) => runningOf(kit, 5, { type }),
      },
    ]),
  ),
  "scheduler.critical.maxInFlight": {
    base: { projects: { default: { maxPriority: -200 } } },
    cases: [
      [1, 1],
      [2, 2],
    ],
    tell: async (kit) => {
      await runningOf(kit, 4, { priority: "critical" });
      return kit.drover.state.express;
    },
  },
  "scheduler.backpressure.perWorker": {
    cases: [
      [2, 2],
      [4, 4],
      [null, 20],
    ],
    tell: async (kit) => {
      await kit.drover.worker({}, hang);
      return acceptedOf(kit);
    },
  },
  "scheduler.backpressure.rejectThreshold": {
    base: { scheduler: { maxQueue: 10 } },
    cases: [
      [0.5, 5],
      [0.8, 8],
    ],
    tell: acceptedOf,
  },
  "scheduler.backpressure.throttleAt": {
    base: { scheduler: { maxQueue: 10 } },
    cases: [
      [0.1, true],
      [0.2, undefined],
    ],
    tell: async ({ drover }) => {
      await drover.submit(task("a"));
      return (await drover.submit(task("b"))).throttle;
    },
  },
  "scheduler.backpressure.acceptWithoutWorkers": {
    cases: [
      [true, "ok"],
      [false, "backpressure"],
    ],
    tell: ({ drover }) => codeOf(drover.submit(task("t"))),
  },
  "scheduler.retry.base": {
    cases: [
      [1, ["t 0", "t 1"]],
      [3, ["t 0", "t 3"]],
    ],
    tell: async (kit) => {
      const starts = await note(kit, (_, { attempt }) => {
        if (attempt === 1) throw new Error("no");
      });
      await kit.drover.submit(task("t"));
      await kit.settle();
      await kit.clock.advance(100);
      return starts;
    },
  },
  "scheduler.retry.max": {
    base: { scheduler: { retry: { base: 1 } } },
    cases: [
      [2, "t 5"],
      [3, "t 6"],
    ],
    tell: async (kit) => {
      const starts = await note(kit, () => {
        throw new Error("no");
      });
      await kit.drover.submit(task("t", { maxAttempts: 4 }));
      await kit.settle();
      await kit.clock.advance(100);
      return starts[3];
    },
  },
  "scheduler.retry.maxLosses": {
    cases: [
      [2, 2],
      [4, 4],
    ],
    tell: async (kit) => {
      let starts = 0;
      await kit.drover.submit(task("t"));
      for (; kit.drover.state.tasks.get("t" as never)?.phase !== "failed"; starts++) {
        const { session } = await kit.drover.remote.join({ id: "w" });
        await kit.settle();
        await kit.drover.remote.sync("w", { session });
        await kit.clock.advance(11_000);
      }
      return starts;
    },
  },
  "scheduler.retry.maxRequeues": {
    cases: [
      [2, 2],
      [4, 4],
    ],
    tell: async (kit) => {
      const starts = await note(kit, () => {
        throw new TaskRequeue("not now");
      });
      await kit.drover.submit(task("t"));
      await kit.settle();
      await kit.clock.advance(60_000);
      return countOf(starts, "t");
    },
  },
  "workers.killGrace": {
    cases: [
      [5000, 0],
      [5001, 1],
    ],
    tell: async (kit) => {
      await runningOf(kit, 1);
      await kit.drover.cancel("t0");
      await kit.clock.advance(5000);
      return kit.drover.state.inFlight;
    },
  },
  "workers.lease": {
    cases: [
      [5000, 0],
      [5001, 1],
    ],
    tell: async (kit) => {
      await kit.drover.remote.join({ id: "far" });
      await kit.drover.submit(task("t"));
      await kit.clock.advance(5000);
      return kit.drover.state.inFlight;
    },
  },
  "workers.maxWorktrees": {
    cases: [
      [50, [50, 50]],
      [3, [3, 3]],
    ],
    tell: async (kit) => {
      const { remote } = kit.drover;
      const joined = await remote.join({ id: "far" });
      return [joined.maxWorktrees, (await remote.sync("far", { session: joined.session })).maxWorktrees];
    },
  },
  "workers.artifactPoll": {
    cases: [
      [1000, ["t 1000"]],
      [3000, ["t 3000"]],
    ],
    tell: async (kit) => {
      const starts = await note(kit);
      await kit.drover.submit(task("t", { inputArtifact: "x" }));
      kit.artifacts.add("x");
      await kit.clock.advance(10_000);
      return starts;
    },
  },
  "files.maxFile": {
    cases: [
      [3, "too_large"],
      [4, "kept"],
    ],
    tell: ({ drover }) => keptOrNot(drover.files.put("four")),
  },
  "files.maxTotal": {
    cases: [
      [2048, "over_capacity"],
      [3072, "kept"],
    ],
    tell: async ({ drover }) => {
      for (const one of ["one", "two"]) await drover.files.put(one);
      return keptOrNot(drover.files.put("three"));
    },
  },
  "files.maxTask": {
    cases: [
      [7, "failed"],
      [8, "done"],
    ],
    tell: (kit) => stateWithFiles(kit, ["four", "five"]),
  },
  "files.maxFilesPerTask": {
    cases: [
      [1, "failed"],
      [2, "done"],
    ],
    tell: (kit) => stateWithFiles(kit, ["four", "five"]),
  },
  "artifacts.root": {
    cases: [
      [ownFolder, "queued"],
      [dirname(ownFolder), "waiting"],
    ],
    tell: (kit) => stateWithArtifact(kit, ownFile),
  },
  "artifacts.anywhere": {
    base: { artifacts: { root: dirname(ownFolder) } },
    cases: [
      [false, "bad_request"],
      [true, "queued"],
    ],
    tell: (kit) => stateWithArtifact(kit, import.meta.filename),
  },
  "log.maxBytes": {
    cases: [
      ["64KiB", "log_full"],
      [null, "ok"],
    ],
    tell: async ({ drover }) => {
      const big = { params: { text: "x".repeat(30_000) } };
      for (let index = 0; index < 2; index++) await drover.submit(task(`t${index}`, { ...big, project: `p${index}` }));
      return codeOf(drover.submit(task("t2", { ...big, project: "p2" })));
    },
  },
  "log.snapshotEvery": {
    cases: [
      [5, true],
      [500_000, false],
    ],
    tell: async (kit) => {
      await acceptedOf(kit);
      await kit.settle();
      return kit.store.checkpoints.length > 0;
    },
  },
  "log.signEvery.events": {
    cases: [
      [5, true],
      [10_000, false],
    ],
    tell: async (kit) => {
      for (let index = 0; index < 8; index++) await kit.drover.submit(task(`t${index}`));
      return kit.signedAt.length > 1;
    },
  },
  "log.signEvery.time": {
    cases: [
      ["20s", 2],
      ["60s", 1],
    ],
    tell: async (kit) => {
      await kit.drover.submit(task("t"));
      await kit.clock.advance(20_000);
      return kit.signedAt.length;
    },
  },
  "log.retain": {
    cases: [
      ["1h", true],
      ["30d", false],
    ],
    tell: async (kit) => {
      for (let day = 0; day < 3; day++) {
        await kit.drover.submit(task(`t${day}`));
        await kit.drover.snapshot();
        await kit.clock.set(kit.clock.now() + 86_400_000);
      }
      await kit.drover.snapshot();
      return kit.store.base.seq > 0;
    },
  },
  "log.maxClockJump": {
    cases: [
      ["30m", 0],
      ["29m", -1_800_000],
    ],
    tell: async (kit) => {
      kit.clock.setWall(kit.clock.now() + 1_800_000);
      return kit.drover.logTime().aheadMs;
    },
  },
};
