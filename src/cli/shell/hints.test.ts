/**
 * What people stumble over in a file or an address is named as itself, with what to do.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { emptyDirectory } from "../../../test/kits/cli/served.ts";
import { testTerminal } from "../../../test/kits/cli/test-terminal.ts";
import { answering } from "../../../test/kits/loopback.ts";
import { runCommandLine } from "../command-line.ts";
import { VERBS } from "../verbs.ts";
import { noSuchTask } from "./meant.ts";
import { nameIn } from "./problem.ts";

async function complaint(args: readonly string[], file: string, text: string, more = {}): Promise<string> {
  const cwd = emptyDirectory();
  writeFileSync(join(cwd, file), text);
  const terminal = testTerminal({ cwd, home: cwd, env: { PATH: process.env.PATH, ...more } });
  assert.notEqual(await runCommandLine(args, terminal, VERBS), 0);
  return terminal.complained();
}
const ofConfig = (text: string): Promise<string> => complaint(["config", "check"], "drover.yml", text);
const ofPlan = (text: string): Promise<string> => complaint(["run", "plan.yml", "--dry-run"], "plan.yml", text);

test("a name that is there several times is one of those that are meant", () => {
  const names = ["code[a]", "code[b]", "code[a]"];
  const { problem } = noSuchTask({ message: "no", name: "code", names, typed: (one) => one, otherwise: "" });
  assert.equal(problem.hint, "it stands for 2 tasks: 'code[a]', 'code[b]'");
});

const COMMA = /inside \{ \} a comma ends a value: put a text that holds one into quotes/;
test("a comma that ended a value inside { }", async () => {
  assert.match(await ofConfig("log: { url: sqlite:a, b, retain: 3d }\n"), COMMA);
  assert.match(await ofPlan("tasks:\n  a: { run: echo one, two }\n"), COMMA);
  assert.doesNotMatch(await ofPlan("tasks:\n  a: { run: echo one, two: 3 }\n"), COMMA);
  for (const said of [
    await ofPlan("tasks:\n  a: { run: echo a, b, c }\n"),
    await ofConfig("log: { url: sqlite:a, b, c, retain: 3d }\n"),
  ])
    assert.match(
      said,
      /^error: \w+\.yml:\d:\d+: inside \{ \} a comma ends a value[^\n]*quotes\n[^,]*,[^,]*,[^,]*(,[^,]*)?$/,
    );
});

test("a line that is indented too far", async () => {
  const said = /:3:(5|7): this line is indented further than the one above, which has a value already; begin it in/;
  assert.match(await ofConfig("scheduler:\n  maxInFlight: 5\n    maxQueue: 10\n"), said);
  assert.match(await ofPlan("tasks:\n  a: { run: x }\n      b: y\n  c: z\n"), /plan\.yml:3:/);
  assert.match(await ofPlan("name: p\ntasks: 5\n    a: b\n"), said);
});

test("a list where a map is wanted", async () => {
  assert.match(
    await ofConfig("projects: [web, docs]\n"),
    /it is no list, but names with values: projects: \{ web: … \}/,
  );
  assert.match(await ofConfig("scheduler: [5]\n"), /names with values: scheduler: \{ maxInFlight: … \}/);
  const plan = await ofPlan("tasks:\n  - name: build\n    run: make\n");
  assert.match(plan, /it is no list, but names with values: tasks: \{ build: … \}/);
});

test("a map where a list is wanted", async () => {
  const said = await ofConfig("server:\n  tokens: { admin: abcdefghijklmnop }\n");
  assert.match(said, /server\.tokens must be a list: tokens: \[\{ token: …, … \}\]\n/);
  assert.doesNotMatch(said, /secret/);
});

test("https to a port that speaks http", async () => {
  await using server = await answering((_, answer) => void answer.end("{}"));
  const { port } = server;
  const said = await complaint(["tasks"], "x", "", { DROVER_URL: `https://127.0.0.1:${port}` });
  assert.match(said, new RegExp(`it does not speak https: try http://127\\.0\\.0\\.1:${port}`));
});

test("commands are told as they are typed in a clone, and no hint names a file that nobody has", async () => {
  assert.match(await ofConfig("scheduler: 5\n"), /\nhint: {2}npx drover help config says/);
  const { port, close } = await answering(() => {});
  await close();
  const away = await complaint(["tasks"], "x", "", { DROVER_URL: `http://127.0.0.1:${port}` });
  assert.match(away, new RegExp(`Start it with: npx drover serve --port ${port}\n`));
  for (const said of [
    await ofPlan("tasks: 5\n"),
    await complaint(["run"], "x", ""),
    await complaint(["run", "no.yml"], "x", ""),
  ])
    assert.doesNotMatch(said, /hint:.*\.(md|yml)/);
});

const CLONES: readonly [cwd: string, file: string, name: string][] = [
  ["/home/ann/drover", "/home/ann/drover/src/cli/shell/problem.ts", "npx drover"],
  ["/home/ann/drover/docs", "/home/ann/drover/src/cli/shell/problem.ts", "npx drover"],
  ["/home/ann/drover-2", "/home/ann/drover/src/cli/shell/problem.ts", "node ../drover/bin/drover.js"],
  ["/srv/some/where/else", "/opt/drover/src/cli/shell/problem.ts", "node /opt/drover/bin/drover.js"],
  ["/home", "/home/my stuff/drover/src/cli/shell/problem.ts", "node 'my stuff/drover/bin/drover.js'"],
  ["/home/ann", "/usr/lib/node_modules/drover/dist/cli/shell/problem.js", "drover"],
];
for (const [cwd, file, name] of CLONES)
  test(`in ${cwd}, ${file} is reached as ${name}`, () => assert.equal(nameIn(cwd, file), name));
