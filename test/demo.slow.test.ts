/**
 * `npm run demo` as people use it: it serves a lively fleet, and ends when it is told to.
 */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { clientOf } from "./kits/test-server.ts";
import { until } from "./kits/waits.ts";

test("the demo serves a fleet that works, asks, is blocked and has an hour behind it; Ctrl-C ends it", async () => {
  const demo = spawn(process.execPath, [resolve("src/cli/demo.ts"), "--port", "0"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    const [line] = (await once(createInterface(demo.stdout), "line")) as [string];
    const url = /(http:\/\/\S+)\/ui\//.exec(line)?.[1] ?? "";
    const at = clientOf(url);
    await until("a task that is done, one that has failed for good, some that run and one that asks", async () => {
      const { metrics } = (await at.ask("stats", {})).json;
      const { tasks } = (await at.ask("tasks", { query: { state: ["failed"] } })).json;
      const { inFlight, parked } = (await at.ask("pulse", {})).json;
      return (metrics.tasksCompleted ?? 0) > 0 && tasks.length > 0 && inFlight > 0 && parked > 0;
    });
    const { gates } = (await at.ask("gates", {})).json;
    assert.ok(gates.some(({ blockedUntil }) => blockedUntil !== undefined));
    assert.deepEqual(
      (await at.ask("stuck", {})).json.tasks.map(({ taskId, why }) => `${taskId} ${why}`),
      ["train-ranker never-fits"],
    );
    assert.equal((await at.ask("plan", { params: { id: "release-2.4" }, query: {} })).json.total, 12);
    assert.ok((await at.ask("history", { query: {} })).json.samples.length > 300);
  } finally {
    demo.kill("SIGINT");
  }
  const [code] = await once(demo, "exit");
  assert.equal(code, 0);
});

test("the demo tells how it is called, and what was typed wrong, without a stack", () => {
  for (const [args, code, said] of [
    [["--help"], 0, /^npm run demo -- \[--port PORT\]/],
    [["--prot", "1"], 2, /^Unknown option '--prot'[\s\S]*npm run demo -- \[--port PORT\]/],
    [["--port", "many"], 2, /server\.port is "many"[\s\S]*npm run demo -- \[--port PORT\]/],
  ] as const) {
    const { status, stdout, stderr } = spawnSync(process.execPath, [resolve("src/cli/demo.ts"), ...args], {
      encoding: "utf8",
    });
    assert.equal(status, code, stderr);
    assert.match(code === 0 ? stdout : stderr, said);
    assert.doesNotMatch(stderr, /^ {4}at /m);
  }
});
