/**
 * A plan file: what it means, and every mistake found before anything runs, each with its line and column.
 */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import fc from "fast-check";
import { readConfig } from "../../core/config/index.ts";
import { orderOf, withNeeds } from "../../plan/order.ts";
import { planSchema, planSchemaText, taskSection } from "../../plan/schema.ts";
import type { PlanTask } from "../../plan/tasks.ts";
import { shownOrigin } from "../config/problem.ts";
import { BadPlan, type PlanFile, readPlan } from "./plan-file.ts";

const root = join(import.meta.dirname, "../../..");
const read = (text: string, file = "plan.yml"): PlanFile => readPlan({ file, text, directory: "/here" });
const taskOf = (text: string, name: string): PlanTask => {
  const found = read(text).tasks.find((task) => task.name === name);
  assert.ok(found !== undefined, `there is no ${name}`);
  return found;
};

/** Every complaint as `line:column message`. */
function complaints(text: string, file = "plan.yml"): string[] {
  try {
    read(text, file);
  } catch (error) {
    if (!(error instanceof BadPlan)) throw error;
    return error.problems.map(({ message, origin }) => {
      const place = origin === null ? "" : shownOrigin(origin).replace(`${file}:`, "");
      return `${place} ${message}`;
    });
  }
  return [];
}

