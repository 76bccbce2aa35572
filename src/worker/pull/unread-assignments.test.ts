import assert from "node:assert/strict";
import { test } from "node:test";
import type { AttemptRef, TaskView } from "../../protocol/index.ts";
import * as pull from "./session.ts";
import { type HeardSync, parseNames } from "./unread-assignments.ts";

const SAID = { cancel: [], results: [], leaseUntil: "", leaseMs: 1000 };
const task = (taskId: string): TaskView => ({ taskId, state: "assigned", attempt: 1 });
const named = (taskId: string): AttemptRef => ({ taskId, attempt: 1, taskSeq: 7 });
const given = (taskId: string) => ({ ...named(taskId), task: task(taskId), token: "t" });
/** An answer with these, as the server writes it. */
const unread = (...list: readonly (AttemptRef & { task: TaskView; onLoss?: "fail" })[]): HeardSync =>
  parseNames(
    JSON.stringify({ named: list.map(({ task: _, ...name }) => name), ...SAID, assignments: list }),
  ) as HeardSync;

function joined(slots: number): pull.PullSession {
  const session = pull.createPullSession({ slots });
  pull.join(session, { workerId: "ann", session: "s1", leaseMs: 1000, brief: true }, 0);
  return session;
}

function exchange(session: pull.PullSession, answer: HeardSync = { ...SAID, assignments: [] }) {
  const { n, text } = pull.compose(session, 0, 0);
  return { running: JSON.parse(text).running as unknown, heard: pull.hear(session, n, answer, 0) };
}

test("what was given unread and can all be begun is passed on unread", () => {
  const session = joined(3);
  const { heard } = exchange(session, unread(given("a"), given("b")));
  assert.deepEqual([heard.start.length, heard.isNew], [2, true]);
  assert.equal(heard.given, JSON.stringify([given("a"), given("b")]));
  assert.deepEqual(exchange(session).running, [named("a"), named("b")]);
});

test("what was given unread is read where some of it is known, or has to be named first", () => {
  const session = joined(4);
  exchange(session, unread(given("a")));
  const must = { ...given("c"), onLoss: "fail" as const, task: { ...task("c"), onLoss: "fail" as const } };
  const { heard } = exchange(session, unread(given("a"), given("b"), must));
  assert.deepEqual([heard.given, heard.start], [null, [given("b")]], "a runs here, and c waits for being named");
  const next = exchange(session);
  assert.deepEqual(next.running, [named("a"), named("b"), named("c")]);
  assert.deepEqual([next.heard.given, next.heard.start], [null, [must]]);
});

test("of what was given unread to a worker that leaves nothing is begun", () => {
  const session = joined(2);
  const { n } = pull.compose(session, 0, 0);
  pull.close(session);
  const { start, given: passedOn } = pull.hear(session, n, unread(given("a")), 0);
  assert.deepEqual([start, passedOn], [[], null]);
});

const rows: { name: string; text: string; read: unknown }[] = [
  {
    name: "names and assignments",
    text: '{"named":[1],"a":2,"assignments":[{"b":3}]}',
    read: { a: 2, assignments: [1], given: '[{"b":3}]' },
  },
  {
    name: "the mark in a text",
    text: '{"named":[",\\"assignments\\":"],"assignments":[]}',
    read: { assignments: [',"assignments":'], given: "[]" },
  },
  {
    name: "the mark in an assignment",
    text: '{"named":[],"assignments":[{"x":1,"assignments":[]}]}',
    read: { assignments: [], given: '[{"x":1,"assignments":[]}]' },
  },
  { name: "a line end behind it", text: '{"named":[],"assignments":[]}\n', read: { named: [], assignments: [] } },
  { name: "an answer without names", text: '{"cancel":[],"assignments":[1]}', read: { cancel: [], assignments: [1] } },
  { name: "names and no assignments", text: '{"named":[]}', read: { named: [] } },
];
for (const { name, text, read } of rows)
  test(`of an answer only names are read: ${name}`, () => assert.deepEqual(parseNames(text), read));

test("what is no JSON is none", () => {
  for (const text of ["", "<html>", '{"named":[,"assignments":[]}']) assert.throws(() => parseNames(text), SyntaxError);
});
