/**
 * The connection of a pull worker whose calls a test answers by hand, on a clock that it turns.
 */
import assert from "node:assert/strict";
import type { Joined, SyncAnswer, SyncBody } from "../../src/protocol/index.ts";
import { WIRE_CODES, type WireCode } from "../../src/protocol/wire/index.ts";
import { createHandClock, type HandClock } from "../../src/std/hand-clock.ts";
import { type ConnectionDeps, startConnection } from "../../src/worker/pull/connection.ts";
import type { FromHandlers, ToHandlers } from "../../src/worker/pull/messages.ts";
import { createLeaseCell } from "../../src/worker/pull/messages.ts";

export const LEASE_MS = 10_000;
export const one = (taskId: string) => ({ taskId, attempt: 1 });
export const assigned = (taskId: string) => ({
  ...{ ...one(taskId), leaseUntil: "" },
  task: { taskId, state: "assigned" as const, attempt: 1 },
});
/** As the client has it: a code of the server comes with its status. */
export const refusal = (code: string, more: object = {}): Error =>
  Object.assign(new Error(`refused: ${code}`), {
    code,
    ...(Object.hasOwn(WIRE_CODES, code) ? { status: WIRE_CODES[code as WireCode].status } : {}),
    ...more,
  });
export const done = (taskId: string): FromHandlers => ({ type: "ended", ...one(taskId), report: { outcome: "done" } });

export type Call = {
  readonly kind: "join" | "sync" | "leave";
  readonly at: number;
  readonly body: SyncBody;
  readonly limitMs: number;
  answer(value?: unknown): Promise<void>;
  refuse(error: Error): Promise<void>;
};

/** So many alarms for one instant are a cycle, in which a clock that is turned by hand would ring for ever. */
const ALARMS_MAX = 100;
function withoutCycles(clock: HandClock): HandClock {
  let lastAt = Number.NaN;
  let count = 0;
  return {
    ...clock,
    ringAt(at, ring) {
      count = at === lastAt ? count + 1 : 1;
      lastAt = at;
      assert.ok(count <= ALARMS_MAX, `it rings again and again at ${at}`);
      return clock.ringAt(at, ring);
    },
  };
}

/** A connection whose calls a test answers by hand. */
export async function kit(more: Partial<ConnectionDeps> = {}) {
  const clock = withoutCycles(createHandClock({ at: 1000 }));
  const { settle } = clock;
  const calls: Call[] = [];
  const told: ToHandlers[] = [];
  const call = (kind: Call["kind"], body: unknown, limitMs: number): Promise<never> => {
    const { promise, resolve, reject } = Promise.withResolvers<never>();
    calls.push({
      ...{ kind, at: clock.now() - 1000, body: body as SyncBody, limitMs },
      answer: async (value) => {
        resolve(value as never);
        await settle();
      },
      refuse: async (error) => {
        reject(error);
        await settle();
      },
    });
    return promise;
  };
  const cell = createLeaseCell();
  const connection = startConnection({
    ...{
      join: { id: "ann", slots: 2 },
      giveUpMs: null,
      chance: () => 1,
      cell,
      tell: (message) => void told.push(message),
    },
    wire: {
      join: (body, limitMs) => call("join", body, limitMs),
      sync: (_, text, limitMs) => call("sync", JSON.parse(text), limitMs),
      leave: (id, session, limitMs) => call("leave", { id, session }, limitMs),
    },
    clock,
    ...more,
  });
  await settle();
  const receive = async (...messages: FromHandlers[]): Promise<void> => {
    for (const message of messages) connection.receive(message);
    await settle();
  };
  /** The newest call, which must be of this kind. */
  const last = (kind: Call["kind"]): Call => {
    const newest = calls.at(-1);
    assert.equal(newest?.kind, kind);
    return newest as Call;
  };
  const toldOf = <Type extends ToHandlers["type"]>(type: Type) =>
    told.filter((message): message is Extract<ToHandlers, { type: Type }> => message.type === type);
  return { calls, told, toldOf, last, receive, advance: clock.advance, cell, now: clock.now };
}
export type Kit = Awaited<ReturnType<typeof kit>>;

export const joined: Joined = { workerId: "ann", session: "s1", leaseMs: LEASE_MS, maxWorktrees: 50 };
export const answer = (more: Partial<SyncAnswer> = {}): SyncAnswer => ({
  ...{ assignments: [], cancel: [], results: [], leaseUntil: "", leaseMs: LEASE_MS },
  ...more,
});

export async function joinedKit(more: Partial<ConnectionDeps> = {}): Promise<Kit> {
  const made = await kit(more);
  await made.last("join").answer(joined);
  return made;
}

/** One that runs these tasks, with a poll open that names them. */
export async function workingKit(ids: readonly string[] = ["a"], more: Partial<ConnectionDeps> = {}): Promise<Kit> {
  const made = await joinedKit(more);
  await made.last("sync").answer(answer({ assignments: ids.map(assigned) }));
  await made.receive(...ids.map((id): FromHandlers => ({ type: "began", ...one(id) })));
  await made.advance(30);
  assert.deepEqual(made.last("sync").body.running, ids.map(one));
  return made;
}
