/**
 * Files of tasks: kept by content, within limits, for as long as a task lists them, and never believed unseen.
 */
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text as readText } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { isPending } from "../../../test/kits/waits.ts";
import { emptyState } from "../../core/index.ts";
import { createHandClock } from "../../std/index.ts";
import { createTestDrover } from "../../testing/index.ts";
import { openDrover } from "../drover.ts";
import { openSqliteLog } from "../index.ts";
import { recover } from "../writer/recovery.ts";
import { createContents, GRACE_MS } from "./contents.ts";
import { createFiles, verifyFiles } from "./files.ts";
import { directoryMedium, type FileMedium, memoryMedium } from "./medium.ts";

const hashOf = (text: string): string => hash("sha256", text, "hex");
const task = (id: string, more: object = {}) => ({ id, agentId: "ann", action: "build", ...more });

function directory(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), "drover-files-"));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

test("what a handler leaves is listed on its task, and seen and read by those that need it", async () => {
  const kit = await createTestDrover();
  const { drover } = kit;
  const seen: unknown[] = [];
  await drover.worker({}, async ({ taskId, inputs }, context) => {
    if (taskId === "plan") {
      await context.output("spec.md", "first");
      await context.output("spec.md", "# spec");
      await context.output("a/b.bin", Uint8Array.of(0, 255));
      return "ok";
    }
    const { files = [] } = inputs?.plan ?? {};
    seen.push(
      files.map(({ path }) => path),
      await readText(context.file(files[0]?.hash ?? "")),
    );
  });
  await drover.submit(task("plan"));
  await drover.submit(task("code", { needs: { plan: "plan" } }));
  await kit.settle();
  const files = [
    { path: "spec.md", hash: hashOf("# spec"), size: 6 },
    { path: "a/b.bin", hash: hash("sha256", Uint8Array.of(0, 255), "hex"), size: 2 },
  ];
  assert.deepEqual((await drover.task("plan")).files, files);
  assert.deepEqual(seen, [["spec.md", "a/b.bin"], "# spec"]);
  assert.equal((await drover.task("code")).state, "done");
  await drover.close();
});

test("a child that waits for a file of its parent starts when that has left it, and not before", async () => {
  const kit = await createTestDrover();
  const { drover } = kit;
  const ran: string[] = [];
  await drover.worker({}, async ({ taskId }, context) => {
    ran.push(taskId);
    if (taskId === "early") assert.deepEqual([...drover.state.artifacts.keys()], ["nothing.md"]);
    if (taskId === "plan") await context.output("spec.md", "# spec");
  });
  await drover.submit(task("plan", { notBefore: kit.clock.now() + 1000 }));
  await drover.submit(task("early", { parent: "plan", inputArtifact: "spec.md" }));
  await drover.submit(task("other", { parent: "plan", inputArtifact: "nothing.md" }));
  await kit.settle();
  assert.deepEqual(ran, []);
  await kit.clock.advance(1000);
  await drover.submit(task("late", { parent: "plan", inputArtifact: "spec.md" }));
  await kit.settle();
  assert.deepEqual(ran, ["plan", "early", "late"]);
  assert.equal((await drover.task("other")).state, "waiting");
  assert.deepEqual([...drover.state.artifacts.keys()], ["nothing.md"]);
  // Else it is a path of the host's, looked at again when the parent ends.
  kit.artifacts.add("nothing.md");
  await drover.lookForArtifacts();
  await kit.settle();
  assert.deepEqual(ran, ["plan", "early", "late", "other"]);
  await drover.close();
});

test("the files of a task are those of its last attempt that reported, also in a snapshot", async () => {
  const kit = await createTestDrover({ config: { scheduler: { retry: { base: 1 } } } });
  const { drover } = kit;
  await drover.worker({}, async (_, { attempt, output }) => {
    await output(`try-${attempt}`, "x");
    if (attempt === 1) throw new Error("again");
  });
  await drover.submit(task("t"));
  await kit.settle();
  assert.deepEqual(
    (await drover.task("t")).files?.map(({ path }) => path),
    ["try-1"],
  );
  await kit.clock.advance(1000);
  assert.deepEqual(
    (await drover.task("t")).files?.map(({ path }) => path),
    ["try-2"],
  );
  assert.deepEqual([...drover.state.files.keys()], [hashOf("x")]);
  await drover.close();
});

