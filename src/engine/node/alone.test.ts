/**
 * A node that begins, and what the journal has of its name: its own last word, or that of somebody who goes on.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { seq } from "../../core/base/index.ts";
import type { NodeSeen } from "../../log/journal/index.ts";
import { createHandClock } from "../../std/index.ts";
import { checkAlone } from "./alone.ts";

const HASH = "0".repeat(64);
const own = { id: "n1", key: "own", url: "http://127.0.0.1:2" };
const told = { node: "n1", url: "http://127.0.0.1:1", seq: seq(1), hash: HASH, epoch: 1, stored: seq(1), key: "own" };
const AT = 1_800_000_000_000;
const REFUSED = /^another node is called n1: the one at http:\/\/127\.0\.0\.1:1, heard of /;

/** What becomes of a node that begins and sees this, by how long it has looked. */
async function begin(wordAt: (ms: number) => NodeSeen | null): Promise<{ tookMs: number; refusal: string | null }> {
  const clock = createHandClock({ at: AT });
  const ask = async () => {
    const word = wordAt(clock.elapsed() - AT);
    return { lead: null, nodes: word === null ? [] : [word], count: 1 };
  };
  let refusal: string | null | undefined;
  const checked = checkAlone(ask, own, clock).then(
    () => null,
    (error: Error) => error.message,
  );
  void checked.then((said) => {
    refusal = said;
  });
  for (let look = 0; refusal === undefined && look < 100; look++) await clock.advance(250);
  return { tookMs: clock.elapsed() - AT, refusal: await checked };
}

const rows: readonly (readonly [name: string, wordAt: (ms: number) => NodeSeen | null, refusal: RegExp | null])[] = [
  ["nobody of its name has told anything", () => null, null],
  ["its own last word, from the same address", () => ({ ...told, url: own.url, now: AT, ageMs: 0 }), null],
  ["a last word of another, long ago", () => ({ ...told, key: "other", now: AT, ageMs: 7001 }), null],
  ["a word of another", () => ({ ...told, key: "other", now: AT, ageMs: 6999 }), REFUSED],
  ["its last word from before it began again", (ms) => ({ ...told, now: AT, ageMs: ms + 500 }), null],
  [
    "its last word from a moment before it began again, of which the journal knows the age to two seconds",
    (ms) => ({ ...told, now: AT, ageMs: Math.max(0, ms - 1500) }),
    null,
  ],
  [
    "a word that is told again every two seconds",
    (ms) => ({ ...told, now: AT + Math.floor(ms / 2000) * 2000, ageMs: ms % 2000 }),
    REFUSED,
  ],
  ["a word that stays young and says no time", () => ({ ...told, ageMs: 10 }), REFUSED],
];
for (const [name, wordAt, expected] of rows)
  test(`a node that begins and finds this ${expected === null ? "begins" : "is refused"}: ${name}`, async () => {
    const { tookMs, refusal } = await begin(wordAt);
    if (expected === null) assert.equal(refusal, null);
    else assert.match(refusal ?? "begun", expected);
    assert.ok(tookMs <= 8000, `after ${tookMs} ms`);
  });
