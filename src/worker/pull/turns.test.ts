/**
 * Handlers and session on their shared numbers, in every order in which two threads can take their steps.
 *
 * A step is one access to the memory that both share, and what runs is the real thing. A side is taken one step further
 * by running it anew from its beginning: what it has read before is read from a list, what it has written is not
 * written again, and behind its next step it is thrown out. Two orders that have led to the same memory, and to the
 * same readings on both sides, go on alike, so each such meeting is looked at once.
 */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { createLeaseCell } from "./messages.ts";
import { createTurns } from "./turns.ts";

const NUMBERS = createLeaseCell().shared.byteLength / BigInt64Array.BYTES_PER_ELEMENT;
const MEETINGS_MAX = 200_000;

/** What one side has done: the value of each read, null for each write. */
type Trace = readonly (bigint | null)[];
type Meeting = { readonly memory: readonly bigint[]; readonly traces: readonly [Trace, Trace] };
type Side<Outcome> = () => Outcome;
const STEP_TAKEN = new Error("it is the turn of the other side");

/** Runs sides one step at a time; while a test lasts, what they share is not in memory but in a meeting. */
function stepper(t: TestContext) {
  let memory: bigint[] = [];
  let trace: (bigint | null)[] = [];
  let at = 0;
  let isFree = false;
  const access = (act: () => bigint | null): bigint | null => {
    if (at < trace.length) return trace[at++] as bigint | null;
    if (!isFree) throw STEP_TAKEN;
    isFree = false;
    at++;
    trace.push(act());
    return trace.at(-1) as bigint | null;
  };
  const load = (_: unknown, index: number): bigint => access(() => memory[index] ?? 0n) as bigint;
  const store = (_: unknown, index: number, value: bigint): bigint => {
    access(() => {
      memory[index] = value;
      return null;
    });
    return value;
  };
  // A mock of the test runner keeps every call.
  const real = { load: Atomics.load, store: Atomics.store };
  t.after(() => Object.assign(Atomics, real));
  Object.assign(Atomics, { load, store });
  /** The meeting that follows if this side takes its next step; its outcome if it has none. */
  return <Outcome>(from: Meeting, which: 0 | 1, side: Side<Outcome>): { next: Meeting } | { outcome: Outcome } => {
    memory = [...from.memory];
    trace = [...from.traces[which]];
    at = 0;
    isFree = true;
    const taken = trace.length;
    let outcome: Outcome | undefined;
    try {
      outcome = side();
    } catch (error) {
      if (error !== STEP_TAKEN) throw error;
    }
    if (trace.length === taken) return { outcome: outcome as Outcome };
    return { next: { memory, traces: which === 0 ? [trace, from.traces[1]] : [from.traces[0], trace] } };
  };
}

type Story = { readonly order: readonly number[]; readonly goesBack: readonly (readonly [number, number])[] };

/** Begins the places in this order; answers those that it began. */
const handlers =
  ({ order }: Story): Side<readonly number[]> =>
  () => {
    const turns = createTurns(createLeaseCell());
    return order.filter((place) => turns.begin(place, false) !== "never");
  };

/** Takes back what lies from the first to the last place, one after the other; answers those that went back. */
const session =
  ({ goesBack }: Story): Side<readonly number[]> =>
  () => {
    const cell = createLeaseCell();
    const gone: number[] = [];
    for (const [first, last] of goesBack) {
      const begun = cell.begun();
      const late: number[] = [];
      for (let place = Math.max(first, begun + 1); place <= last; place++) if (!gone.includes(place)) late.push(place);
      if (late.length === 0) continue;
      const begunTo = cell.revoke(Math.min(...late) - 1, last);
      gone.push(...late.filter((place) => place > begunTo));
    }
    return gone;
  };

/** The other way: nothing up to a place is begun any more. */
const disowning =
  ({ goesBack }: Story): Side<readonly number[]> =>
  () => {
    const cell = createLeaseCell();
    return goesBack.flatMap(([first, last]) => {
      const begunTo = cell.disown(last);
      return [1, 2, 3].filter((place) => place >= first && place <= last && place > begunTo);
    });
  };

/** Every way in which the two may meet; answers how many there were, and the places that both took in one of them. */
function meetAll(t: TestContext, story: Story, other: (story: Story) => Side<readonly number[]>) {
  const take = stepper(t);
  const seen = new Set<string>();
  const open: Meeting[] = [{ memory: Array(NUMBERS).fill(0n), traces: [[], []] }];
  const both = new Set<number>();
  for (let meeting = open.pop(); meeting !== undefined; meeting = open.pop()) {
    const key = `${meeting.memory.join()};${meeting.traces.map((trace) => trace.join()).join(";")}`;
    if (seen.has(key)) continue;
    seen.add(key);
    assert.ok(seen.size <= MEETINGS_MAX, "a story is small");
    const [mine, theirs] = [take(meeting, 0, handlers(story)), take(meeting, 1, other(story))];
    for (const after of [mine, theirs]) if ("next" in after) open.push(after.next);
    if ("outcome" in mine && "outcome" in theirs)
      for (const place of mine.outcome) if (theirs.outcome.includes(place)) both.add(place);
  }
  return { meetings: seen.size, both: [...both] };
}

const ORDERS = [
  [1, 2, 3],
  [1, 3, 2],
  [2, 1, 3],
  [3, 1, 2],
];
const GO_BACK: readonly Story["goesBack"][] = [
  [[2, 3]],
  [
    [2, 2],
    [3, 3],
  ],
  [
    [1, 2],
    [2, 3],
  ],
  [
    [1, 1],
    [3, 3],
  ],
];

for (const order of ORDERS)
  for (const goesBack of GO_BACK)
    for (const [verb, other] of Object.entries({ "taken back": session, disowned: disowning })) {
      const places = goesBack.map(([first, last]) => (first === last ? `${first}` : `${first} to ${last}`));
      test(`of ${order.join(", ")}, begun so, none goes to two when it is ${verb}: ${places.join(", then ")}`, (t) => {
        const { meetings, both } = meetAll(t, { order, goesBack }, other);
        assert.ok(meetings > 50, `${meetings} meetings`);
        assert.deepEqual(both, []);
      });
    }
