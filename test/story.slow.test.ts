/**
 * `npm start` as people use it: more than once, interrupted, and into a pipe that closes early.
 *
 * It is run in a directory of its own, since it keeps its log in `.drover/demo` under where it is started.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, test } from "node:test";

const DEMO = resolve("src/cli/story.ts");

let place: string;
before(() => {
  place = mkdtempSync(join(tmpdir(), "drover-demo-"));
});
after(() => rmSync(place, { recursive: true, force: true }));

const start = (cwd: string) =>
  spawn(process.execPath, [DEMO], { cwd, env: { ...process.env, NO_COLOR: "1" }, stdio: ["ignore", "pipe", "pipe"] });

test("a demo into a pipe that closes ends quietly, and what it leaves behind does not spoil the next one", async () => {
  const cut = start(place);
  const complaints = text(cut.stderr);
  await once(cut.stdout, "data");
  cut.stdout.destroy();
  const [code] = await once(cut, "close");
  assert.deepEqual([code, await complaints], [0, ""]);

  const whole = start(place);
  const [said, complained] = await Promise.all([text(whole.stdout), text(whole.stderr), once(whole, "close")]);
  assert.equal(complained, "");
  const [story = "", explained = ""] = said.split("\nwhy does ");
  assert.match(explained, /^tsk_\d+ not run\?\nIt waits because no worker here could ever run it: it needs gpu/);
  assert.deepEqual(explained.match(/✗ \S+/g), ["✗ never-fits", "✗ worker-room"]);
  assert.equal(story.match(/✔ \S+ done/g)?.length, 16, "all that was submitted here is done, and nothing else");
  assert.doesNotMatch(explained, / done$/m, "every end is told before the question");
  assert.match(explained, /■ tsk_\d+ cancelled: no worker here has a gpu/);
});

test("a demo whose directory cannot be made says so in a sentence", async () => {
  const blocked = join(place, "blocked");
  mkdirSync(blocked);
  writeFileSync(join(blocked, ".drover"), "a file");
  const demo = start(blocked);
  const [complained, [code]] = await Promise.all([text(demo.stderr), once(demo, "close"), text(demo.stdout)]);
  assert.equal(code, 1);
  assert.match(complained, /\.drover/);
  assert.doesNotMatch(complained, /\n\s+at /, "no stack trace");
});
