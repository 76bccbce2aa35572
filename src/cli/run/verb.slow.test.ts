/**
 * `drover run`, as a person uses it: what is printed, what ran and how often, and the exit code.
 *
 * Each test is a directory with a plan whose commands are small shell lines. What happens to processes when they are
 * killed is in test/faults/run-plan.slow.test.ts.
 */
import assert from "node:assert/strict";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { planDirectory, steady } from "../../../test/kits/cli/plan-directory.ts";
import { knownBefore } from "./log.ts";
import { taskNames } from "./verb.ts";

const QUICK = "workers: { slots: 1, killGrace: 1s }\nscheduler: { retry: { base: 1ms } }\n";
const note = (name: string): string => `echo ${name} >> ran`;

describe("a plan that goes well", () => {
  const plan = `${QUICK}tasks:
  spec: echo spec >> ran
  code: { run: [sh, -c, "echo code >> ran"], needs: spec }
  each: { run: 'echo "$FILE" >> ran', for: { FILE: [a, b c] }, needs: code }
  all: { needs: [each] }`;

  test("runs in order, says so, and ends with 0", async () => {
    using place = planDirectory(plan);
    const { code, out, err } = await place.run();
    assert.deepEqual([code, err], [0, ""]);
    assert.deepEqual(place.ran(), ["spec", "code", "a", "b c"]);
    assert.deepEqual(steady(out, place), [
      "plan: 5 tasks, 1 at once; log in .drover/runs/plan",
      "start  spec",
      "done  spec  T",
      "start  code",
      "done  code  T",
      "start  each[a]",
      "done  each[a]  T",
      "start  each[b c]",
      "done  each[b c]  T",
      "start  all",
      "done  all  T",
      "TASK  STATE  ATTEMPTS  TOOK",
      "spec  done  1  T",
      "code  done  1  T",
      "each[a]  done  1  T",
      "each[b c]  done  1  T",
      "all  done  1  T",
      "plan: 5 of 5 done, in T.",
    ]);
  });

  test("the same again runs nothing, from whichever directory", async () => {
    using place = planDirectory(plan);
    await place.run();
    const { code, out } = await place.run([`${place.directory}/plan.yml`], { cwd: "/" });
    assert.deepEqual([code, out], [0, "plan: all of it (5 tasks) was done before; --fresh runs it anew.\n"]);
    assert.equal(place.ran().length, 4);
  });

  test("--fresh runs it anew and keeps the old log", async () => {
    using place = planDirectory(plan);
    await place.run();
    const { code, err } = await place.run(["--fresh"], { now: () => Date.UTC(2026, 0, 31, 12) });
    assert.deepEqual([code, err], [0, "note: the old log is now .drover/runs/plan.20260131T120000Z\n"]);
    assert.equal(place.ran().length, 8);
    assert.deepEqual(readdirSync(`${place.directory}/.drover/runs`).sort(), ["plan", "plan.20260131T120000Z"]);
  });

  test("--only runs the named tasks and what they need; later the rest", async () => {
    using place = planDirectory(plan);
    assert.equal((await place.run(["--only", "each[a]"])).code, 0);
    assert.deepEqual(place.ran(), ["spec", "code", "a"]);
    const { out } = await place.run();
    assert.match(out, /^plan: 3 of 5 tasks done before, 1 at once/);
    assert.deepEqual(place.ran(), ["spec", "code", "a", "b c"]);
  });

  test("--only with a name that is no task says which was meant", async () => {
    using place = planDirectory(plan);
    const { code, err } = await place.run(["--only", "spce"]);
    assert.deepEqual(
      [code, err],
      [2, "error: --only names spce, which is no task of the plan\nhint:  did you mean spec?\n"],
    );
    const far = await place.run(["--only", "zz"]);
    assert.equal(
      far.err,
      "error: --only names zz, which is no task of the plan\nhint:  its tasks: spec, code, each, all\n",
    );
  });

  test("--only of a large plan lists no more than a few", async () => {
    const names = Array.from({ length: 13 }, (_, at) => `task${at}`);
    using place = planDirectory(`tasks: { ${names.map((name) => `${name}: "true"`).join(", ")} }`);
    const { err } = await place.run(["--only", "zz"]);
    assert.match(err, /\nhint: {2}its tasks: task0, .*task9 and 3 more \(--dry-run shows all\)\n$/);
  });

  test("a plan may come from standard input, and has a name then", async () => {
    using place = planDirectory("");
    const { code } = await place.run(["-"], { input: `name: piped\n${plan}` });
    assert.deepEqual([code, place.has(".drover/runs/piped"), place.ran().length], [0, true, 4]);
    const unnamed = await place.run(["-"], { input: "tasks: { a: echo a }" });
    assert.equal(unnamed.code, 2);
    assert.match(
      unnamed.err,
      /^error: standard input:1:1: the plan has no name, and "standard input" cannot be one; add name: at the top\n/,
    );
  });
});

