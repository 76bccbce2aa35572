import assert from "node:assert/strict";
import { test } from "node:test";
import { createProgress, progressFacts } from "./progress.ts";

function stage(isTTY: boolean, columns = 100) {
  let now = 5000;
  const written: string[] = [];
  const stream = { isTTY, columns, write: (text: string) => void written.push(text) };
  const progress = createProgress("verify", "events", { stream, now: () => now });
  const at = (ms: number, done: number, total = 250_000): void => {
    now = 5000 + ms;
    progress.at(done, total);
  };
  return { at, end: progress.end, written };
}

test("on a terminal it is a bar with rate and time left, drawn over itself and gone at the end", () => {
  const { at, end, written } = stage(true);
  at(299, 10_000);
  at(300, 0);
  at(350, 10_000);
  at(3000, 120_000);
  end();
  end();
  assert.deepEqual(written, [
    "\rverify  ░░░░░░░░░░░░░░░░░░░░░░░░  0%, 0 of 250,000 events\u001b[K",
    "\rverify  ████████████░░░░░░░░░░░░  48%, 120,000 of 250,000 events, 40,000/s, 4s left\u001b[K",
    "\r\u001b[K",
  ]);
});

test("it is never wider than the terminal", () => {
  const { at, written } = stage(true, 40);
  at(1000, 120_000);
  assert.equal(written[0]?.replace("\r", "").replace("\u001b[K", "").length, 39);
  const unknown = stage(true, 0);
  unknown.at(3000, 120_000);
  assert.match(unknown.written[0] ?? "", /48%.*4s left/, "one that says no width has a usual one");
});

test("where there is little room the bar gives way, and not the time that is left", () => {
  const shown = (columns: number): string => {
    const { at, written } = stage(true, columns);
    at(3000, 120_000);
    return written[0]?.replace("\r", "").replace("\u001b[K", "") ?? "";
  };
  assert.equal(shown(80), "verify  ██████████░░░░░░░░░░  48%, 120,000 of 250,000 events, 40,000/s, 4s left");
  assert.equal(shown(64), "verify  48%, 120,000 of 250,000 events, 40,000/s, 4s left");
});

test("elsewhere it is a plain line every ten seconds, and nothing for what is short", () => {
  const { at, end, written } = stage(false);
  for (let ms = 0; ms <= 25_000; ms += 100) at(ms, ms * 10);
  end();
  assert.deepEqual(written, [
    "verify: 40%, 100,000 of 250,000 events, 10,000/s, 15s left\n",
    "verify: 80%, 200,000 of 250,000 events, 10,000/s, 5s left\n",
  ]);
});

test("rates below ten keep a digit, and long times have two units", () => {
  const facts = (done: number, total: number, ms: number): string => progressFacts({ done, total, unit: "runs", ms });
  assert.equal(facts(5, 1000, 2000), "0%, 5 of 1,000 runs, 2.5/s", "too early to say");
  assert.equal(facts(10, 1000, 4000), "1%, 10 of 1,000 runs, 2.5/s, 6m 36s left");
  assert.equal(facts(5, 10_000, 5000), "0%, 5 of 10,000 runs, 1/s, 2h 46m left");
  assert.equal(facts(1, 5, 40_000), "20%, 1 of 5 runs, 1.5/min, 2m 40s left");
  assert.equal(facts(10, 10, 1000), "100%, 10 of 10 runs, 10/s");
  assert.equal(facts(0, 0, 0), "100%, 0 of 0 runs");
});
