import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { test } from "node:test";
import { createUnreadAnswers } from "./unread-answers.ts";

function responses(...names: string[]) {
  const cut: string[] = [];
  const all = names.map((name) => ({ destroy: () => cut.push(name) }) as unknown as ServerResponse);
  return { cut, all };
}

test("when more waits than there is room for, who holds most is cut off, until there is room", () => {
  const unread = createUnreadAnswers({ unreadBytesMax: 100 });
  const { cut, all } = responses("a", "b", "c", "d", "e");
  const sizes = [30, 40, 30, 40, 10];
  for (const [index, response] of all.entries()) unread.hold(response, sizes[index] as number);
  assert.deepEqual([cut, unread.bytes()], [["b"], 110], "of those that hold most, who has waited longest");
});

test("an answer that is too large for all room takes no answer from anybody else", () => {
  const unread = createUnreadAnswers({ unreadBytesMax: 100 });
  const { cut, all } = responses("small", "half", "large", "larger", "last");
  const sizes = [1, 50, 1000, 2000, 1];
  for (const [index, response] of all.entries()) unread.hold(response, sizes[index] as number);
  assert.deepEqual([cut, unread.bytes()], [["large", "larger"], 52]);
});

test("what was taken counts no more, and who takes some and waits again has waited for a moment only", () => {
  const unread = createUnreadAnswers({ unreadBytesMax: 100 });
  const { cut, all } = responses("a", "b", "c");
  const [a, b, c] = all as [ServerResponse, ServerResponse, ServerResponse];
  const taken = unread.hold(a, 60);
  taken();
  taken();
  unread.hold(b, 60);
  assert.equal(unread.bytes(), 60);
  unread.hold(a, 60);
  unread.hold(b, 60);
  unread.hold(c, 10);
  assert.deepEqual(cut, ["a"]);
});

test("one that is too large alone is not cut off before anybody could read it, and makes room for the next", () => {
  const unread = createUnreadAnswers({ unreadBytesMax: 100 });
  const { cut, all } = responses("a", "b");
  unread.hold(all[0] as ServerResponse, 101);
  assert.deepEqual([cut, unread.bytes()], [[], 101]);
  unread.hold(all[1] as ServerResponse, 10);
  assert.deepEqual([cut, unread.bytes()], [["a"], 10]);
});
