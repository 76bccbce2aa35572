import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createWorld, execClock, exists, isAlive, temporaryHome } from "../../../test/kits/faults/exec-world.ts";
import type { ExecTask } from "./contract.ts";

const whole: ExecTask = {
  ...{ taskId: "t/1", attempt: 3, action: "review", type: "code", agentId: "ann", project: "p", tabId: "tab1" },
  ...{ params: { depth: 2 }, payload: ["ü", null], ref: "e5", selector: "#a", estimatedTokens: 100, timeoutMs: 5000 },
  ...{ deadline: "2030-01-01T00:00:00Z" },
};

test("a child reads its task from stdin, once, and finds the same in a file", async (t) => {
  const script = `cat > "$DROVER_RESULT_FILE"; cmp -s "$DROVER_RESULT_FILE" "$DROVER_TASK_FILE" || exit 1`;
  const { home, handler } = createWorld(t, { script });
  const context = { attempt: 3, signal: new AbortController().signal, progress: () => {}, usage: () => {} };
  // What decides when and where it runs is not told.
  const outcome = await handler.run({ ...whole, priority: -100, needs: ["x"] } as ExecTask, context);
  assert.deepEqual(outcome, { outcome: "done", result: { ...whole, workspace: home } });
});

const input = { taskId: "need/1", state: "done" as const };

test("a child sees the inputs of its task in its document and in a file, and has neither without", async (t) => {
  const script = `printf '%s\\n' "\${DROVER_INPUTS_FILE-none}"; cat "\${DROVER_INPUTS_FILE:-/dev/null}"
    ls -d "$DROVER_INPUTS_DIR" >/dev/null; cat > "$DROVER_RESULT_FILE"`;
  const { handler } = createWorld(t, { script });
  const context = { attempt: 1, signal: new AbortController().signal, progress: () => {}, usage: () => {} };
  const inputs = { n: { ...input, result: { path: "a b" }, branch: "drover/n" } };
  const { result } = await handler.run({ ...whole, inputs }, context);
  assert.deepEqual((result as { inputs: unknown }).inputs, inputs);
  const tail = await handler.tail(whole.taskId, 1);
  assert.match(tail?.text ?? "", new RegExp(`out  ${JSON.stringify(inputs).replaceAll(/[{}[\]]/g, "\\$&")}`));
  const plain = await handler.run({ ...whole, taskId: "plain" }, context);
  assert.ok(!Object.hasOwn(plain.result as object, "inputs"));
  assert.match((await handler.tail("plain", 1))?.text ?? "", /out {2}none/);
});

test("a result too large to be handed along is laid into a file, and its path stands in its place", async (t) => {
  const large = JSON.stringify({ text: "x".repeat(1_000_000) });
  const file = { hash: hash("sha256", large, "hex"), size: large.length };
  const asked: string[] = [];
  const script = `cp "$DROVER_INPUTS_FILE" "$DROVER_RESULT_FILE"; cat "$DROVER_INPUTS_DIR"/*/result.json | wc -c`;
  const { handler, data } = createWorld(t, { script });
  const context = {
    ...{ attempt: 1, signal: new AbortController().signal, progress: () => {}, usage: () => {} },
    async *file(one: string) {
      asked.push(one);
      yield Buffer.from(large);
    },
  };
  const own = { file: { hash: "h", size: 1, more: true } };
  const inputs = { "../up": { ...input, result: { file } }, own: { ...input, result: own } };
  const { result } = await handler.run({ ...whole, inputs }, context);
  const seen = result as Record<string, { result: { file: string } }>;
  assert.match(seen["../up"]?.result.file ?? "", new RegExp(`^${join(data, "runs")}/[^/]+/inputs/[^/.]+/result.json$`));
  assert.deepEqual(seen.own?.result, own);
  assert.deepEqual(asked, [file.hash]);
  assert.match((await handler.tail(whole.taskId, 1))?.text ?? "", / 1000011\n/);
});

