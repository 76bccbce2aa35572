/**
 * A watcher of a plan on a server: when it ends, what it takes for a question, and when it says why nothing runs.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ClientError } from "../../client/index.ts";
import type { PlanTaskView, PlanView } from "../../protocol/index.ts";
import { createHandClock, nextTurn } from "../../std/index.ts";
import { watchPlan } from "./joined.ts";
import type { Link } from "./link.ts";
import type { RunEnd } from "./session.ts";
import type { RunState } from "./state.ts";
import { exitOf } from "./summary.ts";

const AT = "2026-01-01T00:00:00.000Z";

type Payload = Readonly<Record<string, unknown>>;
type Watched = {
  /** The next event of the server; resolves when it was taken. */
  readonly event: (payload: Payload) => Promise<void>;
  /** Several that come in one go. */
  readonly events: (payloads: readonly Payload[]) => Promise<void>;
  readonly pass: (ms: number) => Promise<void>;
  /** The plan has these tasks from now on. */
  readonly put: (tasks: readonly Task[], why?: string) => void;
  /** How a task stands that is no part of the plan any more. */
  readonly leave: (task: Task) => void;
  readonly notes: readonly string[];
  readonly happened: readonly string[];
  readonly approved: readonly string[];
  readonly end: () => RunEnd | null;
  /** What the command would exit with; null while it watches. */
  readonly exit: () => number | null;
};

type Task = Partial<PlanTaskView> & Pick<PlanTaskView, "name" | "state">;

type More = {
  readonly why?: string;
  /** The names of those that are watched. */
  readonly only?: readonly string[];
  readonly onBegun?: (runState: RunState) => void;
  readonly approves?: string;
  readonly readsEvents?: boolean;
  /** When time alone would let its task start. */
  readonly startsAt?: () => string;
  /** Of its task, as the server has them. */
  readonly children?: readonly unknown[];
  /** Fires when nobody watches any more. */
  readonly signal?: AbortSignal;
};

