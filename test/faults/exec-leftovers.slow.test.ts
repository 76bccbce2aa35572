/**
 * Nothing a task started outlives it: not what was put in the background, not a daemon in a session of its own, not
 * what was handed on to pid 1, not a worker inside a worker; and after a worker that was killed, its successor ends
 * what it left. Strangers are never touched, whatever number they have.
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { type TestContext, test } from "node:test";
import { isTagged, killLeftovers } from "../../src/worker/process/leftovers.ts";
import { stateOf, thisOwner } from "../../src/worker/process/runs.ts";
import { type ProcessTable, procTable, psTable } from "../../src/worker/process/table.ts";
import { createWorld, exists, isAlive, temporaryHome } from "../kits/faults/exec-world.ts";
import { until } from "../kits/waits.ts";

const table = procTable();

/** A stranger that ends by itself. */
function stranger(t: TestContext, env: Record<string, string> = {}): ChildProcess & { pid: number } {
  const child = spawn("sleep", ["60"], { stdio: "ignore", detached: true, env: { PATH: process.env.PATH, ...env } });
  t.after(() => child.kill("SIGKILL"));
  return child as ChildProcess & { pid: number };
}

const survivors: [string, string][] = [
  ["in the background", "sleep 60 & say $!"],
  ["in the background, ignoring signals", `(trap '' INT TERM HUP; sleep 60) & say $!`],
  ["a daemon in a session of its own", "setsid sleep 60 & say $!"],
  ["handed on to pid 1", `sh -c 'sleep 60 & echo $!' > pid; say $(cat pid)`],
  [
    "a daemon of a daemon",
    `setsid sh -c 'setsid sleep 60 & echo $! > pid'; while [ ! -s pid ]; do sleep 0.01; done; say $(cat pid)`,
  ],
  ["without its output", "setsid sleep 60 > /dev/null 2>&1 < /dev/null & say $!"],
];
for (const [name, script] of survivors)
  test(`what outlives its parent is killed: ${name}`, async (t) => {
    const world = createWorld(t, { script: `${script}; exit 0` });
    const run = world.start();
    assert.equal((await run.outcome).outcome, "done");
    assert.equal(isAlive(Number(run.progress[0])), false);
    assert.match(String((await world.handler.tail("t1", 1))?.text), /ended with exit code 0/);
  });

test("what dropped its environment is found as long as its parent is ours", async (t) => {
  const script = `setsid sh -c 'env -i sleep 60 & echo $! > pid; wait' &
    while [ ! -s pid ]; do sleep 0.01; done
    while tr '\\0' ' ' < /proc/$(cat pid)/environ | grep -q .; do sleep 0.01; done; say $(cat pid)`;
  const run = createWorld(t, { script }).start();
  assert.equal((await run.outcome).outcome, "done");
  assert.equal(isAlive(Number(run.progress[0])), false);
});

test("what forks while it is being looked for does not get away", async (t) => {
  const script = `cat > fork.sh <<'END'
n=$1; [ "$n" -gt 12 ] && exec sleep 60
setsid sh fork.sh $((n + 1)) &
END
setsid sh fork.sh 1 & say begun`;
  const world = createWorld(t, { script });
  const run = world.start();
  assert.equal((await run.outcome).outcome, "done");
  const { entries } = await table.list();
  const left = entries.filter(({ pid, isZombie }) => !isZombie && String(table.environment(pid)).includes(world.home));
  assert.deepEqual(left, []);
});

test("a run inside a run belongs to both", () => {
  const environment = Buffer.from("A=1\0DROVER_RUN_ID=inner\0DROVER_RUN_PATH=outer/inner\0");
  assert.deepEqual(
    ["inner", "outer", "out", "outer/inner"].map((run) => isTagged(environment, run)),
    [true, true, false, false],
  );
  assert.equal(isTagged(Buffer.from("X_DROVER_RUN_ID=a\0NOTE=DROVER_RUN_ID=a\0"), "a"), false);
  assert.equal(isTagged(null, "a"), false);
});

