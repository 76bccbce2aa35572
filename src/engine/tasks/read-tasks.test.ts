/**
 * Pages of tasks whose bodies are large: they end by their bytes, and little is read that is not shown.
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import { turnsDuring } from "../../../test/kits/waits.ts";
import type { TaskId } from "../../core/base/index.ts";
import type { TaskPage } from "../../protocol/index.ts";
import { createTestDrover, type TestDrover } from "../../testing/index.ts";
import { PAGE_BYTES, type PageFilter, readPage, type TaskSources } from "./read-tasks.ts";

const idsOf = ({ tasks }: TaskPage): string[] => tasks.map(({ taskId }) => taskId);

async function withTasks(count: number, payload: string): Promise<{ kit: TestDrover; ids: string[] }> {
  const kit = await createTestDrover();
  const ids = Array.from({ length: count }, (_, index) => `t${index}`);
  for (const id of ids) await kit.drover.submit({ id, agentId: "ann", action: "build", payload });
  return { kit, ids };
}

/** Bodies of a size that nobody can submit, and how many of them were asked for. */
function sourcesOf({ drover, clock }: TestDrover, size: number): { parts: TaskSources; reads: () => number } {
  let reads = 0;
  const read = async (): Promise<string> => {
    reads++;
    return JSON.stringify({ id: "", agentId: "ann", action: "build", payload: "x".repeat(size) });
  };
  const writer = { state: drover.state, now: clock.now, settled: async () => undefined };
  return { parts: { writer, bodies: { read } } as unknown as TaskSources, reads: () => reads };
}

test("a page ends by its bytes, and its cursor leads through all the rest", async () => {
  const size = 900_000;
  const { kit, ids } = await withTasks(12, "x".repeat(size));
  const first = await kit.drover.tasks({});
  assert.equal(first.count, Math.floor(PAGE_BYTES / size), "the one that would take it beyond begins the next");
  const seen = idsOf(first);
  for (let page = first; page.nextCursor !== undefined; ) {
    page = await kit.drover.tasks({ limit: 1000, cursor: page.nextCursor });
    assert.ok(page.count > 0 && page.count === page.tasks.length);
    seen.push(...idsOf(page));
  }
  assert.deepEqual(seen, ids);
});

test("bytes are those of the text, not its characters", async () => {
  const { kit } = await withTasks(20, "語".repeat(100_000));
  assert.equal((await kit.drover.tasks({})).count, 3);
});