describe("a plan", () => {
  test("a task may be no more than a command line", () => {
    const { name, tasks, slots } = read("tasks: { hello: echo hello }");
    assert.deepEqual([name, slots, tasks.map((task) => task.name)], ["plan", null, ["hello"]]);
    assert.deepEqual(tasks[0]?.work, {
      command: { kind: "line", line: "echo hello" },
      ...{ cwd: ".", env: {}, passEnv: [], input: "", worktree: null },
    });
    assert.deepEqual(tasks[0]?.rules, {
      ...{ agent: "me", project: "default", type: "command", locks: [], attempts: 1, provider: null, timeoutMs: null },
      ...{ idleTimeoutMs: null, onDependencyFailure: "skip" },
    });
  });

  test("a task may wait for its children, and for nothing else", () => {
    assert.equal(taskOf("tasks: { a: { run: a, wait: children } }", "a").rules.wait, "children");
    assert.deepEqual(complaints("tasks: { a: { run: a, wait: parents } }").length, 1);
  });

  test("a task may say what its worker must offer and where it rather runs; so may the defaults", () => {
    const text = `defaults: { capabilities: gpu, zone: eu-1 }
tasks:
  plain: train
  own: { run: train, capabilities: [ssd, gpu, ssd], zone: us-1 }
  none: { run: train, capabilities: [] }`;
    const rulesOf = (name: string): unknown[] => {
      const { capabilities, zone } = taskOf(text, name).rules;
      return [capabilities, zone];
    };
    assert.deepEqual(rulesOf("plain"), [["gpu"], "eu-1"]);
    assert.deepEqual(rulesOf("own"), [["gpu", "ssd"], "us-1"]);
    assert.deepEqual(rulesOf("none"), [undefined, "eu-1"]);
    assert.match(complaints("tasks: { a: { run: a, capabilities: [g pu] } }")[0] ?? "", /a\.capabilities/);
  });

  test("needs with something wrong in them are listed once, and only where they are needs", () => {
    const text = `tasks:
  a: { run: a, atempts: 2 }
  b: { run: "echo \${{ needs.elsewhere.result }}", needs: a }
  c: { run: "echo \${{ needs.elsewhere.result }}" }`;
    const said = complaints(text).flatMap((line) => /elsewhere is not among its needs; (.*)$/.exec(line)?.[1] ?? []);
    assert.deepEqual(said, ["its needs are a", "it has no needs"]);
  });

  test("defaults hold for every task that says nothing else, and env is merged by name", () => {
    const text = `
defaults: { agent: ann, timeout: 30m, attempts: 2, env: { A: 1, B: two }, shell: false, worktree: { base: main } }
tasks:
  plain: { run: 'say "two words"' }
  own: { run: 'a | b', agent: bob, timeout: null, attempts: 5, env: { B: 2, C: true }, shell: true, worktree: false }`;
    const { work, rules } = taskOf(text, "plain");
    assert.deepEqual(work.command, { kind: "words", words: ["say", "two words"] });
    assert.deepEqual([work.env, work.worktree], [{ A: "1", B: "two" }, { base: "main" }]);
    assert.deepEqual([rules.agent, rules.timeoutMs, rules.attempts], ["ann", 1_800_000, 2]);
    const other = taskOf(text, "own");
    assert.deepEqual([other.work.env, other.work.worktree], [{ A: "1", B: "2", C: "true" }, null]);
    assert.deepEqual([other.rules.agent, other.rules.timeoutMs, other.rules.attempts], ["bob", null, 5]);
  });

  test("an agent has a prompt, a model and words of its own", () => {
    const text = `tasks: { review: { preset: claude, prompt: "Look at it.", model: opus, args: [--max-turns, "5"] } }`;
    const command = {
      kind: "agent",
      preset: "claude",
      prompt: "Look at it.",
      model: "opus",
      args: ["--max-turns", "5"],
    };
    assert.deepEqual(taskOf(text, "review").work.command, command);
  });

  test("for makes a task of each combination, in the order a person would write them", () => {
    const text = `
tasks:
  build: { run: make, for: { OS: [linux, mac], NODE: [22, 24] } }
  test:
    run: [run, "\${OS}", "\${HOME}"]
    needs: "build[\${OS},24]"
    cwd: "out/\${OS}"
    locks: "db-\${OS}"
    for: { OS: [mac] }
  all: { needs: [build, test] }`;
    const { tasks } = read(text);
    const builds = ["build[linux,22]", "build[linux,24]", "build[mac,22]", "build[mac,24]"];
    assert.deepEqual(
      tasks.map(({ name }) => name),
      [...builds, "test[mac]", "all"],
    );
    assert.deepEqual(tasks[1]?.work.env, { OS: "linux", NODE: "24" });
    const { needs, work, rules } = taskOf(text, "test[mac]");
    // biome-ignore lint/suspicious/noTemplateCurlyInString: only the task's own values are put in
    assert.deepEqual(work.command, { kind: "words", words: ["run", "mac", "${HOME}"] });
    assert.deepEqual([needs, work.cwd, rules.locks], [["build[mac,24]"], "out/mac", ["db-mac"]]);
    assert.deepEqual(taskOf(text, "all").needs, [...builds, "test[mac]"]);
  });

  test("tasks come in an order in which they can go, whatever the order in the file", () => {
    const { tasks } = read("tasks: { c: { run: c, needs: b }, b: { run: b, needs: [a, a] }, a: a }");
    assert.deepEqual(
      tasks.map(({ name, needs }) => [name, needs]),
      [
        ["a", []],
        ["b", ["a"]],
        ["c", ["b"]],
      ],
    );
  });

  test("anchors share settings", () => {
    const text = `
tasks:
  a: &long { run: a, timeout: 1h, attempts: 4 }
  b: { <<: *long, run: b, attempts: 1 }`;
    const { work, rules } = taskOf(text, "b");
    assert.deepEqual([work.command, rules.timeoutMs, rules.attempts], [{ kind: "line", line: "b" }, 3_600_000, 1]);
  });

  test("its rules become a config in which nothing expires", () => {
    const { config, slots, killGraceMs, maxWorktrees } = read(`
workers: { slots: 3, killGrace: 2s, maxWorktrees: 7 }
projects: { web: { weight: 2, budget: 5000 }, api: { budget: { limit: 9, window: 1h } } }
budget: 100
limits: { maxInFlight: 4, perType: { code: 1 } }
scheduler: { retry: { base: 2s } }
gates: { anthropic/default: { requests: 5, window: 1m } }
tasks: { a: a }`);
    assert.deepEqual([slots, killGraceMs, maxWorktrees], [3, 2000, 7]);
    assert.deepEqual(config, {
      scheduler: {
        ...{
          resultTtl: "3650d",
          failedTtl: "3650d",
          failedMax: 10_000,
          planTtl: "3650d",
          remember: "3650d",
          maxPerAgent: 10_000,
          maxBatch: 10_000,
        },
        ...{ retry: { base: "2s" }, maxInFlight: 4, perType: { code: 1 } },
      },
      budget: { limit: 100, window: "3650d" },
      projects: {
        autoCreate: true,
        named: {
          web: { weight: 2, budget: { limit: 5000, window: "3650d" } },
          api: { budget: { limit: 9, window: "1h" } },
        },
      },
      gates: { default: { permitTtl: "30d" }, named: { "anthropic/default": { requests: 5, window: "1m" } } },
      log: { retain: "3650d" },
    });
  });

  test("a project or gate has any name, also that of a knob or of what every object has", () => {
    for (const name of ["named", "autoCreate", "constructor", "__proto__"]) {
      const { config } = read(
        `projects: { default: { maxConcurrent: 7 }, ${name}: { weight: 2 } }
gates: { ${name}: { requests: 5 } }
tasks: { a: { run: a, project: ${name} } }`,
      );
      const whole = readConfig(config);
      assert.ok(whole.ok, name);
      const { projects, gates } = whole.value;
      assert.deepEqual(Object.keys(projects.named), [name]);
      assert.deepEqual(new Map(Object.entries(projects.named)).get(name), { ...projects.default, weight: 2 });
      assert.equal(projects.default.maxConcurrent, 7);
      assert.equal(new Map(Object.entries(gates.named)).get(name)?.requests, 5);
    }
  });

  test("a plan without a name has that of its file", () => {
    assert.equal(read("tasks: { a: a }", "plans/night-build.yaml").name, "night-build");
    assert.deepEqual(complaints("tasks: { a: a }", "my plan.yml"), [
      '1:1 the plan has no name, and "my plan" cannot be one; add name: at the top',
    ]);
  });
});

