import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pulse } from "../../protocol/index.ts";
import { nextTurn } from "../../std/clock.ts";
import { createHandClock } from "../../std/hand-clock.ts";
import { createPulses } from "./pulses.ts";

function world() {
  const clock = createHandClock({ at: 0 });
  const log = { seq: 1, trouble: "", looks: 0 };
  const now = (): Pulse => {
    log.looks += 1;
    const node = log.trouble === "" ? {} : { node: { role: "follower", trouble: log.trouble } };
    return { seq: log.seq, ...node } as Pulse;
  };
  const follow = createPulses({ standing: () => `${log.seq} ${log.trouble}`, now, clock });
  /** What a follower has been sent so far. */
  function follower(stop = new AbortController()): { sent: string[]; stop: AbortController; ended: Promise<void> } {
    const sent: string[] = [];
    const run = async (): Promise<void> => {
      for await (const frame of follow(stop.signal)) sent.push(frame);
    };
    return { sent, stop, ended: run() };
  }
  const pass = async (ms: number): Promise<void> => {
    await nextTurn();
    clock.turn(ms);
    await nextTurn();
  };
  return { clock, log, follower, pass };
}

test("all who follow are told the same at the same moment, looked at once for all", async () => {
  const { clock, log, follower, pass } = world();
  const first = follower();
  await pass(400);
  const second = follower();
  await pass(0);
  assert.equal(clock.alarms().length, 1, "one beat for both");
  log.seq = 7;
  await pass(599);
  assert.deepEqual([first.sent.length, second.sent.length], [1, 1]);
  await pass(1);
  const frame = 'id: 7\nevent: pulse\ndata: {"seq":7}\n\n';
  assert.deepEqual([first.sent[1], second.sent[1]], [frame, frame]);
  assert.equal(log.looks, 2);
  await pass(5000);
  assert.deepEqual([first.sent.length, log.looks], [2, 2], "nothing happened");
  log.seq = 8;
  await pass(1000);
  assert.deepEqual([first.sent.length, second.sent.length], [3, 3]);
  log.trouble = "journal-away";
  await pass(1000);
  assert.deepEqual(
    [first.sent.length, second.sent.length],
    [4, 4],
    "a node has lost its journal, and no event says so",
  );
  first.stop.abort();
  second.stop.abort();
  await Promise.all([first.ended, second.ended]);
});

test("one that leaves between two beats ends at once, and the others go on; nobody left, no beat", async () => {
  const { clock, log, follower, pass } = world();
  const [first, second] = [follower(), follower()];
  await pass(500);
  first.stop.abort();
  await first.ended;
  log.seq = 2;
  await pass(500);
  assert.deepEqual([first.sent.length, second.sent.length], [1, 2]);
  second.stop.abort();
  await second.ended;
  await pass(1000);
  assert.equal(clock.alarms().length, 0);
});
