/**
 * Damaged logs, full disks, read-only directories: a clear error, nothing repaired, nothing acknowledged lost.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { cpSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, test } from "node:test";
import { checkInvariants } from "../../src/core/invariants/invariants.ts";
import { DroverError, LogFailure, openDrover, openSqliteLog } from "../../src/engine/index.ts";
import { cannotMakeReadOnly, makeReadOnly } from "../kits/refusing-disks.ts";

const home = mkdtempSync(join(tmpdir(), "drover-storage-"));
const healthy = join(home, "healthy");
after(() => rmSync(home, { recursive: true, force: true }));

const task = (id: string, more: object = {}) => ({ id, agentId: "ann", action: "build", ...more });

let bodyHash = "";

/** A log of several batches, closed. */
before(async () => {
  const drover = await openDrover({ data: healthy });
  await drover.worker({}, ({ taskId }) => taskId);
  for (let index = 0; index < 20; index++) {
    await drover.submit(task(`t${index}`, { payload: "x".repeat(100) }));
    await drover.wait(`t${index}`);
  }
  bodyHash = drover.state.tasks.get("t10" as never)?.bodyHash ?? "";
  await drover.close();
});

let copies = 0;
function copyOf(source: string): string {
  const directory = join(home, `copy${copies++}`);
  cpSync(source, directory, { recursive: true });
  return directory;
}
const logFile = (directory: string): string => join(directory, "drover.db");
const digest = (directory: string): string =>
  createHash("sha256")
    .update(readFileSync(logFile(directory)))
    .digest("hex");
function edit(directory: string, sql: string): void {
  const database = new DatabaseSync(logFile(directory));
  database.exec(sql);
  database.close();
}

const bytesAt = (at: number): string => `CAST(substr(bytes, 1, ${at}) || x'00' || substr(bytes, ${at + 2}) AS BLOB)`;
const FIFTH = "(SELECT first_seq FROM batch ORDER BY first_seq LIMIT 1 OFFSET 4)";
const SIXTH = "(SELECT first_seq FROM batch ORDER BY first_seq LIMIT 1 OFFSET 5)";
const damages: { name: string; harm: (directory: string) => void }[] = [
  {
    name: "a changed byte in an event",
    harm: (directory) => edit(directory, `UPDATE batch SET bytes = ${bytesAt(30)} WHERE first_seq = ${FIFTH}`),
  },
  {
    name: "two batches in each other's place",
    harm: (directory) =>
      edit(
        directory,
        `CREATE TEMP TABLE two AS SELECT first_seq AS place, bytes FROM batch WHERE first_seq IN (${FIFTH}, ${SIXTH});
         UPDATE batch SET bytes = (SELECT bytes FROM two WHERE place != batch.first_seq)
           WHERE first_seq IN (SELECT place FROM two);`,
      ),
  },
  { name: "a missing batch", harm: (directory) => edit(directory, `DELETE FROM batch WHERE first_seq = ${FIFTH}`) },
  {
    name: "a tail cut off behind the head's back",
    harm: (directory) => edit(directory, "DELETE FROM batch WHERE first_seq = (SELECT max(first_seq) FROM batch)"),
  },
];
for (const { name, harm } of damages)
  test(`openDrover refuses ${name}, says where it breaks, and repairs nothing`, async () => {
    const directory = copyOf(healthy);
    harm(directory);
    const before = digest(directory);
    for (let tries = 0; tries < 2; tries++)
      await assert.rejects(openDrover({ data: directory }), (error) => {
        assert.ok(error instanceof LogFailure, String(error));
        assert.equal(error.code, "corrupt");
        assert.ok((error.seq ?? 0) > 0, "it names the event");
        assert.match(error.message, new RegExp(`damaged at event ${error.seq}.*Nothing was repaired`));
        return true;
      });
    assert.equal(digest(directory), before);
  });

const placeOf = (file: string, what: string | Buffer): number => readFileSync(file).indexOf(what);
function flip(file: string, at: number): void {
  assert.ok(at >= 0, "what is to be damaged is there");
  const bytes = readFileSync(file);
  bytes[at] = (bytes[at] as number) ^ 1;
  writeFileSync(file, bytes);
}

/** SQLite leaves copies of what it has moved to another page: which one counts is not known. */
function flipEach(file: string, what: Buffer): void {
  for (let at = placeOf(file, what); at >= 0; at = placeOf(file, what)) flip(file, at);
}

test("a payload that was damaged is noticed when it is read, and the rest can still be read", async () => {
  const directory = copyOf(healthy);
  flip(logFile(directory), placeOf(logFile(directory), "x".repeat(100)));
  const drover = await openDrover({ data: directory });
  const reads = await Promise.all(Array.from({ length: 20 }, (_, index) => drover.task(`t${index}`)));
  const damaged = reads.flatMap(({ error }) => error ?? []);
  assert.equal(damaged.length, 1);
  assert.match(damaged[0] ?? "", /its stored body is damaged \(event \d+\)/);
  await drover.close();
});

