/**
 * A tree of agents over two machines: plan → spec → phase → code, each made from the file that the one before wrote.
 *
 * The workers share nothing but the wire: each has a directory and a data directory of its own, and takes every other
 * task. In the middle the server and both workers are killed, early or late in the tree. The files at the end are those
 * of a run in which nothing is killed.
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { type TestContext, test } from "node:test";
import { type Client, createClient } from "../../src/client/index.ts";
import { MAIN } from "../kits/serve-process.ts";
import { until, within } from "../kits/waits.ts";

const { NODE_TEST_CONTEXT: _, DROVER_URL: __, DROVER_TOKEN: ___, ...clean } = process.env;
const LIMIT = { timeout: 240_000 };

/** Writes what its parent wrote, and its own line behind it. The one that is held waits until it is let go. */
const AGENT = `set -e
out="$DROVER_TASK_ID.md"
: > "$out"
if [ -n "\${DROVER_INPUTS_DIR-}" ]; then cat "$DROVER_INPUTS_DIR"/parent/*.md > "$out"; fi
echo "$DROVER_TASK_ID" >> "$out"
if [ "$DROVER_TASK_ID" = "$2" ]; then
  n=0; while [ ! -e "$1/go" ] && [ $n -lt 6000 ]; do sleep 0.02; n=$((n + 1)); done
fi`;

const TREE = ["plan", "spec", "phase", "code"];

/** Starts a drover, and resolves with the first JSON it prints. */
async function start(t: TestContext, cwd: string, args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const child = spawn(process.execPath, [MAIN, ...args, "--json"], {
    ...{ cwd, env: { ...clean, ...env } },
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(() => child.kill("SIGKILL"));
  let text = "";
  for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
    text += line;
    if (line === "}" || line.endsWith("}")) return { child, said: JSON.parse(text) as { url: string } };
  }
  throw new Error(`drover ${args.join(" ")} ended: ${text}`);
}

async function killAll(children: readonly ChildProcess[]): Promise<void> {
  const ends = children.map((child) => once(child, "exit"));
  for (const child of children) child.kill("SIGKILL");
  await within("the end of all", Promise.all(ends));
}

for (const held of ["spec", "code"])
  test(`each task reads what the one before wrote, over a SIGKILL of server and workers in ${held}`, LIMIT, (t) =>
    playTree(t, held),
  );

/** The tree, with all processes killed while one task runs. */
async function playTree(t: TestContext, held: string): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), "drover-flow-"));
  t.after(() => rmSync(home, { recursive: true, force: true, maxRetries: 3 }));
  for (const one of ["server", "a", "b"]) mkdirSync(join(home, one));
  writeFileSync(join(home, "server", "drover.yml"), "workers:\n  lease: 2s\n");
  writeFileSync(join(home, "agent.sh"), AGENT);

  async function startFleet(life: number): Promise<{ client: Client; children: ChildProcess[] }> {
    const served = await start(t, join(home, "server"), [
      "serve",
      "--port",
      "0",
      "--no-worker",
      "--log-level",
      "silent",
    ]);
    const exec = `sh ${join(home, "agent.sh")} ${home} ${held}`;
    const workers = await Promise.all(
      ["a", "b"].map((one) => {
        const flags = ["--exec", exec, "--capability", one, "--id", `${one}-${life}`];
        return start(t, join(home, one), ["worker", ...flags], { DROVER_URL: served.said.url });
      }),
    );
    const client = createClient({ url: served.said.url });
    return { client, children: [served.child, ...workers.map(({ child }) => child)] };
  }

  const first = await startFleet(1);
  for (const [index, id] of TREE.entries()) {
    const parent = TREE[index - 1];
    const from = parent === undefined ? {} : { parent, inputArtifact: `${parent}.md` };
    const capabilities = [index % 2 === 0 ? "a" : "b"];
    await first.client.submit({ id, agentId: "ann", action: "write", capabilities, outputs: [`${id}.md`], ...from });
  }
  await until(`${held} runs`, async () => (await first.client.task(held)).state === "running");
  await killAll(first.children);

  writeFileSync(join(home, "go"), "");
  const second = await startFleet(2);
  const { client } = second;
  const done = await within("the end of the tree", client.wait("code"), 120_000);
  assert.equal(done.state, "done", done.error);
  for (const [index, id] of TREE.entries()) {
    const { files = [], state } = await client.task(id);
    assert.equal(state, "done");
    assert.deepEqual(
      files.map(({ path }) => path),
      [`${id}.md`],
    );
    const content = Buffer.from(await client.files.get(files[0]?.hash ?? "")).toString();
    assert.equal(content, `${TREE.slice(0, index + 1).join("\n")}\n`);
  }
  assert.ok(((await client.task(held)).attempt ?? 0) > 1, "it was killed in the middle of one");
  await killAll(second.children);
}
