/** No caller takes all that a node may have at other nodes, and a worker is heard as long as there is any room. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createForwardRoom } from "./forward-room.ts";

const [GREEDY, OTHER] = ["ann", "bob"];

test("the last tenth of the calls is for callers that have few, and the very last for a worker", () => {
  const room = createForwardRoom({ forwardsMax: 100, forwardBytesMax: 1000 });
  const taken = Array.from({ length: 100 }, () => room.take({ holder: GREEDY }));
  assert.equal(taken.filter((leave) => leave !== null).length, 90);
  assert.notEqual(room.take({ holder: OTHER }), null);
  while (room.count() < 99) assert.notEqual(room.take({ holder: `agent-${room.count()}` }), null);
  assert.equal(room.take({ holder: GREEDY }), null);
  assert.notEqual(room.take({ holder: GREEDY, isNeeded: true }), null);
  assert.equal(room.take({ holder: OTHER, isNeeded: true }), null, "there is none left");
  taken[0]?.();
  assert.equal(room.count(), 99);
});

test("so is the last tenth of their bytes; a body without room takes no call", () => {
  const room = createForwardRoom({ forwardsMax: 100, forwardBytesMax: 1000 });
  const leave = room.take({ holder: GREEDY, size: 900 });
  assert.equal(room.take({ holder: GREEDY, size: 50 }), null);
  assert.equal(room.take({ holder: OTHER, size: 101 }), null);
  assert.equal(room.count(), 1);
  assert.notEqual(room.take({ holder: OTHER, size: 50 }), null);
  leave?.();
  assert.notEqual(room.take({ holder: GREEDY, size: 900 }), null);
});