describe("--only takes names", () => {
  const rows: [text: string, names: string[]][] = [
    ["a", ["a"]],
    ["a,b", ["a", "b"]],
    ["a[1,x],b , c[d]", ["a[1,x]", "b", "c[d]"]],
  ];
  for (const [text, names] of rows) test(text, () => assert.deepEqual(taskNames(text, undefined), names));
  test("given again it adds to them", () => assert.deepEqual(taskNames("b", ["a"]), ["a", "b"]));
  test("none at all is refused", () =>
    assert.throws(() => taskNames(" ,", undefined), /It must be the name of a task/));
});

describe("--dry-run", () => {
  const plan = `${QUICK}tasks:
  spec: ${note("spec")}
  code: { run: "${note("code")}\\nfalse", needs: spec, locks: [repo] }
  ship: { preset: claude, prompt: Ship it., needs: [spec, code] }`;

  test("shows the waves and touches nothing", async () => {
    using place = planDirectory(plan);
    const { code, out } = await place.run(["--dry-run"]);
    assert.equal(code, 0);
    assert.deepEqual(steady(out, place), [
      "plan: 3 tasks in 3 waves, 3 to run, 1 at once",
      "WAVE  TASK  NEEDS  LOCKS  RUNS",
      "  1  spec  echo spec >> ran",
      "  2  code  spec  repo  echo code >> ran …",
      "  3  ship  spec, code  claude: Ship it.",
    ]);
    assert.deepEqual([place.has(".drover"), place.ran()], [false, []]);
  });

  test("shows below what is special about a task, and knows what its condition would skip again", async () => {
    using place = planDirectory(`${QUICK}tasks:
  a: { run: "true", outputs: [a.txt, "b/**"], loop: { until: "true", max: 3 } }
  b: { run: "true", needs: a, if: needs.a.state == 'failed', approval: true, wait: children }`);
    const { out } = await place.run(["--dry-run"]);
    assert.match(
      out,
      /\n\nTASK +HOW\na +up to 3 rounds until true; leaves a.txt, b\/\*\*\nb +asks first; waits for its children; if /,
    );
    place.write(
      "plan.yml",
      `${QUICK}tasks:\n  a: "true"\n  b: { run: "true", needs: a, if: needs.a.state == 'failed' }`,
    );
    await place.run();
    const { tasks } = JSON.parse((await place.run(["--dry-run", "--json"])).out);
    assert.deepEqual(
      tasks.map(({ would, if: condition }: Record<string, unknown>) => [would, condition]),
      [
        ["done before", undefined],
        ["left as it is", "needs.a.state == 'failed'"],
      ],
    );
  });

  test("says what an earlier run has done, and what would run again", async () => {
    using place = planDirectory(plan);
    await place.run();
    const lines = steady((await place.run(["--dry-run"])).out, place);
    assert.equal(lines[0], "plan: 3 tasks in 3 waves, 2 to run, 1 at once");
    assert.deepEqual(
      lines.slice(2).map((line) => /done before|failed, again|skipped, again/.exec(line)?.[0]),
      ["done before", "failed, again", "skipped, again"],
    );
    const { tasks } = JSON.parse((await place.run(["--dry-run", "--no-retry-failed", "--json"])).out);
    assert.deepEqual(
      tasks.map(({ task, would, wave, log }: Record<string, unknown>) => [task, would, wave, log]),
      [
        ["spec", "done before", 1, "done"],
        ["code", "left as it is", 2, "failed"],
        ["ship", "left as it is", 3, "skipped"],
      ],
    );
  });
});

