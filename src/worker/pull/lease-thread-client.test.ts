import assert from "node:assert/strict";
import { test } from "node:test";
import { gatherEnds, messageIn } from "./lease-thread-client.ts";
import type { FromHandlers } from "./messages.ts";

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

test("what is passed on and is no JSON is a warning, and ends no program", () => {
  assert.deepEqual(messageIn('{"type":"left"}'), { type: "left" });
  const { type, message } = messageIn('{"type":"start","assignments":[{]}') as { type: string; message: string };
  assert.deepEqual([type, message.startsWith("an answer of the server cannot be read: ")], ["warning", true]);
});
