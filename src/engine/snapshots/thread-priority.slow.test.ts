/**
 * A thread that gives way does so alone, with those it starts.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { constants, getPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { Worker } from "node:worker_threads";

const THREAD = `
  import { getPriority } from "node:os";
  import { parentPort, Worker } from "node:worker_threads";
  import { giveWay, ownThread } from ${JSON.stringify(new URL("./thread-priority.ts", import.meta.url).href)};
  const hasGivenWay = giveWay();
  const child = new Worker(
    'import("node:fs").then(({ readlinkSync }) => import("node:os").then(({ getPriority }) => ' +
      'require("node:worker_threads").parentPort.postMessage(' +
      'getPriority(Number(readlinkSync("/proc/thread-self").split("/").at(-1))))))',
    { eval: true },
  );
  child.once("message", (inherited) => {
    parentPort.postMessage({ hasGivenWay, own: getPriority(ownThread()), inherited });
  });
`;

const skip = process.platform === "linux" ? false : "only Linux has a priority for each thread";

test("a thread lowers its own priority and that of the threads it starts, and nobody else's", { skip }, async () => {
  const before = getPriority();
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(THREAD)}`));
  const [said] = await once(worker, "message");
  const { PRIORITY_LOW } = constants.priority;
  assert.deepEqual(said, { hasGivenWay: true, own: PRIORITY_LOW, inherited: PRIORITY_LOW });
  assert.equal(getPriority(), before);
});

/** A program that has not touched a file before; it prints the priorities of the threads that do so for it. */
const PROGRAM = `
  import { readdirSync, readFileSync } from "node:fs";
  import { getPriority } from "node:os";
  import { openDrover } from ${JSON.stringify(new URL("../drover.ts", import.meta.url).href)};
  const config = { scheduler: { maxBatch: 10_000, maxQueue: 20_000, maxPerAgent: 20_000 } };
  const drover = await openDrover({ data: process.argv[1], config });
  const tasks = Array.from({ length: 10_000 }, () => ({ action: "x" }));
  await drover.submitBatch({ agentId: "ann", tasks });
  await drover.snapshot();
  const nameOf = (thread) => readFileSync("/proc/self/task/" + thread + "/comm", "utf8").trim();
  const ofFiles = readdirSync("/proc/self/task").filter((thread) => nameOf(thread) === "libuv-worker");
  console.log(JSON.stringify(ofFiles.map((thread) => getPriority(Number(thread)))));
  await drover.close();
`;

test("a snapshot leaves the threads that read and write files for the whole program as they are", {
  skip,
}, async (t) => {
  const data = mkdtempSync(join(tmpdir(), "drover-give-way-"));
  t.after(() => rmSync(data, { recursive: true, force: true }));
  const run = promisify(execFile);
  const { stdout } = await run(process.execPath, ["--input-type=module", "-e", PROGRAM, data]);
  const priorities = JSON.parse(stdout) as number[];
  assert.ok(priorities.length > 0, "there are such threads");
  assert.deepEqual(new Set(priorities), new Set([getPriority()]));
});
