/**
 * The SQLite log keeps the log's promises, on a real disk and among real processes.
 *
 * What only this driver can do wrong: share its directory, lose the race with a full disk, leave a lock
 * behind, stop the event loop. Damage to its file is in `damage.slow.test.ts`.
 */

import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { TestContext } from "node:test";
import { test } from "node:test";
import { turnsDuring } from "../../../test/kits/waits.ts";
import { seconds, seq } from "../../core/base/brand.ts";
import { logContract } from "../contract/log-contract.ts";
import { inDirectory } from "../contract/stories.ts";
import { batchOf, collect, eventsOf, failsWith, fill, loaded, namesOf, save, text } from "../contract/vocabulary.ts";
import type { Log } from "../log.ts";
import { LogFailure } from "../log.ts";
import { createSqliteLog, openSqliteLog } from "./sqlite-log.ts";
import { openSqliteStore } from "./store.ts";
import { type StoreThread, startStoreThread } from "./thread-client.ts";

const newDirectory = (): string => mkdtempSync(join(tmpdir(), "drover-log-"));

logContract(
  "the sqlite log",
  inDirectory(async (directory) => () => openSqliteLog({ directory })),
);

/** A directory that is gone after the test. */
function directoryFor(context: TestContext): string {
  const directory = newDirectory();
  context.after(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** A log that is closed after the test. */
async function openFor(context: TestContext, options: Parameters<typeof openSqliteLog>[0]): Promise<Log> {
  const log = await openSqliteLog(options);
  context.after(() => log.close());
  return log;
}

/** A program that has `log`, opened on the directory, and prints what it is told to. */
const program = (directory: string, body: string): string[] => [
  "--input-type=module",
  "--eval",
  `import { openSqliteLog } from ${JSON.stringify(new URL("./sqlite-log.ts", import.meta.url).href)};
   const directory = ${JSON.stringify(directory)};
   const text = (content) => new TextEncoder().encode(content);
   ${body}`,
];

test("a second open of the same directory in this process is refused, by name and pid", async (context) => {
  const directory = directoryFor(context);
  const log = await openSqliteLog({ directory });
  await assert.rejects(openSqliteLog({ directory }), (error: unknown) => {
    failsWith("locked")(error);
    assert.ok((error as Error).message.includes(directory));
    assert.ok((error as Error).message.includes(`process ${process.pid}`));
    return true;
  });
  await fill(log, [2]);
  await log.close();
  await (await openSqliteLog({ directory })).close();
});

test("another process is refused while this one lives", async (context) => {
  const directory = directoryFor(context);
  await openFor(context, { directory });
  const body = `await openSqliteLog({ directory }).catch(({ code, message }) => console.log(code, message));`;
  const output = execFileSync(process.execPath, program(directory, body), { encoding: "utf8" });
  assert.ok(output.startsWith(`locked the data directory ${directory} is in use by process ${process.pid}`), output);
});

test("a killed process leaves no lock, and everything it was told is stored", async (context) => {
  const directory = directoryFor(context);
  const body = `const log = await openSqliteLog({ directory });
    const record = { bytes: text("event 1") };
    const result = await log.append(0, 0, { firstSeq: 1, records: [record] }, "a");
    console.log(result.type);
    setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, program(directory, body), { stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  context.after(() => child.kill("SIGKILL"));
  const [word] = await collect(child.stdout.take(1));
  assert.equal(String(word), "appended\n");
  await assert.rejects(openSqliteLog({ directory }), new RegExp(`in use by process ${child.pid}\\.`));
  child.kill("SIGKILL");
  await ended;
  const log = await openFor(context, { directory });
  assert.deepEqual(eventsOf(await collect(log.read(seq(0)))), ["event 1"]);
});

test("a program that forgets to close ends all the same, with its last append stored", async (context) => {
  const directory = directoryFor(context);
  const body = `const log = await openSqliteLog({ directory });
    const records = [{ bytes: text("event 1") }];
    void log.append(0, 0, { firstSeq: 1, records }, "a").then(({ type }) => console.log(type));`;
  assert.equal(execFileSync(process.execPath, program(directory, body), { encoding: "utf8" }), "appended\n");
  const log = await openFor(context, { directory });
  assert.equal((await log.head()).seq, 1);
});

test("D4 the event loop turns while an append is on its way to the disk", async (context) => {
  const log = await openFor(context, { directory: directoryFor(context) });
  const turns = await turnsDuring(log.append(seq(0), 0, batchOf(1, 50_000), "a"));
  assert.ok(turns > 1, `the loop turned ${turns} times`);
});

test("a reader reads beside the writer, also what comes later, and may change nothing", async (context) => {
  const directory = directoryFor(context);
  const writer = await openFor(context, { directory });
  const head = await fill(writer, [3]);
  await save(writer, head);
  const reader = await openFor(context, { directory, readOnly: true });
  assert.equal(await loaded(reader), "3: state 3");
  assert.equal((await reader.verify({ expect: head })).ok, true);
  for (const change of [
    () => reader.append(seq(3), 0, batchOf(4, 1), "x"),
    () => reader.acquireLead("a", seconds(1)),
    () => reader.prune(seq(3), []),
    () => save(reader, head),
  ]) {
    await assert.rejects(change(), failsWith("read-only"));
  }
  assert.deepEqual(eventsOf(await collect(reader.read(seq(0)))), namesOf(1, 3));
  await fill(writer, [2]);
  assert.deepEqual(eventsOf(await collect(reader.read(seq(0)))), namesOf(1, 5));
});

test("reading where there is no log is refused, and makes nothing", async (context) => {
  const directory = directoryFor(context);
  await assert.rejects(openSqliteLog({ directory, readOnly: true }), failsWith("io"));
  assert.deepEqual(readdirSync(directory), []);
});

test("a log that may not grow says so, stores nothing of the batch, and goes on when it may", async (context) => {
  const directory = directoryFor(context);
  const log = await openSqliteLog({ directory, maxBytes: 400_000 });
  const head = await fill(log, [10]);
  const large = { firstSeq: seq(11), records: [{ bytes: new Uint8Array(500_000) }, { bytes: text("z") }] };
  await assert.rejects(log.append(seq(10), 0, large, "large"), failsWith("disk-full"));
  assert.deepEqual(await log.head(), head);
  await fill(log, [5]);
  await log.close();
  const again = await openFor(context, { directory, maxBytes: 4_000_000 });
  assert.equal((await again.append(seq(15), 0, { ...large, firstSeq: seq(16) }, "large")).type, "appended");
  assert.equal((await again.verify()).ok, true);
});

/** Mounts a file system that is gone after the test. */
function mountFor(context: TestContext, ...options: string[]): string {
  const directory = newDirectory();
  context.after(() => {
    spawnSync("umount", [directory]);
    rmSync(directory, { recursive: true });
  });
  execFileSync("mount", [...options, directory]);
  return directory;
}

/** Why tests with a file system of their own cannot run here, if so. */
function cannotMount(): string | false {
  const directory = newDirectory();
  const { status } = spawnSync("mount", ["-t", "tmpfs", "tmpfs", directory]);
  if (status === 0) spawnSync("umount", [directory]);
  rmSync(directory, { recursive: true });
  return status === 0 ? false : "needs the right to mount";
}
const skip = cannotMount();

test("a full disk fails a batch and a snapshot with nothing half-applied", { skip }, async (context) => {
  const directory = mountFor(context, "-t", "tmpfs", "-o", "size=2m", "tmpfs");
  const log = await openSqliteLog({ directory });
  try {
    const head = await fill(log, [10]);
    const records = [{ bytes: new Uint8Array(3_000_000) }];
    await assert.rejects(log.append(seq(10), 0, { firstSeq: seq(11), records }, "x"), failsWith("disk-full"));
    await assert.rejects(log.saveSnapshot({ ...head, chunks: [new Uint8Array(3_000_000)] }), failsWith("disk-full"));
    assert.deepEqual(
      readdirSync(directory).filter((name) => name.startsWith("snapshot")),
      [],
    );
    assert.deepEqual(await log.head(), head);
    await fill(log, [10]);
    assert.equal((await log.verify()).ok, true);
  } finally {
    await log.close();
  }
});

test("a read-only disk refuses a writer and serves a reader", { skip }, async (context) => {
  const source = directoryFor(context);
  const first = await openSqliteLog({ directory: source });
  await fill(first, [3]);
  await first.close();
  const directory = mountFor(context, "--bind", source);
  execFileSync("mount", ["-o", "remount,ro,bind", directory]);
  await assert.rejects(openSqliteLog({ directory }), failsWith("read-only"));
  const reader = await openSqliteLog({ directory, readOnly: true });
  assert.deepEqual(eventsOf(await collect(reader.read(seq(0)))), namesOf(1, 3));
  await reader.close();
});

test("after a write error nothing more is appended until the log was opened again", async (context) => {
  const directory = directoryFor(context);
  const body = `const log = await openSqliteLog({ directory });
    const batch = (after, size) => ({ firstSeq: after + 1, records: [{ bytes: new Uint8Array(size) }] });
    const append = (after, size) => log.append(after, 0, batch(after, size), "b" + after);
    await append(0, 10);
    for (const size of [900_000, 10]) await append(1, size).catch(({ code }) => console.log(code));
    console.log((await log.head()).seq);
    await log.close();`;
  const command = `ulimit -f 400; exec "$0" "$@"`;
  const { stdout, stderr } = spawnSync("bash", ["-c", command, process.execPath, ...program(directory, body)], {
    encoding: "utf8",
  });
  assert.equal(stdout, "io\nio\n1\n", stderr);
  const log = await openFor(context, { directory });
  assert.equal((await log.verify()).events, 1);
  await fill(log, [1]);
});

test("a path that cannot be a directory is a typed failure", async (context) => {
  const file = join(directoryFor(context), "file");
  writeFileSync(file, "");
  await assert.rejects(openSqliteLog({ directory: file }), LogFailure);
  await assert.rejects(openSqliteLog({ directory: join(file, "below") }), LogFailure);
});

test("a directory is made when it is missing, and what is in it is for its owner only", async (context) => {
  const directory = join(directoryFor(context), "deep", "data");
  await openFor(context, { directory });
  assert.equal(statSync(directory).mode & 0o777, 0o700);
  assert.equal(statSync(join(directory, "signing-key.pem")).mode & 0o777, 0o600);
});

test("in a directory that was there before, too, the files are for their owner only", async (context) => {
  const directory = directoryFor(context);
  chmodSync(directory, 0o755);
  const modes = (): Record<string, string> =>
    Object.fromEntries(
      readdirSync(directory).map((name) => [name, (statSync(join(directory, name)).mode & 0o777).toString(8)]),
    );
  const log = await openSqliteLog({ directory });
  await save(log, await fill(log, [3]));
  const { "signing-key.pub.pem": forAll, ...own } = modes();
  assert.equal(forAll, "644");
  assert.deepEqual(Object.keys(own).sort(), [
    ...["drover.db", "drover.db-shm", "drover.db-wal", "owner.db", "owner.db-journal", "owner.pid"].filter(
      (name) => name in own,
    ),
    ...["signing-key.pem", "snapshot-3.bin"],
  ]);
  assert.deepEqual([...new Set(Object.values(own))], ["600"], JSON.stringify(own));
  await log.close();
  // Those of an older version were for everybody; the next open takes that back.
  for (const name of readdirSync(directory)) chmodSync(join(directory, name), 0o644);
  await openFor(context, { directory });
  const { "signing-key.pub.pem": _, ...again } = modes();
  assert.deepEqual([...new Set(Object.values(again))], ["600"], JSON.stringify(again));
});

test("what a crash left of a snapshot is ignored and swept away", async (context) => {
  const directory = directoryFor(context);
  const log = await openFor(context, { directory });
  writeFileSync(join(directory, "snapshot-9.new"), "half");
  writeFileSync(join(directory, "snapshot-8.bin"), "renamed, but its checkpoint was never stored");
  assert.equal(await log.loadSnapshot(), null);
  for (const size of [2, 2, 2]) await save(log, await fill(log, [size]));
  assert.equal(await loaded(log), "6: state 6");
  const files = readdirSync(directory).filter((name) => name.startsWith("snapshot"));
  assert.deepEqual(files.sort(), ["snapshot-4.bin", "snapshot-6.bin"]);
});

test("what another key signed is not started from, not written behind, and is reported", async (context) => {
  const [directory, other] = [directoryFor(context), directoryFor(context)];
  await (await openSqliteLog({ directory: other })).close();
  const log = await openSqliteLog({ directory });
  await save(log, await fill(log, [2]));
  await log.close();
  for (const name of ["signing-key.pem", "signing-key.pub.pem"]) {
    writeFileSync(join(directory, name), readFileSync(join(other, name)));
  }
  await assert.rejects(openSqliteLog({ directory }), failsWith("corrupt", 2));
  const again = await openFor(context, { directory, readOnly: true });
  assert.equal(await again.loadSnapshot(), null);
  const report = await again.verify();
  assert.deepEqual(
    { ok: report.ok, checkpoints: report.checkpoints, events: report.events },
    { ok: false, checkpoints: 0, events: 2 },
  );
});

test("when its thread dies, an append is unknown, and later questions are refused", async (context) => {
  const directory = directoryFor(context);
  const thread = await startStoreThread({ directory, readOnly: false, maxBytes: null });
  const lost = await thread.ask("no such operation" as "state", undefined).catch((error: unknown) => error);
  assert.ok(thread.isLostAnswer(lost));
  const refused = await thread.ask("state", undefined).catch((error: unknown) => error);
  assert.ok(failsWith("io")(refused) && !thread.isLostAnswer(refused));
  await thread.close();
  await (await openSqliteLog({ directory })).close();
});

test("pruned space is used again", async (context) => {
  const directory = directoryFor(context);
  const log = await openFor(context, { directory });
  const records = [{ bytes: new Uint8Array(100_000), payload: new Uint8Array(100_000) }];
  const sizes: number[] = [];
  for (let round = 0; round < 6; round++) {
    const { seq: after } = await log.head();
    for (let n = 0; n < 10; n++) {
      await log.append(seq(after + n), 0, { firstSeq: seq(after + n + 1), records }, `b${after + n}`);
    }
    const head = await log.head();
    await save(log, head);
    await log.prune(head.seq, []);
    sizes.push(statSync(join(directory, "drover.db")).size);
  }
  assert.ok((sizes.at(-1) as number) < 5_000_000, `the file has ${sizes.at(-1)} bytes`);
  assert.ok(existsSync(join(directory, "drover.db")));
});

test("a log without a directory, or that may not hold anything, is a bug of the caller", async () => {
  await assert.rejects(openSqliteLog({ directory: "" }), { name: "BrokenInvariant" });
  for (const maxBytes of [0, -1, Number.NaN]) {
    await assert.rejects(openSqliteLog({ directory: "unused", maxBytes }), { name: "BrokenInvariant" });
  }
});

test("a data directory may have any name", async (context) => {
  const directory = join(directoryFor(context), "a b?c#d%20é");
  mkdirSync(directory);
  const log = await openSqliteLog({ directory });
  await fill(log, [2]);
  await log.close();
  const reader = await openFor(context, { directory, readOnly: true });
  assert.equal((await reader.head()).seq, 2);
});

test("verify reads in a thread of its own: the writer's hashes no page for it", async (context) => {
  const directory = directoryFor(context);
  const writer = await startStoreThread({ directory, readOnly: false, maxBytes: null });
  const asked = new Set<string>();
  const thread: StoreThread = {
    ...writer,
    ask: (op, input, moved) => {
      asked.add(op);
      return writer.ask(op, input, moved);
    },
  };
  const log = createSqliteLog({ directory, readOnly: false, thread });
  context.after(() => log.close());
  await fill(log, [3, 3]);
  asked.clear();
  assert.equal((await log.verify()).events, 6);
  assert.deepEqual([...asked], ["state"]);
});

test("verify beside a server that prunes begins again where the log begins by then", async () => {
  const directory = newDirectory();
  const writer = await openSqliteLog({ directory });
  await save(writer, await fill(writer, [3, 3, 3]));
  const store = openSqliteStore({ directory, readOnly: true, maxBytes: null });
  let prunings = 0;
  const thread: StoreThread = {
    ask: async (op, input) => {
      if (op === "page" && prunings++ === 0) await writer.prune(seq(6), []);
      return (store[op] as (input: unknown) => ReturnType<(typeof store)[typeof op]>)(input);
    },
    isLostAnswer: () => false,
    close: async () => store.close(),
  };
  const reader = createSqliteLog({ directory, readOnly: true, thread });
  const { ok, base, events } = await reader.verify();
  assert.deepEqual({ ok, base: base.seq, events }, { ok: true, base: 6, events: 3 });
  await reader.close();
  await writer.close();
});

test("records of one turn are one question; one that is damaged is asked for again alone", async (context) => {
  const directory = directoryFor(context);
  const writer = await openSqliteLog({ directory });
  await fill(writer, [3, 3]);
  await writer.close();
  const database = new DatabaseSync(join(directory, "drover.db"));
  database.exec("UPDATE batch SET bytes = CAST(replace(bytes, CAST('event 2' AS BLOB), 'Event 2') AS BLOB)");
  database.close();
  const store = openSqliteStore({ directory, readOnly: true, maxBytes: null });
  const asked: unknown[] = [];
  const thread: StoreThread = {
    ask: async (op, input) => {
      if (op === "records") asked.push(input);
      return (store[op] as (input: unknown) => ReturnType<(typeof store)[typeof op]>)(input);
    },
    isLostAnswer: () => false,
    close: async () => store.close(),
  };
  const reader = createSqliteLog({ directory, readOnly: true, thread });
  const read = (...numbers: number[]) => Promise.allSettled(numbers.map((at) => reader.readRecord(seq(at))));
  assert.deepEqual(
    (await read(4, 6, 5)).map(({ status }) => status),
    ["fulfilled", "fulfilled", "fulfilled"],
  );
  assert.deepEqual(asked.splice(0), [[4, 6, 5]]);
  const [sound, damaged, other] = await read(1, 2, 4);
  assert.deepEqual([sound?.status, other?.status], ["fulfilled", "fulfilled"]);
  assert.ok(damaged?.status === "rejected");
  failsWith("corrupt", 2)(damaged.reason);
  assert.deepEqual(asked, [[1, 2, 4], [1], [2], [4]]);
  await reader.close();
});
