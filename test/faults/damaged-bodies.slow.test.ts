/**
 * A damaged body or result is one task's misfortune: verify names it, nobody is served it, and no other task and no
 * worker notices.
 */
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { seq } from "../../src/core/base/brand.ts";
import { DroverError } from "../../src/engine/index.ts";
import { LogFailure } from "../../src/log/log.ts";
import { openSqliteStore } from "../../src/log/sqlite/store.ts";
import { createTestDrover } from "../../src/testing/index.ts";
import { databaseIn, edit, makeOlder } from "../kits/forged-log.ts";
import { closedLog, copyOf, newDirectory, problemsOf } from "../kits/log-fixture.ts";
import { until } from "../kits/waits.ts";

const sound = closedLog();
const pruned = closedLog({ pruned: true });

/** Changes the blocks that hold these words, or drops what lies there. */
function damage(directory: string, words: string, how: "edit" | "delete" | "cut"): void {
  const database = new DatabaseSync(databaseIn(directory));
  const blocks = database.prepare("SELECT first_seq, bytes FROM beside").all();
  let found = 0;
  for (const { first_seq: first, bytes } of blocks as { first_seq: number; bytes: Uint8Array }[]) {
    const changed = Buffer.from(bytes);
    const at = changed.indexOf(words);
    if (at < 0) continue;
    found++;
    changed.write(words.toUpperCase(), at);
    if (how === "delete") database.prepare("DELETE FROM beside WHERE first_seq = ?").run(first);
    else {
      const kept = how === "edit" ? changed : changed.subarray(0, at);
      database.prepare("UPDATE beside SET bytes = ? WHERE first_seq = ?").run(kept, first);
    }
  }
  database.close();
  assert.ok(found > 0, `nothing holds ${words}`);
}

const RESULT = '"echo":"done-0-1"';
const BODY = '"action":"wait-0-2"';

for (const from of ["sound", "pruned"] as const)
  for (const how of ["edit", "delete", "cut"] as const)
    for (const words of [RESULT, BODY])
      test(`verify names the event of a payload that was damaged (${from}, ${how}, ${words})`, async () => {
        const directory = copyOf(await (from === "sound" ? sound : pruned));
        damage(directory, words, how);
        const problems = await problemsOf(directory);
        assert.match(problems[0] ?? "", /^\d+: the payload of event \d+ is (missing|not what was written)$/);
      });

const listEdits = [
  "UPDATE kept SET hash = printf('%064d', 0)",
  "DELETE FROM kept",
  "DELETE FROM kept_list",
  "DELETE FROM kept; DELETE FROM kept_list",
  "UPDATE kept_list SET up_to = up_to - 1",
];
for (const sql of listEdits)
  test(`nobody starts on a list of kept payloads that was changed to fit a forged body (${sql})`, async () => {
    const directory = copyOf(await pruned);
    damage(directory, BODY, "edit");
    edit(directory, sql);
    assert.match((await problemsOf(directory)).join("\n"), /the list of payloads .* is not the one that was signed/);
    await assert.rejects(createTestDrover({ data: directory }), (error) => {
      assert.ok(error instanceof LogFailure && error.code === "corrupt", String(error));
      assert.match(error.message, /the list of payloads that outlived their events is not the one that was signed/);
      return true;
    });
  });

const extras = [
  { sql: "INSERT INTO beside SELECT max(last_seq), x'' FROM batch", says: /is empty/ },
  { sql: "INSERT INTO beside SELECT first_seq + 1, bytes FROM beside LIMIT 1", says: /begins with that of event \d+/ },
  { sql: "INSERT INTO beside SELECT first_seq + 100000, bytes FROM beside LIMIT 1", says: /belongs to no event/ },
];
for (const { sql, says } of extras)
  test(`verify names a block of payloads that nobody wrote (${says.source})`, async () => {
    const directory = copyOf(await sound);
    edit(directory, sql);
    assert.match((await problemsOf(directory)).join("\n"), says);
  });

test("verify finds payloads as a reader does: a block that hides others is no way around it", async () => {
  const data = newDirectory();
  const kit = await createTestDrover({ data });
  const batch = Array.from({ length: 9 }, (_, at) => ({
    id: `t${at}`,
    agentId: "ann",
    action: "a",
    payload: `p${at}`,
  }));
  await Promise.all(batch.map((task) => kit.drover.submit(task)));
  await kit.drover.close();
  // What it holds is what was written, for the event that it names; those behind it are in the block before.
  const database = new DatabaseSync(databaseIn(data));
  const block = database.prepare("SELECT * FROM beside ORDER BY length(bytes) DESC LIMIT 1").get();
  const bytes = Buffer.from(block?.bytes as Uint8Array);
  const second = bytes.subarray(12 + bytes.readUInt32BE(8));
  const entry = second.subarray(0, 12 + second.readUInt32BE(8));
  database.prepare("INSERT INTO beside VALUES (?, ?)").run(second.readDoubleBE(0), entry);
  database.close();
  const found = await problemsOf(data);
  assert.equal(found.filter((problem) => /the payload of event \d+ is missing/.test(problem)).length, 7, found.join());
});