test("a child runs in the working directory, with its own temporary one that goes after it", async (t) => {
  const script = `echo x > "$TMPDIR/file"; printf '["%s","%s","%s"]\\n' "$PWD" "$TMPDIR" "$DROVER_WORKSPACE"`;
  const { home, run, data } = createWorld(t, { script });
  const { result } = await run();
  const [cwd, temp, workspace] = result as string[];
  assert.deepEqual([cwd, workspace], [home, home]);
  assert.ok(temp !== undefined && !exists(temp));
  assert.deepEqual(readdirSync(join(data, "runs")), []);
});

test("no key of the worker enters a task unless it is named", async (t) => {
  const inherited = {
    PATH: process.env.PATH,
    ANTHROPIC_API_KEY: "sk-ant-0123456789",
    OPENAI_API_KEY: "sk-9876543210xyz",
  };
  const options = {
    inherited,
    env: ["OPENAI_API_KEY", "MODE=fast"],
    url: "http://127.0.0.1:4747",
    runToken: () => "rt-123456",
  };
  const names =
    "ANTHROPIC_API_KEY OPENAI_API_KEY MODE CI TERM DROVER_TASK_ID DROVER_ATTEMPT DROVER_URL DROVER_RUN_TOKEN";
  const script = `for n in ${names}; do eval "v=\\\${$n-unset}"; echo "$n=$v" | cut -c1-32 | sed 's/./&./g'; done`;
  const { output } = (await createWorld(t, { ...options, script }).run()).result as { output: string };
  // Spelled with dots, or it would be taken out of the output.
  assert.deepEqual(output.replaceAll(/(.)\./g, "$1").split("\n"), [
    ...["ANTHROPIC_API_KEY=unset", "OPENAI_API_KEY=sk-9876543210xyz", "MODE=fast", "CI=1", "TERM=dumb"],
    ...["DROVER_TASK_ID=t1", "DROVER_ATTEMPT=1", "DROVER_URL=http://127.0.0.1:4747", "DROVER_RUN_TOKEN=rt-123456"],
  ]);
});

test("a secret of digits leaves numbers alone, so that a result stays JSON", async (t) => {
  const script = `printf '{"total":12345678,"told":"%s"}' "$PIN_TOKEN" > "$DROVER_RESULT_FILE"`;
  const outcome = await createWorld(t, { script, env: ["PIN_TOKEN=12345678"] }).run();
  assert.deepEqual(outcome, { outcome: "done", result: { total: 12345678, told: "[redacted]" } });
});

test("a secret is in no log, no error and no result", async (t) => {
  let minted = 0;
  const script = `echo "the token is $DROVER_RUN_TOKEN"; echo "err $MY_SECRET" >&2
    printf '{"type":"progress","value":"%s"}\\n' "$MY_SECRET"; 
    printf '{"token":"%s"}' "$MY_SECRET" > "$DROVER_RESULT_FILE"; exit 1`;
  const mint = (): string => `run-token-value-${minted++}`;
  const world = createWorld(t, { script, env: ["MY_SECRET=very-secret-value"], runToken: mint });
  const run = world.start();
  const all = [await run.outcome, run.progress, await world.handler.tail("t1", 1)];
  const file = readFileSync(join(world.data, "logs", "t1", "1.log"), "utf8");
  assert.doesNotMatch(`${JSON.stringify(all)}${file}`, /very-secret-value|run-token-value/);
  assert.match(file, /Z out {2}the token is \[redacted\]\n/);
  assert.match(file, /Z err {2}err \[redacted\]\n/);
});

const results: [string, string, unknown][] = [
  [
    "the file before any line",
    `echo '{"type":"result","result":1}'; echo '[2]' > "$DROVER_RESULT_FILE"; echo '{"a":3}'`,
    [2],
  ],
  [
    "the last result line",
    `echo '{"type":"result","result":1}'; echo '{"type":"result","result":2}'; echo '{"a":3}'`,
    2,
  ],
  ["the last line that is JSON", `echo '{"a":1}'; echo '{"a":2}'; echo bye; echo '{"type":"heartbeat"}'`, { a: 2 }],
  ["a list", `printf '[1,\\n'; printf '[1,2]'`, [1, 2]],
  ["its output", "echo hello; echo world >&2", undefined],
  ["nothing", "true", { exitCode: 0 }],
];
for (const [name, script, expected] of results)
  test(`the result is ${name}`, async (t) => {
    const { outcome, result } = await createWorld(t, { script }).run();
    assert.equal(outcome, "done");
    if (expected !== undefined) assert.deepEqual(result, expected);
    else assert.deepEqual((result as { output: string }).output.split("\n").sort(), ["hello", "world"]);
  });