test("a number that has passed to another is not signalled", async (t) => {
  const victim = stranger(t);
  const startedAt = table.read(victim.pid)?.startedAt ?? "";
  // The run's leader had this number before; the stranger's group has it now.
  const found = await killLeftovers(table, {
    id: "no-such-run",
    leader: { pid: victim.pid, startedAt: `${startedAt}0` },
    since: null,
  });
  assert.deepEqual([found, isAlive(victim.pid)], [{ killed: 0, remaining: [] }, true]);
});

test("one that ends between being seen and being signalled is not mistaken for its successor", async (t) => {
  const victim = stranger(t, { DROVER_RUN_ID: "reused" });
  await once(victim, "spawn");
  const lists = [await table.list(), { entries: [], gone: [] }];
  // It is listed as ours, but by the time it is looked at again its number belongs to a later one.
  const lying: ProcessTable = {
    ...table,
    list: async () => lists.shift() ?? { entries: [], gone: [] },
    read: (pid) => ({ ...(table.read(pid) ?? { pid, parent: 1, group: pid, isZombie: false }), startedAt: "later" }),
  };
  await killLeftovers(lying, { id: "reused", leader: null, since: null });
  assert.equal(isAlive(victim.pid), true);
});

test("ps tells the same as /proc, where there is no /proc", async (t) => {
  const child = stranger(t);
  const ps = psTable();
  const { startedAt, ...rest } = ps.read(child.pid) ?? {};
  const { startedAt: _, ...expected } = table.read(child.pid) ?? {};
  assert.deepEqual(rest, expected);
  assert.match(String(startedAt), /\d\d:\d\d:\d\d/);
  assert.equal((await ps.list()).entries.find(({ pid }) => pid === child.pid)?.startedAt, startedAt);
  assert.equal(ps.read(2 ** 22 + 7), null);
});

/** A worker in a process of its own, which ends when it has children: killed, or by itself when it is told. */
async function endedWorker(t: TestContext, data: string, how: "killed" | "leaves"): Promise<number[]> {
  // The daemon speaks first, when it has left the group.
  const daemon = "echo pid $$; : > ready; exec sleep 60";
  const script = `cd "$TMPDIR"; setsid sh -c '${daemon}' & while [ ! -e ready ]; do sleep 0.01; done
    sleep 60 & echo pid $!; echo pid $$; wait`;
  const options = JSON.stringify({ data, command: ["sh", "-c", script] });
  const program = `import { createExecHandler } from "${join(import.meta.dirname, "../../src/worker/exec/handler.ts")}";
    const handler = createExecHandler(${options});
    const signal = new AbortController().signal;
    void handler.run({ taskId: "t1", attempt: 1, action: "x" }, { attempt: 1, signal, progress() {}, usage() {} });
    const tail = await handler.tail("t1", 1, { follow: true });
    process.stdin.once("data", () => process.exit(0));
    process.stdout.write(tail.text);
    for await (const lines of tail.lines) process.stdout.write(lines);`;
  const args = ["--disable-warning=ExperimentalWarning", "--input-type=module", "-e", program];
  const worker = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
  t.after(() => worker.kill("SIGKILL"));
  const closed = once(worker, "close");
  const pids: number[] = [];
  for await (const line of createInterface({ input: worker.stdout })) {
    const pid = / out +pid (\d+)$/.exec(line)?.[1];
    if (pid !== undefined) pids.push(Number(pid));
    if (pids.length < 3) continue;
    if (how === "killed") worker.kill("SIGKILL");
    else worker.stdin.write("leave\n");
  }
  // Its output ends a moment before it does, and until then its successor would take it for alive.
  await closed;
  return pids;
}

test("a worker that ends without closing takes its groups with it; the next one finds the rest", async (t) => {
  const data = join(temporaryHome(t), "data");
  const [daemon = 0, ...group] = await endedWorker(t, data, "leaves");
  await until("the end of the group", () => !group.some(isAlive));
  assert.ok(isAlive(daemon), "the group was killed; it did not come to its own end");
  const world = createWorld(t, { data, script: "true" });
  assert.equal((await world.handler.sweep()).runs, 1);
  assert.deepEqual([daemon, ...group].map(isAlive), [false, false, false]);
});

