/**
 * Every example runs, ends by itself, and finds its own output right.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { globSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { etcdMissing } from "./kits/etcd.ts";
import { postgresMissing } from "./kits/postgres.ts";
import { startServe } from "./kits/serve-process.ts";

const root = join(import.meta.dirname, "..");
/** An example is a first impression: one that takes this long, even on a busy machine, hangs. */
const LIMIT_MS = 60_000;

const examples = globSync("examples/*.ts", { cwd: root }).sort();
assert.ok(examples.length >= 4, "there are examples");

for (const path of examples)
  test(`${path} runs and says something`, async () => {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [path], { cwd: root, timeout: LIMIT_MS });
    assert.notEqual(stdout, "");
    assert.equal(withoutWarnings(stderr), "");
  });

/** It starts databases and nodes, and waits for a lease to run out. */
const CLUSTER_LIMIT_MS = 300_000;
for (const [engine, missing] of [
  ["etcd", etcdMissing],
  ["postgres", postgresMissing],
] as const)
  test(`examples/cluster/cluster.ts ${engine} loses its leader and nothing else`, { skip: missing }, async () => {
    const args = ["examples/cluster/cluster.ts", engine];
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root, timeout: CLUSTER_LIMIT_MS });
    assert.match(
      stdout,
      /is killed, in the middle of it\n[\s\S]* leads, [\s\S]* are done, 0 are lost[\s\S]*nothing was lost\n$/,
    );
  });

test("examples/hello.sh reaches the end of a task by curl", async () => {
  const home = await mkdtemp(join(tmpdir(), "drover-hello-"));
  await using server = await startServe({ cwd: home, flags: ["--log-level", "silent"] });
  const env = { ...process.env, DROVER_URL: server.url };
  const { stdout } = await promisify(execFile)("/bin/sh", ["examples/hello.sh"], { cwd: root, env, timeout: LIMIT_MS });
  assert.match(stdout, /"result":\{"exitCode":0,"output":"hello"\}/);
  assert.match(stdout, /prioritty/);
  assert.equal(await server.stop(), 0);
  await rm(home, { recursive: true, force: true });
});

/** Node says that its SQLite is experimental; that is no fault of the example. */
function withoutWarnings(stderr: string): string {
  return stderr
    .split("\n")
    .filter((line) => !/ExperimentalWarning|node --trace-warnings/.test(line))
    .join("\n");
}
