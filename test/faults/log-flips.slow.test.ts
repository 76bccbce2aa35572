/**
 * One flipped bit, anywhere in the files of a log, is noticed: or it is in a place that says nothing.
 *
 * In the database: `verify` finds it, or everything that can be read is as it was. In the write-ahead file of a process
 * that was killed: the log is refused, naming both ends, or opens with everything that was acknowledged. Positions are
 * drawn by a seed that is printed, so many for each page.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, truncateSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { LogFailure } from "../../src/log/log.ts";
import { openSqliteStore } from "../../src/log/sqlite/store.ts";
import { findWalBreak } from "../../src/log/sqlite/wal-frames.ts";
import { databaseIn } from "../kits/forged-log.ts";
import { closedLog, copyOf, newDirectory, problemsOf } from "../kits/log-fixture.ts";

const SQLITE_LOG = new URL("../../src/log/sqlite/sqlite-log.ts", import.meta.url).href;

const PAGE_BYTES = 8192;
const FRAME_BYTES = PAGE_BYTES + 24;
const HEADER_BYTES = 32;
const FLIPS_PER_PAGE = 12;

const seed = Number(process.env.DROVER_SEED ?? Date.now() % 1_000_000);
console.log(`flips with DROVER_SEED=${seed}`);
let state = seed;
/** A whole number below `end`. */
function draw(end: number): number {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return Math.floor((state / 2 ** 32) * end);
}

function flipped(bytes: Buffer, at: number, bit: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[at] = (copy[at] as number) ^ (1 << bit);
  return copy;
}

/** Everything that can be read, in one text. */
function contentOf(directory: string): string {
  const database = new DatabaseSync(databaseIn(directory), { readOnly: true });
  try {
    const tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").all();
    const rows = tables.map(({ name }) => database.prepare(`SELECT * FROM ${name} ORDER BY 1, 2`).all());
    return JSON.stringify(rows, (_, value) =>
      value instanceof Uint8Array ? Buffer.from(value).toString("hex") : value,
    );
  } finally {
    database.close();
  }
}

test("a bit flipped in the database is found by verify, or nothing that can be read has changed", async () => {
  const directory = await closedLog({ pruned: true });
  const path = databaseIn(directory);
  const whole = readFileSync(path);
  assert.deepEqual(await problemsOf(directory), []);
  const content = contentOf(directory);
  const pages = whole.length / PAGE_BYTES;
  let seen = 0;
  for (let count = 0; count < pages * FLIPS_PER_PAGE; count++) {
    const at = (count % pages) * PAGE_BYTES + draw(PAGE_BYTES);
    const bit = draw(8);
    writeFileSync(path, flipped(whole, at, bit));
    const problems = await problemsOf(directory).catch((error: unknown) => {
      assert.ok(error instanceof LogFailure, `byte ${at}, bit ${bit}: ${String(error)}`);
      return [error.message];
    });
    if (problems.length > 0) seen++;
    else assert.equal(contentOf(directory), content, `byte ${at}, bit ${bit} was not noticed`);
  }
  assert.ok(seen > pages, `${seen} were found`);
});

test("a batch that says it ends behind the head is damage, not the end of the log", async () => {
  for (const table of ["(SELECT min(first_seq) FROM batch)", "(SELECT max(first_seq) FROM batch)"]) {
    const directory = await closedLog();
    const database = new DatabaseSync(databaseIn(directory));
    database.exec(`UPDATE batch SET last_seq = last_seq + 4096 WHERE first_seq = ${table}`);
    database.close();
    assert.match((await problemsOf(directory))[0] ?? "", /but the head is at|holds/);
  }
});

/** A log whose writer was killed: what it had acknowledged is in the write-ahead file, with frames of a time before. */
function killedLog(): string {
  const directory = newDirectory();
  const program = `
    import { DatabaseSync } from "node:sqlite";
    import { openSqliteLog } from ${JSON.stringify(SQLITE_LOG)};
    const directory = ${JSON.stringify(directory)};
    const log = await openSqliteLog({ directory });
    let at = 0;
    async function fill(batches) {
      for (let batch = 0; batch < batches; batch++) {
        const bytes = new TextEncoder().encode("event");
        const payload = new TextEncoder().encode("p".repeat(4000 * (batch % 4)));
        await log.append(at, 0, { firstSeq: at + 1, records: [{ bytes, payload }] }, "batch " + at);
        at++;
      }
    }
    await fill(30);
    const other = new DatabaseSync(directory + "/drover.db");
    other.exec("PRAGMA wal_checkpoint(RESTART)");
    other.close();
    await fill(8);
    process.kill(process.pid, "SIGKILL");`;
  spawnSync(process.execPath, ["--input-type=module", "--eval", program], { stdio: "inherit" });
  return directory;
}

const EVENTS = 38;

/** The last event of the log as it opens, or why it does not. */
function openedEnd(directory: string): number | LogFailure {
  try {
    const store = openSqliteStore({ directory, readOnly: false, maxBytes: null });
    const { head } = store.state();
    store.close();
    return head.seq;
  } catch (error) {
    assert.ok(error instanceof LogFailure, String(error));
    return error;
  }
}

