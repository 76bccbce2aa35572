import assert from "node:assert/strict";
import { test } from "node:test";
import type { AttemptRef, LeanTask } from "../../protocol/index.ts";
import * as pull from "./session.ts";
import { type HeardSync, parseNames, readUnread } from "./unread-tasks.ts";

const SAID = { cancel: [], results: [], leaseUntil: "", leaseMs: 1000, assignments: [] };
const JOINED = { workerId: "ann", session: "s1", leaseMs: 1000, brief: true, tokenKey: "k" } as const;
const named = (taskId: string): AttemptRef => ({ taskId, attempt: 1, taskSeq: 7 });
const given = (taskId: string): AttemptRef & { task: LeanTask } => ({ ...named(taskId), task: { action: taskId } });
/** An answer with these, as the server writes it. */
const unread = (...list: readonly (AttemptRef & { task: LeanTask; onLoss?: "fail" })[]): HeardSync =>
  parseNames(
    JSON.stringify({ named: list.map(({ task: _, ...name }) => name), ...SAID, tasks: list.map(({ task }) => task) }),
  ) as HeardSync;

function joined(slots: number): pull.PullSession {
  const session = pull.createPullSession({ slots });
  pull.join(session, JOINED, 0);
  return session;
}

function exchange(session: pull.PullSession, answer: HeardSync = SAID) {
  const { n, text } = pull.compose(session, 0, 0);
  return { running: JSON.parse(text).running as unknown, heard: pull.hear(session, n, answer, 0) };
}

test("what was given unread and can all be begun is passed on unread", () => {
  const session = joined(3);
  const { heard } = exchange(session, unread(given("a"), given("b")));
  assert.deepEqual([heard.start.length, heard.isNew], [2, true]);
  assert.deepEqual(heard.unread === null ? null : readUnread(heard.unread), [given("a"), given("b")]);
  assert.deepEqual(exchange(session).running, [named("a"), named("b")]);
});

test("what was given unread is read where some of it is known, or has to be named first", () => {
  const session = joined(4);
  exchange(session, unread(given("a")));
  const must = { ...given("c"), onLoss: "fail" as const, task: { action: "c", onLoss: "fail" as const } };
  const { heard } = exchange(session, unread(given("a"), given("b"), must));
  assert.deepEqual([heard.unread, heard.start], [null, [given("b")]], "a runs here, and c waits for being named");
  const next = exchange(session);
  assert.deepEqual(next.running, [named("a"), named("b"), named("c")]);
  const { onLoss: _, ...begun } = must;
  assert.deepEqual([next.heard.unread, next.heard.start], [null, [begun]]);
});

test("of what was given unread to a worker that leaves nothing is begun", () => {
  const session = joined(2);
  const { n } = pull.compose(session, 0, 0);
  pull.close(session);
  const { start, unread: passedOn } = pull.hear(session, n, unread(given("a")), 0);
  assert.deepEqual([start, passedOn], [[], null]);
});

test("a lean sync is asked for where the server has said that it takes them, and not of one that refuses it", () => {
  const session = joined(1);
  const lean = (): unknown => JSON.parse(pull.compose(session, 0, 0).text).lean;
  assert.equal(lean(), true);
  pull.refuse(session, pull.compose(session, 0, 0).n, "lean", "unknown");
  assert.equal(lean(), undefined);
  const { tokenKey: _, ...older } = JOINED;
  pull.join(session, older, 0);
  assert.equal(lean(), undefined);
});

const CANCEL = '"cancel":[]';
const rows: { name: string; text: string; read: unknown }[] = [
  {
    name: "names and tasks",
    text: `{"named":[1],${CANCEL},"assignments":[],"tasks":[{"b":3}]}`,
    read: { named: [1], cancel: [], assignments: [1], unread: { named: "[1]", tasks: '[{"b":3}]' } },
  },
  {
    name: "the marks in a text",
    text: `{"named":[",\\"cancel\\":[,\\"tasks\\":"],${CANCEL},"assignments":[],"tasks":[]}`,
    read: {
      ...{ named: [',"cancel":[,"tasks":'], cancel: [], assignments: [',"cancel":[,"tasks":'] },
      unread: { named: '[",\\"cancel\\":[,\\"tasks\\":"]', tasks: "[]" },
    },
  },
  {
    name: "the mark in a task",
    text: `{"named":[],${CANCEL},"assignments":[],"tasks":[{"x":1,"assignments":[],"tasks":[]}]}`,
    read: {
      ...{ named: [], cancel: [], assignments: [] },
      unread: { named: "[]", tasks: '[{"x":1,"assignments":[],"tasks":[]}]' },
    },
  },
  {
    name: "the mark in a task of an answer that is not lean: all of it is read",
    text: `{"named":[],${CANCEL},"assignments":[{"x":1,"assignments":[],"tasks":[]}]}`,
    read: { named: [], cancel: [], assignments: [{ x: 1, assignments: [], tasks: [] }] },
  },
  {
    name: "a line end behind it: all of it is read",
    text: `{"named":[{"taskId":"a","attempt":1}],${CANCEL},"tasks":[{"b":3}]}\n`,
    read: {
      ...{ named: [{ taskId: "a", attempt: 1 }], cancel: [], tasks: [{ b: 3 }] },
      assignments: [{ taskId: "a", attempt: 1, task: { b: 3 } }],
    },
  },
  { name: "an answer in full", text: '{"cancel":[],"assignments":[1]}', read: { cancel: [], assignments: [1] } },
  { name: "names and no tasks", text: `{"named":[],${CANCEL}}`, read: { named: [], cancel: [] } },
];
for (const { name, text, read } of rows)
  test(`of an answer only names are read: ${name}`, () => assert.deepEqual(parseNames(text), read));

test("what cannot be read is requeued, and what is on record by then is begun all the same", () => {
  const session = joined(4);
  const must = { ...given("c"), onLoss: "fail" as const, task: { action: "c", onLoss: "fail" as const } };
  exchange(session, unread(must));
  const { unread: tasks, ...names } = unread(given("a"), { ...given("b"), onLoss: "fail" });
  const { heard } = exchange(session, { ...names, unread: { named: tasks?.named ?? "", tasks: '[{"x":1},{"x":]' } });
  assert.deepEqual([heard.start.map(({ taskId }) => taskId), heard.unread, heard.isNew], [["c"], null, true]);
  assert.match(heard.unreadable ?? "", /JSON/);
  const { results } = JSON.parse(pull.compose(session, 0, 0).text);
  const error = "its worker could not read it";
  assert.deepEqual(
    results,
    ["a", "b"].map((id) => ({ ...named(id), outcome: "requeue", error })),
  );
});

test("an answer in which a name has no task gives nothing, and is none where it is read whole", () => {
  for (const tasks of ["[]", "[null]", "[{},{}]", "[{]"]) {
    const text = JSON.stringify({ named: [{ ...named("a"), onLoss: "fail" }], ...SAID, tasks: 0 });
    const short = text.replace('"tasks":0', `"tasks":${tasks}`);
    const session = joined(2);
    assert.deepEqual(exchange(session, parseNames(short) as HeardSync).heard.start, []);
    assert.equal(session.held.handed.size, 0, "it is not held");
    assert.throws(() => parseNames(`${short} `), SyntaxError);
  }
});

test("what is no JSON is none", () => {
  for (const text of ["", "<html>", `{"named":[,${CANCEL},"assignments":[],"tasks":[]}`])
    assert.throws(() => parseNames(text), SyntaxError);
});