const upTo = (count: number): number[] => Array.from({ length: count }, (_, at) => at);
type Mistake = [name: string, text: string, complaints: string[]];
const SPAN = "text such as 250ms, 30s, 5m, 24h, 30d";
const mistakes: Mistake[] = [
  ["nothing at all", "", ["1:1 a plan begins with names, such as tasks:"]],
  ["a list", "- a", ["1:1 a plan begins with names, such as tasks:"]],
  [
    "no tasks",
    "name: x\ntasks: {}",
    ["2:1 there are no tasks; add tasks: with at least one, such as  hello: echo hello"],
  ],
  [
    "YAML that is none",
    "tasks: [a",
    ["1:10 this is not YAML: Flow sequence in block collection must be sufficiently indented and end with a ]"],
  ],
  ["a task twice", "tasks:\n  a: x\n  a: y", ["3:3 duplicate key: this name stands twice here; keep one of the two"]],
  ["a tab", "tasks:\n\ta: x", ["2:1 a tab cannot indent YAML; use spaces"]],
  ["a second document", "tasks: { a: a }\n---\nb: c", ["2:1 a plan is one document; take out what follows the ---"]],
  ["a tag", "tasks: { a: !!js/regexp x }", ["1:13 tags are not read here; write the plain value"]],
  ["a section nobody knows", "task: { a: a }\ntasks: { a: a }", ['1:1 a plan has no "task"; did you mean tasks?']],
  ["a key nobody knows", "tasks: { a: { run: a, neds: [b] } }", ['1:23 tasks.a has no "neds"; did you mean needs?']],
  ["another tool's run", "tasks: { a: { command: a } }", ['1:15 tasks.a has no "command"; did you mean run?']],
  ["another's if", "tasks: { a: { run: a, when: b } }", ['1:23 tasks.a has no "when"; did you mean if?']],
  ["another's needs", "tasks: { a: { depends_on: b } }", ['1:15 tasks.a has no "depends_on"; did you mean needs?']],
  ["another's tasks", "jobs: { a: a }\ntasks: { a: a }", ['1:1 a plan has no "jobs"; did you mean tasks?']],
  ["a version of the future", "version: 2\ntasks: { a: a }", ["1:10 version is 2, and must be 1"]],
  [
    "a span without a unit we know",
    "tasks: { a: { run: a, timeout: 10min } }",
    [`1:32 tasks.a.timeout is "10min", and must be a span of at least 1 ms: ${SPAN}, or null`],
  ],
  [
    "a command that is a number",
    "tasks: { a: { run: 5 } }",
    ["1:20 tasks.a.run is 5, and must be a command line, or a list of words"],
  ],
  [
    "a task that is a list",
    "tasks: { a: [make] }",
    ['1:13 tasks.a is ["make"], and must be a command line, or an object such as { run: "make test", needs: [build] }'],
  ],
  [
    "a name that cannot be one",
    "tasks: { 1st: a }",
    ['1:10 "1st" cannot be a name here: it must be a name of letters, digits, _, . and -, not beginning with a digit'],
  ],
  [
    "a need nobody has",
    "tasks: { build: a, b: { run: b, needs: [biuld] } }",
    ['1:41 b needs "biuld", which is no task; did you mean build?'],
  ],
  [
    "a need nearest to itself",
    "tasks: { a: { run: a, needs: [c] } }",
    ['1:31 a needs "c", which is no task; the tasks are a'],
  ],
  [
    "a need far from anything",
    "tasks: { a: a, b: { run: b, needs: zebra } }",
    ['1:36 b needs "zebra", which is no task; the tasks are a, b'],
  ],
  ["itself", "tasks: { a: { run: a, needs: a } }", ["1:30 a needs itself; take it out of its needs"]],
  [
    "a cycle",
    "tasks:\n  a: { run: a, needs: b }\n  b: { needs: [c] }\n  c: { needs: [a] }\n  d: { run: d, needs: a }",
    ["2:23 these tasks wait for each other in a cycle: a → b → c → a; take one of the needs out"],
  ],
  [
    "nothing to do",
    "tasks: { a: {} }",
    ["1:10 a says nothing to do; give it run:, preset: or action:, or needs: if it only waits for others"],
  ],
  [
    "two things to do",
    "tasks: { a: { run: a, preset: codex, prompt: p } }",
    ["1:23 a has both run and preset; a task does one thing"],
  ],
  [
    "an agent without a prompt",
    "tasks: { a: { preset: aider } }",
    ["1:10 a starts aider without a prompt; add prompt: with what it is to do"],
  ],
  ["a prompt without an agent", "tasks: { a: { run: a, prompt: p } }", ["1:23 a.prompt means nothing without preset"]],
  [
    "input for an agent",
    "tasks: { a: { preset: claude, prompt: p, input: x } }",
    ["1:42 a.input means nothing with preset"],
  ],
  [
    "a shell's business without a shell",
    "tasks: { a: { run: 'a | b', shell: false } }",
    [
      "1:20 the command holds |, which needs a shell; quote it with single quotes if it is plain text, " +
        "or ask for a shell (shell: true): a | b",
    ],
  ],
  [
    "a shell for a list of words",
    "tasks: { a: { run: [a], shell: true } }",
    ["1:32 a has a list of words, which no shell reads"],
  ],
  ["blanks only", "tasks: { a: { run: '  ' } }", ["1:20 a.run is empty; give a command"]],
  [
    "a name that is ours",
    "tasks: { a: { run: a, env: { DROVER_TASK_ID: x } } }",
    ["1:30 DROVER_TASK_ID is set by Drover for every task and cannot be given"],
  ],
  ["a value twice", "tasks: { a: { run: a, for: { X: [1, 2, 1] } } }", ['1:40 a.for.X has "1" twice']],
  [
    "a variable from two sides",
    "tasks: { a: { run: a, for: { X: [1] }, env: { X: 2 } } }",
    ["1:47 X stands in both for and env"],
  ],
  [
    "values that make the same name",
    'tasks: { a: { run: a, for: { X: ["1,2", "1"], Y: ["3", "2,3"] } } }',
    ["1:28 two combinations of values are both called a[1,2,3]"],
  ],
  [
    "an expression that names no need",
    `tasks:\n  impl: a\n  docs: b\n  c:\n    needs: [impl]\n    run: echo \${{ needs.imp.result }}`,
    ["6:10 c: imp is not among its needs; did you mean impl?"],
  ],
  [
    "a need of another task in an expression, and one in an agent's prompt and words",
    "tasks:\n  impl: a\n  c:\n    preset: codex\n" +
      `    prompt: go \${{ needs.impl.result }}\n    args: [a, '\${{ needs.x.state }}']`,
    ["5:13 c: impl is not among its needs; it has no needs", "6:15 c: x is not among its needs; it has no needs"],
  ],
  [
    "a field that no need has, in a variable of the defaults",
    `defaults: { env: { X: '\${{ needs.a.reslt }}' } }\n` +
      "tasks: { a: { run: a, env: { X: 1 } }, b: { needs: a, run: b } }",
    ['1:23 b: needs.a has no "reslt"; did you mean result?'],
  ],
  [
    "an expression that cannot be read",
    `tasks: { a: a, b: { needs: a, run: [x, '\${{ needs.a-b.state }}'] } }`,
    ['1:40 b: "needs.a-b.state" cannot be read at "-b.state": a name with - in it stands in brackets: needs["a-b"]'],
  ],
  [
    "an expression that is never closed",
    `tasks: { a: a, b: { needs: a, input: 'x \${{ needs.a.state', run: cat } }`,
    [`1:38 b: "\${{ needs.a.state" has no }} that closes it`],
  ],
  [
    "an expression that no shell would read",
    `tasks:\n  a: a\n  b:\n    needs: a\n    run: |\n      echo hello\n      echo '\${{ needs.a.result }}'`,
    [
      "5:10 b: an expression is no whole word here: it stands in single quotes, in which a shell reads no values; " +
        "use double quotes, or none",
    ],
  ],
  [
    "a condition that names no need, and one that cannot be read",
    "tasks:\n  a: a\n  b: { run: b, if: needs.a.state }\n  c: { run: c, needs: a, if: needs.a.state = 1 }",
    [
      "3:20 b.if: a is not among its needs; it has no needs",
      '4:30 c: "needs.a.state = 1" cannot be read at "= 1": == compares',
    ],
  ],
  [
    "an expression in the check of a loop that names no need, and one that no shell would read",
    `tasks:\n  a: a\n  b: { run: b, needs: a, loop: { until: 'test \${{ needs.x.state }}', max: 2 } }\n` +
      `  c:\n    run: c\n    needs: a\n    loop:\n      max: 2\n      until: grep '\${{ needs.a.result }}' x`,
    [
      "3:41 b: x is not among its needs; did you mean a?",
      "9:14 c: an expression is no whole word here: it stands in single quotes, in which a shell reads no values; " +
        "use double quotes, or none",
    ],
  ],
  [
    "an expression where none is read",
    `tasks: { a: a, b: { needs: a, run: b, cwd: '\${{ needs.a.result }}' } }`,
    ["1:44 b.cwd holds an expression; those stand in run, args, env, prompt, input, params and loop.until"],
  ],
  [
    "a lock that cannot be one",
    `tasks: { a: { run: a, locks: "db \${X}", for: { X: [1] } }, b: { run: b, locks: "db-\${X}", for: { X: [c d] } } }`,
    [
      `1:30 tasks.a.locks is "db \${X}", and must be a name, or a list of names`,
      `1:80 b[c d].locks is "db-c d", and must be a name of 1 to 256 characters without blanks, ` +
        'and not "None" or "null"',
    ],
  ],
  [
    "more needs than the engine takes",
    `tasks: { a: { run: a, for: { X: [${upTo(1001)}] } }, b: { needs: a } }`,
    ["1:3947 b needs 1001 tasks; at most 1000 are taken: put one that only has needs between"],
  ],
  [
    "more tasks than a plan can have",
    `tasks: { a: { run: a, for: { X: [${upTo(101)}], Y: [${upTo(100)}] } } }`,
    ["1:23 a stands for 10100 tasks; a plan has at most 10000"],
  ],
  [
    "a project that is not listed",
    "projects: { web: {} }\ntasks: { a: { run: a, project: wbe } }",
    ["2:32 tasks.a.project is wbe, which is not in projects; did you mean web?"],
  ],
  [
    "a gate that is not listed",
    "gates: { api: {} }\ndefaults: { provider: zebra }\ntasks: { a: a }",
    ["2:23 defaults.provider is zebra, which is not in gates; add it there, or take it out here"],
  ],
  [
    "a limit said twice",
    "limits: { maxInFlight: 1 }\nscheduler: { maxInFlight: 2 }\ntasks: { a: a }",
    ["1:11 maxInFlight stands in both limits and scheduler; say it once"],
  ],
  [
    "a limit of nothing",
    "limits: { maxInFlight: 0 }\ntasks: { a: a }",
    ["1:24 limits.maxInFlight is 0, and must be a whole number from 1 to 9007199254740991"],
  ],
  [
    "rules that contradict each other",
    "scheduler: { retry: { base: 10s, max: 1s } }\ntasks: { a: a }",
    ["1:39 scheduler.retry.max is 1000, and must be at least scheduler.retry.base (10000 ms)"],
  ],
];

