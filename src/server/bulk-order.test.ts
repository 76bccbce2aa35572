import assert from "node:assert/strict";
import { test } from "node:test";
import { fewTurns } from "../../test/kits/waits.ts";
import { createHandClock } from "../std/index.ts";
import { createBulkOrder } from "./bulk-order.ts";

function story() {
  const clock = createHandClock({ at: 0 });
  const order = createBulkOrder(clock);
  const turns: string[] = [];
  const over = new Map<string, () => void>();
  const come = async (header: string): Promise<void> => {
    over.set(header, await order.turn(header));
    turns.push(header);
  };
  return {
    clock,
    order,
    turns,
    come: (header: string) => void come(header),
    begun: (header: string) => over.get(header)?.(),
  };
}

test("a bulk that comes before the one it follows is begun behind it", async () => {
  const { turns, come, begun } = story();
  come("ann 2 1");
  await fewTurns();
  assert.deepEqual(turns, []);
  come("ann 1");
  await fewTurns();
  assert.deepEqual(turns, ["ann 1"], "all calls of the first are begun before");
  begun("ann 1");
  await fewTurns();
  assert.deepEqual(turns, ["ann 1", "ann 2 1"]);
  begun("ann 2 1");
  come("ann 3 2");
  await fewTurns();
  assert.deepEqual(turns.at(-1), "ann 3 2", "what is begun already is not waited for");
});

test("one bulk waits for that of its own client only, and one that names none for nobody", async () => {
  const { turns, come } = story();
  come("ann 1");
  come("ann 2 1");
  come("bea 2");
  come("cid 7");
  await fewTurns();
  assert.deepEqual(turns, ["ann 1", "bea 2", "cid 7"]);
});

test("one that was lost on the way is waited for a second, and once", async () => {
  const { clock, turns, come, begun } = story();
  come("ann 8 7");
  await fewTurns();
  await clock.advance(999);
  await fewTurns();
  assert.deepEqual(turns, []);
  await clock.advance(1);
  await fewTurns();
  assert.deepEqual(turns, ["ann 8 7"]);
  begun("ann 8 7");
  come("ann 9 7");
  await fewTurns();
  assert.deepEqual(turns, ["ann 8 7", "ann 9 7"], "the client has no answer of the lost one still");
});

test("one that takes the place of another waits for what is left of its second", async () => {
  const { clock, turns, come } = story();
  come("ann 8 7");
  await clock.advance(600);
  come("ann 9 7");
  await fewTurns();
  assert.deepEqual(turns, ["ann 8 7"]);
  await clock.advance(399);
  await fewTurns();
  assert.deepEqual(turns, ["ann 8 7"]);
  await clock.advance(1);
  await fewTurns();
  assert.deepEqual(turns, ["ann 8 7", "ann 9 7"]);
});

test("so many wait for one that is not here, and no more; whose turn comes makes room", async () => {
  const { clock, turns, come } = story();
  const absent = (count: number): string => `c${count} 2 1`;
  for (let count = 0; count < 256; count++) come(absent(count));
  // One that is here will be begun, and what waits for it is as many as that allows.
  for (const header of ["ann 1", "ann 2 1"]) come(header);
  await fewTurns();
  assert.deepEqual(turns, ["ann 1"]);
  come(absent(256));
  await fewTurns();
  assert.deepEqual(turns, ["ann 1", absent(256)]);
  await clock.advance(1000);
  await fewTurns();
  assert.equal(turns.length, 258);
  come(absent(257));
  await fewTurns();
  assert.equal(turns.length, 258, "it waits");
});

test("one that is here is waited for until its calls are begun, however long that takes", async () => {
  const { clock, turns, come, begun } = story();
  for (const header of ["ann 1", "ann 2 1", "ann 3 2"]) come(header);
  await clock.advance(1000);
  await fewTurns();
  assert.deepEqual(turns, ["ann 1"]);
  begun("ann 1");
  await clock.advance(10_000);
  await fewTurns();
  assert.deepEqual(turns, ["ann 1", "ann 2 1"]);
  begun("ann 2 1");
  await fewTurns();
  assert.deepEqual(turns, ["ann 1", "ann 2 1", "ann 3 2"]);
});

test("bulks that were made up to follow each other do not wait for each other", async () => {
  const { clock, turns, come } = story();
  for (const header of ["ann 1 2", "ann 3 3", "ann 2 1"]) come(header);
  await fewTurns();
  assert.deepEqual(turns, ["ann 1 2", "ann 3 3"]);
  await clock.advance(1000);
  await fewTurns();
  assert.equal(turns.length, 2, "the first of them is here");
});

test("a header that says no place is refused; none is no order", async () => {
  const { order } = story();
  await order.turn(undefined);
  for (const header of ["ann", "ann x", "1", "a b 1", "ann 1 2 3", `${"a".repeat(65)} 1`, "ann -1"])
    await assert.rejects(order.turn(header), /header drover-bulk/, header);
});
