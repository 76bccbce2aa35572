import assert from "node:assert/strict";
import { test } from "node:test";
import { createLogInHand } from "../../../test/kits/log-in-hand.ts";
import { createTestDrover } from "../../testing/index.ts";

test("a listener hears every event once, in order, with the head of the log after it", async () => {
  await using at = await createTestDrover();
  const heard: number[] = [];
  const heads: string[] = [];
  const stop = at.drover.watch((batch, { head, appendMs }) => {
    heard.push(...batch.map(({ seq }) => seq));
    heads.push(head.hash);
    assert.ok(appendMs >= 0);
    assert.equal(head.seq, batch.at(-1)?.seq);
  });
  const first = at.drover.state.seq;
  await at.drover.submit({ agentId: "ann", action: "x" });
  const last = await at.drover.head();
  assert.deepEqual(
    heard,
    Array.from({ length: last.seq - first }, (_, index) => first + 1 + index),
  );
  assert.equal(heads.at(-1), last.hash);
  stop();
  const before = heard.length;
  await at.drover.submit({ agentId: "ann", action: "x" });
  assert.equal(heard.length, before);
});

test("a listener that throws is a warning, and stops neither the writer nor the other listeners", async () => {
  await using at = await createTestDrover();
  const warned = Promise.withResolvers<Error>();
  const onWarning = (warning: Error): void => warned.resolve(warning);
  process.once("warning", onWarning);
  let heard = 0;
  at.drover.watch(() => {
    throw new Error("not me");
  });
  at.drover.watch((batch) => {
    heard += batch.length;
  });
  await at.drover.submit({ agentId: "ann", action: "x" });
  assert.ok(heard > 0);
  assert.match((await warned.promise).message, /a listener to commits failed: Error: not me/);
});

test("what nobody listened to when it happened is not told later; what happens from then on is", async () => {
  const hand = createLogInHand();
  await using at = await createTestDrover({ log: hand.log });
  hand.hold();
  const early = at.drover.submit({ agentId: "ann", action: "early" });
  const heard: string[] = [];
  at.drover.watch((batch) => {
    heard.push(...batch.map(({ event }) => ("task" in event ? `${event.kind} ${event.task}` : event.kind)));
  });
  const late = at.drover.submit({ agentId: "ann", action: "late" });
  hand.release();
  const [{ taskId: before }, { taskId: after }] = await Promise.all([early, late]);
  assert.ok(heard.includes(`task-submitted ${after}`));
  assert.ok(!heard.includes(`task-submitted ${before}`));
});
