/**
 * Only who proves that it leads is the leader, and only for a moment; and few are asked, not often.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { NodeWord } from "../../engine/node/index.ts";
import { createHandClock } from "../../std/hand-clock.ts";
import { createKnownLeader } from "./known-leader.ts";
import type { Heard } from "./node-word.ts";

const urlOf = (id: string): string => `http://${id}:1`;

function world(ids: readonly string[], leader: string | null = null) {
  const clock = createHandClock({ at: 0 });
  const asked: string[] = [];
  /** What each says; who is not here answers nothing. */
  const words = new Map<string, NodeWord>();
  const says = (id: string, more: Partial<NodeWord> = {}): void =>
    void words.set(urlOf(id), { node: id, url: urlOf(id), leads: true, epoch: 5, moment: "", ...more });
  const nodes = new Map(ids.map((id) => [id, { url: urlOf(id), key: "" }]));
  const known = createKnownLeader({
    node: { id: "self", applied: () => ({ seq: 0, hash: "", epoch: 5 }) as never },
    drover: { state: { cluster: { nodes, leader } } } as never,
    clock,
    askWord: async (base): Promise<Heard> => {
      asked.push(base);
      const word = words.get(base);
      return word === undefined ? { kind: "nothing", why: "it is gone" } : { kind: "word", word };
    },
  });
  return { clock, asked, says, known };
}

test("whoever proves that it leads is believed for two seconds, and then asked again", async () => {
  const { clock, asked, says, known } = world(["self", "a", "b"]);
  says("a", { leads: false });
  says("b");
  assert.equal(known.lately(), null);
  assert.deepEqual(await Promise.all([known.find(), known.find()]), [urlOf("b"), urlOf("b")]);
  assert.deepEqual(asked.splice(0), [urlOf("b"), urlOf("a")], "one round for all, and none to itself");
  await clock.advance(2000);
  assert.deepEqual([await known.find(), asked], [urlOf("b"), []]);
  await clock.advance(1);
  assert.equal(known.lately(), null);
  assert.deepEqual([await known.find(), asked.length], [urlOf("b"), 2]);
  known.forget(urlOf("a"));
  assert.equal(known.lately(), urlOf("b"));
  known.forget(urlOf("b"));
  assert.equal(known.lately(), null, "it refused, so it may lead no more");
  known.stop();
  assert.equal(await known.find(), null);
});

test("a word that is not of that node at that address, of an older epoch, or of no leader proves nothing", async () => {
  for (const [more, isBelieved] of [
    [{}, true],
    [{ epoch: 6 }, true],
    [{ epoch: 4 }, false],
    [{ leads: false }, false],
    [{ node: "b" }, false],
    [{ url: urlOf("b") }, false],
  ] as const) {
    const { says, known } = world(["a"]);
    says("a", more);
    assert.equal(await known.find(), isBelieved ? urlOf("a") : null, JSON.stringify(more));
  }
});

test("after a round in vain there is none for a second; sixteen are asked at most, the last leader first", async () => {
  const ids = Array.from({ length: 40 }, (_, index) => `n${index}`);
  const { clock, asked, says, known } = world(ids, "n30");
  assert.equal(await known.find(), null);
  assert.deepEqual([asked.length, asked[0]], [16, urlOf("n30")]);
  says("n39");
  await clock.advance(999);
  assert.deepEqual([await known.find(), asked.length], [null, 16]);
  await clock.advance(1);
  assert.equal(await known.find(), urlOf("n39"));
});

test("those that joined last are asked first: names that were given up stay in the log", async () => {
  const { says, known } = world(Array.from({ length: 20 }, (_, index) => `n${index + 1}`));
  says("n20");
  assert.equal(await known.find(), urlOf("n20"));
  known.stop();
});