describe("a plan in which something fails", () => {
  const plan = `${QUICK}tasks:
  good: ${note("good")}
  bad: { run: "${note("bad")}; printf 'one\\\\ntwo\\\\n'; test -e mended", attempts: 2 }
  after: { run: ${note("after")}, needs: [good, bad] }
  always: { run: ${note("always")}, needs: bad, onDependencyFailure: run }
  other: ${note("other")}`;

  test("goes on with the rest, says why with the end of the output, and ends with 1", async () => {
    using place = planDirectory(plan);
    const { code, out, err } = await place.run();
    assert.deepEqual([code, err], [1, ""]);
    assert.deepEqual(place.ran(), ["good", "bad", "other", "bad", "always"]);
    const lines = steady(out, place);
    assert.deepEqual(lines.slice(lines.indexOf("TASK  STATE  ATTEMPTS  TOOK  WHY")), [
      "TASK  STATE  ATTEMPTS  TOOK  WHY",
      "good  done  1  T",
      "bad  failed  2  T  exit code 1: two",
      "other  done  1  T",
      "after  skipped  needs bad, which failed",
      "always  done  1  T",
      "bad failed: exit code 1: two",
      "  | one",
      "  | two",
      "  whole log: .drover/runs/plan/logs/plan.bad/2.log",
      "plan: 3 of 5 done, 1 failed, 1 skipped, in T.",
      "Run the same command again to try what is not done; the rest is not run again.",
    ]);
    const retried = lines.find((line) => line.startsWith("again"));
    assert.equal(retried, "again  bad  exit code 1: two (next in T)");
  });

  test("run again, what is not done and what reports on it runs, and what failed has all its attempts", async () => {
    using place = planDirectory(plan);
    await place.run();
    const before = place.ran().length;
    assert.equal((await place.run()).code, 1);
    assert.deepEqual(place.ran().slice(before), ["bad", "bad", "always"]);
    place.write("mended", "");
    const { code, out } = await place.run();
    assert.equal(code, 0);
    assert.match(out, /^plan: 2 of 5 tasks done before/);
    assert.deepEqual(place.ran().slice(before + 3), ["bad", "always", "after"]);
  });

  test("--no-retry-failed leaves it as it is", async () => {
    using place = planDirectory(plan);
    await place.run();
    const before = place.ran().length;
    place.write("mended", "");
    const { code, out } = await place.run(["--no-retry-failed"]);
    assert.deepEqual([code, place.ran().length], [1, before]);
    assert.match(out, /\nbad +failed +\d+ms +exit code 1: two\n/);
  });

  test("--fail-fast starts nothing more, and the next run goes on", async () => {
    using place = planDirectory(`${QUICK}tasks:
  bad: { run: "${note("bad")}; test -e mended", priority: high }
  one: ${note("one")}
  two: ${note("two")}`);
    const { code, out } = await place.run(["--fail-fast"]);
    assert.deepEqual([code, place.ran()], [1, ["bad"]]);
    assert.match(out, /\none +not started\n/);
    assert.match(out, /A task failed, so nothing more was started \(--fail-fast\)\. Run the same command again/);
    place.write("mended", "");
    assert.equal((await place.run(["--fail-fast"])).code, 0);
    assert.deepEqual(place.ran(), ["bad", "bad", "one", "two"]);
  });

  test("--fail-fast lets what runs come to its end", async () => {
    using place = planDirectory(`tasks:
  bad: { run: "read x < bad.pipe; exit 1" }
  slow: { run: "read x < slow.pipe; ${note("slow")}" }
  later: { run: ${note("later")}, needs: slow }`);
    place.pipe("bad.pipe");
    place.pipe("slow.pipe");
    const { terminal, ended } = place.start(["--fail-fast", "-j", "2"]);
    await place.letGo("bad.pipe");
    await terminal.saw("failed    bad");
    await place.letGo("slow.pipe");
    assert.equal((await ended).code, 1);
    assert.deepEqual(place.ran(), ["slow"]);
  });
});

