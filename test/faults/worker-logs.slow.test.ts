/**
 * The logs of real exec workers that share nothing with the server but the wire: each has a data directory of its own.
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { type Client, createClient } from "../../src/client/index.ts";
import { MAIN, type Served, startServe } from "../kits/serve-process.ts";
import { until, within } from "../kits/waits.ts";

const LIMIT = { timeout: 120_000 };
/** Short where a worker is killed, so that it is given up soon; else a slow machine must lose none. */
const SHORT_LEASE = "4s";
const LONG_LEASE = "60s";
/** What may be there the next time. */
const MAY_COME: readonly unknown[] = ["not_found", "worker_silent"];
/** Says what it does, waits until it is let go by a file of its own, and says that too. */
const AGENT = `echo "early of $DROVER_TASK_ID#$DROVER_ATTEMPT"
n=0; while [ ! -e "$1/go-$DROVER_ATTEMPT" ] && [ $n -lt 3000 ]; do sleep 0.02; n=$((n + 1)); done
for i in 1 2 3; do echo "late $i"; done
echo '{"a":1}'`;

type World = {
  readonly home: string;
  readonly served: Served;
  readonly client: Client;
  /** A worker in a directory of its own: its name, and its process. */
  worker(directory: string, ...flags: string[]): Promise<{ readonly id: string; readonly child: ChildProcess }>;
  drover(...args: string[]): ChildProcess;
  letGo(attempt: number): void;
  setLease(lease: string): Promise<void>;
  /** Resolves when the log has the event. */
  event(kind: string, attempt?: number): Promise<void>;
};

const { NODE_TEST_CONTEXT: _, DROVER_URL: __, DROVER_TOKEN: ___, ...clean } = process.env;

async function createWorld(t: TestContext, lease: string): Promise<World> {
  const home = mkdtempSync(join(tmpdir(), "drover-far-logs-"));
  const cwd = join(home, "server");
  mkdirSync(cwd);
  const writeLease = (span: string): void => writeFileSync(join(cwd, "drover.yml"), `workers:\n  lease: ${span}\n`);
  writeLease(lease);
  writeFileSync(join(home, "agent.sh"), AGENT);
  const served = await startServe({ cwd, env: clean, flags: ["--no-worker", "--log-level", "silent"] });
  const client = createClient({ url: served.url });
  const children: ChildProcess[] = [];
  t.after(async () => {
    for (const child of children) child.kill("SIGKILL");
    await served.stop();
    rmSync(home, { recursive: true, force: true, maxRetries: 3 });
  });
  const start = (args: readonly string[], directory: string): ChildProcess => {
    const env = { ...clean, DROVER_URL: served.url };
    const child = spawn(process.execPath, [MAIN, ...args], { cwd: directory, env, stdio: ["ignore", "pipe", "pipe"] });
    children.push(child);
    return child;
  };
  async function seen(kind: string, attempt: number): Promise<void> {
    for await (const event of client.events())
      if (event.kind === kind && (event.attempt ?? attempt) === attempt) return;
  }
  return {
    ...{ home, served, client },
    async worker(directory, ...flags) {
      const own = join(home, directory);
      mkdirSync(own, { recursive: true });
      const exec = `sh ${join(home, "agent.sh")} ${home}`;
      const child = start(["worker", "--json", "--exec", exec, "--kill-grace", "100ms", ...flags], own);
      const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
      const [line] = await within("the worker's first line", once(lines, "line"));
      return { child, id: (JSON.parse(String(line)) as { workerId: string }).workerId };
    },
    drover: (...args) => start(args, home),
    letGo: (attempt) => writeFileSync(join(home, `go-${attempt}`), ""),
    async setLease(span) {
      writeLease(span);
      await client.reload();
    },
    async event(kind, attempt = 1) {
      await within(`${kind} of attempt ${attempt}`, seen(kind, attempt));
    },
  };
}

/** Asks until the log has this; what is not there yet is no error. */
async function logsWith({ client }: World, id: string, wanted: RegExp, attempt?: number): Promise<string> {
  let last = "";
  await until(`${wanted} in the log of ${id}`, async () => {
    const found = await client.logs(id, attempt === undefined ? {} : { attempt }).catch((error: { code?: string }) => {
      if (!MAY_COME.includes(error.code)) throw error;
      return null;
    });
    last = found?.text ?? "";
    return wanted.test(last);
  });
  return last;
}

const submit = ({ client }: World, id: string): Promise<unknown> =>
  client.submit({ id, agentId: "ann", action: "x", maxAttempts: 3 });
const outcomeOf = async (child: ChildProcess): Promise<{ code: number | null; out: string; err: string }> => {
  const [out, err] = await Promise.all([
    text(child.stdout as NodeJS.ReadableStream),
    text(child.stderr as NodeJS.ReadableStream),
  ]);
  if (child.exitCode === null && child.signalCode === null) await within("its exit", once(child, "exit"));
  return { code: child.exitCode, out, err };
};

test("the log of a worker elsewhere is shown and followed while its task runs, and shown after", LIMIT, async (t) => {
  const world = await createWorld(t, LONG_LEASE);
  const { id } = await world.worker("one");
  await submit(world, "t");
  const early = await logsWith(world, "t", /out {2}early of t#1\n/);
  assert.doesNotMatch(early, /late/);
  const following = world.drover("task", "t", "--logs", "--watch");
  const followed = outcomeOf(following);
  await within("the log that is followed", once(following.stdout as NodeJS.ReadableStream, "readable"));
  world.letGo(1);
  const { code, out, err } = await followed;
  assert.deepEqual([code, err.match(/error/)], [0, null], err);
  assert.equal((await world.client.task("t")).worker, id);
  const lines = [...out.matchAll(/^\S+Z (?:out|note) +(.*)$/gm)].map(([, line]) => line);
  assert.equal(lines[1], "early of t#1", out);
  assert.deepEqual(lines.slice(2, 6), ["late 1", "late 2", "late 3", '{"a":1}'], out);
  assert.equal(lines.at(-1), "outcome: done", out);
  const shown = await outcomeOf(world.drover("task", "t", "--logs", "--tail", "1"));
  assert.match(shown.out, /^\S+Z note outcome: done\n$/);
  assert.equal((await world.client.logs("t", { tail: 2 })).truncated, true);
});

test("logs outlive their worker: whoever is started in its directory shows them", LIMIT, async (t) => {
  const world = await createWorld(t, SHORT_LEASE);
  const first = await world.worker("one");
  await submit(world, "t");
  await logsWith(world, "t", /early of t#1/, 1);
  first.child.kill("SIGKILL");
  await world.event("attempt-lost");
  await world.setLease(LONG_LEASE);
  const gone = await outcomeOf(world.drover("task", "t", "--logs"));
  assert.equal(gone.code, 4);
  const said = `error: the log of attempt 1 of task t is with worker ${first.id}, which is not connected; start it`;
  assert.ok(gone.err.startsWith(said), gone.err);

  const other = await world.worker("two");
  await logsWith(world, "t", /early of t#2/);
  await assert.rejects(world.client.logs("t", { attempt: 1 }), { code: "not_found" });
  const heir = await world.worker("one");
  assert.notEqual(heir.id, first.id);
  // Its first sync, in which it says which logs it has, may still be on its way.
  await logsWith(world, "t", /early of t#1\n/, 1);
  world.letGo(2);
  assert.equal((await world.client.wait("t")).worker, other.id);
  assert.match((await world.client.logs("t")).text, /late 3\n(.*\n)*.*outcome: done\n$/);
});
