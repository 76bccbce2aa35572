/**
 * Other commands reach into a plan that runs alone, while it runs and when it is over.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, watch } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { type PlanDirectory, planDirectory } from "../../../test/kits/cli/plan-directory.ts";
import { MAIN } from "../../../test/kits/serve-process.ts";
import { openDrover } from "../../engine/index.ts";
import { matchTasks } from "../../plan/index.ts";
import { readPlan } from "../plan/plan-file.ts";

const LIMIT = { timeout: 120_000 };
const PLAN = `tasks:
  held: echo held >> ran; echo seen; read line < gate
  ship: { run: echo ship >> ran, needs: held, approval: { question: Ship it? } }
  last: { run: echo last >> ran, needs: ship }`;

/** Resolves when the run can be reached. */
async function reachable(place: PlanDirectory, plan = "plan"): Promise<string> {
  const data = join(place.directory, ".drover/runs", plan);
  const path = join(data, "server.json");
  const { promise, resolve } = Promise.withResolvers<void>();
  const watcher = watch(data, () => existsSync(path) && resolve());
  if (existsSync(path)) resolve();
  await promise;
  watcher.close();
  return path;
}

test("while it runs: by the names of its tasks, for its owner alone", LIMIT, async () => {
  using place = planDirectory(PLAN);
  place.pipe("gate");
  const { terminal, ended } = place.start();
  await terminal.saw("start     held");
  const path = await reachable(place);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  const { url } = JSON.parse(readFileSync(path, "utf8")) as { url: string };
  assert.equal((await fetch(`${url}/tasks`)).status, 401, "without the token nothing is told");
  assert.match((await place.drover(["task", "plan/held"])).out, /state +running/);
  assert.match((await place.drover(["why", "plan/last"])).out, /is waiting/);
  assert.match((await place.drover(["events", "plan/held"])).out, /task-assigned/);
  assert.match((await place.drover(["logs", "plan/held"])).out, /seen/);
  const attached = place.startDrover(["plan", "plan"]);
  await attached.terminal.saw("plan: 3 tasks, on the server at");
  assert.equal((await place.drover(["cancel", "plan/last"])).code, 0);
  await place.letGo("gate");
  const { code, out } = await ended;
  assert.equal(code, 1);
  assert.match(out, /cancelled +last/);
  assert.match(out, /It waits for approval of ship/);
  assert.equal(existsSync(path), false, "the address goes with the run");
  attached.terminal.signal("SIGINT");
  await attached.ended;
});

test("when it is over: from its log, which stays as it is; an answer is kept for the next run", LIMIT, async () => {
  using place = planDirectory(PLAN.replace("; read line < gate", ""));
  await place.run();
  const log = join(place.directory, ".drover/runs/plan/drover.db");
  const before = readFileSync(log);
  assert.match((await place.drover(["task", "plan/held"])).out, /state +done/);
  assert.match((await place.drover(["logs", "plan/held"])).out, /seen/);
  assert.match((await place.drover(["events", "plan/held"])).out, /task-submitted.*task-done/s);
  const why = await place.drover(["why", "plan/ship", "--json"]);
  assert.equal(JSON.parse(why.out).state, "parked", why.err);
  assert.deepEqual(readFileSync(log), before);
  const typo = await place.drover(["task", "plan/hled"]);
  assert.deepEqual([typo.code, /did you mean plan\/held\?/.test(typo.err)], [4, true], typo.err);
  assert.equal((await place.drover(["task", "other/held"])).code, 3, "no such run here, and no server to ask");
  const shown = await place.drover(["plan", "plan"]);
  assert.match(shown.out, /state +running.*held +done.*ship +parked.*Ship it\?/s);
  assert.match(shown.err, /has run alone, and nothing of it runs now: (npx )?drover run FILE goes on with it/);
  assert.deepEqual([shown.code, (await place.drover(["plan", "plan", "--pause"])).code], [1, 4]);
  const approved = await place.drover(["approve", "plan/ship"]);
  assert.equal(approved.code, 0);
  assert.match(approved.err, /not alive since 20.*Z: (npx )?drover run FILE goes on with it/);
  assert.equal((await place.run()).code, 0);
  assert.equal((await place.drover(["plan", "plan"])).code, 0);
  assert.deepEqual(place.ran(), ["held", "ship", "last"]);
  // What its log refuses is refused as on a server.
  for (const [args, code, said] of [
    [["approve", "plan/ship"], 4, /is done; only a task that is parked/],
    [["cancel", "plan/held", "plan/last"], 4, /plan.held.*done.*plan.last.*done/s],
    [["retry", "plan/held"], 4, /done/],
    [["why", "plan/held", "--at", "999999"], 2, /999999/],
    [["approve", "plan/ship", "--json"], 4, /"code":"conflict"/],
  ] as const) {
    const refused = await place.drover(args);
    assert.equal(refused.code, code, args.join(" "));
    assert.match(refused.err, said);
  }
});

