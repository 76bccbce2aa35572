import assert from "node:assert/strict";
import { test } from "node:test";
import { within } from "../../../test/kits/waits.ts";
import { createHandClock, nextTurn } from "../../std/index.ts";
import { LogFailure } from "../log.ts";
import { keepLease } from "./lease.ts";
import { untilAnswered } from "./patience.ts";

const never = (): Promise<never> => new Promise(() => {});

test("a signal ends a wait at once, although the question that is under way hangs", async () => {
  const clock = createHandClock({ at: 0 });
  const over = new AbortController();
  const waiting = untilAnswered(never, { clock, onNotice: () => {} }, over.signal);
  over.abort(new Error("enough"));
  await assert.rejects(within("its end", waiting, 5000), /enough/);
  await assert.rejects(
    untilAnswered(() => assert.fail("it was asked"), { clock, onNotice: () => {} }, over.signal),
    /enough/,
  );
});

test("what is answered when nobody waits any more goes back, and what was waited for does not", async () => {
  const clock = createHandClock({ at: 0 });
  const late: string[] = [];
  const ask = (answer: Promise<string>, signal: AbortSignal): Promise<string> =>
    untilAnswered(
      () => answer,
      { clock, onNotice: () => {} },
      signal,
      (given) => late.push(given),
    );
  const over = new AbortController();
  const slow = Promise.withResolvers<string>();
  const failing = Promise.withResolvers<string>();
  const calledOff = [slow, failing].map(({ promise }) => assert.rejects(ask(promise, over.signal), /enough/));
  const inTime = ask(Promise.resolve("in time"), over.signal);
  assert.equal(await inTime, "in time");
  over.abort(new Error("enough"));
  await Promise.all(calledOff);
  slow.resolve("late");
  failing.reject(new Error("nobody hears of it"));
  await nextTurn();
  assert.deepEqual(late, ["late"]);
});

test("of several who wait for a journal one speaks, every five seconds, and once when it answers again", async () => {
  const clock = createHandClock({ at: 0 });
  const lines: string[] = [];
  const onNotice = (line: string): unknown => lines.push(`${clock.elapsed() / 1000}: ${line}`);
  let isAway = true;
  const ask = async (): Promise<void> => {
    if (isAway) throw new LogFailure("unreachable", "gone");
  };
  const { signal } = new AbortController();
  const waiting = [0, 1, 2].map(() => untilAnswered(ask, { clock, onNotice }, signal));
  const elsewhere = untilAnswered(ask, { clock, onNotice, what: "node b" }, signal);
  await clock.advance(4000);
  assert.deepEqual(lines, ["0: waiting for the journal since 0 s: gone", "0: waiting for node b since 0 s: gone"]);
  await clock.advance(8000);
  const [more] = [lines.filter((line) => line.includes("the journal"))];
  assert.equal(more.length, 3, more.join("\n"));
  isAway = false;
  await clock.advance(2000);
  await Promise.all([...waiting, elsewhere]);
  const ends = lines.filter((line) => line.includes("answers again")).map((line) => line.replace(/^[^:]*: /, ""));
  assert.equal(ends.length, 2, ends.join("\n"));
  isAway = true;
  const again = untilAnswered(ask, { clock, onNotice }, signal);
  await clock.advance(0);
  assert.match(lines.at(-1) ?? "", /waiting for the journal since 0 s/, "another time begins at once");
  isAway = false;
  await clock.advance(2000);
  await again;
});

test("how long it was away is said by who has waited longest, whoever is answered first", async () => {
  const clock = createHandClock({ at: 0 });
  const lines: string[] = [];
  const patience = { clock, onNotice: (line: string) => void lines.push(line) };
  const { signal } = new AbortController();
  let isAway = true;
  const ask = async (): Promise<void> => {
    if (isAway) throw new LogFailure("unreachable", "gone");
  };
  const first = untilAnswered(ask, patience, signal);
  await clock.advance(20_150);
  const late = untilAnswered(ask, patience, signal);
  await clock.advance(5000);
  assert.match(lines.at(-1) ?? "", /^waiting for the journal since 2\d s/);
  isAway = false;
  await clock.advance(5000);
  await Promise.all([first, late]);
  assert.match(lines.at(-1) ?? "", /^the journal answers again, after 2\d s$/);
  isAway = true;
  const over = new AbortController();
  const givenUp = assert.rejects(untilAnswered(ask, patience, over.signal), /enough/);
  await clock.advance(10_000);
  over.abort(new Error("enough"));
  await givenUp;
  await clock.advance(3_600_000);
  const another = untilAnswered(ask, patience, signal);
  await clock.advance(0);
  assert.match(lines.at(-1) ?? "", /^waiting for the journal since 0 s/, "who has given up says nothing of later");
  isAway = false;
  await clock.advance(2000);
  await another;
});

test("a lead that cannot be given up, since nothing answers, is waited for a second and no longer", async () => {
  const clock = createHandClock({ at: 0 });
  const lease = keepLease({ epoch: 1, ttlMs: 3000, clock, sentAt: 0, renew: never, giveUp: never });
  const released = lease.release();
  assert.equal((await lease.lost).reason, "released");
  await clock.advance(1000);
  await within("the end of the release", released, 5000);
});
