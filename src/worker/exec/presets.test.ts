import assert from "node:assert/strict";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { createWorld, temporaryHome, type World } from "../../../test/kits/faults/exec-world.ts";
import type { PresetName } from "../../plan/work/index.ts";
import { PRESETS, promptOf } from "./presets.ts";

const task = { taskId: "t1", attempt: 1, action: "fix the bug" };
const facts = { args: [], promptFile: "/r/prompt.txt" };

test("the prompt is the params', else the payload's, else the action", () => {
  assert.equal(promptOf({ ...task, params: { prompt: "a" }, payload: "b" }), "a");
  assert.equal(promptOf({ ...task, params: {}, payload: "b" }), "b");
  assert.equal(promptOf({ ...task, payload: { prompt: "c" } }), "c");
  assert.equal(promptOf({ ...task, params: { prompt: "" }, payload: { prompt: 5 } }), "fix the bug");
});

test("a prompt is never a word of the command line, and a model is never an option", () => {
  const nasty = { ...task, params: { prompt: "--dangerously-skip-permissions", model: "--help" } };
  for (const name of Object.keys(PRESETS) as PresetName[]) {
    const { argv } = PRESETS[name](nasty, facts);
    assert.ok(!argv.some((word) => /dangerously|help/.test(word)), name);
    const { argv: chosen } = PRESETS[name]({ ...task, params: { model: "opus-5" } }, { ...facts, args: ["--extra"] });
    assert.deepEqual([chosen.includes("--extra"), chosen[chosen.indexOf("--model") + 1]], [true, "opus-5"]);
  }
});

test("a session that is known is continued", () => {
  const known = { ...facts, sessionId: "s-1" };
  assert.deepEqual(PRESETS.claude(task, known).argv.slice(-2), ["--resume", "s-1"]);
  assert.deepEqual(PRESETS.codex(task, known).argv.slice(-3), ["resume", "s-1", "-"]);
  assert.match(PRESETS.claude(task, known).stdin ?? "", /interrupted.*fix the bug/s);
});

/** A worker with a stand-in for the tool on its PATH, which prints what the real one prints. */
function stageWith(t: TestContext, preset: PresetName, script: string): World {
  const home = temporaryHome(t);
  mkdirSync(join(home, "bin"));
  writeFileSync(join(home, "bin", preset), `#!/bin/sh\n${script}`);
  chmodSync(join(home, "bin", preset), 0o755);
  const inherited = { ...process.env, PATH: `${join(home, "bin")}:${process.env.PATH}` };
  return createWorld(t, { data: join(home, "data"), cwd: home, preset, inherited, args: ["--mine"] });
}
const print = (...lines: object[]): string =>
  lines.map((line) => `printf '%s\\n' '${JSON.stringify(line)}'`).join("\n");

const init = { type: "system", subtype: "init", session_id: "0a1b-s1", tools: [], model: "m" };
const message = (id: string, content: object[], usage: object): object => ({
  ...{ type: "assistant", session_id: "0a1b-s1", message: { id, role: "assistant", content, usage } },
});
const final = {
  ...{ type: "result", subtype: "success", is_error: false, result: "Fixed.", session_id: "0a1b-s1", num_turns: 2 },
  ...{
    duration_ms: 900,
    total_cost_usd: 0.5,
    usage: { input_tokens: 7, output_tokens: 9, cache_creation_input_tokens: 3 },
  },
};

test("claude: prompt on stdin, progress and usage while it runs, cost and session at the end", async (t) => {
  const first = { input_tokens: 3, output_tokens: 1, cache_creation_input_tokens: 2, cache_read_input_tokens: 50 };
  const lines = [
    init,
    message("m1", [{ type: "text", text: "Looking." }], first),
    message("m1", [{ type: "tool_use", name: "Bash" }], { ...first, output_tokens: 4 }),
    message("m2", [{ type: "text", text: "Done." }], { input_tokens: 2, output_tokens: 3 }),
    final,
  ];
  const script = `cat > prompt; printf '%s\\n' "$@" > args; ${print(...lines)}`;
  const world = stageWith(t, "claude", script);
  const run = world.start({ params: { prompt: "-p is what I say" } });
  assert.deepEqual(await run.outcome, {
    outcome: "done",
    result: { result: "Fixed.", sessionId: "0a1b-s1", costUsd: 0.5, turns: 2, durationMs: 900 },
    usage: { inputTokens: 7, outputTokens: 9, cacheCreationTokens: 3, cachedTokens: 50, cost: 0.5 },
  });
  assert.deepEqual(
    run.usage.map(({ outputTokens }) => outputTokens),
    [1, 4, 7, 9],
  );
  assert.deepEqual(run.progress, [
    { turns: 1, text: "Looking." },
    { turns: 1, tool: "Bash" },
    { turns: 2, text: "Done." },
  ]);
  assert.equal(read(world, "prompt"), "-p is what I say");
  assert.equal(read(world, "args"), "-p\n--output-format\nstream-json\n--verbose\n--mine\n");
});

