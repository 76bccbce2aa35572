/**
 * Pull workers of the SDK where it is hard: a server that is killed again and again under quick and slow tasks, and a
 * thousand workers at once.
 */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createClient, type Fetch } from "../../src/client/index.ts";
import { openDrover } from "../../src/engine/index.ts";
import { startWorker } from "../../src/worker/index.ts";
import { killedAgainAndAgain } from "../kits/faults/standing-server.ts";
import { openServer } from "../kits/test-server.ts";
import { within } from "../kits/waits.ts";

const KILLS = process.env.DROVER_QUICK === undefined ? 10 : 3;
/** So many tasks are done in one life, by turns. */
const LIVES = [1, 30, 80, 150];
const CALLERS = 32;
const ADDRESS = "http://127.0.0.1:1";

test(`a server killed ${KILLS} times under workers loses no task and ends none twice`, async () => {
  const directory = await mkdtemp(join(tmpdir(), "drover-pull-kill-"));
  const server = killedAgainAndAgain(directory, KILLS, LIVES);
  /** Requests go to the server that lives. */
  const fetch: Fetch = async (url, request) => {
    const { pathname, search } = new URL(url);
    return globalThis.fetch(`${await server.url()}${pathname}${search}`, request);
  };
  const begun = new Set<string>();
  const twice: string[] = [];
  const options = { url: ADDRESS, fetch, onWarning: () => {} };
  // Of the one with few slots much is fetched ahead.
  const started = [3, 20].map((slots) =>
    startWorker({ ...options, slots }, async ({ taskId, action, attempt }) => {
      if (begun.has(`${taskId}#${attempt}`)) twice.push(`${taskId}#${attempt}`);
      begun.add(`${taskId}#${attempt}`);
      // Quick ones go on beside those that take some turns.
      for (let turns = action === "slow" ? 50 : 0; turns > 0; turns--) await new Promise((go) => setImmediate(go));
      return { taskId };
    }),
  );
  const client = createClient({ url: ADDRESS, fetch, retries: Number.POSITIVE_INFINITY, rest: async () => {} });
  async function call(caller: number): Promise<void> {
    for (let count = 0; !server.isLast(); count++) {
      const id = `t${caller}-${count}`;
      await client.submit({ id, agentId: `agent-${caller % 5}`, action: caller % 4 === 0 ? "slow" : "quick" });
      assert.deepEqual((await client.wait(id)).result, { taskId: id });
      server.acknowledge(id);
    }
  }
  const callers = Array.from({ length: CALLERS }, (_, caller) => call(caller));
  await server.end(async () => {
    await within("the end of all calls", Promise.all(callers));
    await within("the end of all workers", Promise.all(started.map(async (worker) => (await worker).drain())));
    await client.close();
  });
  assert.deepEqual(twice, [], "an attempt is begun twice");
  await using drover = await openDrover({ data: directory });
  const done: string[] = [];
  for await (const { kind, task } of drover.events()) if (kind === "task-done") done.push(String(task));
  assert.equal(new Set(done).size, done.length, "a task has ended twice");
  assert.deepEqual(
    [...server.acknowledged].filter((id) => !done.includes(id)),
    [],
  );
  await rm(directory, { recursive: true });
});

/** Nothing but the number of workers is a limit. */
const ROOM = {
  scheduler: { maxInFlight: 10_000, maxPerAgentInFlight: 10_000, maxPerAgent: 10_000, perType: { code: null } },
  projects: { default: { maxConcurrent: 10_000 } },
  // All share one event loop, with the server.
  workers: { lease: "60s" },
};
/** Joined, or submitted, by one call after the other. */
const AT_ONCE = 50;
const MANY = process.env.DROVER_QUICK === undefined ? 1000 : 100;

test(`${MANY} workers of one process do what there is, and leave`, async () => {
  await using at = await openServer({ settings: ROOM });
  await using joined = new AsyncDisposableStack();
  const client = createClient({ url: at.url });
  const warnings: string[] = [];
  const options = { client, onWarning: (message: string) => void warnings.push(message) };
  let ran = 0;
  const start = async (id: string) => joined.use(await startWorker({ ...options, id }, () => ++ran));
  const workers: Awaited<ReturnType<typeof start>>[] = [];
  while (workers.length < MANY) {
    const names = Array.from({ length: AT_ONCE }, (_, index) => `w${workers.length + index}`);
    workers.push(...(await within("some have joined", Promise.all(names.map(start)))));
  }
  const tasks = Array.from({ length: AT_ONCE }, () => ({ action: "noop" }));
  const batches = Array.from({ length: (3 * MANY) / AT_ONCE }, () => client.submitBatch({ agentId: "ann", tasks }));
  const ids = (await Promise.all(batches)).flatMap((batch) => batch.tasks.map(({ taskId = "" }) => taskId));
  const ended = await within("all are done", Promise.all(ids.map((id) => at.drover.wait(id))));
  assert.ok(ended.every(({ state, attempt }) => state === "done" && attempt === 1));
  assert.equal(ran, ids.length);
  // Each has five seconds for its goodbye, and all share one event loop.
  while (workers.length > 0)
    await within("some have left", Promise.all(workers.splice(0, AT_ONCE).map((worker) => worker.drain())));
  assert.deepEqual(await at.drover.workers(), []);
  assert.deepEqual(warnings, []);
  await client.close();
});