test("a child of a task that runs reads nothing of it by its own name: it does not need it", async () => {
  const kit = await createTestDrover({ config: { scheduler: { retry: { base: 1 } } } });
  const { drover } = kit;
  const held = Promise.withResolvers<void>();
  await drover.worker({ slots: 3 }, async ({ taskId }, { attempt, output, submit }) => {
    if (taskId !== "parent") return held.promise;
    await output("f", "of an earlier attempt");
    if (attempt === 1) throw new Error("again");
    await submit({ id: "child", action: "build" });
    return held.promise;
  });
  await drover.submit(task("parent"));
  await kit.settle();
  await kit.clock.advance(10_000);
  await kit.settle();
  const left = hashOf("of an earlier attempt");
  assert.equal((await drover.files.open(left, { task: "parent" })).size, 21);
  await assert.rejects(drover.files.open(left, { task: "child" }), { code: "not_found" });
  held.resolve();
  await drover.close();
});

test("a content goes an hour after no task lists it; while one does, or its attempt runs, it stays", async () => {
  const kit = await createTestDrover({ config: { scheduler: { resultTtl: GRACE_MS * 3 } } });
  const { drover } = kit;
  const held = Promise.withResolvers<void>();
  await drover.worker({ slots: 2 }, async ({ taskId }, { output }) => {
    await output("f", taskId);
    if (taskId === "slow") await held.promise;
  });
  await drover.submit(task("quick"));
  await drover.submit(task("slow"));
  await drover.files.put("nobody's");
  await kit.settle();
  assert.deepEqual(drover.files.totals(), { count: 3, bytes: "nobody's".length + "quick".length + "slow".length });
  await kit.clock.advance(GRACE_MS - 1000);
  await kit.settle();
  assert.equal(drover.files.totals().count, 3);
  await kit.clock.advance(GRACE_MS);
  await kit.settle();
  await assert.rejects(drover.files.get(hashOf("nobody's")), { code: "not_found" });
  assert.equal(String(await drover.files.get(hashOf("quick"))), "quick");
  assert.equal(String(await drover.files.get(hashOf("slow"))), "slow");
  held.resolve();
  await kit.settle();
  await kit.clock.advance(GRACE_MS * 5);
  await kit.settle();
  assert.deepEqual(drover.files.totals(), { count: 0, bytes: 0 });
  await drover.close();
});

test("a content that two attempts put stays while either runs, also if the other's task is forgotten", async () => {
  const kit = await createTestDrover({ config: { scheduler: { resultTtl: 1000 } } });
  const { drover } = kit;
  const held = Promise.withResolvers<void>();
  await drover.worker({ slots: 2 }, async ({ taskId }, { output }) => {
    await output("f", "same");
    if (taskId === "slow") await held.promise;
  });
  await drover.submit(task("slow"));
  await kit.settle();
  await drover.submit(task("quick"));
  await kit.settle();
  await kit.clock.advance(GRACE_MS * 3);
  await kit.settle();
  assert.equal(drover.state.tasks.has("quick" as never), false);
  held.resolve();
  await kit.settle();
  assert.equal((await drover.task("slow")).state, "done");
  assert.equal(String(await drover.files.get(hashOf("same"))), "same");
  await drover.close();
});

test("a content that was put for an attempt stays while that runs, also after a restart", async (t) => {
  const data = directory(t);
  const config = { files: { maxTotal: 2048 }, workers: { lease: "1h" } } as const;
  const first = await openDrover({ data, config });
  const { session } = await first.remote.join({ id: "w", slots: 1 });
  await first.submit(task("t"));
  await first.files.put("early", { task: "t", attempt: 1 });
  await first.close();
  const hash = hashOf("early");
  const long = new Date(Date.now() - 2 * GRACE_MS);
  utimesSync(join(data, "files", hash.slice(0, 2), hash.slice(2)), long, long);
  await using again = await openDrover({ data, config });
  // What is not needed would make room for it.
  await assert.rejects(again.files.put("x".repeat(2000)), { code: "over_capacity" });
  const files = [{ path: "f", hash, size: 5 }];
  const results = [{ taskId: "t", attempt: 1, outcome: "done", files }] as const;
  const { results: answers } = await again.remote.sync("w", { session, results });
  assert.deepEqual(answers, [{ taskId: "t", attempt: 1, accepted: true }]);
  await again.files.put("y");
});

