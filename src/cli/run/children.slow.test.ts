/**
 * Tasks of a plan that submit others while they run: alone as on a server, over a kill, and never to another server.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { describe, test } from "node:test";
import { type PlanDirectory, planDirectory, steady } from "../../../test/kits/cli/plan-directory.ts";
import { served } from "../../../test/kits/cli/served.ts";
import { commandsIn, MAIN } from "../../../test/kits/serve-process.ts";

const LIMIT = { timeout: 180_000 };

/** What runs a plan finds `drover` on its PATH. */
const envOf = (place: PlanDirectory): { readonly PATH: string } => ({
  PATH: `${commandsIn(join(place.directory, "bin"))}:${process.env.PATH}`,
});

/** With one slot: a parent that held it would wait for ever. */
const PLAN = `tasks:
  grow:
    labels: { team: web }
    priority: -50
    wait: children
    run: |
      echo grow >> ran
      drover submit --id first --command 'echo first >> ran; drover submit --id below --command "echo below >> ran"'
      drover submit --id second --needs first --command 'echo second >> ran; drover task second --json > seen'
      drover submit --id bad --needs second --max-attempts 1 --command 'exit 3'
  after: { run: echo after >> ran, needs: grow }`;

const words = (out: string): string[] => out.split("\n").filter((line) => /^(start|done|failed|awaiting) /.test(line));