test("after a kill: nothing is said to run, and what is said to do is to run it again", LIMIT, async () => {
  using place = planDirectory(`tasks:
  held: echo up > up; read line < never
  other: { run: "false", attempts: 1 }`);
  for (const name of ["up", "never"]) place.pipe(name);
  const child = spawn(process.execPath, [MAIN, "run", "plan.yml", "--slots", "1"], {
    cwd: place.directory,
    stdio: "ignore",
  });
  const killed = once(child, "close");
  await place.hear("up");
  child.kill("SIGKILL");
  await killed;
  const task = await place.drover(["task", "plan/held"]);
  assert.match(task.out, /state +queued/);
  assert.match(task.err, /the run of the plan plan is not alive since 20.*Z: (npx )?drover run FILE goes on with it/);
  assert.match((await place.drover(["why", "plan/held"])).out, / is queued\. /);
  assert.match((await place.drover(["plan", "plan"])).out, /held +queued/);
  assert.match((await place.drover(["cancel", "plan/held", "plan/other"])).out, /held cancelled\n.*other cancelled/);
  const again = await place.drover(["retry", "plan/other"]);
  assert.equal(again.code, 0);
  assert.match(again.err, /^note: nothing of the plan plan runs: (npx )?drover run FILE goes on with it\n$/);
});

test("a question about a run leaves its directory as it is, also where no log is", LIMIT, async () => {
  using place = planDirectory("tasks:\n  a: echo a >> ran");
  const ghost = join(place.directory, ".drover/runs/ghost");
  mkdirSync(ghost, { recursive: true });
  const { code, err } = await place.drover(["task", "ghost/a"]);
  assert.deepEqual([code, readdirSync(ghost)], [6, []]);
  assert.match(err, /there is no log at /);
  assert.equal((await place.run([])).code, 0);
  const data = join(place.directory, ".drover/runs/plan");
  // What SQLite shares with other readers beside a log is none of it.
  const names = (): string[] => readdirSync(data).filter((name) => !/-(shm|wal)$/.test(name));
  const stamps = (): string[] => names().map((name) => `${name} ${statSync(join(data, name)).mtimeMs}`);
  const before = stamps();
  assert.match((await place.drover(["task", "plan/a"])).out, /state +done/);
  assert.deepEqual(stamps(), before);
});

test("two plans that run alone at once are told that they share nothing", LIMIT, async () => {
  using place = planDirectory("tasks: { held: 'echo held >> ran; read line < gate' }");
  place.write("other.yml", "tasks: { a: echo a >> ran }");
  place.pipe("gate");
  const { terminal, ended } = place.start();
  await terminal.saw("start     held");
  await reachable(place);
  const { code, err } = await place.run(["other.yml"]);
  assert.equal(code, 0);
  assert.match(err, /note: plan runs alone here too: runs alone share no gates and budgets, those on one server/);
  await place.letGo("gate");
  await ended;
});

test("what is done in a log from before plans were put counts as done", LIMIT, async () => {
  const text = "tasks:\n  a: echo a >> ran\n  b: { run: echo b >> ran, needs: a }";
  using place = planDirectory(text);
  const data = join(place.directory, ".drover/runs/plan");
  const matched = matchTasks(readPlan({ file: "plan.yml", text, directory: place.directory }).tasks, []);
  const drover = await openDrover({ data });
  await drover.worker({ id: "w", slots: 1 }, async () => null);
  const [a, b] = matched;
  await drover.submit({ id: a?.id ?? "", agentId: "me", action: "a" });
  await drover.wait(a?.id ?? "");
  await drover.submit({
    id: b?.id ?? "",
    agentId: "me",
    action: "b",
    capabilities: ["in-place"],
    needs: [a?.id ?? ""],
  });
  await drover.close();
  const { code, out } = await place.run();
  assert.equal(code, 0, out);
  assert.match(out, /^plan: 1 of 2 tasks done before/);
  assert.deepEqual(place.ran(), ["b"]);
});
