/**
 * A token is made for a node that has proved to be the one that is meant; who refuses is said for as long as it does.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createHandClock } from "../../std/hand-clock.ts";
import { createDoors } from "./doors.ts";
import type { Heard } from "./node-word.ts";

const place = { id: "b", url: "http://b:1" };
const word = { node: "b", url: "http://b:1", leads: false, epoch: 1, moment: "m" };

function world() {
  const clock = createHandClock({ at: 0 });
  const there = { heard: { kind: "word", word } as Heard, peers: [place], said: null as string | null };
  const doors = createDoors({
    node: {
      peers: () => there.peers,
      tokenFor: ({ node, moment }) => `${node} ${moment}`,
      keptOut(text) {
        there.said = text;
      },
    },
    clock,
    askWord: async () => there.heard,
  });
  return { clock, there, doors };
}

test("only who has proved to be the node gets a token, for its own time", async () => {
  const { there, doors } = world();
  assert.equal(await doors.tokenFor(place), "b m");
  const others: readonly [Heard, RegExp | null][] = [
    [{ kind: "word", word: { ...word, node: "c" } }, /^NODE b at http:\/\/b:1 does not let .* there is node c/],
    [{ kind: "word", word: { ...word, url: "http://c:1" } }, /says that it is at http:\/\/c:1/],
    [{ kind: "stranger", status: 404 }, /status 404.* has not proved to be it/],
    [{ kind: "stranger", status: 503 }, null],
    [{ kind: "nothing", why: "gone" }, null],
  ];
  for (const [heard, says] of others) {
    there.heard = heard;
    there.said = null;
    assert.equal(await doors.tokenFor(place), null);
    if (says === null) assert.equal(there.said, null);
    else assert.match(there.said ?? "", says);
  }
  doors.stop();
});

test("who has not proved to be the node is asked again every minute, until it has, or is gone", async () => {
  for (const mended of [{ heard: { kind: "word", word } as Heard }, { peers: [] }]) {
    const { clock, there, doors } = world();
    there.heard = { kind: "stranger", status: 200 };
    await doors.tokenFor(place);
    await clock.advance(60_000);
    assert.match(there.said ?? "", /does not let this node in/);
    Object.assign(there, mended);
    await clock.advance(60_000);
    assert.equal(there.said, null);
    assert.deepEqual(clock.alarms(), []);
    doors.stop();
  }
});

test("a refusal that nothing has met for minutes is over", async () => {
  const { clock, there, doors } = world();
  for (let minutes = 0; minutes < 10; minutes++) {
    doors.answered(place, 401);
    await clock.advance(60_000);
    assert.match(there.said ?? "", /it answers with status 401/, `as long as it is met, minute ${minutes}`);
  }
  await clock.advance(240_000);
  assert.equal(there.said, null);
  assert.deepEqual(clock.alarms(), []);
  doors.stop();
});

test("a token that is refused is said until one is not", async () => {
  const { clock, there, doors } = world();
  doors.answered(place, 401);
  await clock.advance(60_000);
  await doors.tokenFor(place);
  assert.match(there.said ?? "", /it answers with status 401/, "that it is the node was not in doubt");
  doors.answered(place, 404);
  assert.equal(there.said, null);
  doors.stop();
  assert.deepEqual(clock.alarms(), []);
});
