/**
 * Children that write as no child should: too much, too fast, no UTF-8, lines without an end, or to nobody; and those
 * that do not read what they are given.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createWorld } from "../kits/faults/exec-world.ts";
import { until } from "../kits/waits.ts";

test("a child that fills both pipes is never held up", async (t) => {
  const script = `yes out | head -c 400000 & yes err | head -c 400000 >&2; wait; echo '{"a":1}'`;
  const world = createWorld(t, { script, logBytesMax: 100_000 });
  assert.deepEqual(await world.run(), { outcome: "done", result: { a: 1 } });
  const path = join(world.data, "logs", "t1", "1.log");
  assert.ok(statSync(path).size < 110_000);
  const text = readFileSync(path, "utf8");
  assert.match(text, /^.*Z note command: .*\n/);
  assert.match(text, /\n\[… \d+ bytes are left out here …\]\n/);
  assert.match(text, /\n\S+Z note ended with exit code 0 after \d+ ms\n.*Z note outcome: done\n$/);
});

const deaf: [string, string][] = [
  ["closes stdin at once", "exec 0<&-; sleep 0.05; echo '[1]'"],
  ["ends without reading", "echo '[1]'"],
  ["reads a little", "head -c 10 > /dev/null; echo '[1]'"],
];
for (const [name, script] of deaf)
  test(`a child that ${name} does not bring down the worker`, async (t) => {
    const payload = "x".repeat(900_000);
    assert.deepEqual(await createWorld(t, { script }).run({ payload }), { outcome: "done", result: [1] });
  });

test("invalid UTF-8 is shown as such, and a result in it is no result", async (t) => {
  const script = String.raw`printf 'a\377\376b\n{"a":"\303\050"}\n\000\001\n'
    printf '\360\237'; sleep 0.02; printf '\220\216\n'`;
  const world = createWorld(t, { script });
  assert.deepEqual(await world.run(), { outcome: "done", result: { a: "\ufffd(" } });
  const { text = "" } = (await world.handler.tail("t1", 1)) ?? {};
  assert.match(text, /out {2}a\ufffd\ufffdb\n/);
  assert.match(text, /out {2}\u{1F40E}\n/u);
});

test("thousands of lines are read and kept in order", async (t) => {
  const count = 20_000;
  const script = `awk 'BEGIN { for (i = 1; i <= ${count}; i++) print "line " i; print "{\\"n\\":" i - 1 "}" }'`;
  const world = createWorld(t, { script });
  assert.deepEqual((await world.run()).result, { n: count });
  const text = readFileSync(join(world.data, "logs", "t1", "1.log"), "utf8");
  const numbers = [...text.matchAll(/out {2}line (\d+)\n/g)].map(([, number]) => Number(number));
  assert.equal(numbers.length, count);
  assert.ok(numbers.every((number, index) => number === index + 1));
});

test("a line that is too long is cut in the log, and the rest goes on", async (t) => {
  const script = `head -c 2000000 /dev/zero | tr '\\0' x; echo; echo after; printf 'no newline'`;
  const world = createWorld(t, { script });
  const { output } = (await world.run()).result as { output: string };
  assert.match(output, /^x{16384}… \[1983616 more\]\nafter\nno newline$|^after\nno newline$/);
  const { text = "" } = (await world.handler.tail("t1", 1, { lines: 6 })) ?? {};
  assert.match(text, /x… \[1983616 more\]\n.*out {2}after\n.*out {2}no newline\n/);
});

test("what runs can be followed from what is there to its end, without a gap", async (t) => {
  const script = `echo early; say ready; while [ ! -e go ]; do sleep 0.01; done; for i in 1 2 3; do echo late $i; done`;
  const world = createWorld(t, { script });
  const run = world.start();
  await run.said("ready");
  const tail = await world.handler.tail("t1", undefined, { follow: true });
  assert.ok(tail !== null && "lines" in tail && tail.isRunning);
  assert.match(tail.text, /out {2}early\n/);
  assert.doesNotMatch(tail.text, /out {2}late/);
  const gone = new AbortController();
  const impatient = await world.handler.tail("t1", 1, { follow: true, signal: gone.signal });
  gone.abort();
  assert.ok(impatient !== null && "lines" in impatient);
  for await (const _ of impatient.lines) assert.fail("nothing is to come");
  writeFileSync(join(world.home, "go"), "");
  let text = tail.text;
  for await (const lines of tail.lines) text += lines;
  await run.outcome;
  assert.equal(text, readFileSync(join(world.data, "logs", "t1", "1.log"), "utf8"));
  const over = await world.handler.tail("t1", 1, { follow: true, lines: 1 });
  assert.ok(over !== null && "lines" in over && !over.isRunning);
  for await (const _ of over.lines) assert.fail("it is over");
  assert.match(over.text, /^\S+Z note outcome: done\n$/);
});

test("a line that has no end yet is shown, with its secrets taken out", async (t) => {
  const script = `say ready; printf 'Password for %s: ' "$A_TOKEN"; while [ ! -e go ]; do sleep 0.01; done`;
  const world = createWorld(t, { script, env: ["A_TOKEN=some-secret-token"] });
  const run = world.start();
  await run.said("ready");
  let text = "";
  await until("the question", async () => {
    text = (await world.handler.tail("t1", 1, { lines: 1 }))?.text ?? "";
    return text.includes("Password");
  });
  assert.match(text, /Z out {2}Password for \[redacted\]: \n$/);
  writeFileSync(join(world.home, "go"), "");
  await run.outcome;
});

test("output that is not there, or asked for by a name that climbs, is none", async (t) => {
  const world = createWorld(t, { script: "echo hi" });
  await world.run({ taskId: "../../up" });
  for (const [taskId, attempt] of [
    ["t1", 1],
    ["../../up", 2],
    ["../logs/t1", 1],
    ["..", undefined],
  ] as const)
    assert.equal(await world.handler.tail(taskId, attempt), null, taskId);
  assert.match(String((await world.handler.tail("../../up", 1))?.text), /out {2}hi\n/);
  assert.deepEqual(readdirSync(world.data).sort(), ["logs", "runs"]);
  assert.equal(readdirSync(join(world.data, "logs")).length, 1);
});
