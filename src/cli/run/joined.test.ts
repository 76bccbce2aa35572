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

const AT = "2026-01-01T00:00:00.000Z";

type Watched = {
  /** The next event of the server; resolves when it was taken. */
  readonly event: (payload: Readonly<Record<string, unknown>>) => Promise<void>;
  readonly pass: (ms: number) => Promise<void>;
  readonly notes: readonly string[];
  readonly happened: readonly string[];
  readonly approved: readonly string[];
  readonly end: () => RunEnd | null;
};

/** A server that has one plan and answers as it is told. */
async function watched(
  tasks: readonly (Partial<PlanTaskView> & Pick<PlanTaskView, "name" | "state">)[],
  more: { readonly why?: string; readonly approves?: string; readonly readsEvents?: boolean } = {},
): Promise<Watched> {
  const clock = createHandClock({ at: Date.parse(AT) });
  const [notes, happened, approved]: string[][] = [[], [], []];
  const queue: unknown[] = [];
  let wake = (): void => {};
  let seq = 1;
  let end: RunEnd | null = null;
  const view = {
    id: "p",
    seq,
    tasks: tasks.map((task) => ({ taskId: task.name, needs: [], attempt: 0, ...task })),
  } as unknown as PlanView;
  const client = {
    plans: { get: async () => view },
    why: async () => ({ summary: "no worker is there.", conditions: [{ code: more.why ?? "worker", ok: false }] }),
    approve: async (id: string) => void approved?.push(id),
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
    approved: new Set(more.approves === undefined ? [] : [more.approves]),
    observer: {
      begun: () => {},
      happened: ({ kind }, { name }) => void happened?.push(`${kind} ${name}`),
      noted: (text) => void notes?.push(text),
    },
    tails: { lastLine: () => "", flush: async () => {}, follow: async () => {} },
    clock,
    rest: (ms) => new Promise((resolve) => void clock.ringAt(clock.elapsed() + ms, resolve)),
    signal: new AbortController().signal,
  }).then((ended) => {
    end = ended.end;
  });
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < 5; turn++) await nextTurn();
  };
  await settle();
  return {
    async event(payload) {
      seq += 1;
      queue.push({ seq, at: AT, payload });
      wake();
      await settle();
    },
    async pass(ms) {
      await clock.advance(ms);
      await settle();
    },
    notes: notes ?? [],
    happened: happened ?? [],
    approved: approved ?? [],
    end: () => end,
  };
}

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
  test(`why nothing runs is said on a busy server${readsEvents ? "" : ", also without its events"}`, async () => {
    const { event, pass, notes } = await watched([{ name: "a", state: "queued" }], { readsEvents });
    for (let second = 0; second < 5; second++) {
      await event({ kind: "task-done", task: "of-another-plan" });
      await pass(1000);
    }
    assert.deepEqual(notes, ["nothing runs. a: no worker is there."]);
  });