const badResults: [string, string, RegExp, boolean][] = [
  ["is no JSON", `echo '{"a":' > "$DROVER_RESULT_FILE"`, /^the result file is not JSON: /, false],
  ["is empty", `: > "$DROVER_RESULT_FILE"`, /^the result file is empty/, false],
  ["is too large", `head -c 300000 /dev/zero > "$DROVER_RESULT_FILE"`, /has over 262144 bytes; at most 262144/, true],
  ["never ends", `ln -s /dev/zero "$DROVER_RESULT_FILE"`, /not a plain file/, false],
  ["is a pipe", `mkfifo "$DROVER_RESULT_FILE"`, /not a plain file/, false],
  ["is a directory", `mkdir "$DROVER_RESULT_FILE"`, /not a plain file|EISDIR/, false],
  ["is nested too deeply", `head -c 200000 /dev/zero | tr '\\0' '[' > "$DROVER_RESULT_FILE"`, /JSON|deep/, false],
];
for (const [name, script, expected, permanent] of badResults)
  test(`a result file that ${name} is a clear error`, async (t) => {
    const end = await createWorld(t, { script }).run();
    assert.equal(end.outcome, "failed");
    assert.match(end.error ?? "", expected);
    assert.equal(end.permanent ?? false, permanent);
  });

test("a result line that is too large is a clear error too", async (t) => {
  const script = `printf '{"type":"result","result":"'; head -c 300000 /dev/zero | tr '\\0' 'x'; printf '"}\\n'`;
  const { outcome, error, permanent } = await createWorld(t, { script }).run();
  assert.deepEqual([outcome, permanent], ["failed", true]);
  assert.match(error ?? "", /its result has 300002 bytes; at most 262144 are allowed/);
});

test("usage is told as it comes and stands in the outcome", async (t) => {
  const script = `echo '{"type":"usage","inputTokens":5}'
    echo '{"type":"result","result":1,"usage":{"input_tokens":9,"output_tokens":2}}'`;
  const run = createWorld(t, { script }).start();
  assert.deepEqual(await run.outcome, { outcome: "done", result: 1, usage: { inputTokens: 9, outputTokens: 2 } });
  assert.deepEqual(run.usage, [{ inputTokens: 5 }, { inputTokens: 9, outputTokens: 2 }]);
});

test("a program that is not there, or not executable, will not get better by trying again", async (t) => {
  const home = temporaryHome(t);
  writeFileSync(join(home, "plain.txt"), "#!/bin/sh\n");
  chmodSync(join(home, "plain.txt"), 0o644);
  const rows: [string, RegExp][] = [
    ["no-such-program-at-all --x", /the program no-such-program-at-all was not found; install it/],
    [join(home, "plain.txt"), /plain\.txt may not be run by this user; make it executable/],
    ["sh -c no-such-program-at-all", /a program was not found \(exit code 127\).*no-such-program-at-all/],
    ["sh -c ./plain.txt", /not executable \(exit code 126\)/],
  ];
  for (const [command, expected] of rows) {
    const end = await createWorld(t, { data: join(home, "data"), cwd: home, command }).run();
    assert.deepEqual([end.outcome, end.permanent], ["failed", true], command);
    assert.match(end.error ?? "", expected);
  }
  const gone = await createWorld(t, { data: join(home, "data"), cwd: join(home, "gone"), command: "true" }).run();
  assert.match(gone.error ?? "", /the working directory .*gone does not exist/);
});

test("a line goes to a shell only where it is asked for", async (t) => {
  const command = `printf '["%s"]' "$DROVER_TASK_ID" | cat`;
  assert.throws(() => createWorld(t, { command }), /--shell/);
  assert.deepEqual((await createWorld(t, { command, shell: true }).run()).result, ["t1"]);
});