describe("an edited plan", () => {
  const plan = (spec: string, rest = ""): string => `${QUICK}tasks:
  spec: { run: "${spec}" }
  code: { run: ${note("code")}, needs: spec }
  docs: { run: ${note("docs")}${rest} }`;

  test("runs what changed and what needs it, and nothing else", async () => {
    using place = planDirectory(plan(note("spec")));
    await place.run();
    place.write("plan.yml", plan(note("new-spec")));
    const { code, out } = await place.run();
    assert.equal(code, 0);
    assert.match(out, /^plan: 1 of 3 tasks done before/);
    assert.deepEqual(place.ran().slice(3), ["new-spec", "code"]);
  });

  test("new rules for finished work run nothing again", async () => {
    using place = planDirectory(plan(note("spec")));
    await place.run();
    place.write("plan.yml", plan(note("spec"), ", timeout: 1h, attempts: 7, priority: low, locks: [x], type: doc"));
    assert.match((await place.run()).out, /^plan: all of it/);
  });

  test("what failed runs under its new definition only", async () => {
    using place = planDirectory(plan("echo broken >> ran; false"));
    await place.run();
    place.write("plan.yml", plan(note("mended")));
    assert.equal((await place.run()).code, 0);
    assert.deepEqual(place.ran(), ["broken", "docs", "mended", "code"]);
  });

  test("a task that is no longer in it does not run", async () => {
    using place = planDirectory(
      `${QUICK}tasks:\n  bad: "false"\n  gone: ${note("gone")}\n  late: { run: ${note("late")}, needs: gone }`,
    );
    await place.run(["--fail-fast"]);
    place.write("plan.yml", `${QUICK}tasks:\n  kept: ${note("kept")}`);
    assert.equal((await place.run()).code, 0);
    assert.deepEqual(place.ran(), ["kept"]);
    const log = await knownBefore(join(place.directory, ".drover/runs/plan"));
    const phases = log.map(({ id, phase }) => `${id.split(".")[1]} ${phase}`).sort();
    assert.deepEqual(phases, ["bad failed", "gone cancelled", "kept done", "late cancelled"]);
  });
});

describe("a bad file", () => {
  test("ends with 2, lists everything, and runs nothing", async () => {
    using place = planDirectory(`tasks:\n  a: { run: ${note("a")}, need: b }\n  b: { run: ${note("b")}, timeout: 5x }`);
    const { code, out, err } = await place.run();
    assert.deepEqual([code, out, place.ran(), place.has(".drover")], [2, "", [], false]);
    assert.match(err, /^error: plan.yml has 2 problems\nplan.yml:2:\d+: tasks.a has no "need"; did you mean needs\?\n/);
    assert.match(err, /\nplan.yml:3:\d+: tasks.b.timeout is "5x", and must be a span/);
    assert.match(err, /\nhint: {2}nothing has run; npx drover run --print-schema explains every key\n$/);
  });

  test("with --json the problems are data", async () => {
    using place = planDirectory("tasks: { a: { run: a, need: b } }");
    const { code, err } = await place.run(["--json"]);
    const { code: name, details } = JSON.parse(err);
    assert.deepEqual([code, name], [2, "bad_plan"]);
    const origin = { kind: "file", file: "plan.yml", line: 1, column: 23 };
    assert.deepEqual(details.problems[0].origin, origin);
  });

  const calls: [name: string, args: string[], err: RegExp][] = [
    ["a file that is not there", ["nowhere.yml"], /^error: there is no file nowhere.yml\n/],
    ["a directory", ["./sub.yml"], /^error: \.\/sub\.yml is not a file\nhint: {2}give the path of a plan file/],
    [
      "a contradiction",
      ["--fail-fast", "--keep-going"],
      /^error: --fail-fast and --keep-going contradict each other\n/,
    ],
    ["no slots", ["-j", "0"], /It must be a whole number from 1 to 10000/],
  ];
  for (const [name, args, expected] of calls)
    test(name, async () => {
      using place = planDirectory("tasks: { a: a }");
      mkdirSync(join(place.directory, "sub.yml"));
      const { code, err } = await place.run(args);
      assert.equal(code, 2);
      assert.match(err, expected);
    });
});

