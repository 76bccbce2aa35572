import assert from "node:assert/strict";
import { test } from "node:test";
import { gatherEnds, messageIn } from "./lease-thread-client.ts";
import type { FromHandlers } from "./messages.ts";
import { DONE } from "./outcome.ts";

const ended = (taskId: string): FromHandlers => ({ type: "ended", taskId, attempt: 1, report: null });

test("what ends in one turn is one message; all else is sent at once, behind what ended before", async () => {
  const sent: string[][] = [];
  const post = gatherEnds((messages) =>
    sent.push(messages.map((message) => ("taskId" in message ? message.taskId : message.type))),
  );
  for (const name of ["a", "b"]) post(ended(name));
  assert.deepEqual(sent, []);
  await Promise.resolve();
  assert.deepEqual(sent.splice(0), [["a", "b"]]);
  post(ended("c"));
  post({ type: "progress", items: [] });
  assert.deepEqual(sent.splice(0), [["c", "progress"]], "the thread may stand still next");
  post(ended("d"));
  await Promise.resolve();
  assert.deepEqual(sent, [["d"]]);
});

test("those that are only done are named in a list, before whatever is not an end", async () => {
  const sent: (readonly FromHandlers[])[] = [];
  const post = gatherEnds((messages) => sent.push(messages));
  const done = (taskId: string): FromHandlers => ({ type: "ended", taskId, attempt: 2, report: DONE });
  for (const message of [done("a"), ended("b"), done("c")]) post(message);
  await Promise.resolve();
  assert.deepEqual(sent.splice(0), [[ended("b"), { type: "all-done", names: ["a", 2, "c", 2] }]]);
  post(done("d"));
  post({ type: "drain" });
  assert.deepEqual(sent.splice(0), [[{ type: "all-done", names: ["d", 2] }, { type: "drain" }]]);
  await Promise.resolve();
  assert.deepEqual(sent, [], "nothing is left to be said");
});

test("what is passed on and is no JSON is a warning, and ends no program", () => {
  assert.deepEqual(messageIn('{"type":"left"}'), { type: "left" });
  const { type, message } = messageIn('{"type":"start","assignments":[{]}') as { type: string; message: string };
  assert.deepEqual([type, message.startsWith("an answer of the server cannot be read: ")], ["warning", true]);
});

test("of tasks that are no JSON the names are passed on: they have been handed over", () => {
  const named = [{ taskId: 'a,"tasks":', attempt: 1 }];
  for (const tasks of ["[{oops}]", "[{}", ""])
    assert.deepEqual(messageIn(`{"type":"start-lean","named":${JSON.stringify(named)},"tasks":${tasks}}`), {
      ...{ type: "start-lean", named, tasks: [] },
    });
});