const WRONG_TREES: [name: string, task: string, says: RegExp][] = [
  [
    "a name that is no need",
    "{ run: x, needs: impl, worktree: { from: imp } }",
    /^6:.* review\.worktree names imp, which is not among its needs; did you mean impl\?$/,
  ],
  [
    "a task that is not needed",
    "{ run: x, needs: impl, worktree: { from: docs } }",
    /^6:.* names docs, which is not among its needs; its needs are impl$/,
  ],
  [
    "a task without needs",
    "{ run: x, worktree: { merge: [impl] } }",
    /^6:.* names impl, which is not among its needs; it has none$/,
  ],
  [
    "a need without a worktree",
    "{ run: x, needs: [impl, plain], worktree: { merge: [impl, plain] } }",
    /^6:.* names plain, which has no worktree, so it leaves no branch; give it worktree: true$/,
  ],
  [
    "a need that runs nothing",
    "{ run: x, needs: gate, worktree: { from: gate } }",
    /^6:.* names gate, which has no worktree/,
  ],
  [
    "one of many",
    "{ run: x, needs: docs, worktree: { from: docs } }",
    /^6:.* begins from docs, which is 2 tasks; name one, or use merge$/,
  ],
  [
    "from and base",
    "{ run: x, needs: impl, worktree: { from: impl, base: main } }",
    /^6:.* has both from and base; it begins at one place$/,
  ],
  ["from and merge", "{ run: x, needs: impl, worktree: { from: impl, merge: impl } }", /^6:.* has both from and merge/],
  ["an unknown key", "{ run: x, needs: impl, worktree: { form: impl } }", /^6:.* has no "form"; did you mean from\?$/],
  [
    "an expression",
    `{ run: x, needs: impl, worktree: { from: '\${{ needs.impl.branch }}' } }`,
    /^6:.* which is not among its needs/,
  ],
];