test("a bit flipped in the write-ahead file never drops what was acknowledged", () => {
  const directory = killedLog();
  const wal = `${databaseIn(directory)}-wal`;
  const whole = readFileSync(wal);
  assert.equal(openedEnd(copyOf(directory)), EVENTS);
  const frames = (whole.length - HEADER_BYTES) / FRAME_BYTES;
  const salt = whole.toString("hex", 16, 24);
  const saltOf = (frame: number): string => whole.toString("hex", HEADER_BYTES + frame * FRAME_BYTES + 8).slice(0, 16);
  const own = Array.from({ length: frames }, (_, frame) => saltOf(frame)).filter((found) => found === salt).length;
  assert.ok(own > 8 && own < frames, `${own} of ${frames} frames are of this time, the others of the time before`);
  const places = [
    ...Array.from({ length: HEADER_BYTES * 8 }, (_, bit) => [bit >> 3, bit & 7] as const),
    ...Array.from({ length: 120 }, () => [HEADER_BYTES + draw(own * FRAME_BYTES), draw(8)] as const),
    ...Array.from({ length: own }, (_, frame) => [HEADER_BYTES + frame * FRAME_BYTES + draw(24), draw(8)] as const),
  ];
  for (const [at, bit] of places) {
    writeFileSync(wal, flipped(whole, at, bit));
    const found = findWalBreak(wal, PAGE_BYTES);
    assert.ok(found !== null, `byte ${at}, bit ${bit} was not noticed`);
    assert.ok(found.found <= own && found.recovered < found.found, JSON.stringify(found));
  }
  for (const [at, bit] of places.filter((_, index) => index % 20 === 0)) {
    writeFileSync(wal, flipped(whole, at, bit));
    const failure = openedEnd(copyOf(directory));
    assert.ok(failure instanceof LogFailure, `byte ${at}, bit ${bit}: it opened at ${String(failure)}`);
    const ends = /damaged at (its beginning|frame \d+)\. .* up to frame \d+, .* ends at event \d+, .* to frame \d+/;
    assert.match(failure.message, ends);
    assert.deepEqual(readFileSync(wal), flipped(whole, at, bit), "nothing was repaired");
    const [, end, size] = /behind event (\d+): .* truncate -s (\d+) \S+-wal/.exec(failure.message) ?? [];
    truncateSync(wal, Number(size));
    assert.equal(openedEnd(copyOf(directory)), Number(end), "it goes on as the message says");
  }
  // What is left of the time before counts for nothing.
  for (let count = 0; count < 20; count++) {
    const at = HEADER_BYTES + own * FRAME_BYTES + draw((frames - own) * FRAME_BYTES);
    writeFileSync(wal, flipped(whole, at, draw(8)));
    assert.equal(findWalBreak(wal, PAGE_BYTES), null, `byte ${at}`);
  }
});

test("a write-ahead file that a crash cut off, or tore in its last transaction, opens with what was answered", () => {
  const directory = killedLog();
  const wal = `${databaseIn(directory)}-wal`;
  const whole = readFileSync(wal);
  for (let count = 0; count < 30; count++) {
    writeFileSync(wal, whole);
    truncateSync(wal, draw(whole.length));
    assert.equal(findWalBreak(wal, PAGE_BYTES), null);
  }
  // Power went while the last transaction was being written: some of it is there, its commit too, some is not.
  const salt = whole.toString("hex", 16, 24);
  const commits: number[] = [];
  for (let at = HEADER_BYTES; at < whole.length && whole.toString("hex", at + 8, at + 16) === salt; at += FRAME_BYTES) {
    if (whole.readUInt32BE(at + 4) !== 0) commits.push(at);
  }
  const [before = 0, last = 0] = commits.slice(-2);
  assert.ok(last - before > FRAME_BYTES, "the last transaction has several frames");
  const torn = Buffer.from(whole);
  torn.fill(0x55, before + FRAME_BYTES + 512, before + FRAME_BYTES + 1024);
  writeFileSync(wal, torn);
  assert.equal(openedEnd(copyOf(directory)), EVENTS - 1);
  // A sector that comes back one bit wrong is no proof while another of that transaction is missing.
  assert.ok(last - before > 2 * FRAME_BYTES, "there is a frame between");
  const twice = flipped(whole, before + FRAME_BYTES + 600, 3);
  writeFileSync(wal, twice);
  assert.ok(findWalBreak(wal, PAGE_BYTES) !== null);
  twice.fill(0x55, before + 2 * FRAME_BYTES + 512, before + 2 * FRAME_BYTES + 1024);
  writeFileSync(wal, twice);
  assert.equal(findWalBreak(wal, PAGE_BYTES), null);
  // The same in the one before it: that one had been answered.
  const lost = Buffer.from(whole);
  lost.fill(0xaa, before + 1024, before + 2048);
  writeFileSync(wal, lost);
  assert.ok(openedEnd(copyOf(directory)) instanceof LogFailure);
});