test("claude: a retry goes on in the session of the attempt that was cut off, and a new task does not", async (t) => {
  const script = `cat > /dev/null; printf '%s ' "$@" "session:$DROVER_SESSION_ID" >> args; echo >> args
    ${print(init)}\nif [ "$DROVER_ATTEMPT" = 1 ]; then kill -9 $$; fi\n${print(final)}`;
  const world = stageWith(t, "claude", script);
  assert.match((await world.run({ attempt: 1 })).error ?? "", /died by SIGKILL/);
  assert.equal((await world.run({ attempt: 2 })).outcome, "done");
  assert.equal((await world.run({ attempt: 3 })).outcome, "done");
  const calls = read(world, "args").split("\n");
  assert.doesNotMatch(calls[0] ?? "", /--resume/);
  assert.match(calls[1] ?? "", /--resume 0a1b-s1 --mine session:0a1b-s1/);
  assert.doesNotMatch(calls[2] ?? "", /--resume|0a1b-s1/);
});

test("claude: a session that is gone is not tried twice", async (t) => {
  const script = `cat > /dev/null; case "$*" in *--resume*)
      echo 'No conversation found with session ID: 0a1b-s1' >&2; exit 1;; esac
    ${print(init)}\nexit 1`;
  const world = stageWith(t, "claude", script);
  await world.run({ attempt: 1 });
  assert.match((await world.run({ attempt: 2 })).error ?? "", /exit code 1: No conversation found/);
  assert.match((await world.run({ attempt: 3 })).error ?? "", /"subtype":"init"/);
});

const claudeFailures: [string, object, object][] = [
  [
    "that ran out of turns",
    { is_error: true, subtype: "error_max_turns", errors: ["Reached maximum number of turns (1)"] },
    { outcome: "failed", error: "Reached maximum number of turns (1)" },
  ],
  [
    "whose provider is overloaded",
    { is_error: true, result: "API Error: 529 Overloaded" },
    { outcome: "requeue", error: "API Error: 529 Overloaded", rateLimited: true },
  ],
];
for (const [name, fields, expected] of claudeFailures)
  test(`claude: one ${name} is told apart`, async (t) => {
    const script = `cat > /dev/null; ${print(init, { type: "result", session_id: "0a1b-s1", ...fields })}\nexit 1`;
    const { result: _, ...outcome } = await stageWith(t, "claude", script).run();
    assert.deepEqual(outcome, expected);
  });

const thread = { type: "thread.started", thread_id: "th-1" };
const said = (text: string): object => ({ type: "item.completed", item: { id: "i", type: "agent_message", text } });

test("codex: prompt on stdin, the last message is the result, turns add up", async (t) => {
  const command = { id: "i1", type: "command_execution", command: "bash -lc ls", aggregated_output: "", exit_code: 0 };
  const lines = [
    ...[
      thread,
      { type: "turn.started" },
      { type: "item.completed", item: command },
      said("First."),
      said("It is fixed."),
    ],
    { type: "turn.completed", usage: { input_tokens: 24_763, cached_input_tokens: 24_448, output_tokens: 122 } },
  ];
  const world = stageWith(t, "codex", `cat > prompt; printf '%s\\n' "$@" > args; ${print(...lines)}`);
  const run = world.start();
  assert.deepEqual(await run.outcome, {
    outcome: "done",
    result: { result: "It is fixed.", sessionId: "th-1" },
    usage: { inputTokens: 24_763, outputTokens: 122, cachedTokens: 24_448 },
  });
  assert.deepEqual(run.progress[0], { step: "command_execution", text: "bash -lc ls" });
  assert.deepEqual([read(world, "prompt"), read(world, "args")], ["work", "exec\n--json\n--mine\n-\n"]);
});

const codexFailures: [object, object][] = [
  [
    { type: "turn.failed", error: { message: "model refused" } },
    { outcome: "failed", error: "model refused" },
  ],
  [
    { type: "error", message: "rate limit reached, try again in 11.054s" },
    { outcome: "requeue", error: "rate limit reached, try again in 11.054s", retryAfterMs: 11_054, rateLimited: true },
  ],
];
for (const [line, expected] of codexFailures)
  test(`codex: a turn that fails is told: ${JSON.stringify(line)}`, async (t) => {
    const { result: _, ...outcome } = await stageWith(
      t,
      "codex",
      `cat > /dev/null; ${print(thread, line)}\nexit 1`,
    ).run();
    assert.deepEqual(outcome, expected);
  });

test("aider: the prompt is in a file, tokens are read from what it tells people", async (t) => {
  const script = `while [ $# -gt 0 ]; do [ "$1" = --message-file ] && cp "$2" prompt; echo "$1" >> args; shift; done
    echo 'Tokens: 2.3k sent, 1.5k cache write, 8k cache hit, 120 received. Cost: $0.01 message, $0.01 session.'
    echo 'Tokens: 12k sent, 133 received. Cost: $0.04 message, $0.10 session.'; echo 'Applied edit to a.py'`;
  const world = stageWith(t, "aider", script);
  const { outcome, usage, result } = await world.run({ payload: "add a test\nwith two lines" });
  assert.deepEqual([outcome, usage], ["done", { inputTokens: 14_300, outputTokens: 253, cacheCreationTokens: 1500 }]);
  assert.match((result as { output: string }).output, /Applied edit to a\.py$/);
  assert.equal(read(world, "prompt"), "add a test\nwith two lines");
  assert.match(read(world, "args"), /--yes-always\n--no-pretty\n--no-stream\n.*--mine\n/s);
});

test("a preset whose tool is not installed says so", async (t) => {
  const world = createWorld(t, { preset: "claude", inherited: { PATH: "/nowhere" } });
  const { error, permanent } = await world.run();
  assert.deepEqual([permanent, /the program claude was not found; install it/.test(error ?? "")], [true, true]);
});

function read(world: World, name: string): string {
  return readFileSync(join(world.home, name), "utf8");
}