test("an attempt that puts a content again and again is known for it once", () => {
  const tasks = new Map([["t", { attempt: { number: 1 }, project: { id: "p" } }]]);
  const state = Object.assign(emptyState(), { tasks });
  const parts = { clock: createHandClock({ at: 0 }), medium: memoryMedium(), onWarning: assert.fail };
  const contents = createContents(parts, () => ({ state: state as never, settled: async () => undefined }));
  for (let count = 0; count < 3; count++) contents.note("h", 1, { task: "t", attempt: 1 });
  contents.note("h", 1, { task: "t", attempt: 2 });
  const attempts = contents.find("h")?.by.map(({ attempt }) => attempt);
  assert.deepEqual(attempts, [1, 2]);
});

test("a content that is put again while it would go stays", async () => {
  const clock = createHandClock({ at: 0 });
  const memory = memoryMedium();
  const [asked, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const receive: FileMedium["receive"] = async () => {
    const drop = async (): Promise<void> => {
      asked.resolve();
      await gate.promise;
    };
    return { ...(await memory.receive()), drop };
  };
  const files = createFiles({ clock, medium: { ...memory, receive }, onWarning: assert.fail });
  files.serve({ state: emptyState(), settled: async () => undefined });
  await files.put("x");
  clock.setWall(GRACE_MS * 2);
  const again = files.put("x");
  // The second copy is not needed. Before it is gone, what is old is looked for.
  await asked.promise;
  await clock.advance(GRACE_MS / 2);
  gate.resolve();
  assert.equal(String(await files.get((await again).hash)), "x");
  await files.stop();
});

test("no content is kept that is not what it was said to be, or too large, or too much", async () => {
  const config = { files: { maxFile: "2KiB", maxTask: "3KiB", maxFilesPerTask: 2, maxTotal: "8KiB" } } as const;
  const kit = await createTestDrover({ config });
  const { drover } = kit;
  const { put } = drover.files;
  await assert.rejects(put("x", { hash: hashOf("y") }), { code: "bad_request" });
  await assert.rejects(put("x".repeat(2049)), { code: "too_large" });
  assert.deepEqual(drover.files.totals(), { count: 0, bytes: 0 });
  const errors: string[] = [];
  await drover.worker({ slots: 1 }, async ({ params }, { output }) => {
    try {
      for (const [path, size] of Object.entries(params as Record<string, number>)) await output(path, "x".repeat(size));
    } catch (error) {
      errors.push((error as Error).message);
      throw error;
    }
  });
  const many = { a: 1, b: 2, c: 3 };
  for (const [index, params] of [many, { a: 2000, b: 2000 }, { a: 1, "a/b": 2 }, { "../a": 1 }].entries())
    await drover.submit(task(`bad-${index}`, { params }));
  await kit.settle();
  assert.match(errors[0] ?? "", /^c cannot be left: it leaves 3 files, and at most 2 are kept/);
  assert.match(errors.join("\n"), /files\.maxFilesPerTask.*files\.maxTask.*another has that path.*path/s);
  for (const index of [0, 1, 2, 3]) assert.equal((await drover.task(`bad-${index}`)).state, "failed");
  // Seven are there already, and each counts as a KiB at least.
  for (let size = 100; size < 106; size++) await put("y".repeat(size)).catch(() => {});
  await assert.rejects(put("z".repeat(1500)), { code: "over_capacity", retryable: true });
  await drover.close();
});

test("there is no room for its files: the task comes back and is done when there is", async () => {
  const kit = await createTestDrover({ config: { files: { maxTotal: "1KiB" } } });
  const { drover } = kit;
  await drover.files.put("in the way");
  await drover.worker({}, async (_, { output }) => void (await output("f", "mine")));
  await drover.submit(task("t", { maxAttempts: 1 }));
  await kit.settle();
  assert.equal((await drover.task("t")).state, "queued");
  await kit.clock.advance(GRACE_MS * 2);
  await kit.settle();
  assert.equal((await drover.task("t")).state, "done");
  await drover.close();
});

test("the last tenth of all there may be is kept for projects that have put little", async () => {
  const kit = await createTestDrover({ config: { files: { maxTotal: 100 * 1024 } } });
  const { drover } = kit;
  await drover.worker({ slots: 3 }, async ({ project = "", params }, { output }) => {
    for (let index = 0; index < Number(params?.count); index++) await output(`${index}`, `${project} ${index}`);
  });
  await drover.submit(task("greedy", { project: "greedy", params: { count: 89 } }));
  await kit.settle();
  await drover.submit(task("more", { project: "greedy", params: { count: 91 } }));
  await drover.submit(task("modest", { project: "modest", params: { count: 1 } }));
  await kit.settle();
  assert.equal((await drover.task("greedy")).state, "done");
  assert.equal((await drover.task("modest")).state, "done");
  const { summary } = await drover.why("more");
  assert.match(summary, /backing off/);
  await assert.rejects(drover.files.put("x", { task: "more", attempt: 1 }), {
    message: /no room for more of project greedy/,
  });
  await drover.files.put("an operator's");
  await drover.close();
});

test("of contents that come at once those get in that there is room for", async (t) => {
  const { drover } = await createTestDrover({ data: directory(t), config: { files: { maxTotal: 100_000 } } });
  const ended: string[] = [];
  await drover.worker({ slots: 2 }, async ({ taskId }, { output }) => {
    const count = taskId === "many" ? 30 : 1;
    const puts = Array.from({ length: count }, (_, index) => output(`${index}`, `${taskId} ${index}`.padEnd(20_000)));
    const all = await Promise.allSettled(puts);
    ended.push(`${taskId} ${all.filter(({ status }) => status === "fulfilled").length}`);
  });
  await drover.submit(task("many", { project: "greedy" }));
  await drover.wait("many");
  await drover.submit(task("one", { project: "modest" }));
  await drover.wait("one");
  assert.deepEqual(ended, ["many 4", "one 1"]);
  assert.deepEqual(drover.files.totals(), { count: 5, bytes: 100_000 });
  await drover.close();
});

test("contents outlive the process, are for their owner only, and what was half written goes", async (t) => {
  const data = directory(t);
  const first = await openDrover({ data });
  await first.worker({}, async (_, { output }) => void (await output("f", "kept")));
  await first.submit(task("t"));
  await first.wait("t");
  await first.close();
  const [prefix, rest] = [hashOf("kept").slice(0, 2), hashOf("kept").slice(2)];
  const path = join(data, "files", prefix, rest);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.equal(statSync(join(data, "files")).mode & 0o777, 0o700);
  mkdirSync(join(data, "files", "tmp"), { recursive: true });
  writeFileSync(join(data, "files", "tmp", "half"), "ke");
  await using again = await openDrover({ data });
  await again.files.counted();
  assert.deepEqual(readdirSync(join(data, "files")), [prefix]);
  assert.equal(String(await again.files.get(hashOf("kept"))), "kept");
  assert.deepEqual(await verifyFiles(data, null), { count: 1, damaged: [], missing: [] });
});

test("many files keep nobody from deciding: what is not counted yet is looked for by its name", async (t) => {
  const data = directory(t);
  const first = await openDrover({ data, config: { workers: { lease: "1h" } } });
  const { session } = await first.remote.join({ id: "w", slots: 1 });
  await first.submit(task("t"));
  const { hash: one } = await first.files.put("left before", { task: "t", attempt: 1 });
  await first.close();
  const medium = directoryMedium(join(data, "files"));
  const gate = Promise.withResolvers<void>();
  const list: FileMedium["list"] = async () => {
    await gate.promise;
    return medium.list();
  };
  await using again = await openDrover({ data, fileMedium: { ...medium, list } });
  await using _ = { [Symbol.asyncDispose]: async () => gate.resolve() };
  assert.equal(again.files.has(one), true);
  assert.equal(again.files.has(hashOf("never")), false);
  assert.equal(String(await again.files.get(one)), "left before");
  await again.submit(task("u"));
  const files = [{ path: "f", hash: one, size: 11 }];
  const results = [{ taskId: "t", attempt: 1, outcome: "done", files }] as const;
  const { results: answers } = await again.remote.sync("w", { session, results });
  assert.deepEqual(answers, [{ taskId: "t", attempt: 1, accepted: true }]);
  // How much room there is, is not known yet.
  const put = again.files.put("more");
  assert.ok(await isPending(put));
  gate.resolve();
  await put;
  await again.files.counted();
  assert.deepEqual(again.files.totals(), { count: 2, bytes: 15 });
});

test("an attempt whose file is gone, or that its worker forgot, says so and not that the worker was lost", async () => {
  const kit = await createTestDrover({ config: { workers: { lease: "1h" } } });
  const { drover } = kit;
  const { session } = await drover.remote.join({ id: "w", slots: 2 });
  for (const id of ["t", "u"]) await drover.submit(task(id));
  const running = ["t", "u"].map((taskId) => ({ taskId, attempt: 1 }));
  await drover.remote.sync("w", { session, running });
  const files = [{ path: "f", hash: hashOf("gone"), size: 4 }];
  const results = [{ taskId: "t", attempt: 1, outcome: "done", files }] as const;
  const { results: answers } = await drover.remote.sync("w", { session, results, running: [] });
  assert.equal(answers?.[0]?.code, "files_missing");
  const told: string[] = [];
  for await (const { payload } of drover.events())
    if (payload.kind === "attempt-lost") told.push(`${payload.task} ${payload.cause}: ${payload.reason}`);
  assert.deepEqual(told, [
    "t worker-lost: its file f was not put, or is gone with the node that had it",
    "u worker-lost: worker w is there and no longer has it",
  ]);
  await drover.close();
});

test("files that cannot be counted are said, and none is taken in", async () => {
  const warnings: string[] = [];
  const list: FileMedium["list"] = () => Promise.reject(new Error("EIO"));
  const onWarning = (text: string): void => void warnings.push(text);
  const hash = "ab".repeat(32);
  const look: FileMedium["look"] = () => ({ hash, size: 1, at: 0 });
  const read: FileMedium["read"] = async function* () {
    yield Buffer.from("y");
  };
  const remove: FileMedium["remove"] = () => Promise.reject(new Error("EROFS"));
  await using drover = await openDrover({ fileMedium: { ...memoryMedium(), list, look, read, remove }, onWarning });
  const said = "the files of tasks could not be counted; until the next start none is taken in";
  const isSaid = { name: "DroverError", code: "over_capacity", retryable: true, message: said };
  await assert.rejects(drover.files.put("z"), isSaid);
  await assert.rejects(drover.files.counted(), isSaid);
  await drover.submit(task("t"));
  await assert.rejects(drover.files.get(hash), { code: "damaged" }, "that it is damaged is not hidden by the count");
  assert.deepEqual(warnings, [
    `${said}: Error: EIO`,
    `the file ${hash} is not what was stored; it is dropped`,
    `the file ${hash} stays: Error: EROFS`,
  ]);
});

test("a content changed on the disk is not handed out, is named by verify, and may be put again", async (t) => {
  const data = directory(t);
  const warnings: string[] = [];
  await using drover = await openDrover({ data, onWarning: (text) => warnings.push(text) });
  await drover.worker({}, async (_, { output }) => void (await output("f", "kept")));
  await drover.submit(task("t"));
  const { files = [] } = await drover.wait("t");
  const one = files[0]?.hash ?? "";
  writeFileSync(join(data, "files", one.slice(0, 2), one.slice(2)), "kepT");
  const told: number[][] = [];
  const tell = (...counts: number[]): void => void told.push(counts);
  assert.deepEqual(await verifyFiles(data, null, tell), { count: 1, damaged: [one], missing: [] });
  assert.deepEqual(told, [[1, 1]]);
  await assert.rejects(drover.files.get(one), { code: "damaged" });
  assert.match(warnings.join(), /not what was stored/);
  await assert.rejects(drover.files.get(one), { code: "damaged" });
  await drover.files.put("kept");
  assert.equal(String(await drover.files.get(one)), "kept");
});

test("verify names what a task lists and is not there, and nothing of tasks that are forgotten", async (t) => {
  const data = directory(t);
  const config = { scheduler: { resultTtl: "1h" } } as const;
  const kit = await createTestDrover({ data, config });
  await kit.drover.worker({}, async ({ taskId }, { output }) => void (await output("f", taskId)));
  for (const id of ["old", "kept", "lost"]) await kit.drover.submit(task(id));
  for (const id of ["old", "kept", "lost"]) await kit.drover.wait(id);
  const missing = async () => {
    await using log = await openSqliteLog({ directory: data, readOnly: true });
    const { state } = await recover(log);
    return (await verifyFiles(data, { log, state })).missing;
  };
  const remove = (text: string) => rmSync(join(data, "files", hashOf(text).slice(0, 2), hashOf(text).slice(2)));
  assert.deepEqual(await missing(), []);
  remove("lost");
  assert.deepEqual(await missing(), [{ hash: hashOf("lost"), task: "lost", path: "f" }]);
  await kit.clock.advance(2 * GRACE_MS);
  await kit.settle();
  assert.deepEqual(await missing(), [], "their records are gone, and what they left may be");
  await kit.drover.close();
});