test("a file that was cut, emptied, overwritten or flipped is refused and left as it is", async () => {
  const size = readFileSync(logFile(healthy)).length;
  const harms: ((file: string) => void)[] = [
    ...[size - 1, size - 4096, Math.floor(size / 2), 100, 0].map((to) => (file: string) => truncateSync(file, to)),
    (file) => writeFileSync(file, "no database at all ".repeat(500)),
    (file) => flip(file, 0),
    (file) => flip(file, 100),
    (file) => flipEach(file, Buffer.from(bodyHash, "hex")),
  ];
  for (const [index, harm] of harms.entries()) {
    const directory = copyOf(healthy);
    harm(logFile(directory));
    const before = digest(directory);
    assert.notEqual(before, digest(healthy), `harm ${index} does harm`);
    await assert.rejects(openDrover({ data: directory }), { name: "LogFailure", code: "corrupt" }, `harm ${index}`);
    assert.equal(digest(directory), before, `harm ${index}`);
  }
});

test("a full disk refuses every open call, and with room again nothing acknowledged is missing", async () => {
  const data = join(home, "full");
  const log = await openSqliteLog({ directory: data, maxBytes: 600_000 });
  const drover = await openDrover({ log });
  const acknowledged: string[] = [];
  await drover.worker({ slots: 4 }, ({ taskId }) => taskId);
  const filling = Array.from({ length: 8 }, async (_, lane) => {
    for (let count = 0; ; count++) {
      const { taskId } = await drover.submit(task(`f${lane}-${count}`, { payload: "x".repeat(3000) }));
      acknowledged.push(taskId);
    }
  });
  for (const lane of await Promise.allSettled(filling)) {
    assert.ok(lane.status === "rejected" && lane.reason instanceof DroverError);
    assert.equal(lane.reason.code, "log_failed");
    assert.equal(lane.reason.details.log, "disk-full");
  }
  assert.equal((await drover.failed).code, "log_failed");
  await drover.close();
  assert.ok(acknowledged.length > 10);
  const again = await openDrover({ data });
  for (const id of acknowledged) assert.equal((await again.task(id)).payload, "x".repeat(3000));
  assert.deepEqual(checkInvariants(again.state), []);
  assert.ok((await again.verify()).ok);
  assert.ok((await again.submit(task("room-again"))).taskId);
  await again.close();
});

test("a read-only directory is refused with what to do about it, and left as it is", {
  skip: cannotMakeReadOnly(),
}, async () => {
  const directory = copyOf(healthy);
  const undo = makeReadOnly(directory);
  try {
    await assert.rejects(openDrover({ data: directory }), { name: "LogFailure", code: "read-only" });
  } finally {
    undo();
  }
  const drover = await openDrover({ data: directory });
  assert.equal((await drover.task("t19")).result, "t19");
  await drover.close();
});

test("a data directory that is a file, or lies behind one, is refused", async () => {
  const file = join(home, "file");
  writeFileSync(file, "");
  for (const data of [file, join(file, "below")]) await assert.rejects(openDrover({ data }), { name: "LogFailure" });
});

const places: { name: string; harm: (directory: string) => string; code: string; says: RegExp }[] = [
  {
    name: "a data directory that is a file",
    harm: (directory) => join(directory, "drover.db"),
    code: "io",
    says: /drover\.db is a file, or lies under one\. Name a directory/,
  },
  {
    name: "a data directory under a file",
    harm: (directory) => join(directory, "drover.db", "deep"),
    code: "io",
    says: /deep is a file, or lies under one\. Name a directory/,
  },
  {
    name: "a signing key that is none",
    harm: (directory) => {
      writeFileSync(join(directory, "signing-key.pem"), "junk");
      return directory;
    },
    code: "corrupt",
    says: /signing-key\.pem does not hold an ed25519 key\..* from a backup\. Or move/,
  },
  {
    name: "a signing key that is gone",
    harm: (directory) => {
      rmSync(join(directory, "signing-key.pem"));
      return directory;
    },
    code: "corrupt",
    says: /signing-key\.pem is missing, and signing-key\.pub\.pem is there\..* from a backup\. Or move/,
  },
];
for (const { name, harm, code, says } of places)
  test(`${name} is refused with what to do about it`, async () => {
    const data = harm(copyOf(healthy));
    await assert.rejects(openDrover({ data }), { name: "LogFailure", code, message: says });
  });

test("the public half of the key is made again where it is missing", async () => {
  const data = copyOf(healthy);
  const path = join(data, "signing-key.pub.pem");
  const before = readFileSync(path, "utf8");
  rmSync(path);
  await (await openDrover({ data })).close();
  assert.equal(readFileSync(path, "utf8"), before);
});

test("a log whose broken key was moved away opens with a new one, as the refusal says", async () => {
  const data = copyOf(healthy);
  for (const key of ["signing-key.pem", "signing-key.pub.pem"]) rmSync(join(data, key));
  await using drover = await openDrover({ data });
  assert.equal((await drover.task("t10")).state, "done");
});