/** A server that has one plan and answers as it is told. */
async function watched(tasks: readonly Task[], more: More = {}): Promise<Watched> {
  const clock = createHandClock({ at: Date.parse(AT) });
  const [notes, happened, approved]: string[][] = [[], [], []];
  const queue: unknown[] = [];
  let wake = (): void => {};
  let seq = 1;
  let end: RunEnd | null = null;
  let exit: number | null = null;
  const viewOf = (given: readonly Task[]): PlanView =>
    ({
      id: "p",
      seq,
      tasks: given.map((task) => ({ taskId: task.name, needs: [], attempt: 0, ...task })),
    }) as unknown as PlanView;
  const left = new Map<string, Task>();
  const view = viewOf(tasks);
  let now = view;
  let { why = "worker" } = more;
  const client = {
    plans: { get: async () => now },
    task: async (id: string) => ({ taskId: id, ...left.get(id), completedAt: left.get(id)?.endedAt }),
    why: async () => ({
      summary: "no worker is there.",
      conditions: [{ code: why, ok: false }],
      ...(more.startsAt === undefined ? {} : { earliestStart: more.startsAt() }),
    }),
    approve: async (id: string) => void approved?.push(id),
    tasks: async () => ({ tasks: [{ taskId: "a", state: "running", attempt: 1 }, ...(more.children ?? [])] }),
    async *events() {
      if (more.readsEvents === false) throw new ClientError("forbidden", "no", { status: 403 });
      for (;;) {
        while (queue.length > 0) yield queue.shift();
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
  const link = { client: () => client, call: (ask: (one: unknown) => unknown) => ask(client) } as unknown as Link;
  watchPlan({
    link,
    view,
    tasks: null,
    watched: more.only === undefined ? null : new Set(more.only),
    approved: new Set(more.approves === undefined ? [] : [more.approves]),
    observer: {
      begun: (runState) => more.onBegun?.(runState),
      happened: ({ kind }, { name }) => void happened?.push(`${kind} ${name}`),
      noted: (text) => void notes?.push(text),
    },
    tails: { lastLine: () => "", flush: async () => {}, follow: async () => {} },
    clock,
    rest: (ms) => new Promise((resolve) => void clock.ringAt(clock.elapsed() + ms, resolve)),
    signal: more.signal ?? new AbortController().signal,
  }).then((ended) => {
    end = ended.end;
    exit = exitOf(ended.runState, end, null);
  });
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < 5; turn++) await nextTurn();
  };
  await settle();
  async function events(payloads: readonly Payload[]): Promise<void> {
    for (const payload of payloads) {
      seq += 1;
      queue.push({ seq, at: AT, payload });
    }
    wake();
    await settle();
  }
  return {
    events,
    event: (payload) => events([payload]),
    async pass(ms) {
      await clock.advance(ms);
      await settle();
    },
    put(given, because = why) {
      now = viewOf(given);
      why = because;
    },
    leave: (task) => void left.set(task.name, task),
    notes: notes ?? [],
    happened: happened ?? [],
    approved: approved ?? [],
    end: () => end,
    exit: () => exit,
  };
}

test("children of before are there, and what was seen of them is not told again", async () => {
  const children = [
    { taskId: "kid", parent: "a", state: "running", attempt: 1, startedAt: AT },
    { taskId: "grandkid", parent: "kid", state: "done", attempt: 1, startedAt: AT, completedAt: AT },
  ];
  const tasks = [{ name: "a", state: "running", children: 1 } as const];
  const { events, happened, end } = await watched(tasks, { children });
  await events([
    { kind: "task-assigned", task: "kid", attempt: 1 },
    { kind: "task-done", task: "grandkid" },
    { kind: "task-assigned", task: "kid", attempt: 2 },
    { kind: "task-done", task: "kid" },
    { kind: "task-done", task: "a" },
  ]);
  assert.deepEqual(happened, ["started kid", "done kid", "done a"]);
  assert.deepEqual(end(), { kind: "over" });
});

test("a task that is retried while others run is waited for", async () => {
  const { event, happened, end } = await watched([
    { name: "a", state: "failed" },
    { name: "b", state: "running" },
  ]);
  await event({ kind: "task-retried", task: "a" });
  await event({ kind: "task-done", task: "b" });
  assert.equal(end(), null, "a is to run again");
  await event({ kind: "task-assigned", task: "a", attempt: 2 });
  await event({ kind: "task-done", task: "a" });
  assert.deepEqual(end(), { kind: "over" });
  assert.deepEqual(happened, ["retried a", "done b", "started a", "done a"]);
});

test("whoever leaves while the children of before are asked for has left, and the plan goes on", async () => {
  const leaving = new AbortController();
  const children: readonly unknown[] = [];
  const tasks = [{ name: "a", state: "running", children: 1 } as const];
  const { end } = await watched(tasks, {
    signal: leaving.signal,
    get children() {
      leaving.abort();
      leaving.signal.throwIfAborted();
      return children;
    },
  });
  assert.deepEqual(end(), { kind: "detached" });
});

test("a task that waits for its children asks nobody, and is not approved", async () => {
  const seen = await watched([{ name: "parent", state: "parked" }], { why: "children", approves: "parent" });
  await seen.pass(10_000);
  assert.deepEqual([seen.approved, seen.notes], [[], []]);
  await seen.event({ kind: "task-done", task: "parent" });
  assert.deepEqual(seen.end(), { kind: "over" });
  const asked = await watched([{ name: "ship", state: "parked" }], { why: "approval", approves: "ship" });
  assert.deepEqual(asked.approved, ["ship"]);
});

for (const readsEvents of [true, false])
  test(`one that was approved asks nobody any more${readsEvents ? "" : ", also without the events"}`, async () => {
    const ship = { name: "ship", state: "parked" } as const;
    const { event, pass, put, notes, happened } = await watched([ship], { why: "approval", readsEvents });
    assert.deepEqual(happened, ["parked ship"]);
    put([{ ...ship, state: "queued" }], "plan-paused");
    await event({ kind: "task-approved", task: "ship" });
    await pass(1000);
    assert.deepEqual(happened, ["parked ship", "approved ship"]);
    await pass(10_000);
    assert.deepEqual(notes, ["nothing runs. ship: no worker is there."]);
  });

test("of what a task needs outside of those that are watched, only what has not ended keeps it waiting", async () => {
  const tasks: Task[] = [
    { name: "old", state: "done" },
    { name: "other", state: "running" },
    { name: "a", state: "running" },
    { name: "b", state: "waiting", needs: ["old", "other", "a"] },
  ];
  const queued: (() => string[])[] = [];
  const onBegun = (state: RunState): void =>
    void queued.push(() => state.rows.filter(state.isQueued).map(({ name }) => name));
  const { event } = await watched(tasks, { only: ["a", "b"], onBegun });
  await event({ kind: "task-done", task: "a" });
  assert.deepEqual(queued[0]?.(), []);
  await event({ kind: "task-done", task: "other" });
  assert.deepEqual(queued[0]?.(), ["b"]);
});

for (const readsEvents of [true, false])
  test(`why nothing runs is said on a busy server${readsEvents ? "" : ", also without its events"}`, async () => {
    const { event, pass, notes } = await watched([{ name: "a", state: "queued" }], { readsEvents });
    for (let second = 0; second < 5; second++) {
      await event({ kind: "task-done", task: "of-another-plan" });
      await pass(1000);
    }
    assert.deepEqual(notes, ["nothing runs. a: no worker is there."]);
  });

test("where time alone lets a task start, it is said when, once for each reason", async () => {
  let minute = 10;
  const startsAt = (): string => `2026-01-31T13:${minute++}:00.000Z`;
  const { pass, notes } = await watched([{ name: "a", state: "queued" }], { startsAt });
  await pass(3000);
  await pass(60_000);
  await pass(60_000);
  assert.ok(minute > 11, "it was asked again");
  assert.deepEqual(notes, ["nothing runs before 2026-01-31T13:10:00.000Z: a: no worker is there."]);
});

test("a plan that another puts with other tasks is followed as it is now", async () => {
  const { event, put, notes, happened, end } = await watched([
    { name: "a", state: "running" },
    { name: "b", state: "queued" },
    { name: "c", state: "queued" },
  ]);
  put([
    { name: "a", state: "running" },
    { name: "d", state: "running", attempt: 1, startedAt: AT },
  ]);
  await event({ kind: "plan-put", plan: "of-others" });
  assert.deepEqual(notes, []);
  await event({ kind: "plan-put", plan: "p" });
  assert.deepEqual(notes, ["the plan was put again: 2 tasks are no longer part of it, 1 is new"]);
  for (const task of ["c", "b"]) await event({ kind: "task-cancelled", task, reason: "no part any more" });
  await event({ kind: "task-done", task: "a" });
  assert.equal(end(), null, "d runs");
  await event({ kind: "task-done", task: "d" });
  assert.deepEqual([end(), happened], [{ kind: "over" }, ["cancelled c", "cancelled b", "done a", "done d"]]);
});

for (const readsEvents of [true, false]) {
  const how = readsEvents ? "" : ", also without the events";
  const asked = [
    { name: "a", state: "running", attempt: 1 },
    { name: "c", state: "running", attempt: 1 },
  ] as const;
  const done = { state: "done", attempt: 1, endedAt: AT } as const;
  test(`a task that another put takes away before its end is no success${how}`, async () => {
    const { event, pass, put, leave, exit, end } = await watched(asked, { readsEvents });
    leave({ name: "c", state: "cancelled", attempt: 1, endedAt: AT });
    put([{ name: "a", ...done }]);
    await event({ kind: "plan-put", plan: "p" });
    await event({ kind: "task-cancelled", task: "c", reason: "no part any more" });
    await event({ kind: "task-done", task: "a" });
    await pass(1000);
    assert.deepEqual([end(), exit()], [{ kind: "over" }, 1]);
  });

  test(`a task that another put leaves as it is, and out, is waited for${how}`, async () => {
    const { event, pass, put, leave, exit, end, notes } = await watched(asked, { readsEvents });
    leave({ name: "c", state: "running", attempt: 1 });
    put([{ name: "a", ...done }]);
    await event({ kind: "plan-put", plan: "p" });
    await event({ kind: "task-done", task: "a" });
    await pass(2000);
    assert.equal(end(), null, "c runs");
    assert.deepEqual(notes, ["the plan was put again: 1 task is no longer part of it"]);
    leave({ name: "c", ...done });
    await event({ kind: "task-done", task: "c" });
    await pass(1000);
    assert.deepEqual([end(), exit()], [{ kind: "over" }, 0]);
  });
}

test("a task that is put with another command takes the place of the one before", async () => {
  const { event, put, exit } = await watched([{ name: "a", state: "running" }]);
  put([{ name: "a", taskId: "a2", state: "queued" }]);
  await event({ kind: "plan-put", plan: "p" });
  await event({ kind: "task-cancelled", task: "a", reason: "no part any more" });
  assert.equal(exit(), null);
  await event({ kind: "task-done", task: "a2" });
  assert.equal(exit(), 0);
});

test("a put lets a plan go on that a failure has paused, and behind the end nothing is told", async () => {
  const { event, events, put, happened, notes, end } = await watched([
    { name: "bad", state: "running" },
    { name: "slow", state: "running" },
    { name: "after", state: "waiting" },
  ]);
  await event({ kind: "task-failed", task: "bad", reason: "exit 1" });
  await event({ kind: "plan-paused", plan: "p", cause: "failed" });
  put([
    { name: "bad", state: "queued" },
    { name: "slow", state: "running" },
    { name: "after", state: "waiting" },
  ]);
  await event({ kind: "plan-put", plan: "p" });
  await event({ kind: "task-retried", task: "bad" });
  await event({ kind: "task-done", task: "slow" });
  assert.equal(end(), null, "it goes on");
  assert.deepEqual(notes, ["the plan goes on"]);
  await event({ kind: "task-failed", task: "bad", reason: "exit 1" });
  await events([
    { kind: "plan-paused", plan: "p", cause: "failed" },
    { kind: "plan-resumed", plan: "p" },
    { kind: "task-assigned", task: "after", attempt: 1 },
  ]);
  assert.deepEqual([end(), happened.at(-1), notes.length], [{ kind: "halted" }, "failed bad", 1]);
});

test("what somebody has paused stays paused when it is put again", async () => {
  const { event, notes } = await watched([{ name: "a", state: "queued" }]);
  await event({ kind: "plan-paused", plan: "p", cause: "asked" });
  await event({ kind: "plan-put", plan: "p" });
  assert.equal(notes.length, 1);
  assert.match(notes[0] ?? "", /^the plan is paused, and what runs may end: .*drover.* plan p --resume$/);
});

test("without events: a retry, children and another put are seen when the plan is looked at", async () => {
  const { pass, put, leave, notes, happened, approved, end } = await watched(
    [
      { name: "a", state: "failed", attempt: 1, endedAt: AT },
      { name: "b", state: "running", attempt: 1, startedAt: AT },
    ],
    { readsEvents: false, approves: "b" },
  );
  const retried = { name: "a", state: "queued", attempt: 1 } as const;
  put([retried, { name: "b", state: "parked", attempt: 1 }], "children");
  await pass(1000);
  assert.deepEqual([happened, approved], [["retried a", "awaiting b"], []]);
  leave({ name: "b", state: "cancelled", attempt: 1, endedAt: AT });
  put([
    { name: "a", state: "done", attempt: 2, startedAt: AT, endedAt: AT },
    { name: "e", state: "running", attempt: 1, startedAt: AT },
  ]);
  await pass(1000);
  assert.deepEqual(notes, ["the plan was put again: 1 task is no longer part of it, 1 is new"]);
  assert.equal(end(), null, "e runs");
  put([
    { name: "a", state: "done", attempt: 2, startedAt: AT, endedAt: AT },
    { name: "e", state: "done", attempt: 1, startedAt: AT, endedAt: AT },
  ]);
  await pass(1000);
  assert.deepEqual(end(), { kind: "over" });
  assert.deepEqual(happened.slice(2), ["started a", "done a", "cancelled b", "done e"]);
});
