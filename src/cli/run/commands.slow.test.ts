/**
 * What the commands of a plan get and what may happen to them: environment, input, limits, budgets, gates, agents,
 * worktrees, interrupts.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { type PlanDirectory, planDirectory, steady } from "../../../test/kits/cli/plan-directory.ts";
import { passed } from "../../worker/exec/index.ts";

const QUICK = "workers: { slots: 1, killGrace: 1s }\nscheduler: { retry: { base: 1ms } }\n";
const env = (more: Readonly<Record<string, string>>): { env: Record<string, string | undefined> } => ({
  env: { PATH: process.env.PATH, ...more },
});

describe("a command", () => {
  test("gets what the plan gives it, and of ours only what it may see", async () => {
    using place = planDirectory(`defaults: { env: { GIVEN: 1 }, passEnv: [NPM_*, EXACT] }
tasks:
  a:
    run: echo "$GIVEN,$OWN,$NPM_TAG,$EXACT,$EXACTLY,$MY_API_KEY,$LANG,$FILE" > seen
    env: { OWN: x y }
    for: { FILE: [f] }`);
    const ours = { NPM_TAG: "next", EXACT: "yes", EXACTLY: "no", MY_API_KEY: "hush", LANG: "de" };
    assert.equal((await place.run([], env(ours))).code, 0);
    assert.equal(place.read("seen"), "1,x y,next,yes,,,de,f\n");
  });

  test("reads its input, or nothing", async () => {
    using place = planDirectory(`${QUICK}tasks:\n  a: { run: cat > a, input: "two\\nlines" }\n  b: cat > b`);
    assert.equal((await place.run()).code, 0);
    assert.deepEqual([place.read("a"), place.read("b")], ["two\nlines", ""]);
  });

  test("runs beside the plan file, or where its cwd says", async () => {
    using place = planDirectory("tasks:\n  a: pwd > here\n  b: { run: pwd > ../there, cwd: sub }");
    mkdirSync(join(place.directory, "sub"));
    assert.equal((await place.run([join(place.directory, "plan.yml")], { cwd: "/" })).code, 0);
    assert.deepEqual([place.read("here"), place.read("there")], [`${place.directory}\n`, `${place.directory}/sub\n`]);
  });

  test("of several lines ends at the first that fails", async () => {
    using place = planDirectory("tasks:\n  a:\n    run: |\n      echo one > ran\n      false\n      echo two >> ran");
    assert.equal((await place.run()).code, 1);
    assert.deepEqual(place.ran(), ["one"]);
  });

  test("that takes longer than its timeout is stopped and has failed", async () => {
    using place = planDirectory(`${QUICK}tasks:\n  a: { run: "read x < a.pipe", timeout: 50ms }`);
    place.pipe("a.pipe");
    const { code, out } = await place.run();
    assert.equal(code, 1);
    assert.match(steady(out, place).join("\n"), /\nfailed {2}a {2}T {2}timed out after 50 ms\n/);
  });

  test("that is not there says so at once, however many attempts it has", async () => {
    using place = planDirectory(`${QUICK}tasks:\n  a: { run: [no-such-program], attempts: 5 }`);
    const { code, out } = await place.run();
    assert.equal(code, 1);
    assert.match(
      steady(out, place).join("\n"),
      /\na {2}failed {2}1 {2}T {2}the program no-such-program was not found; install it/,
    );
  });

  test("writes what is shown with --output, and nothing it writes is obeyed", async () => {
    using place = planDirectory(`${QUICK}tasks:\n  a: printf 'plain\\n\\033[2Jclear\\n'; echo wrong >&2`);
    const { out } = await place.run(["--output"]);
    assert.deepEqual(steady(out, place).slice(2, 5).sort(), ["a | plain", "a | wrong", "a | ␛[2Jclear"]);
  });

  test("that claims more tokens than there are is done all the same, and told so in its log", async () => {
    using place = planDirectory(
      `${QUICK}tasks:\n  a: "echo '{\\"type\\":\\"usage\\",\\"inputTokens\\":1e13}'"\n  b: echo b > b`,
    );
    const { code, err } = await place.run();
    assert.equal(code, 0);
    assert.match(err, /a.*: inputTokens is not counted: it must be a number from 0 to 1000000000000/);
    assert.equal(place.read("b"), "b\n");
  });

  test("no more run at once than there are slots", async () => {
    using place = planDirectory(`workers: { slots: 2 }
tasks: { a: { run: "echo $N >> ran; echo up > up$N.pipe; read x < go$N.pipe", for: { N: [1, 2, 3] } } }`);
    for (const number of [1, 2, 3]) for (const way of ["up", "go"]) place.pipe(`${way}${number}.pipe`);
    const { ended } = place.start();
    await Promise.all([place.hear("up1.pipe"), place.hear("up2.pipe")]);
    assert.deepEqual(place.ran().sort(), ["1", "2"]);
    await place.letGo("go2.pipe");
    await place.hear("up3.pipe");
    await Promise.all([place.letGo("go1.pipe"), place.letGo("go3.pipe")]);
    assert.equal((await ended).code, 0);
  });

  test("that holds a lock runs alone", async () => {
    using place = planDirectory(`tasks:
  a: { run: "mkdir busy; echo a >> ran; rmdir busy", locks: [x], for: { N: [1, 2, 3, 4, 5, 6] } }`);
    assert.equal((await place.run(["-j", "6"])).code, 0);
    assert.equal(place.ran().length, 6);
  });

  const patterns: [names: string[], passed: string[]][] = [
    [["A"], ["A"]],
    [["A*"], ["A", "AB"]],
    [["*"], ["A", "AB", "B"]],
    [["*B"], ["AB", "B"]],
    [[".*"], []],
  ];
  for (const [names, expected] of patterns)
    test(`passEnv ${names} lets ${expected} through`, () =>
      assert.deepEqual(passed(names, { A: "1", AB: "2", B: "3", DROVER_TOKEN: "t", "BASH_FUNC_x%%": "" }), expected));
});

/** A program of that name which comes first on the path. */
function fake(place: PlanDirectory, name: string, script: string): { env: Record<string, string | undefined> } {
  place.write(name, `#!/bin/sh\n${script}\n`);
  chmodSync(join(place.directory, name), 0o755);
  return { env: { PATH: `${place.directory}:${process.env.PATH}` } };
}

