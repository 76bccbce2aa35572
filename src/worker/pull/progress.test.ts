import assert from "node:assert/strict";
import { test } from "node:test";
import { createHandClock } from "../../std/hand-clock.ts";
import { createNewsDesk } from "./progress.ts";

const a = { taskId: "a", attempt: 1 };
const b = { taskId: "b", attempt: 2 };

function kit() {
  const clock = createHandClock({ at: 1000 });
  const posts: unknown[] = [];
  const warnings: string[] = [];
  const desk = createNewsDesk({
    clock,
    post: (items) => void posts.push(items),
    warn: (text) => void warnings.push(text),
  });
  return { desk, posts, warnings, advance: clock.advance };
}

test("the first report goes at once, later ones together and not too often, the last one always", async () => {
  const { desk, posts, advance } = kit();
  desk.progress(a, 0);
  assert.deepEqual(posts, [[{ ...a, progress: "0" }]]);
  for (let count = 1; count <= 100_000; count++) desk.progress(a, count);
  desk.usage(a, { inputTokens: 1 });
  desk.progress(b, { step: "x" });
  assert.equal(posts.length, 1);
  await advance(249);
  assert.equal(posts.length, 1);
  await advance(1);
  assert.deepEqual(posts[1], [
    { ...a, progress: "100000", usage: { inputTokens: 1 } },
    { ...b, progress: '{"step":"x"}' },
  ]);
  await advance(10_000);
  assert.equal(posts.length, 2, "nothing new is nothing to say");
});

test("what has ended is not spoken of any more", async () => {
  const { desk, posts, advance } = kit();
  desk.progress(a, 1);
  desk.progress(a, 2);
  desk.drop(a);
  await advance(250);
  assert.equal(posts.length, 1);
});

test("progress that cannot be shown is left out with a warning, and usage beside it is not", async () => {
  const { desk, posts, warnings, advance } = kit();
  desk.progress(a, "x".repeat(20_000));
  desk.progress(a, { at: new Date(0) });
  desk.usage(a, { outputTokens: 3 });
  await advance(250);
  assert.deepEqual(posts, [[{ ...a, usage: { outputTokens: 3 } }]]);
  assert.match(warnings[0] ?? "", /progress of task a is not shown: 20002 characters of JSON, at most 16384/);
  assert.match(warnings[1] ?? "", /progress\.at must be plain JSON/);
});