test("a list that was changed under a server that runs is not signed again by its pruning", async () => {
  const data = copyOf(await pruned);
  const store = openSqliteStore({ directory: data, readOnly: false, maxBytes: null });
  damage(data, BODY, "edit");
  edit(data, "DELETE FROM kept; DELETE FROM kept_list");
  const { base } = store.state();
  store.beginPrune({ limit: base.seq, keep: Float64Array.of(1) });
  assert.throws(() => store.stepPrune(), /is not the one that was signed/);
  const database = new DatabaseSync(databaseIn(data), { readOnly: true });
  const blocks = database.prepare("SELECT first_seq FROM beside WHERE first_seq <= ?").all(base.seq);
  database.close();
  assert.ok(blocks.length > 0);
  for (const { first_seq: at } of blocks)
    assert.throws(() => store.records([seq(Number(at))]), /neither the event nor a signed hash of it/);
  store.close();
});

test("what outlived its event in a log of an older version is listed and signed when it is opened", async () => {
  const directory = copyOf(await pruned);
  makeOlder(directory);
  openSqliteStore({ directory, readOnly: false, maxBytes: null }).close();
  const ofPayloads = async () => (await problemsOf(directory)).filter((problem) => /payload/.test(problem));
  assert.deepEqual(await ofPayloads(), []);
  damage(directory, BODY, "edit");
  assert.match((await ofPayloads()).join("\n"), /the payload of event \d+ is not what was written/);
});

for (const from of ["sound", "pruned"] as const)
  for (const how of ["edit", "delete", "cut"] as const)
    test(`a result that was damaged is not served (${from}, ${how}); all others are`, async () => {
      const data = copyOf(await (from === "sound" ? sound : pruned));
      damage(data, RESULT, how);
      const kit = await createTestDrover({ data, at: 1_767_300_000_000 });
      const told = await kit.drover.task("done-0-1").catch((error: unknown) => error);
      assert.ok(told instanceof DroverError && told.code === "damaged", String(told));
      assert.match(told.message, /the result of done-0-1 is not what was stored \(event \d+\)/);
      const { tasks } = await kit.drover.tasks({ limit: 1000 });
      assert.ok(tasks.some(({ taskId }) => taskId === "done-0-1"));
      if (how === "edit") assert.equal((await kit.drover.task("done-0-2")).state, "done");
      await kit.drover.close();
    });

for (const how of ["edit", "delete", "cut"] as const)
  test(`a body that was damaged fails its own task by name, over the wire and here (${how})`, async () => {
    for (const isLocal of [false, true]) {
      const data = copyOf(await sound);
      damage(data, BODY, how === "edit" ? "edit" : how);
      const kit = await createTestDrover({ data, at: 1_767_300_000_000 });
      const seen: string[] = [];
      if (isLocal) await kit.drover.worker({ slots: 9, capabilities: ["nobody"] }, ({ taskId }) => seen.push(taskId));
      else {
        const { session } = await kit.drover.remote.join({ id: "far", slots: 9, capabilities: ["nobody"] });
        await kit.settle();
        const { assignments } = await kit.drover.remote.sync("far", { session, n: 1, want: 9 });
        seen.push(...assignments.map(({ taskId }) => taskId));
      }
      await kit.settle();
      // The bodies of all that start together are read together, and one by one if that fails.
      const endOf = async () => (await kit.drover.task("wait-0-2")).state;
      await until("the end of the task", async () => (await endOf()) !== "running", kit.settle);
      const task = await kit.drover.task("wait-0-2");
      assert.equal(task.state, "failed");
      assert.match(task.error ?? "", /its stored body is damaged \(event \d+\)/);
      assert.ok(!seen.includes("wait-0-2") && seen.length > 0, seen.join());
      if (how === "edit") assert.deepEqual(seen.sort(), ["wait-0-0", "wait-0-1", "wait-0-3"]);
      const { tasks } = await kit.drover.tasks({ limit: 1000 });
      assert.equal(tasks.find(({ taskId }) => taskId === "wait-0-2")?.error, task.error);
      await kit.drover.close();
    }
  });

test("a task that ended for another reason says that its body is damaged too, live and as a tombstone", async () => {
  const data = copyOf(await sound);
  damage(data, BODY, "edit");
  const config = { scheduler: { resultTtl: "1h" } };
  await using kit = await createTestDrover({ data, config, at: 1_767_300_000_000 });
  await kit.drover.cancel("wait-0-2", { reason: "not wanted" });
  const words = /^not wanted; its stored body is damaged \(event \d+\)/;
  assert.match((await kit.drover.task("wait-0-2")).error ?? "", words);
  const { tasks } = await kit.drover.tasks({ state: "cancelled", limit: 1000 });
  assert.match(tasks.find(({ taskId }) => taskId === "wait-0-2")?.error ?? "", words);
  await kit.clock.advance(2 * 3600 * 1000);
  assert.ok(kit.drover.state.tombstones.has("wait-0-2" as never));
  assert.match((await kit.drover.task("wait-0-2")).error ?? "", words);
});
