/**
 * The tree of agents in the README, run with stand-ins for the agents: alone, and on a server by two workers in other
 * directories. It says the same and ships the same.
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { type PlanDirectory, planDirectory } from "./kits/cli/plan-directory.ts";
import { served } from "./kits/cli/served.ts";
import { MAIN } from "./kits/serve-process.ts";

const LIMIT = { timeout: 180_000 };
const readme = readFileSync(join(import.meta.dirname, "../README.md"), "utf8");
const [, plan = ""] = /```yaml feature\.yml\n(.*?)```/s.exec(readme) ?? [];

/** It does what it is asked, and forgets half of the test in its first round: what the test printed helps. */
const CLAUDE = `#!/bin/sh
prompt=$(cat)
case "$prompt" in
  Plan*) echo "api, then web" > plan.md; said=planned ;;
  Write*)
    grep -q "$PART" "$DROVER_INPUTS_DIR/plan/plan.md" && echo "echo hello from $PART" > "$PART.sh"
    case "$prompt" in
      *"not yet"*) echo "sh $PART.sh" > "test-$PART.sh" ;;
      *) echo "echo not yet; exit 1" > "test-$PART.sh" ;;
    esac
    said="wrote $PART" ;;
  Review*) said="$(cat "$DROVER_INPUTS_DIR"/code*/*.sh | wc -l) scripts, all fine" ;;
esac
printf '{"type":"result","subtype":"success","is_error":false,"result":"%s","session_id":"s",' "$said"
printf '"total_cost_usd":0.01,"usage":{"input_tokens":100,"output_tokens":20}}\\n'
`;

function withAgent(place: PlanDirectory): NodeJS.ProcessEnv {
  mkdirSync(join(place.directory, "bin"));
  place.write("bin/claude", CLAUDE);
  chmodSync(join(place.directory, "bin/claude"), 0o755);
  place.write("feature.yml", plan);
  place.write("ISSUE.md", "say hello\n");
  return { PATH: `${join(place.directory, "bin")}:${process.env.PATH}` };
}

/** The table and the sentence, without times. */
const summaryOf = (out: string): string[] =>
  out
    .slice(out.indexOf("TASK "))
    .replaceAll(/\b[\d.]+(ms|s)\b/g, "T")
    .split("\n")
    .map((line) => line.replaceAll(/ +/g, " ").trimEnd())
    .filter((line) => line !== "");

const SUMMARY = [
  "TASK STATE ATTEMPTS ROUNDS TOOK TOKENS COST",
  "plan done 1 T 120 0.01",
  "code[api] done 2 2 of 5 T 240 0.02",
  "code[web] done 2 2 of 5 T 240 0.02",
  "review done 1 T 120 0.01",
  "ship done 1 T",
  "feature: 5 of 5 done, in T. It used 720 tokens, cost 0.06.",
];

test("the plan of the README has twenty lines", () => {
  assert.equal(plan.trimEnd().split("\n").length, 20);
});

test("the tree of the README, alone: it asks before it ships", LIMIT, async () => {
  using place = planDirectory("");
  const env = withAgent(place);
  const asked = await place.run(["feature.yml"], { env });
  assert.equal(asked.code, 1, asked.out + asked.err);
  assert.match(asked.out, /It waits for approval of ship: .*--approve ship, or .*approve feature\/ship/);
  // Said without a run, it counts for the next.
  assert.equal((await place.drover(["approve", "feature/ship"], { env })).code, 0);
  const { code, out } = await place.run(["feature.yml"], { env });
  assert.equal(code, 0, out);
  assert.match(out, /^feature: 4 of 5 tasks done before/);
  assert.deepEqual([place.read("api.sh"), place.read("web.sh")], ["echo hello from api\n", "echo hello from web\n"]);
});

test("the tree of the README, alone and in one go", LIMIT, async () => {
  using place = planDirectory("");
  const { code, out } = await place.run(["feature.yml", "--approve", "ship"], { env: withAgent(place) });
  assert.equal(code, 0, out);
  assert.deepEqual(summaryOf(out), SUMMARY);
});

test("the tree of the README, on a server with two workers in other directories", LIMIT, async () => {
  using place = planDirectory("");
  const env = withAgent(place);
  await using server = await served(["--no-worker"], { directory: place.directory });
  const homes = [1, 2].map(() => mkdtempSync(join(tmpdir(), "drover-tree-")));
  const workers: ChildProcess[] = [];
  try {
    for (const [index, cwd] of homes.entries()) {
      writeFileSync(join(cwd, "ISSUE.md"), "say hello\n");
      const args = [MAIN, "worker", "--commands", "--slots", "1", "--id", `w${index}`, "--url", server.url];
      workers.push(spawn(process.execPath, args, { cwd, env: { ...process.env, ...env }, stdio: "ignore" }));
    }
    // Named by its address: then paths begin in the directory of each worker.
    const { code, out, err } = await place.run(["feature.yml", "--approve", "ship", "--url", server.url], { env });
    assert.equal(code, 0, out + err);
    assert.match(out, /^feature: 5 tasks, on the server at http\S+ \(--url\)\n/);
    assert.deepEqual(summaryOf(out), SUMMARY);
    const shipped = homes.filter((home) => readIf(join(home, "web.sh")) && readIf(join(home, "api.sh")));
    assert.ok(shipped.length >= 1, "one of the workers has both: the files came from wherever they were made");
    assert.equal(place.has("web.sh"), false, "nothing was made here");
  } finally {
    for (const worker of workers) worker.kill("SIGTERM");
    await Promise.all(workers.map((worker) => worker.exitCode ?? once(worker, "exit")));
    for (const home of homes) rmSync(home, { recursive: true, force: true });
  }
  await server.stop();
});

function readIf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