test("with --json each thing that happens is a line, and the end is one too", async () => {
  using place = planDirectory(
    `${QUICK}tasks:\n  good: echo hi\n  bad: { run: "exit 3", needs: good }\n  last: { run: x, needs: bad }`,
  );
  const { code, out } = await place.run(["--json", "--output"]);
  assert.equal(code, 1);
  const lines = out
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  assert.deepEqual(
    lines.map(({ event, task }) => (task === undefined ? event : `${event} ${task}`)),
    ["begun", "started good", "output good", "done good", "started bad", "failed bad", "skipped last", "ended"],
  );
  const { how, exitCode, counts, tasks } = lines.at(-1) as { counts: object; tasks: object[] } & Record<
    string,
    unknown
  >;
  assert.deepEqual([how, exitCode], ["over", 1]);
  assert.deepEqual(counts, {
    ...{
      waiting: 0,
      running: 0,
      parked: 0,
      awaiting: 0,
      resting: 0,
      done: 1,
      failed: 1,
      skipped: 1,
      cancelled: 0,
      before: 0,
      all: 3,
    },
  });
  const { tookMs: _, taskId, log, ...bad } = tasks[1] as Record<string, string>;
  assert.deepEqual(bad, { task: "bad", state: "failed", attempts: 1, why: "exit code 3" });
  assert.match(place.read(String(log).slice(place.directory.length + 1)), /note outcome: failed: exit code 3/);
  assert.match(String(taskId), /^plan\.bad\.[0-9a-f]{12}\.[0-9a-f]{8}$/);
});

test("a log that cannot be written is said so, and nothing runs", async () => {
  using place = planDirectory("tasks: { a: echo a >> ran }");
  place.write(".drover", "not a directory");
  const { code, err } = await place.run();
  assert.deepEqual([code, place.ran()], [6, []]);
  assert.match(err, /^error: \S+\.drover\/runs\/plan: .* is a file, or lies under one/);
  assert.match(
    err,
    /\nhint: {2}nothing has run; --data names the directory of the log, and it is made if it is missing/,
  );
  const named = await place.run(["plan.yml", "--data", "plan.yml"]);
  assert.deepEqual([named.code, named.err.includes("hint:  nothing has run; --data names")], [6, true]);
});

test("a log below what is no directory is said so, and the run ends", async () => {
  using place = planDirectory("tasks:\n  a: echo a >> ran");
  place.write("file", "");
  const { code, err } = await place.run(["--alone", "--data", "file/log"]);
  assert.equal(code, 6, err);
  assert.match(err, /\nhint: {2}nothing has run; --data names the directory of the log/);
});

test("a second run of the same plan at the same time is refused", async () => {
  using place = planDirectory(`tasks:\n  a: { run: "read x < a.pipe; ${note("a")}" }`);
  place.pipe("a.pipe");
  const { terminal, ended } = place.start();
  await terminal.saw("start     a");
  for (const args of [[], ["--fresh"]]) {
    const { code, out, err } = await place.run(args);
    assert.deepEqual([code, out], [6, ""]);
    assert.match(
      err,
      /^error: this plan is running already: its log \S+\.drover\/runs\/plan is in use by another process\n/,
    );
  }
  assert.equal((await place.run(["--dry-run"])).code, 0);
  await place.letGo("a.pipe");
  assert.equal((await ended).code, 0);
  assert.deepEqual(place.ran(), ["a"]);
});