describe("a worktree", () => {
  test("a worktree begins from needs by their names, and of a need with many values all are merged", () => {
    const text = `
tasks:
  part: { run: x, worktree: true, for: { P: [a, b] } }
  docs: { run: x, worktree: { base: main } }
  both: { run: x, needs: [part, docs], worktree: { base: next, merge: [docs, part] } }
  one: { run: x, needs: part, for: { P: [a] }, worktree: { from: "part[\${P}]" } }
  all: { run: x, needs: docs, worktree: { merge: docs } }`;
    assert.deepEqual(taskOf(text, "both").work.worktree, { base: "next", merge: ["docs", "part[a]", "part[b]"] });
    assert.deepEqual(taskOf(text, "one[a]").work.worktree, { base: "HEAD", from: "part[a]" });
    assert.deepEqual(taskOf(text, "all").work.worktree, { base: "HEAD", merge: ["docs"] });
  });

  for (const [name, task, says] of WRONG_TREES)
    test(`a worktree that cannot begin is refused with its line: ${name}`, () => {
      const before = `tasks:
  impl: { run: x, worktree: true }
  plain: { run: x }
  docs: { run: x, worktree: true, for: { P: [a, b] } }
  gate: { needs: impl, worktree: true }`;
      const found = complaints(`${before}\n  review: ${task}`);
      assert.equal(found.length, 1, found.join("\n"));
      assert.match(found[0] ?? "", says);
    });

  test("defaults say nothing of needs", () => {
    const [found = ""] = complaints("defaults: { worktree: { from: a } }\ntasks: { a: x, b: { run: x, needs: a } }");
    assert.match(found, /^1:.*defaults\.worktree has no "from"; it may have base$/);
  });
});

