/**
 * A node that is not where it says that it is finds out, says who is there instead, and looks again.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createHandClock } from "../../std/hand-clock.ts";
import type { Heard } from "./node-word.ts";
import { watchOwnAddress } from "./own-address.ts";

const word = (node: string, url: string): Heard => ({
  kind: "word",
  word: { node, url, leads: false, epoch: 1, moment: "" },
});

function world(answers: readonly Heard[]) {
  const clock = createHandClock({ at: 0 });
  const said: (string | null)[] = [];
  const asked: string[] = [];
  const watch = watchOwnAddress({
    node: { id: "a", url: () => "http://a:1", atAddress: (text) => said.push(text) },
    clock,
    listensAt: "http://0.0.0.0:2",
    askWord: async (base) => {
      asked.push(base);
      return answers[Math.min(asked.length, answers.length) - 1] as Heard;
    },
  });
  return { clock, said, asked, watch };
}

test("a right address is asked once, and nothing is said", async () => {
  const { clock, said, asked } = world([word("a", "http://a:1")]);
  await clock.advance(999);
  assert.deepEqual(asked, []);
  await clock.advance(600_000);
  assert.deepEqual([asked, said], [["http://a:1"], [null]]);
});

test("who or what is there instead is said, with where the node listens, until it is right", async () => {
  const { clock, said } = world([
    { kind: "nothing", why: "connect ECONNREFUSED" },
    { kind: "stranger", status: 404 },
    word("b", "http://a:1"),
    word("a", "http://other:1"),
    word("a", "http://a:1"),
  ]);
  await clock.advance(1000);
  for (let minute = 0; minute < 6; minute++) await clock.advance(60_000);
  const [nothing, stranger, other, twin, ...right] = said;
  assert.match(
    nothing ?? "",
    /^NOTHING ANSWERS this node at http:\/\/a:1, .* \(connect ECONNREFUSED\)\. Once this node/,
  );
  assert.match(stranger ?? "", /^NO NODE of this cluster answers at http:\/\/a:1, .* with status 404\./);
  assert.match(other ?? "", /^ANOTHER NODE, b, answers at http:\/\/a:1, .* reach that one\./);
  assert.match(twin ?? "", /^ANOTHER PROCESS that is node a too, and calls itself http:\/\/other:1, answers/);
  for (const text of [nothing, stranger, other, twin])
    assert.match(text ?? "", /It listens at http:\/\/0\.0\.0\.0:2: start it with --advertise/);
  assert.deepEqual(right, [null], "and then no more");
});

test("one that is stopped asks no more", async () => {
  const { clock, asked, watch } = world([{ kind: "nothing", why: "x" }]);
  await clock.advance(1000);
  watch.stop();
  await clock.advance(600_000);
  assert.equal(asked.length, 1);
});
