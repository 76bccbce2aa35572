/**
 * What lies in the journal under the names of nodes is read with care: anybody who can write there may have put it.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createWordReading, readAnnouncement } from "./announcement.ts";

const word = { node: "a", url: "http://a:4747", seq: 3, hash: "0".repeat(64), epoch: 1, stored: 3 };
const kept = (name: string, told: unknown, ageMs = 0) => ({ name, told, ageMs });

test("an address of a node is a host and a port, and nothing that a browser or a program would do more with", () => {
  for (const url of [
    "http://a",
    "https://a.example:1",
    "http://[::1]:4747",
    "http://10.0.0.1:4747/",
    "http://a:80",
    "http://A",
  ])
    assert.equal(readAnnouncement({ ...word, url }, 0)?.url, url);
  for (const url of [
    "javascript:alert(1)",
    "file:///etc/passwd",
    "http://a/path",
    "http://a?x",
    "http://u:p@a",
    "http://A\n",
    "http://a\u202eb",
    "http://a\\b",
    "http://a:99999",
    "HTTP://a",
    " http://a",
    "",
    "a",
    null,
  ])
    assert.equal(readAnnouncement({ ...word, url }, 0), null, String(url));
});

test("what makes no sense is said once, and again when there is more of it", () => {
  const said: string[] = [];
  const read = createWordReading((line) => said.push(line));
  const good = kept("a", word);
  const odd = kept("b\u001b[31m", "text");
  const others = kept("c", { ...word, node: "a" });
  assert.deepEqual(read([good]).length, 1);
  for (let looks = 0; looks < 3; looks++) assert.deepEqual(read([odd, good]), [{ ...word, ageMs: 0 }]);
  assert.equal(said.length, 1);
  assert.match(said[0] ?? "", /of a node is nothing .* passed over: b \[31m\./);
  assert.equal(read([others, odd, good]).length, 1, "nobody tells in another's name");
  assert.match(said[1] ?? "", /of 2 nodes .*: c, b /);
  read([good]);
  read([odd]);
  assert.equal(said.length, 3, "it was gone, and is back");
});

test("an age that is no number is none", () => {
  const read = createWordReading(() => {});
  for (const ageMs of [Number.NaN, Number.NEGATIVE_INFINITY, -5])
    assert.equal(read([kept("a", word, ageMs)])[0]?.ageMs, 0);
});