describe("a mistake is found before anything runs", () => {
  for (const [name, text, expected] of mistakes) test(name, () => assert.deepEqual(complaints(text), expected));

  test("all of them are told at once, from top to bottom", () => {
    const text = `
workers: { slot: 4 }
defaults: { timeout: 30x, env: { DROVER_ATTEMPT: 3 } }
limits: { maxInFlight: 0 }
tasks:
  spec: make spec
  code: { run: [npm, test], needs: [specc] }
  bad: { run: 5, neds: [a] }
  late: { needs: "bad[3]", run: "" }
  none: {}`;
    assert.deepEqual(
      complaints(text).map((line) => line.split(" ")[0]),
      ["2:12", "3:22", "3:34", "4:24", "7:37", "8:15", "8:18", "9:33", "10:3"],
    );
  });

  test("very many are not all told", () => {
    const tasks = Array.from({ length: 80 }, (_, at) => `  t${at}: {}`).join("\n");
    const told = complaints(`tasks:\n${tasks}`);
    assert.deepEqual([told.length, told.at(-1)], [51, " and 30 more"]);
  });

  test("a long chain is no cycle, and quick to read", () => {
    const tasks = Array.from(
      { length: 5000 },
      (_, at) => `  t${at}: { run: x${at === 0 ? "" : `, needs: t${at - 1}`} }`,
    );
    assert.equal(read(`tasks:\n${tasks.reverse().join("\n")}`).tasks.at(-1)?.name, "t4999");
  });

  test("whatever is in the file, it is read or complained of", () => {
    const leaf = fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constant(null), fc.constantFrom("a", "b", "30s"));
    const keys = ["run", "needs", "for", "env", "preset", "prompt", "worktree", "timeout", "locks", "x", "__proto__"];
    const value = fc.oneof(leaf, fc.array(leaf, { maxLength: 3 }), fc.dictionary(fc.constantFrom(...keys), leaf));
    const task = fc.oneof(value, fc.dictionary(fc.constantFrom(...keys), value));
    const tops = ["tasks", "defaults", "projects", "limits", "workers", "gates", "budget", "name", "version"];
    const plan = fc.dictionary(
      fc.constantFrom(...tops),
      fc.oneof(value, fc.dictionary(fc.constantFrom("a", "b", ...keys), task)),
    );
    fc.assert(
      fc.property(plan, (given) => void complaints(JSON.stringify(given))),
      { numRuns: process.env.DROVER_QUICK === undefined ? 200 : 40 },
    );
  });
});

