/**
 * A kept answer goes to those who ask for the same with the same rights, within its second, and to nobody else.
 */
import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { test } from "node:test";
import type { Caller } from "../http/index.ts";
import { createKeptAnswers } from "./kept-answers.ts";

const LOOKER: Caller = { role: "viewer", projects: null, agentId: null };
const LOOK = { "cache-control": "max-age=1" };

function world() {
  const now = { ms: 5000, seq: 10 };
  const kept = createKeptAnswers({ elapsed: () => now.ms, committedSeq: () => now.seq });
  const place = (headers: Record<string, string>, caller: Caller = LOOKER, url = "/projects") =>
    kept.place({ url, headers } as unknown as IncomingMessage, caller);
  const told = (...given: Parameters<typeof place>): string | null => place(...given)?.known?.body.toString() ?? null;
  return { now, place, told };
}

test("it is told to others for a second, and then made anew", () => {
  const { now, place, told } = world();
  const first = place(LOOK);
  assert.equal(first?.known, null);
  now.ms += 300;
  first?.keep("a", ["x", "1"]);
  now.ms += 700;
  assert.equal(told(LOOK), "a");
  assert.equal(told({ "cache-control": "no-store, Max-Age=60" }), "a");
  now.ms += 1;
  assert.equal(told(LOOK), null, "its second began when its making did");
});

test("the age that a follower tells of its answer grows while it is kept; where none is told, none is", () => {
  const { now, place } = world();
  place(LOOK)?.keep("a", ["x", "1", "x-drover-age-ms", "1200", "y", "2"]);
  place(LOOK, LOOKER, "/tasks")?.keep("b", ["x", "1"]);
  for (const [passedMs, age] of [
    [0, "1200"],
    [400.5, "1601"],
    [599.5, "2200"],
  ] as const) {
    now.ms += passedMs;
    assert.deepEqual(place(LOOK)?.known?.headers, ["x", "1", "x-drover-age-ms", age, "y", "2"]);
    assert.deepEqual(place(LOOK, LOOKER, "/tasks")?.known?.headers, ["x", "1"]);
  }
});

test("who does not say so gets an answer of its own, and leaves none behind", () => {
  const { place, told } = world();
  place(LOOK)?.keep("a", []);
  for (const headers of [{}, { "cache-control": "max-age=0" }, { "cache-control": "no-cache, max-age=1" }])
    assert.equal(place(headers as Record<string, string>), null);
  assert.equal(told(LOOK), "a");
});

test("nobody is told what a caller with other rights was told, nor what was asked otherwise", () => {
  const { place, told } = world();
  place(LOOK)?.keep("all", []);
  const others: readonly Caller[] = [
    { ...LOOKER, role: "admin" },
    { ...LOOKER, projects: ["shop"] },
    { ...LOOKER, agentId: "ann" },
    { ...LOOKER, attempt: { task: "t1", number: 1 } },
  ];
  for (const caller of others) assert.equal(told(LOOK, caller), null, JSON.stringify(caller));
  assert.equal(told(LOOK, LOOKER, "/projects?x=1"), null);
  assert.equal(told(LOOK, { ...LOOKER }), "all", "another token of the same rights");
});

test("an event that a caller knows of is in its answer", () => {
  const { now, place, told } = world();
  const begun = place(LOOK);
  now.seq = 12;
  begun?.keep("a", []);
  assert.equal(told({ ...LOOK, "x-drover-after": "10" }), "a");
  assert.equal(told({ ...LOOK, "x-drover-after": "11" }), null, "it came while the answer was made");
});

test("few are kept, and none that is large", () => {
  const { place, told } = world();
  for (let index = 0; index < 40; index++) place(LOOK, LOOKER, `/tasks?limit=${index + 1}`)?.keep("a", []);
  assert.equal(told(LOOK, LOOKER, "/tasks?limit=1"), null);
  assert.equal(told(LOOK, LOOKER, "/tasks?limit=40"), "a");
  place(LOOK, LOOKER, "/tasks")?.keep("x".repeat(600_000), []);
  assert.equal(told(LOOK, LOOKER, "/tasks"), null);
});