describe("an agent", () => {
  const result = '{"type":"result","result":"ok","session_id":"s1","usage":{"input_tokens":600,"output_tokens":400}}';

  test("is told its prompt on stdin, with its values in it", async () => {
    using place = planDirectory(`tasks:
  look: { preset: claude, prompt: "Look at \${FILE}.", model: opus, args: [--max-turns, "3"], for: { FILE: [a.ts] } }`);
    const path = fake(place, "claude", `cat > prompt; echo "$@" > words; echo '${result}'`);
    assert.equal((await place.run([], path)).code, 0);
    assert.equal(place.read("prompt"), "Look at a.ts.");
    assert.equal(place.read("words"), "-p --output-format stream-json --verbose --model opus --max-turns 3\n");
  });

  test("spends the budget of its project, and when that is used up the run says so and ends", async () => {
    using place = planDirectory(`${QUICK}projects: { web: { budget: 1500 } }
defaults: { project: web }
tasks:
  one: { preset: claude, prompt: one, tokens: 1000 }
  two: { preset: claude, prompt: two, tokens: 1000 }
  three: { run: echo three >> ran, needs: two }
  free: { run: echo free >> ran, project: default }`);
    const path = fake(place, "claude", `cat >> ran; echo >> ran; echo '${result}'`);
    const { code, out } = await place.run([], path);
    assert.equal(code, 1);
    assert.deepEqual(place.ran().sort(), ["free", "one"]);
    assert.match(out, /\ntwo +not started\n/);
    assert.match(
      out,
      /start by itself\. two: It waits because 1000 used \+ 0 reserved \+ 1000 for two exceed project web/,
    );
    place.write("plan.yml", place.read("plan.yml").replace("1500", "2500"));
    assert.equal((await place.run([], path)).code, 0);
    assert.deepEqual(place.ran().sort(), ["free", "one", "three", "two"]);
  });

  test("a command beside it uses no tokens, whatever others of its type use", async () => {
    using place = planDirectory(`${QUICK}projects: { web: { budget: 2500 } }
defaults: { project: web, type: work }
tasks:
  one: { preset: claude, prompt: one, tokens: 1000 }
  plain: { run: echo plain >> ran, needs: one }
  two: { preset: claude, prompt: two, tokens: 1000, needs: plain }`);
    const path = fake(place, "claude", `cat >> ran; echo >> ran; echo '${result}'`);
    assert.equal((await place.run([], path)).code, 0);
    assert.deepEqual(place.ran(), ["one", "plain", "two"]);
  });
});

describe("a provider", () => {
  test("that says later holds back everybody who goes through its gate, and costs no attempt", async () => {
    using place = planDirectory(`${QUICK}gates: { api: { maxConcurrent: 5 } }
defaults: { provider: api }
tasks:
  first:
    run: |
      echo first >> ran
      if mkdir tried; then echo '{"retryAfterMs": 1, "status": 429}'; exit 75; fi
  second: { run: echo second >> ran }`);
    const { code, out } = await place.run(["--json"]);
    assert.equal(code, 0);
    const events = out
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Record<string, string>);
    const at = (event: string, task: string): number =>
      Date.parse(events.find((one) => one.event === event && one.task === task)?.at ?? "");
    assert.ok(
      at("started", "second") - at("again", "first") >= 1000,
      "the gate is shut for two seconds after a throttle",
    );
    assert.deepEqual(place.ran().filter((name) => name === "first").length, 2);
  });

  test("lets no more commands out at once than its gate does", async () => {
    using place = planDirectory(`workers: { slots: 3 }
gates: { api: { maxConcurrent: 1 } }
tasks:
  a: { run: "echo $N >> ran; echo up > up.pipe; read x < go.pipe", provider: api, priority: high, for: { N: [1, 2] } }
  free: { run: "echo free >> ran; echo up > free.pipe" }`);
    for (const name of ["up.pipe", "go.pipe", "free.pipe"]) place.pipe(name);
    const { ended } = place.start();
    await place.hear("up.pipe");
    await place.hear("free.pipe");
    assert.deepEqual(place.ran().sort(), ["1", "free"]);
    await place.letGo("go.pipe");
    await place.hear("up.pipe");
    await place.letGo("go.pipe");
    assert.equal((await ended).code, 0);
  });
});