describe("children of a running task", LIMIT, () => {
  test("run alone as on a server: the same lines, the same code, and no slot for the parent that waits", async () => {
    using alone = planDirectory(`workers: { slots: 1 }\n${PLAN}`);
    using joined = planDirectory(PLAN);
    await using server = await served(["--slots", "1"], { directory: joined.directory, env: envOf(joined) });
    const here = await alone.run([], { env: envOf(alone) });
    const there = await joined.run();
    assert.equal(here.code, 0, here.out + here.err);
    assert.deepEqual(steady(words(here.out).join("\n"), alone), steady(words(there.out).join("\n"), joined));
    assert.deepEqual([there.code, joined.ran()], [0, alone.ran()]);
    assert.deepEqual(alone.ran().toSorted(), ["after", "below", "first", "grow", "second"]);
    for (const { out } of [here, there]) {
      assert.match(out, /\ngrow .*\n {2}first .*\n {4}below .*\n {2}second .*\n {2}bad +failed.*exit code 3.*\nafter /);
      assert.match(out, /plan: 2 of 2 done, in .* Its tasks submitted 4 more: 3 done, 1 failed\./);
    }
    for (const place of [alone, joined]) {
      const { parent, labels, priority } = JSON.parse(place.read("seen"));
      assert.match(parent, /^plan\.grow\./);
      assert.deepEqual({ labels, priority }, { labels: { team: "web" }, priority: -50 });
    }
    await server.stop();
  });

  test("of a run alone go to no other server, and the run lasts as long as they do", async () => {
    using place = planDirectory(`tasks:
  grow: 'echo grow >> ran; drover submit --id kid --command "read line < gate; echo kid >> ran"'`);
    place.pipe("gate");
    await using server = await served([], { directory: place.directory });
    const { terminal, ended } = place.start(["--alone"], { env: envOf(place) });
    await terminal.saw("done      grow");
    await terminal.saw("start     grow > kid");
    await place.letGo("gate");
    const { code, out } = await ended;
    assert.deepEqual([code, place.ran()], [0, ["grow", "kid"]], out);
    assert.deepEqual(JSON.parse((await server.drover(["tasks", "--json"])).out).tasks, []);
    await server.stop();
  });

  test("that no worker of a run alone ever takes are refused where they are submitted", async () => {
    using place = planDirectory(`tasks:
  grow:
    wait: children
    attempts: 1
    run: |
      set +e
      drover submit --id ok --command 'echo ok >> ran'
      drover submit --id web browse
      drover submit --id bare exec
      drover submit --id gpu --capability gpu --command 'exit 0'
      drover submit --id tab --tab 7 --command 'exit 0'
      drover submit --batch many.json`);
    place.write("many.json", '[{"action":"exec","params":{"command":"echo many >> ran"}},{"action":"browse"}]');
    const { out } = await place.run(["--output"], { env: envOf(place) });
    const alone = "since this plan runs alone: its workers";
    for (const text of [
      `action is "browse", and must be exec, with params.command, ${alone} run commands only`,
      `params.command is nothing, and must be what is to be run, ${alone} run commands only`,
      `capabilities is "gpu", and must be absent, ${alone} offer none`,
      `tabId is "7", and must be absent, ${alone} have no tabs`,
      'item 2: action is "browse"',
    ])
      assert.ok(out.includes(text), `${text}\n${out}`);
    assert.deepEqual(place.ran().toSorted(), ["many", "ok"]);
    assert.match(out, /Its tasks submitted 2 more: 2 done\./);
  });

  const ASKS = `tasks:
  grow:
    wait: children
    run: |
      drover submit --id kid --approval 'Well?' --max-attempts 1 --command 'echo kid >> ran; echo said'
      drover submit --id other --approval 'And this?' --command 'echo other >> ran'
  after: { run: echo after >> ran, needs: grow }`;

  test("that ask are answered as a run alone says, and all verbs find them by its name", async () => {
    using place = planDirectory(ASKS);
    const env = envOf(place);
    const asked =
      /It waits for approval of (kid, other): .*run plan\.yml --approve kid,other, or .*approve (plan\/kid .*)$/m;
    const first = await place.run([], { env });
    assert.match(first.out, asked);
    const again = await place.run([], { env });
    assert.match(again.out, asked, "left by an earlier run");
    assert.match(again.out, /^grow +unfinished.*\n {2}kid +parked.*Well\?/m);
    assert.match((await place.drover(["why", "plan/kid"])).out, /drover approve plan\/kid\): Well\?/);
    assert.match((await place.drover(["task", "plan/kid"])).out, /state +parked/);
    assert.match(
      (await place.drover(["task", "plan/kdi"])).err,
      /kdi is no task of the plan plan\n.*did you mean plan\/kid\?/,
    );
    assert.match((await place.drover(["cancel", "plan/other"])).out, /plan\/other cancelled/);
    const last = await place.run(["--approve", "kid,grow"], { env });
    assert.deepEqual([last.code, place.ran()], [0, ["kid", "after"]], last.out + last.err);
    assert.match((await place.drover(["logs", "plan/kid"])).out, /said/);
    assert.match((await place.drover(["retry", "plan/other"])).out, /plan\/other submitted again/);
    assert.match((await place.drover(["approve", "plan/other"])).out, /plan\/other approved/);
    assert.equal((await place.run([], { env })).code, 0);
    assert.deepEqual(place.ran(), ["kid", "after", "other"]);
  });

  test("that ask are answered as the watcher of a server says", async () => {
    using place = planDirectory(ASKS);
    await using server = await served(["--slots", "1"], { directory: place.directory, env: envOf(place) });
    const { terminal, ended } = place.start();
    await terminal.saw("approve plan/kid plan/other");
    const { out: why } = await place.drover(["why", "plan/kid"]);
    const approved = await place.drover(["approve", "plan/kid", "plan/other"]);
    if (approved.code !== 0) terminal.signal("SIGINT");
    assert.deepEqual([approved.out, (await ended).code], ["plan/kid approved\nplan/other approved\n", 0], approved.err);
    assert.match(why, /approve plan\/kid\)/);
    assert.match((await place.drover(["task", "plan/kdi"])).err, /kdi is no task of the plan plan/);
    await place.drover(["submit", "--id", "stranger", "--command", "exit 0"]);
    assert.match((await place.drover(["task", "plan/stranger"])).err, /stranger is no task of the plan plan/);
    await server.stop();
  });

  test("that are in a worktree have one, and the run says where their work is", async () => {
    using place = planDirectory(`tasks:
  grow:
    run: drover submit --id kid --params '{"worktree":true}' --command 'echo new > made'`);
    const git = (...args: string[]) =>
      once(spawn("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...args], { cwd: place.directory }), "close");
    place.write(".gitignore", ".drover\nbin\n");
    for (const args of [
      ["init", "-q"],
      ["add", ".gitignore"],
      ["commit", "-q", "-m", "first"],
    ])
      await git(...args);
    const { code, out, err } = await place.run([], { env: envOf(place) });
    assert.equal(code, 0, out + err);
    assert.match(out, /kid left work on branch drover\/kid/);
  });

  test("outlive a kill: what is done is not run again, what is not goes on", async () => {
    using place = planDirectory(`workers: { slots: 1 }
tasks:
  grow:
    wait: children
    run: |
      echo grow >> ran
      drover submit --id quick --command 'echo quick >> ran'
      drover submit --id held --needs quick --command 'echo held >> ran; [ -e go ] || { echo > up; read x < never; }'
  after: { run: echo after >> ran, needs: grow }`);
    for (const name of ["up", "never"]) place.pipe(name);
    const env = { ...process.env, ...envOf(place) };
    const child = spawn(process.execPath, [MAIN, "run", "plan.yml"], { cwd: place.directory, env, stdio: "ignore" });
    const killed = once(child, "close");
    await place.hear("up");
    child.kill("SIGKILL");
    await killed;
    place.write("go", "");
    const { code, out } = await place.run([], { env: envOf(place) });
    assert.equal(code, 0, out);
    assert.match(out, /start +grow > held/);
    assert.deepEqual(place.ran(), ["grow", "quick", "held", "held", "after"]);
  });
});
