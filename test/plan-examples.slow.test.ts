/**
 * Every plan in examples/plans/ is right by its schema, runs in a place of its own, and says what it should.
 *
 * Agents are played by a script that is called like the real one.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { Compile } from "typebox/schema";
import { parse } from "yaml";
import { type PlanDirectory, planDirectory, steady } from "./kits/cli/plan-directory.ts";

const root = join(import.meta.dirname, "..");
const examples = globSync("examples/plans/*.yml", { cwd: root }).sort();
const textOf = (path: string): string => readFileSync(join(root, path), "utf8");
const placeOf = (name: string): PlanDirectory => planDirectory(textOf(`examples/plans/${name}.yml`));

describe("every plan", () => {
  const schema = Compile(JSON.parse(textOf("schema/plan.schema.json")));
  test("there are some", () => assert.ok(examples.length >= 3));
  for (const path of examples)
    test(`${path} is right by the schema that editors use, and names it`, () => {
      const text = textOf(path);
      assert.match(text, /^# yaml-language-server: \$schema=..\/..\/schema\/plan.schema.json\n/);
      assert.deepEqual(schema.Errors(parse(text)), [true, []]);
    });
  test("the schema finds a mistake", () =>
    assert.equal(schema.Check({ tasks: { a: { run: "a", need: "b" } } }), false));
});

test("until-green goes on until its check is content", async () => {
  using place = placeOf("until-green");
  const { code, out } = await place.run(["--output", "-j", "1"]);
  assert.equal(code, 0);
  const lines = steady(out, place);
  assert.equal(
    lines.filter((line) => /^round +code +the tests fail; round [23] of 5 is next/.test(line)).length,
    2,
    out,
  );
  const spoken = lines.filter((line) => line.startsWith("report | "));
  assert.deepEqual(spoken, ["report | round 1", "report | round 2", "report | round 3"]);
});

test("hello says hello", async () => {
  using place = placeOf("hello");
  const { code, out } = await place.run(["--output", "-j", "1"]);
  assert.equal(code, 0);
  const spoken = steady(out, place).filter((line) => line.includes(" | "));
  assert.deepEqual(spoken, ["hello | hello", "world | world", "both | both have spoken"]);
});

test("feature tries again what failed, and all of it ends well", async () => {
  using place = placeOf("feature");
  const { code, out } = await place.run();
  assert.equal(code, 0, out);
  const lines = steady(out, place);
  assert.equal(lines.at(-1), "feature: 9 of 9 done, in T.");
  assert.ok(
    lines.some((line) => line.startsWith("again  code[checkout]  exit code 1: it does not compile")),
    out,
  );
  assert.ok(lines.includes("code[checkout]  done  2  T"), out);
});

test("results hands what one task answered to the next, as data", async () => {
  using place = placeOf("results");
  const { code, out } = await place.run(["--output"]);
  assert.equal(code, 0, out);
  assert.ok(steady(out, place).includes('review | It\'s $(not run), in ["cart","mail"]'), out);
  assert.ok(steady(out, place).includes("mail | mailed"), out);
  assert.match(out, /: 4 of 5 done, 1 skipped, in /);
});

describe("agents", () => {
  const claude = `#!/bin/sh
case "$(cat)" in
  *login*) echo page > login.html; git add login.html; git -c user.name=a -c user.email=a@b commit -q -m login;;
esac
echo '{"type":"result","result":"ok","session_id":"s","usage":{"input_tokens":900,"output_tokens":100}}'
`;

  test("work on branches of their own, and only what they changed is kept", async () => {
    using place = placeOf("agents");
    const git = (...words: string[]): void => void execFileSync("git", words, { cwd: place.directory });
    git("init", "-q");
    git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "first");
    place.write("claude", claude);
    chmodSync(join(place.directory, "claude"), 0o755);
    const { code, out } = await place.run(["--output"], { env: { PATH: `${place.directory}:${process.env.PATH}` } });
    assert.equal(code, 0, out);
    const branches = steady(out, place).filter((line) => line.startsWith("summary | "));
    assert.deepEqual(branches, ["summary | + drover/agents/login"]);
  });

  test("are planned without any of it", async () => {
    using place = placeOf("agents");
    const { code, out } = await place.run(["--dry-run"]);
    assert.equal(code, 0);
    assert.match(out, /^agents: 4 tasks in 2 waves, 4 to run, 4 at once\n/);
  });
});
