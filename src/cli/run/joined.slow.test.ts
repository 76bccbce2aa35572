/**
 * A plan on a server: the same lines and exit codes as alone, Ctrl-C that detaches or cancels, attaching again, and a
 * server that is killed meanwhile.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { type PlanDirectory, planDirectory, steady } from "../../../test/kits/cli/plan-directory.ts";
import { type Served, served } from "../../../test/kits/cli/served.ts";
import { startServe } from "../../../test/kits/serve-process.ts";
import { startWorker } from "../../worker/index.ts";

const LIMIT = { timeout: 180_000 };

/** A server in the directory of the plan, with its local worker. */
const serverIn = (place: PlanDirectory, args: readonly string[] = []): Promise<Served> =>
  served(["--slots", "1", ...args], { directory: place.directory });

/** What is printed, without the first line, which says where it runs, and without where logs are. */
const story = (out: string, place: PlanDirectory): string[] =>
  steady(out, place)
    .slice(1)
    .map((line) => line.replace(/whole log: .*/, "whole log: …"));

describe("a plan on a server", LIMIT, () => {
  const plan = `tasks:
  spec: echo written; echo spec >> ran
  code: { run: 'echo "code of \${{ needs.spec.state }}" >> ran', needs: spec }
  bad: { run: "echo oh no; exit 3", needs: spec, attempts: 1 }
  fix: { run: echo "round $DROVER_ROUND", needs: code, loop: { until: '[ "$DROVER_ROUND" = 2 ]', max: 4 } }
  last: { run: echo last >> ran, needs: [bad, fix] }`;

  test("prints the same lines as one that runs alone, and ends with the same code", async () => {
    using alone = planDirectory(`workers: { slots: 1 }\n${plan}`);
    using joined = planDirectory(plan);
    await using server = await serverIn(joined);
    const [here, there] = [await alone.run(["--output"]), await joined.run(["--output"])];
    assert.match(there.out, new RegExp(`^plan: 5 tasks, on the server at ${server.url} \\(.drover/server.json\\)\n`));
    assert.deepEqual(story(there.out, joined), story(here.out, alone));
    assert.deepEqual([there.code, joined.ran()], [here.code, alone.ran()]);
    assert.equal(there.code, 1);
    assert.equal(existsSync(join(joined.directory, ".drover/runs")), false, "nothing ran here");
    // And again: what is done is not run again.
    const [more, again] = [await alone.run(), await joined.run()];
    assert.deepEqual(story(again.out, joined), story(more.out, alone));
    assert.match(again.out, /^plan: 3 of 5 tasks done before, on the server/);
    await server.stop();
  });

  test("is listed, shown and read by the names of its tasks", async () => {
    using place = planDirectory(plan);
    await using server = await serverIn(place);
    await place.run();
    assert.match((await place.drover(["plans"])).out, /^PLAN +STATE +DONE +FAILED .*\nplan +failed +3\/5 +1 /);
    const { out } = await place.drover(["plan", "plan", "--no-follow"]);
    assert.match(out, /fix +done +code +2 +2 of 4/);
    assert.match((await place.drover(["logs", "plan/bad"])).out, /oh no/);
    assert.match((await place.drover(["task", "plan/bad"])).out, /error +exit code 3: oh no/);
    assert.match(
      (await place.drover(["why", "plan/last"])).out,
      /^plan\/last is skipped\. .*its dependency plan\/bad is failed/,
    );
    const { out: tasks } = await place.drover(["tasks"]);
    assert.match(tasks, /plan\/last +skipped .*its dependency plan\/bad is failed[\s\S]*plan\/bad +failed/);
    assert.match((await place.drover(["tasks", "--tree"])).out, /plan\/last +skipped/);
    assert.match((await place.drover(["tasks", "--json"])).out, /"taskId": ?"plan\.last\.[0-9a-f]{12}\./);
    assert.match((await place.drover(["events", "plan/spec"])).out, /task-submitted.*task-done/s);
    const typo = await place.drover(["why", "plan/lats"]);
    assert.deepEqual([typo.code, typo.err.includes("did you mean plan/last?")], [4, true], typo.err);
    assert.equal((await place.drover(["plan", "plan", "--remove"])).code, 0);
    assert.equal((await place.drover(["plan", "plan", "--no-follow"])).code, 4);
    await server.stop();
  });

  test("has tasks for workers of any kind, which see their params filled in; alone it is refused", async () => {
    using place = planDirectory(`tasks:
  find: echo '{"pages":["/a","/b"]}'
  read: { action: browse, needs: find, params: { pages: "\${{ needs.find.result.pages }}", as: text } }
  tell: { run: 'echo "\${{ needs.read.result.read }}" >> ran', needs: read }`);
    const refused = await place.run(["--alone"]);
    assert.equal(refused.code, 2);
    assert.match(refused.err, /task read has the action browse, and a plan that runs alone has workers for commands/);
    await using server = await serverIn(place);
    const worker = await startWorker({ url: server.url, id: "browser", actions: ["browse"] }, ({ params }) => {
      const { pages, as } = params as { readonly pages: string[]; readonly as: string };
      return { read: `${pages.join("+")} ${as}` };
    });
    const { code, err } = await place.run();
    assert.deepEqual([code, place.ran()], [0, ["/a+/b text"]], err);
    await worker.close();
    await server.stop();
  });

  test("has its commands run by a worker for commands, and by no handler that takes whatever there is", async () => {
    using place = planDirectory("tasks: { a: echo a >> ran, b: { run: echo b >> ran, needs: a } }");
    await using server = await serverIn(place, ["--no-worker"]);
    const handler = await startWorker({ url: server.url, id: "ada", slots: 4 }, () => ({ said: "done" }));
    const { terminal, ended } = place.start();
    await terminal.saw("drover worker --commands");
    const why = await place.drover(["why", "plan/a"]);
    assert.match(why.out, /never-fits .*the commands that tasks bring \(start one: (npx )?drover worker --commands\)/);
    assert.deepEqual(place.ran(), []);
    const runner = place.startDrover(["worker", "--commands", "--id", "runner"]);
    assert.deepEqual([(await ended).code, place.ran()], [0, ["a", "b"]]);
    for (let times = 0; times < 2; times++) runner.terminal.signal("SIGTERM");
    await runner.ended;
    await handler.close();
    await server.stop();
  });

  test("is run by the local worker, which stays while a handler takes whatever else there is", async () => {
    using place = planDirectory("tasks: { a: echo a >> ran }");
    await using server = await serverIn(place);
    const handler = await startWorker({ url: server.url, id: "ada", slots: 4 }, () => ({ said: "done" }));
    assert.deepEqual([(await place.run()).code, place.ran()], [0, ["a"]]);
    await handler.close();
    await server.stop();
  });

  test("may ask for what a worker offers; alone it is refused, since those of a run offer nothing", async () => {
    using place = planDirectory("tasks: { train: { run: echo train >> ran, capabilities: gpu, zone: eu-1 } }");
    const refused = await place.run(["--alone"]);
    assert.deepEqual([refused.code, place.ran()], [2, []]);
    assert.match(
      refused.err,
      /task train needs a worker that offers gpu, and those of a plan that runs alone offer no/,
    );
  });

  test("goes on as it is when somebody asks for some of its tasks, who waits for these alone", async () => {
    using place = planDirectory(`tasks:
  long: { run: "read line < go; echo long >> ran" }
  fast: { run: "echo fast >> ran" }
  last: { run: "echo last >> ran", needs: [long, fast] }`);
    await using server = await served(["--slots", "3"], { directory: place.directory });
    place.pipe("go");
    const whole = place.start();
    await whole.terminal.saw("done      fast");
    const some = await place.run(["--only", "fast"]);
    assert.match(some.out, /all of it \(1 task\) was done before/);
    assert.equal(some.code, 0);
    await place.letGo("go");
    assert.equal((await whole.ended).code, 0);
    assert.deepEqual(place.ran(), ["fast", "long", "last"]);
    await server.stop();
  });

  test("shows before it is put what the server has, also of tasks that were not in the last put", async () => {
    const some = "tasks:\n  a: echo a >> ran\n";
    const all = `${some}  b: echo b >> ran\n  c: { run: exit 3, attempts: 1 }`;
    using place = planDirectory(all);
    await using server = await served([], { directory: place.directory });
    assert.equal((await place.run([])).code, 1);
    place.write("plan.yml", some);
    assert.equal((await place.run([])).code, 0);
    place.write("plan.yml", all);
    const { out } = await place.run(["--dry-run"]);
    assert.match(out, /3 tasks in 1 waves, 1 to run.* a .*done before.* b .*done before.* c .*failed, again/s);
    await server.stop();
  });

  test("is left alone with --alone; flags of a run alone are refused", async () => {
    using place = planDirectory("tasks: { a: echo a >> ran }");
    await using server = await serverIn(place);
    const refused = await place.run(["--slots", "2"]);
    assert.deepEqual([refused.code, place.ran()], [2, []]);
    assert.match(refused.err, /--slots is for a plan that runs alone, and this one joins the server at http/);
    assert.equal((await place.run(["--data", "here"])).code, 2);
    const alone = await place.run(["--alone"]);
    assert.match(alone.out, /^plan: 1 task, \d+ at once; log in \.drover\/runs\/plan/);
    assert.match((await place.drover(["plans"])).out, /No plans here/);
    await server.stop();
  });

  test("runs alone, and says so, where a killed server has left its address", async () => {
    using place = planDirectory("tasks: { a: echo a >> ran }");
    const server = await startServe({ cwd: place.directory });
    process.kill(pidIn(place), "SIGKILL");
    await server.ended;
    const { code, err } = await place.run();
    assert.deepEqual([code, place.ran()], [0, ["a"]]);
    assert.match(err, /note: the server that .drover\/server.json names is gone; the plan runs alone/);
  });

  test("asks a person, and goes on when it is approved by its name", async () => {
    using place = planDirectory(`tasks:
  build: "true"
  ship: { run: echo ship >> ran, needs: build, approval: { question: Ship it? } }`);
    await using server = await serverIn(place);
    const { terminal, ended } = place.start();
    await terminal.saw("Ship it?");
    await terminal.saw("waits for approval of ship");
    assert.equal((await place.drover(["approve", "plan/ship"])).code, 0);
    assert.deepEqual([(await ended).code, place.ran()], [0, ["ship"]]);
    await server.stop();
  });

  test("may be watched with a token that reads no events", async () => {
    using place = planDirectory(plan);
    place.write("drover.yml", "server: { tokens: [{ token: secret-of-an-agent-0, role: agent, agentId: me }] }\n");
    await using server = await serverIn(place, ["--worker"]);
    const { code, out } = await place.run([], { env: { DROVER_TOKEN: "secret-of-an-agent-0" } });
    assert.equal(code, 1, out);
    assert.match(out, /failed +bad +.*exit code 3: oh no/);
    assert.match(out, /skipped +last +needs bad, which failed/);
    assert.match(out, /plan: 3 of 5 done, 1 failed, 1 skipped/);
    await server.stop();
  });
});

const pidIn = (place: PlanDirectory): number =>
  (JSON.parse(readFileSync(join(place.directory, ".drover/server.json"), "utf8")) as { pid: number }).pid;

describe("Ctrl-C on a plan on a server", LIMIT, () => {
  const plan = `tasks:
  held: echo held >> ran; read line < gate
  after: { run: echo after >> ran, needs: held }`;

  async function running(
    place: PlanDirectory,
    args: readonly string[] = [],
    options: Parameters<PlanDirectory["start"]>[1] = {},
  ): Promise<ReturnType<PlanDirectory["start"]>> {
    place.pipe("gate");
    const run = place.start(args, options);
    await run.terminal.saw("held");
    return run;
  }

  test("detaches without a terminal, and drover plan attaches again", async () => {
    using place = planDirectory(plan);
    await using server = await serverIn(place);
    const { terminal, ended } = await running(place);
    terminal.signal("SIGINT");
    const { code, out } = await ended;
    assert.equal(code, 130);
    assert.match(out, /plan goes on without this: 0 of 2 done, 1 running\. .*drover plan plan attaches again/);
    const attached = place.startDrover(["plan", "plan"]);
    await attached.terminal.saw("plan: 2 tasks, on the server");
    await place.letGo("gate");
    const end = await attached.ended;
    assert.equal(end.code, 0, end.out + end.err);
    assert.match(end.out, /done +held.*done +after.*plan: 2 of 2 done/s);
    assert.deepEqual(place.ran(), ["held", "after"]);
    await server.stop();
  });

  for (const [name, args, act] of [
    ["asks on a terminal, and c cancels the plan", [], (terminal) => terminal.press("c")],
    ["cancels the plan with --on-interrupt cancel", ["--on-interrupt", "cancel"], () => {}],
  ] as [string, string[], (terminal: ReturnType<PlanDirectory["start"]>["terminal"]) => void][])
    test(name, async () => {
      using place = planDirectory(plan);
      await using server = await serverIn(place);
      const { terminal, ended } = await running(place, args, { hasKeys: true, width: 80 });
      terminal.signal("SIGINT");
      if (args.length === 0) await terminal.saw("Detach (the plan goes on) or cancel it? [d/c]");
      act(terminal);
      const { code, out } = await ended;
      assert.equal(code, 130);
      assert.match(out, /held +cancelled.*after +cancelled.*plan: 0 of 2 done, 2 cancelled/s);
      assert.equal(JSON.parse((await place.drover(["plan", "plan", "--no-follow", "--json"])).out).state, "cancelled");
      await server.stop();
    });

  test("detaches on a terminal by d, and by a second Ctrl-C", async () => {
    using place = planDirectory(plan);
    place.pipe("gate");
    await using server = await serverIn(place);
    for (const leave of ["d", "\u0003", null]) {
      const { terminal, ended } = place.start([], { hasKeys: true, width: 80 });
      await terminal.saw("1 running");
      terminal.signal("SIGINT");
      await terminal.saw("[d/c]");
      if (leave === null) terminal.signal("SIGINT");
      else terminal.press(leave);
      assert.equal((await ended).code, 130);
    }
    assert.match((await place.drover(["plans"])).out, /plan +running +0\/2 +1/);
    assert.equal((await place.drover(["plan", "plan", "--cancel"])).code, 0);
    await server.stop();
  });
});

test("who watches a plan that another edits follows it; what was taken away is no success", LIMIT, async () => {
  using place = planDirectory(`tasks:
  held: echo held >> ran; read line < gate
  bad: { run: "exit 3", needs: held, attempts: 1 }`);
  place.pipe("gate");
  await using server = await served([], { directory: place.directory });
  const first = place.start();
  await first.terminal.saw("start     held");
  place.write(
    "plan.yml",
    "tasks:\n  held: echo held >> ran; read line < gate\n  good: { run: echo good >> ran, needs: held }",
  );
  const second = place.start();
  await first.terminal.saw("the plan was put again: 1 task is no longer part of it, 1 is new");
  await place.letGo("gate");
  const { code, out } = await first.ended;
  assert.equal(code, 1, out);
  assert.match(out, /done +good.*bad +cancelled.*no part of the plan any more.*plan: 2 of 3 done, 1 cancelled/s);
  assert.match(out, /The plan was put again meanwhile: .*drover plan plan shows it as it is/);
  assert.doesNotMatch(out, /Run the same command again/);
  assert.deepEqual([(await second.ended).code, place.ran()], [0, ["held", "good"]]);
  await server.stop();
});

test("a server that is killed and comes back elsewhere: the run says so, waits, and goes on", LIMIT, async () => {
  using place = planDirectory(`tasks:
  one: echo one >> ran
  held: { run: 'echo held >> ran; [ -e go ] || read line < gate', needs: one }
  after: { run: echo after >> ran, needs: held }`);
  place.pipe("gate");
  const first = await startServe({ cwd: place.directory });
  const { terminal, ended } = place.start();
  await terminal.saw("start     held");
  process.kill(pidIn(place), "SIGKILL");
  await first.ended;
  await terminal.saw("does not answer; the plan is safe there, and this waits for it");
  place.write("go", "");
  await using second = await startServe({ cwd: place.directory });
  const { code, out, err } = await ended;
  assert.equal(code, 0, out + err);
  assert.match(err, new RegExp(`the server answers again, at ${second.url}`));
  assert.match(out, /again +held +its worker was lost.*done +held.*done +after.*plan: 3 of 3 done/s);
  assert.deepEqual([place.ran()[0], place.ran().at(-1)], ["one", "after"]);
});
