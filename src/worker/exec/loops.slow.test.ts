/**
 * Loops of commands: the check, its words, the workspace and the session that stay.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { createWorld, temporaryHome, type World, type WorldOptions } from "../../../test/kits/faults/exec-world.ts";
import type { ExecOutcome, ExecTask } from "./contract.ts";
import { PRESETS } from "./presets.ts";

const allowUntil = true;
const inRound = (number: number, until: string, note?: string): Partial<ExecTask> => ({
  attempt: number,
  loop: { until, max: 5 },
  round: { number, max: 5, ...(note === undefined ? {} : { note }) },
});

test("a check that ends with 0 leaves the outcome; any other end is another round with its last words", async (t) => {
  const { run } = createWorld(t, {
    script: `printf '{"made": %s}' "$DROVER_ROUND" > "$DROVER_RESULT_FILE"`,
    allowUntil,
  });
  assert.deepEqual(await run(inRound(2, "true")), { outcome: "done", result: { made: 2 } });
  const failing = await run({ ...inRound(3, "echo one; echo two >&2; exit 3"), taskId: "t2" });
  assert.deepEqual([failing.outcome, failing.note?.split("\n").sort()], ["again", ["one", "two"]]);
  assert.deepEqual(await run({ ...inRound(1, "exit 3"), taskId: "t3" }), {
    outcome: "again",
    note: "the check failed (exit code 3)",
  });
});

test("of what a check prints the end is kept, without the secrets of the worker", async (t) => {
  const env = ["API_KEY=geheim-geheim-123"];
  const { run } = createWorld(t, { script: "true", allowUntil, env });
  const { note = "" } = await run(inRound(1, 'yes abcdefg | head -n 5000; echo "key $API_KEY"; false'));
  assert.ok(note.length <= 4096 && note.length > 3000, String(note.length));
  assert.match(note, /abcdefg\nkey \[redacted\]$/);
});

test("a command that fails is not checked, and its failure is one", async (t) => {
  const { run, home } = createWorld(t, { script: "exit 1", allowUntil });
  const { outcome } = await run(inRound(1, `touch ${join("$DROVER_WORKSPACE", "checked")}`));
  assert.equal(outcome, "failed");
  assert.throws(() => readFileSync(join(home, "checked")));
});

test("a worker that was not told to run checks gives the task back for one that was, and says how to", async (t) => {
  const { run, home } = createWorld(t, { script: `touch "$DROVER_WORKSPACE/ran"` });
  const { outcome, retryAfterMs, error } = await run(inRound(1, "true"));
  assert.deepEqual([outcome, retryAfterMs], ["requeue", 15_000]);
  assert.match(error ?? "", /--allow-until/);
  assert.throws(() => readFileSync(join(home, "ran")));
});

test("a command may ask for another round by its result", async (t) => {
  const { run } = createWorld(t, { script: `echo '{"again": true, "note": "not yet"}' > "$DROVER_RESULT_FILE"` });
  assert.deepEqual(await run({ loop: { max: 2 } }), { outcome: "again", note: "not yet" });
});

test("a check that is stopped with its attempt is no round", async (t) => {
  const { start } = createWorld(t, { script: "say ran", allowUntil, killGraceMs: 200 });
  const running = start(inRound(1, "touch checking; sleep 30"));
  await running.said("ran");
  running.abort(new Error("cancelled by ann"));
  assert.equal((await running.outcome).outcome, "cancelled");
});

function inRepository(t: TestContext, options: WorldOptions): World & { readonly repo: string } {
  const home = temporaryHome(t);
  const repo = join(home, "repo");
  const git = (...words: string[]): unknown =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...words], { stdio: "ignore" });
  git("init", "-q", repo);
  writeFileSync(join(repo, "a.txt"), "one\n");
  git("-C", repo, "add", ".");
  git("-C", repo, "commit", "-q", "-m", "first");
  return { ...createWorld(t, { data: join(home, "data"), cwd: repo, isolation: "worktree", ...options }), repo };
}
const treesOf = (repo: string): string[] =>
  execFileSync("git", ["-C", repo, "worktree", "list", "--porcelain"], { encoding: "utf8" }).match(/^worktree .*$/gm) ??
  [];
const pathOf = ({ result }: ExecOutcome): unknown => (result as { workspace: { path: string } }).workspace.path;

test("the rounds of a loop share one worktree, and the last decides what becomes of it", async (t) => {
  const script = `echo "$DROVER_ROUND $PWD" >> "$DROVER_WORKSPACE/rounds.txt"; say "$PWD"`;
  const { run, repo, handler } = inRepository(t, { script, allowUntil, maxWorktrees: 1 });
  const check = "test $(wc -l < rounds.txt) -ge 3";
  assert.equal((await run(inRound(1, check))).outcome, "again");
  // Its tree waits for it and takes no room; what another leaves does, and it goes on all the same.
  assert.equal((await handler.room())?.count, 1);
  assert.equal((await run({ taskId: "other" })).outcome, "done");
  assert.match((await run({ taskId: "third" })).error ?? "", /1 worktree exists/);
  assert.equal((await run(inRound(2, check))).outcome, "again");
  const last = await run(inRound(3, check));
  assert.equal(last.outcome, "done");
  assert.match(readFileSync(join(String(pathOf(last)), "rounds.txt"), "utf8"), /^1 .*\n2 .*\n3 .*\n$/);
  assert.equal(treesOf(repo).length, 3);
});

test("a clean tree waits for the next round and goes with the last", async (t) => {
  const { run, repo } = inRepository(t, { script: "true", allowUntil });
  await run(inRound(1, "false"));
  assert.equal(treesOf(repo).length, 2);
  await run(inRound(2, "true"));
  assert.equal(treesOf(repo).length, 1);
});

test("a task that ends while it waits to go on leaves no tree, unless there is work in it", async (t) => {
  const { run, repo, handler } = inRepository(t, {
    script: '[ "$DROVER_TASK_ID" = busy ] && echo x > new || true',
    allowUntil,
  });
  for (const taskId of ["idle", "busy"]) assert.equal((await run({ ...inRound(1, "false"), taskId })).outcome, "again");
  assert.equal(treesOf(repo).length, 3);
  assert.deepEqual(
    [await handler.letGo("idle"), await handler.letGo("busy"), await handler.letGo("none")],
    [true, true, false],
  );
  assert.equal(treesOf(repo).length, 2);
  assert.equal(await handler.letGo("busy"), false, "it waits for nothing any more");
  assert.equal((await handler.sweep()).worktreesKept.length, 1);
});

test("a new worker goes on in the tree that a killed one has left", async (t) => {
  const script = `echo x >> "$DROVER_WORKSPACE/rounds.txt"`;
  const { run, handler, repo, data } = inRepository(t, { script, allowUntil });
  await run(inRound(1, "false"));
  await handler.close();
  const next = createWorld(t, { script, allowUntil, data, cwd: repo, isolation: "worktree" });
  const last = await next.run(inRound(2, "true"));
  assert.equal(readFileSync(join(String(pathOf(last)), "rounds.txt"), "utf8"), "x\nx\n");
});

test("a preset gets the note behind its prompt, with a session and without", () => {
  const task: ExecTask = { taskId: "t", attempt: 2, action: "fix", agentId: "a", ...inRound(2, "npm test", "2 red") };
  const facts = { args: [], promptFile: "/p" };
  for (const sessionId of [undefined, "s1"])
    for (const preset of [PRESETS.claude, PRESETS.codex]) {
      const { stdin, argv } = preset(task, { ...facts, ...(sessionId === undefined ? {} : { sessionId }) });
      assert.match(stdin ?? "", /^fix\n\nThis is round 2 of at most 5\..*not enough.*:\n\n2 red$/s);
      assert.equal(argv.includes("s1"), sessionId === "s1");
    }
  assert.match(PRESETS.aider(task, facts).promptFile ?? "", /2 red$/);
  assert.equal(PRESETS.claude({ ...task, round: { number: 1, max: 5 } }, facts).stdin, "fix");
});
