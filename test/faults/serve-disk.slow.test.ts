/**
 * `drover serve` as a process of its own, on a disk that is read-only and on one that fills up while it serves.
 *
 * Whoever reads standard error hears what is wrong and what to do, a script reads exit code 6, callers are refused as
 * those who may try again, and with room nothing that was acknowledged is missing.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, type TestContext, test } from "node:test";
import { EXIT } from "../../src/cli/shell/problem.ts";
import { cannotMakeReadOnly, cannotMount, makeReadOnly, mountSmallDisk } from "../kits/refusing-disks.ts";
import { MAIN, startServe } from "../kits/serve-process.ts";
import { clientOf } from "../kits/test-server.ts";

const LIMIT = { timeout: 120_000 };
const LANES = 6;
const PAYLOAD = "x".repeat(20_000);
/** What the log may take, in KiB: enough to start, and full after some hundred tasks. */
const ROOM_KIB = 4000;

const home = mkdtempSync(join(tmpdir(), "drover-disk-"));
after(() => rmSync(home, { recursive: true, force: true }));
let places = 0;
function emptyPlace(): string {
  const directory = join(home, String(places++));
  mkdirSync(directory);
  return directory;
}

/** A server that does not start: its exit code, and its complaint as an object. */
function failToServe(
  cwd: string,
  data: string,
  port = "0",
): { status: number | null; problem: Record<string, string> } {
  const args = [MAIN, "serve", "--json", "--port", port, "--data", data, "--log-level", "silent"];
  const { status, stderr, stdout } = spawnSync(process.execPath, args, { cwd, encoding: "utf8", timeout: 60_000 });
  assert.equal(stdout, "", "it said that it was ready");
  return { status, problem: JSON.parse(stderr) as Record<string, string> };
}

describe("a read-only data directory", { ...LIMIT, skip: cannotMakeReadOnly() }, () => {
  test("is refused with what to do, leaves the port free, and is as it was", async () => {
    const cwd = emptyPlace();
    const data = join(cwd, "data");
    const flags = ["--data", data, "--no-worker"];
    const first = await startServe({ cwd, flags });
    const { port } = new URL(first.url);
    const kept = await clientOf(first.url).ask("submit", { body: { id: "kept", agentId: "ann", action: "build" } });
    assert.equal(kept.status, 202);
    assert.equal(await first.stop(), EXIT.ok);
    const undo = makeReadOnly(data);
    try {
      for (const directory of [data, join(data, "deep", "down")]) {
        const { status, problem } = failToServe(cwd, directory, port);
        assert.deepEqual([status, problem.code], [EXIT.broken, "log_read-only"]);
        assert.match(problem.error ?? "", /Make the data directory writable for this user\.$/);
        assert.ok(problem.error?.includes(directory), problem.error);
      }
    } finally {
      undo();
    }
    await using again = await startServe({ cwd, flags: [...flags, "--port", port] });
    assert.equal(new URL(again.url).port, port);
    assert.equal((await clientOf(again.url).ask("task", { params: { id: "kept" } })).json.state, "queued");
  });
});

// ---------------------------------------------------------------- a disk that fills up

type Room = {
  readonly name: string;
  readonly skip: string | false;
  readonly log: string;
  /** Makes the data directory small; answers what a shell does before it serves there, and how to make room. */
  readonly make: (t: TestContext, data: string) => { readonly before: string; readonly grow: (kib: number) => void };
};
const rooms: Room[] = [
  {
    name: "a disk that is full",
    skip: cannotMount(),
    log: "disk-full",
    make(t, data) {
      const disk = mountSmallDisk(data, ROOM_KIB);
      t.after(disk.remove);
      return { before: ":", grow: disk.grow };
    },
  },
  {
    name: "a file that may not grow",
    skip: false,
    log: "io",
    // In blocks of 512 bytes. Node itself ignores the signal that comes with it, so a write fails.
    make: () => ({ before: `ulimit -f ${ROOM_KIB * 2}`, grow: () => {} }),
  },
];

type Refusal = { readonly status: number; readonly code: string; readonly log: unknown; readonly retryAfter: string };
type Filled = { readonly acknowledged: string[]; readonly refusals: Refusal[] };

/** Submits in lanes until the server refuses or is gone. */
async function fill(url: string): Promise<Filled> {
  const { ask } = clientOf(url);
  const filled: Filled = { acknowledged: [], refusals: [] };
  async function lane(number: number): Promise<void> {
    for (let count = 0; ; count++) {
      const id = `f${number}-${count}`;
      const body = { id, agentId: "ann", action: "keep", payload: PAYLOAD, capabilities: ["nobody"] };
      const { status, problem, headers } = await ask("submit", { body });
      if (status === 202) filled.acknowledged.push(id);
      else {
        const { code, details } = problem;
        filled.refusals.push({ status, code, log: details?.log, retryAfter: headers.get("retry-after") ?? "" });
        return;
      }
    }
  }
  const lanes = Array.from({ length: LANES }, (_, number) => lane(number));
  // A connection may be cut while the server goes down; every lane was refused, or found nobody.
  for (const ended of await Promise.allSettled(lanes))
    if (ended.status === "rejected") assert.match(String(ended.reason), /fetch failed|terminated/);
  return filled;
}

