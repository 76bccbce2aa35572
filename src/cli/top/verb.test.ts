/**
 * One look, as `drover top --once` and a pipe have it.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { drover } from "../../../test/kits/cli/canned-server.ts";

const part = {
  ...{ inFlight: 0, maxInFlight: 4, queued: 0, completed: 0, avgWaitMs: 0, avgRunMs: 0, running: [], next: [] },
};
const entries = (name: string, count: number): object[] =>
  Array.from({ length: count }, (_, at) => ({ id: `${name}-${at}`, class: "normal", ms: 100, project: "web" }));
const of = (name: string, running: number, queued: number): object => ({
  ...{ ...part, inFlight: running, queued, running: entries(name, running), next: entries(`${name}-next`, queued) },
});

async function look(calls: object, tasks: object, size: { readonly height?: number } = {}): Promise<string> {
  const line = { seq: 9, paused: false, waiting: 0, rateLimited: 0, isRateLimited: false, calls, tasks };
  const answers = { "GET /scheduler/line": line, "GET /readyz": { status: "ready", seq: 9, serverId: "s" } };
  const { out, err } = await drover(["top", "--once"], answers, size);
  assert.equal(err, "");
  return out;
}

test("tasks stand below the calls, also where no screen says how much room there is", async () => {
  const few = await look(of("call", 1, 0), of("task", 2, 1));
  assert.match(few, /call-0 [\s\S]*┌─ Tasks ─[\s\S]* task-0 [\s\S]* task-1 [\s\S]* task-next-0 /);
  const many = await look(of("call", 40, 0), of("task", 2, 1));
  assert.match(many, /call-9 [\s\S]*… \d+ more[\s\S]*┌─ Tasks ─[\s\S]* task-next-0 /);
  assert.doesNotMatch(await look(of("call", 1, 0), part), /┌─ Tasks/, "there is no task");
});

test("on a screen they stand there where the calls leave room, and the prompt has a line of its own", async () => {
  const few = await look(of("call", 1, 0), of("task", 30, 0), { height: 24 });
  assert.match(few, /call-0 [\s\S]*┌─ Tasks ─[\s\S]* task-0 /);
  assert.equal(few.split("\n").length, 24);
  const many = await look(of("call", 40, 0), of("task", 2, 1), { height: 24 });
  assert.doesNotMatch(many, /┌─ Tasks/);
  assert.equal(many.split("\n").length, 24);
});