test("the newest come first where that is asked for, page by page, also of a label", async () => {
  const kit = await createTestDrover();
  const ids = Array.from({ length: 25 }, (_, index) => `t${index}`);
  const labels = (index: number): object => (index % 2 === 0 ? { labels: { k: "v" } } : {});
  for (const [index, id] of ids.entries())
    await kit.drover.submit({ ...(index % 3 === 0 ? {} : { id }), agentId: "ann", action: id, ...labels(index) });
  for (const [label, expected] of [
    [undefined, ids],
    ["k=v", ids.filter((_, index) => index % 2 === 0)],
  ] as const) {
    const seen: unknown[] = [];
    let cursor: string | undefined;
    do {
      const query = { order: "newest", limit: 4, ...(label === undefined ? {} : { label }) } as const;
      const page: TaskPage = await kit.drover.tasks({ ...query, ...(cursor === undefined ? {} : { cursor }) });
      seen.push(...page.tasks.map(({ action }) => action));
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    assert.deepEqual(seen, expected.toReversed());
  }
  const firstOf = async (order: "asc" | "desc"): Promise<unknown> =>
    (await kit.drover.tasks({ order, limit: 1 })).tasks[0]?.action;
  assert.deepEqual([await firstOf("asc"), await firstOf("desc")], ["t0", "t24"]);
  await assert.rejects(kit.drover.tasks({ order: "last" } as never), { code: "bad_request", message: /^order is/ });
});

test("any part of a long list is one page away: so many are passed over, and how many there are is told", async () => {
  const settings = { scheduler: { maxPerAgent: 20 } };
  const kit = await createTestDrover({ config: settings });
  const ids = Array.from({ length: 20 }, (_, index) => `t${index}`);
  for (const id of ids) await kit.drover.submit({ id, agentId: "ann", action: "x" });
  await assert.rejects(kit.drover.submit({ id: "no", agentId: "ann", action: "x" }));
  const read = (query: PageFilter): Promise<TaskPage> => kit.drover.tasks({ limit: 5, ...query });
  const middle = await read({ order: "newest", skip: 7 });
  assert.deepEqual([idsOf(middle), middle.total], [ids.toReversed().slice(7, 12), 20]);
  const behind = await read({ order: "newest", skip: 3, cursor: middle.nextCursor ?? "" });
  assert.deepEqual([idsOf(behind), behind.total], [ids.toReversed().slice(15), 8]);
  assert.equal(behind.nextCursor, undefined);
  const oldest = await read({ skip: 18 });
  assert.deepEqual([idsOf(oldest), oldest.total], [ids.slice(18), undefined]);
  // Those that were turned away come last, and are passed over like all others.
  const state = ["queued", "rejected"] as const;
  const last = await read({ order: "newest", skip: 18, state });
  assert.deepEqual([idsOf(last), last.total], [["t1", "t0", "no"], 21]);
  assert.deepEqual(idsOf(await read({ order: "newest", skip: 20, state })), ["no"]);
  assert.deepEqual(idsOf(await read({ order: "newest", skip: 21, state })), []);
  await assert.rejects(read({ skip: -1 }), { code: "bad_request", message: /^skip is/ });
});

test("of the newest none is left out because records go while they are looked for", async () => {
  const { kit, ids } = await withTasks(20, "");
  const { parts } = sourcesOf(kit, 1);
  const { state } = parts.writer;
  const gone = new Set<string>();
  /** The last records are seen, and gone when all have been. */
  function* values(): Generator<unknown> {
    for (const task of state.tasks.values()) if (!gone.has(task.id)) yield task;
    for (const id of ["t19", "t17"]) gone.add(id);
  }
  const get = (id: TaskId) => (gone.has(id) ? undefined : state.tasks.get(id));
  const writer = { ...parts.writer, state: { ...state, tasks: { values, get, has: get } } };
  const changing = { ...parts, writer } as unknown as TaskSources;
  const seen: unknown[] = [];
  for (let cursor: string | undefined = "0"; cursor !== undefined; ) {
    const page = await readPage(changing, { order: "newest", limit: 3, cursor });
    seen.push(...idsOf(page));
    cursor = page.nextCursor;
  }
  const stayed = ids.filter((id) => !gone.has(id));
  assert.deepEqual(seen, stayed.toReversed());
});

test("since is when a task was submitted or has ended", async () => {
  const kit = await createTestDrover({ config: { scheduler: { maxQueue: 3 } } });
  const began = kit.clock.now();
  const submit = (id: string) => kit.drover.submit({ id, agentId: "ann", action: "x" });
  await submit("lives");
  await submit("ends");
  await kit.clock.advance(1000);
  await submit("new");
  await assert.rejects(submit("turned-away"), { code: "queue_full" });
  await kit.drover.cancel("ends");
  const since = async (at: string | number, more = {}): Promise<string[]> =>
    idsOf(await kit.drover.tasks({ since: at, ...more }));
  assert.deepEqual(await since(began + 1), ["ends", "new"]);
  assert.deepEqual(await since(new Date(began).toISOString()), ["lives", "ends", "new"]);
  assert.deepEqual(await since(began + 1001), []);
  const state = ["queued", "rejected"] as const;
  assert.deepEqual(await since(began + 1, { state }), ["new", "turned-away"]);
  assert.deepEqual(await since(began + 1001, { state }), []);
  await assert.rejects(kit.drover.tasks({ since: "yesterday" }), { code: "bad_request", message: /^since is/ });
});

test("small tasks fill a page up to its count", async () => {
  const { kit, ids } = await withTasks(120, "x");
  const page = await kit.drover.tasks({ limit: 1000 });
  assert.deepEqual([idsOf(page), page.nextCursor], [ids, undefined]);
});

test("a page that is full has read little more than it shows", async () => {
  const { kit, ids } = await withTasks(200, "x");
  const { parts, reads } = sourcesOf(kit, 250_000);
  const page = await readPage(parts, { limit: 1000 });
  assert.deepEqual(idsOf(page), ids.slice(0, 4));
  assert.ok(reads() <= 12, `${reads()} were read`);
});

test("however large a task is, a page holds one", async () => {
  const { kit, ids } = await withTasks(3, "x");
  const { parts } = sourcesOf(kit, 2 * PAGE_BYTES);
  const page = await readPage(parts, {});
  assert.deepEqual(idsOf(page), ids.slice(0, 1));
  assert.deepEqual(idsOf(await readPage(parts, { cursor: page.nextCursor as string })), ids.slice(1, 2));
});

test("a page leaves turns of the event loop to others, also while it only looks for its tasks", async () => {
  const config = { scheduler: { maxBatch: 1000, maxPerAgent: 20_000, maxQueue: 20_000 } };
  await using kit = await createTestDrover({ config });
  const { drover } = kit;
  const tasks = Array.from({ length: 1000 }, () => ({ action: "x" }));
  for (let batch = 0; batch < 10; batch++) await drover.submitBatch({ agentId: "ann", tasks });
  assert.ok((await turnsDuring(drover.tasks({ limit: 1000 }))) > 1000 / 40);
  const rare = drover.tasks({ type: "rare", limit: 1 });
  assert.ok((await turnsDuring(rare)) >= 5);
  assert.equal((await rare).count, 0);
});