function isRefusedWithAHint({ status, problem }: ReturnType<typeof failToServe>): void {
  assert.equal(status, EXIT.broken, JSON.stringify(problem));
  assert.match(problem.hint ?? "", /make at least \d+ MiB free for \S+data, and start it again$/);
}

/** The directory, in which no room is left at all: what a server frees at its end may be enough to start. */
function filledUp(directory: string): string {
  const file = openSync(join(directory, "filler"), "w");
  try {
    for (;;) writeSync(file, Buffer.alloc(4096));
  } catch (error) {
    assert.equal((error as { code?: unknown }).code, "ENOSPC");
  } finally {
    closeSync(file);
  }
  return directory;
}

describe("while it serves,", LIMIT, () => {
  for (const { name, skip, log, make } of rooms)
    test(`${name} refuses what it cannot keep, ends the server with code 6, and loses nothing`, { skip }, async (t) => {
      const cwd = emptyPlace();
      const data = join(cwd, "data");
      mkdirSync(data);
      const { before, grow } = make(t, data);
      const flags = ["--data", data, "--log-level", "silent"];
      await using small = await startServe({ cwd, flags, before });
      const { port } = new URL(small.url);
      const { ask } = clientOf(small.url);
      const body = {
        id: "early",
        agentId: "ann",
        action: "exec",
        params: { command: "echo ran >> ran; echo '{\"n\": 7}'" },
      };
      await ask("submit", { body });
      const early = await ask("wait", { params: { id: "early" }, query: { timeoutMs: 60_000 } });
      assert.deepEqual([early.json.state, early.json.result], ["done", { n: 7 }]);

      const { acknowledged, refusals } = await fill(small.url);
      assert.ok(acknowledged.length > 10, `${acknowledged.length} were acknowledged`);
      assert.ok(refusals.length > 0, "nobody was told");
      const refusal: Refusal = { status: 503, code: "log_failed", log, retryAfter: "1" };
      for (const found of refusals) assert.deepEqual(found, refusal);
      assert.equal(await small.ended, EXIT.broken);
      const said = JSON.parse(small.said()) as Record<string, string>;
      assert.equal(said.code, "log_failed");
      assert.match(
        said.error ?? "",
        /^could not append a batch \(.*drover\.db\): .*(Make room on|Check) the disk, then/,
      );
      assert.doesNotMatch(said.error ?? "", /maxBytes/);
      assert.match(said.hint ?? "", /^nothing that was acknowledged is lost; (make at least|start it again when)/);
      const [, mib] = /make at least (\d+) MiB free for \S+data, and start it again$/.exec(said.hint ?? "") ?? [];
      assert.equal(mib !== undefined, log === "disk-full", said.hint);
      if (log === "disk-full") isRefusedWithAHint(failToServe(cwd, filledUp(data)));
      // As much as it said, and no more.
      grow(Number(mib ?? 0) * 1024);
      await using roomy = await startServe({ cwd, flags: [...flags, "--port", port] });
      assert.equal(new URL(roomy.url).port, port, "the port is free again");
      const next = clientOf(roomy.url);
      for (const id of acknowledged) {
        const { json } = await next.ask("task", { params: { id } });
        assert.deepEqual([json.state, json.payload === PAYLOAD], ["queued", true], id);
      }
      const late = await next.ask("submit", { body: { ...body, id: "late" } });
      assert.equal(late.status, 202);
      const lateEnd = await next.ask("wait", { params: { id: "late" }, query: { timeoutMs: 60_000 } });
      assert.equal(lateEnd.json.state, "done");
      assert.deepEqual((await next.ask("task", { params: { id: "early" } })).json.result, { n: 7 });
      assert.equal(
        spawnSync("cat", [join(cwd, "ran")], { encoding: "utf8" }).stdout,
        "ran\nran\n",
        "nothing ran twice",
      );
      assert.equal(await roomy.stop(), EXIT.ok);
    });

  test("a disk that is full from the beginning is refused with what to do, and how much", {
    skip: cannotMount(),
  }, async (t) => {
    const cwd = emptyPlace();
    const data = join(cwd, "data");
    mkdirSync(data);
    const disk = mountSmallDisk(data, 64);
    t.after(disk.remove);
    writeFileSync(join(data, "ballast"), "x".repeat(60 * 1024));
    const { status, problem } = failToServe(cwd, data);
    assert.deepEqual([status, problem.code], [EXIT.broken, "log_disk-full"]);
    assert.match(problem.error ?? "", /Make room on the disk, then start again\.$/);
    const [, mib] = /make at least (\d+) MiB free/.exec(problem.hint ?? "") ?? [];
    disk.grow(Number(mib) * 1024);
    await using server = await startServe({ cwd, flags: ["--data", data, "--log-level", "silent"] });
    assert.equal(await server.stop(), EXIT.ok);
  });
});
