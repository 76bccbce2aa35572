import assert from "node:assert/strict";
import { test } from "node:test";
import { createHandClock } from "../../std/hand-clock.ts";
import { createProgressReports } from "./progress.ts";

const a = { taskId: "a", attempt: 1 };
const b = { taskId: "b", attempt: 2 };

function kit() {
  const clock = createHandClock({ at: 1000 });
  const posts: unknown[] = [];
  const warnings: string[] = [];
  const reports = createProgressReports({
    clock,
    post: (items) => void posts.push(items),
    warn: (text) => void warnings.push(text),
  });
  return { reports, posts, warnings, advance: clock.advance };
}

test("the first report goes at once, later ones together and not too often, the last one always", async () => {
  const { reports, posts, advance } = kit();
  reports.progress(a, 0);
  assert.deepEqual(posts, [[{ ...a, progress: "0" }]]);
  for (let count = 1; count <= 100_000; count++) reports.progress(a, count);
  reports.usage(a, { inputTokens: 1 });
  reports.progress(b, { step: "x" });
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
  const { reports, posts, advance } = kit();
  reports.progress(a, 1);
  reports.progress(a, 2);
  reports.drop(a);
  await advance(250);
  assert.equal(posts.length, 1);
});

test("progress that cannot be shown is left out with a warning, and usage beside it is not", async () => {
  const { reports, posts, warnings, advance } = kit();
  reports.progress(a, "x".repeat(20_000));
  reports.progress(a, { at: new Date(0) });
  reports.usage(a, { outputTokens: 3 });
  await advance(250);
  assert.deepEqual(posts, [[{ ...a, usage: { outputTokens: 3 } }]]);
  assert.match(warnings[0] ?? "", /progress of task a is not shown: 20002 characters of JSON, at most 16384/);
  assert.match(warnings[1] ?? "", /progress\.at must be plain JSON/);
});
