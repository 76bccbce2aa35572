/**
 * One gate before a provider: six calls, two at a time, and a 429 in the middle.
 *
 *     node examples/gate.ts
 *
 * The first 429 closes the gate for everybody. Afterwards one call goes out alone as a probe; when it succeeds the
 * others follow, and the call that met the 429 has kept its turn. The clock is turned by hand, so that twenty
 * seconds take no time; leave out `clock` and the gate uses the real one.
 */
import assert from "node:assert/strict";
import { createGate } from "../src/gate/index.ts";

const clock = { now: 0, timers: new Map<() => void, number>() };
const gate = createGate({
  maxConcurrent: 2,
  requests: 50,
  windowMs: 60_000,
  clock: {
    now: () => clock.now,
    elapsed: () => clock.now,
    ringAt: (at, ring) => {
      clock.timers.set(ring, at);
      return () => void clock.timers.delete(ring);
    },
  },
});

const story: string[] = [];
let calls = 0;

/** A provider that is overloaded once, at the third call. */
async function provider(id: string): Promise<string> {
  calls++;
  story.push(`${id} at ${clock.now / 1000} s`);
  if (calls === 3) throw Object.assign(new Error("slow down"), { status: 429, retryAfterMs: 20_000 });
  return `answer to ${id}`;
}

const asked = ["c1", "c2", "c3", "c4", "c5", "c6"].map((id) => gate.withPermit(() => provider(id), { id }));
const answers = Promise.all(asked);

// Whatever waits for the clock is let go, one instant after the other, until every call has its answer.
let isOver = false;
void answers.then(() => {
  isOver = true;
});
while (!isOver) {
  await new Promise((resolve) => setImmediate(resolve));
  const next = Math.min(...clock.timers.values());
  if (gate.queueState().running > 0 || !Number.isFinite(next)) continue;
  clock.now = Math.max(clock.now, next);
  gate.advance();
}

console.log(story.join("\n"));
const { stats } = gate.queueState();
console.log(
  `${calls} calls went out for 6 answers, ${stats.rateLimited} met a 429, at most ${stats.peakRunning} at once`,
);
gate.close();

assert.equal((await answers).length, 6);
assert.equal(calls, 7, "the call that met the 429 went out twice");
assert.equal(stats.peakRunning, 2);
const [probe] = story.filter((line) => line.endsWith("at 20 s"));
assert.equal(probe, "c3 at 20 s", "the call that met the 429 has kept its turn");