describe("the order", () => {
  const tasks = [
    { name: "d", needs: ["b", "c"] },
    { name: "a", needs: [] },
    { name: "b", needs: ["a"] },
    { name: "c", needs: ["a"] },
    { name: "e", needs: [] },
  ];
  test("goes in waves, each when those before are done", () => {
    const names = orderOf(tasks).waves.map((wave) => wave.map(({ name }) => name));
    assert.deepEqual(names, [["a", "e"], ["b", "c"], ["d"]]);
  });
  test("a task is chosen with all that it needs", () => {
    assert.deepEqual(
      withNeeds(tasks, ["b"]).map(({ name }) => name),
      ["a", "b"],
    );
  });
});

test("schema/plan.schema.json is what drover run --print-schema prints", () => {
  const hint = "it is out of step: npx drover run --print-schema > schema/plan.schema.json";
  assert.ok(readFileSync(join(root, "schema/plan.schema.json"), "utf8") === planSchemaText(), hint);
});

test("the guide names every key of a plan, and every key of a task", () => {
  const guide = readFileSync(join(root, "docs/guide/plan-files.md"), "utf8");
  const keysOf = (schema: unknown): string[] => Object.keys((schema as { properties: object }).properties);
  const missing = [...keysOf(planSchema), ...keysOf(taskSection)].filter(
    (key) => key !== "$schema" && !new RegExp(`(\`|^)${key}(\`|:)`, "m").test(guide),
  );
  assert.deepEqual(missing, []);
});
