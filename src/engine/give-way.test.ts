/**
 * A thread that gives way does so alone, with those it starts.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { constants, getPriority } from "node:os";
import { test } from "node:test";
import { Worker } from "node:worker_threads";

const THREAD = `
  import { getPriority } from "node:os";
  import { parentPort, Worker } from "node:worker_threads";
  import { giveWay, ownThread } from ${JSON.stringify(new URL("./give-way.ts", import.meta.url).href)};
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