test("a task with a worktree works on a branch of its own, and its work is kept", async () => {
  using place = planDirectory(
    `tasks:\n  edit: { run: "echo new > file; pwd > $OUT/where", worktree: true, passEnv: OUT }`,
  );
  const git = (...words: string[]): string =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...words], {
      cwd: place.directory,
      encoding: "utf8",
    });
  git("init", "-q");
  place.write("file", "old\n");
  place.write(".gitignore", ".drover\nwhere\n");
  git("add", "file", ".gitignore");
  git("commit", "-q", "-m", "first");
  const { code, out } = await place.run([], { env: { PATH: process.env.PATH, OUT: place.directory } });
  assert.equal(code, 0);
  const told = "edit left work on branch drover/plan/edit, in .drover/runs/plan/worktrees/plan.edit";
  assert.ok(steady(out, place).includes(told), out);
  assert.equal(place.read("file"), "old\n");
  const tree = place.read("where").trim();
  assert.match(tree, /\.drover\/runs\/plan\/worktrees\/plan\.edit$/);
  assert.equal(place.read(`${tree.slice(place.directory.length + 1)}/file`), "new\n");
  assert.match(git("branch", "--list", "drover/*"), /drover\/plan\/edit\n/);
});

describe("an interrupt", () => {
  const plan = (trap: string, grace = "10s"): string => `workers: { slots: 1, killGrace: ${grace} }
tasks:
  first: echo first >> ran
  held: { run: "${trap}; echo held >> ran; echo up > up.pipe; while :; do read x < go.pipe; done", needs: first }
  last: { run: echo last >> ran, needs: held }`;

  test("lets the command end in its own way, and the next run goes on at no cost to its attempts", async () => {
    using place = planDirectory(plan("trap 'echo bye >> ran; exit 1' INT"));
    place.pipe("up.pipe");
    place.pipe("go.pipe");
    const { terminal, ended } = place.start();
    await place.hear("up.pipe");
    terminal.signal("SIGINT");
    const { code, out, err } = await ended;
    assert.deepEqual([code, place.ran()], [130, ["first", "held", "bye"]]);
    assert.match(err, /^note: stopping: what runs may end; once more \(Ctrl-C\) kills it at once\n$/);
    assert.match(out, /\nstopped +held\n/);
    assert.match(out, /\nheld +unfinished +1 +\S+ +stopped before its end\nlast +not started\n/);
    assert.match(out, /plan: 1 of 3 done, 2 not finished, in \S+\nInterrupted\. Run the same command again to go on/);
    place.write("plan.yml", place.read("plan.yml").replaceAll(/while.*done/g, "true"));
    const hearing = place.hear("up.pipe");
    const again = await place.run();
    await hearing;
    assert.equal(again.code, 0);
    assert.match(again.out, /^plan: 1 of 3 tasks done before/);
    assert.deepEqual(place.ran().slice(3), ["held", "last"]);
  });

  test("ends with 130 also where what runs must not run twice, and so fails", async () => {
    using place = planDirectory(`workers: { slots: 1 }
tasks:
  held: { run: "trap 'exit 1' INT; echo up > up.pipe; while :; do read x < go.pipe; done", onLoss: fail }`);
    place.pipe("up.pipe");
    place.pipe("go.pipe");
    const { terminal, ended } = place.start();
    await place.hear("up.pipe");
    terminal.signal("SIGINT");
    const { code, out } = await ended;
    assert.equal(code, 130, out);
    assert.match(out, /\nheld +failed .*\nInterrupted\. Run the same command again/s);
  });

  test("twice kills a command that will not end; SIGTERM ends with 143", async () => {
    using place = planDirectory(plan("trap '' INT TERM", "1h"));
    place.pipe("up.pipe");
    place.pipe("go.pipe");
    let now = 1_800_000_000_000;
    const { terminal, ended } = place.start([], { now: () => now });
    await place.hear("up.pipe");
    terminal.signal("SIGTERM");
    // A terminal and whoever passes a signal on may both send it: that is still one.
    terminal.signal("SIGTERM");
    now += 1000;
    terminal.signal("SIGINT");
    assert.equal((await ended).code, 143);
    assert.deepEqual(place.ran(), ["first", "held"]);
  });

  test("that comes before anything has begun begins nothing", async () => {
    using place = planDirectory("tasks: { a: echo a >> ran }");
    const { code, out } = await place.run([], { onListening: (terminal) => terminal.signal("SIGINT") });
    assert.deepEqual([code, place.ran()], [130, []]);
    assert.match(out, /\na +not started\n/);
  });
});