test("closing leaves nothing behind, however stubborn", async (t) => {
  const script = `trap '' INT TERM HUP; setsid sleep 60 & say $!; sleep 60 & say $!; say ready; linger`;
  const world = createWorld(t, { script, killGraceMs: 40 });
  const runs = [1, 2, 3].map((number) => world.start({ taskId: `t${number}` }));
  await Promise.all(runs.map((run) => run.said("ready")));
  await world.handler.close();
  const pids = runs.flatMap((run) => run.progress.map(Number)).filter((pid) => pid > 0);
  assert.deepEqual([pids.length, pids.filter(isAlive)], [6, []]);
  for (const run of runs) assert.deepEqual(await run.outcome, { outcome: "requeue", error: "its worker is closing" });
});

test("after a worker that was killed, the next one ends what it left, and what lives is left alone", async (t) => {
  const home = temporaryHome(t);
  const data = join(home, "data");
  const pids = await endedWorker(t, data, "killed");
  assert.deepEqual(pids.map(isAlive), [true, true, true]);
  const world = createWorld(t, { data, script: "say ready; linger" });
  const mine = world.start({ taskId: "mine" });
  await mine.said("ready");
  const places = readdirSync(join(data, "runs"));
  const record = places.map((id) => JSON.parse(readFileSync(join(data, "runs", id, "run.json"), "utf8")));
  const temp = record.find(({ taskId }) => taskId === "t1").temp;
  assert.ok(exists(temp));
  const report = await world.handler.sweep();
  assert.deepEqual([report.runs, report.killed, report.problems], [1, 3, []]);
  assert.deepEqual(pids.map(isAlive), [false, false, false]);
  assert.equal(exists(temp), false);
  assert.equal(readdirSync(join(data, "runs")).length, 1);
  assert.equal((await world.handler.sweep()).runs, 0);
  mine.abort();
  assert.equal((await mine.outcome).outcome, "cancelled");
});

test("whether a worker is gone: by boot, by pid and by its beginning; another machine's is not known", () => {
  const me = thisOwner(table);
  const rows = [
    [me, "alive"],
    [{ ...me, startedAt: "1" }, "dead"],
    [{ ...me, pid: 2 ** 22 + 7 }, "dead"],
    [{ ...me, place: "an earlier boot" }, "dead"],
    [{ ...me, host: "elsewhere.example" }, "elsewhere"],
  ] as const;
  for (const [owner, expected] of rows) assert.equal(stateOf(owner, table), expected, JSON.stringify(owner));
});

/** A stranger in a group whose leader is gone. */
async function orphanGroup(t: TestContext): Promise<{ group: number; pid: number }> {
  const stdio = ["ignore", "pipe", "ignore"] as const;
  const leader = spawn("sh", ["-c", "sleep 60 > /dev/null & echo $!"], { detached: true, stdio: [...stdio] });
  const [[line]] = await Promise.all([once(leader.stdout as Readable, "data"), once(leader, "exit")]);
  const pid = Number(String(line));
  t.after(() => process.kill(pid, "SIGKILL"));
  return { group: leader.pid ?? 0, pid };
}

test("records that are nobody's, another machine's or broken end nothing they should not", async (t) => {
  const victim = stranger(t, { DROVER_RUN_ID: "foreign" });
  const world = createWorld(t, { script: "true", workerId: "w1" });
  const put = (id: string, record: unknown): void => {
    mkdirSync(join(world.data, "runs", id), { recursive: true });
    writeFileSync(
      join(world.data, "runs", id, "run.json"),
      typeof record === "string" ? record : JSON.stringify(record),
    );
  };
  const owner = { ...thisOwner(table), pid: 2 ** 22 + 7 };
  const orphan = await orphanGroup(t);
  put("reused", { owner, leader: { pid: orphan.group, startedAt: "1" } });
  put("foreign", { owner: { ...owner, host: "elsewhere.example" }, workerId: "w2" });
  put("broken", "{");
  put("older-me", { owner: { ...owner, host: "elsewhere.example" }, workerId: "w1" });
  put("greedy", { owner, temp: world.home, leader: { pid: victim.pid, startedAt: "1" } });
  const report = await world.handler.sweep();
  assert.deepEqual([report.runs, report.killed, isAlive(orphan.pid)], [3, 0, true]);
  assert.deepEqual(readdirSync(join(world.data, "runs")).sort(), ["broken", "foreign"]);
  assert.ok(isAlive(victim.pid) && exists(world.home) && hostname() !== "elsewhere.example");
});