test("a task that is to be stopped before it begins never begins", async (t) => {
  const world = createWorld(t, { script: "touch began" });
  const context = { attempt: 1, signal: AbortSignal.abort("gone"), progress: () => {}, usage: () => {} };
  const end = await world.handler.run({ taskId: "t1", attempt: 1, action: "x" }, context);
  assert.deepEqual([end, exists(join(world.home, "began"))], [{ outcome: "cancelled", error: "gone" }, false]);
});

test("a child that has ended with 0 before it is stopped is done; one that ends by a signal is not", async (t) => {
  const stop = new AbortController();
  const usage = ({ inputTokens: pid = 0 }): void => {
    // Its end is not heard of before this returns.
    while (isAlive(pid));
    stop.abort("its budget is used up");
  };
  const context = { attempt: 1, signal: stop.signal, progress: () => {}, usage };
  const task = { taskId: "t1", attempt: 1, action: "x" };
  const ended = createWorld(t, { script: `echo '{"type":"usage","inputTokens":'$$'}'` });
  assert.equal((await ended.handler.run(task, context)).outcome, "done");
  const world = createWorld(t, { script: "trap 'exit 0' INT; say ready; linger" });
  const run = world.start();
  await run.said("ready");
  run.abort("its budget is used up");
  assert.deepEqual(await run.outcome, { outcome: "cancelled", error: "its budget is used up" });
});

test("a child that writes nothing is stopped: from the start, or after its last byte", async (t) => {
  const clock = execClock();
  const world = createWorld(t, {
    clock,
    idleTimeoutMs: 1000,
    startTimeoutMs: 5000,
    script: `say a; echo b >&2; linger`,
  });
  const run = world.start();
  await clock.armed(5000);
  await run.said("a");
  await clock.armed(1000);
  clock.turn(999);
  clock.turn(1);
  assert.match((await run.outcome).error ?? "", /it wrote nothing for 1000 ms and was stopped \(idle timeout\)/);
  const silent = createWorld(t, { clock, idleTimeoutMs: 1000, startTimeoutMs: 5000, script: "linger" }).start({
    taskId: "t2",
  });
  await clock.armed(5000);
  clock.turn(4999);
  clock.turn(1);
  assert.match((await silent.outcome).error ?? "", /it wrote nothing in its first 5000 ms/);
});

test("closing stops what runs and takes no more; what has something to say may say it", async (t) => {
  const script = `trap 'echo "{\\"type\\":\\"result\\",\\"result\\":\\"saved\\"}"; exit 0' INT
    [ "$DROVER_TASK_ID" = slow ] && trap - INT
    say ready; linger`;
  const world = createWorld(t, { script });
  const [slow, quick] = [world.start({ taskId: "slow" }), world.start({ taskId: "quick" })];
  await Promise.all([slow.said("ready"), quick.said("ready")]);
  await world.handler.close();
  await world.handler.close();
  assert.deepEqual(await slow.outcome, { outcome: "requeue", error: "its worker is closing" });
  assert.deepEqual(await quick.outcome, { outcome: "done", result: "saved" });
  assert.deepEqual(await world.run(), { outcome: "requeue", error: "its worker is closing" });
});

test("a data directory that cannot be written sends the task back", async (t) => {
  const home = temporaryHome(t);
  writeFileSync(join(home, "data"), "a file, not a directory");
  const world = createWorld(t, { data: join(home, "data"), cwd: home, command: "true" });
  const end = await world.run();
  assert.equal(end.outcome, "requeue");
  assert.match(end.error ?? "", /this worker could not run it: .*(ENOTDIR|EEXIST)/);
  assert.ok(world.warnings.length > 0);
});

test("output that cannot be kept is no reason not to work", async (t) => {
  const world = createWorld(t, { script: "echo '[1]'" });
  mkdirSync(world.data);
  writeFileSync(join(world.data, "logs"), "in the way");
  assert.deepEqual(await world.run(), { outcome: "done", result: [1] });
  assert.match(world.warnings.join(), /output of t1 is not kept/);
});
