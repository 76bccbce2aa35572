/**
 * The server's clock is set back by an hour, and later put right, while a worker in another process holds tasks, a
 * permit is out, somebody waits for it, and schedules are due.
 *
 * Time in the log goes on, at half the pace at most: nothing ends before its time, nothing is taken from a worker that
 * is there, and nothing waits for the hour to come round again.
 */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { EventJson } from "../../src/protocol/index.ts";
import { createWorld, type World } from "../kits/faults/worker-processes.ts";

const HOUR_MS = 3_600_000;
const TIMEOUT_MS = 6000;
const PERMIT_MS = 4000;
const WAIT_MS = 60_000;
const SETTINGS = {
  // Longer than the server needs to come back on a busy machine, or the worker rightly gives up what it holds.
  workers: { lease: 8000 },
  gates: { default: { maxConcurrent: 1, permitTtl: PERMIT_MS } },
  scheduler: { retry: { base: 1 } },
};

type Clock = { set(behindMs: number): void };
async function stageWithClock(t: TestContext): Promise<World & Clock> {
  let behindMs = 0;
  const world = await createWorld(t, SETTINGS, { now: () => Date.now() - behindMs });
  const set = (ms: number): void => {
    behindMs = ms;
  };
  return Object.assign(Object.create(world) as World, { set });
}

const submit = ({ served }: World, id: string, more: object): Promise<unknown> =>
  served.ask("submit", { body: { id, agentId: "ann", action: "quick", ...more } });
const endOf = async ({ served }: World, id: string) =>
  (await served.ask("wait", { params: { id }, query: { timeoutMs: WAIT_MS } })).json;

/** Everything in the log, as a reader over HTTP has it. */
async function history({ served }: World): Promise<EventJson[]> {
  const events: EventJson[] = [];
  for (let after = 0; ; after = events.at(-1)?.seq ?? 0) {
    const page = (await served.ask("events", { query: { after, limit: 1000 } })).json;
    events.push(...page.events);
    if (page.nextAfter === undefined) return events;
  }
}

/** The tasks of the schedule in the order of their ends; resolves when there are so many. */
async function ticks(world: World, count: number): Promise<string[]> {
  const ended = new Set<string>();
  for await (const { kind, task } of world.served.drover.events({
    follow: true,
    signal: AbortSignal.timeout(WAIT_MS),
  })) {
    if (kind === "task-done" && task?.startsWith("sch_tick_")) ended.add(task);
    if (ended.size === count) return [...ended];
  }
  throw new Error(`only ${ended.size} ticks`);
}

function checkOrder(events: readonly EventJson[]): void {
  for (const [index, { at, seq, kind }] of events.entries())
    assert.ok(at >= (events[index - 1]?.at ?? ""), `event ${seq}, ${kind}, is at ${at}, before the one before it`);
}
const aboutOf = ({ task, payload }: EventJson): string | null | undefined =>
  task ?? ("permit" in payload ? payload.permit : undefined);
const find = (events: readonly EventJson[], kind: EventJson["kind"], about: string): EventJson => {
  const found = events.find((event) => event.kind === kind && aboutOf(event) === about);
  assert.ok(found, `no ${kind} of ${about}`);
  return found;
};
const span = (from: EventJson, to: EventJson): number => Date.parse(to.at) - Date.parse(from.at);

/** Whoever looks is told: log time is ahead by the hour, less what it has made up for. */
async function checkTold({ served: { ask } }: World): Promise<void> {
  const { logTimeAheadMs } = (await ask("ready", {})).json;
  assert.ok(logTimeAheadMs > HOUR_MS / 2 && logTimeAheadMs <= HOUR_MS, `${logTimeAheadMs} ms`);
  const [, seconds = ""] = /\ndrover_log_time_ahead_seconds ([\d.]+)\n/.exec((await ask("metrics", {})).text) ?? [];
  assert.ok(Number(seconds) > HOUR_MS / 2000, `${seconds} s`);
}

test("a clock set back by an hour ends nothing early, takes nothing away, and holds nothing up", async (t) => {
  const world = await stageWithClock(t);
  const { ask } = world.served;
  // Bob has one place, and it is for the orphan: whatever else he had would keep that waiting.
  const [ada, bob] = await Promise.all([world.startWorker("ada", 4), world.startWorker("bob", 1)]);
  // One at a time: those that two slots ran side by side would end in any order.
  const task = { agentId: "ann", action: "quick", capabilities: ["ada"], locks: ["tick"] };
  await ask("putSchedule", { params: { id: "tick" }, body: { cron: "* * * * * *", task, overlap: "queue" } });
  await submit(world, "held", { action: "line", capabilities: ["ada"] });
  await submit(world, "slow", { action: "linger", timeoutMs: TIMEOUT_MS, maxAttempts: 1, capabilities: ["ada"] });
  await submit(world, "orphan", { action: "linger", capabilities: ["bob"] });
  await submit(world, "later", { notBefore: new Date(Date.now() + TIMEOUT_MS).toISOString() });
  await ask("askPermit", { body: { gate: "llm", id: "first" } });
  const second = ask("askPermit", { body: { gate: "llm", id: "second", waitMs: WAIT_MS } });
  await Promise.all(["held", "slow", "orphan"].map((id) => world.event("attempt-started", id)));
  await ticks(world, 1);

  // Who is really gone is given up as ever.
  bob.signal("SIGKILL");
  world.set(HOUR_MS);
  await world.event("attempt-lost", "orphan");
  const made = await ticks(world, 4);
  await checkTold(world);
  assert.deepEqual(made, [...new Set(made)].sort(), "each instant once, in order");
  assert.equal((await endOf(world, "later")).state, "done");
  const slow = await endOf(world, "slow");
  assert.deepEqual([slow.state, slow.error], ["failed", `timed out after ${TIMEOUT_MS} ms`]);
  assert.equal((await second).json.status, "granted");
  await ask("settlePermit", { params: { id: "second" }, body: {} });
  await ask("removeSchedule", { params: { id: "tick" } });

  // A server that starts anew while its clock is still behind goes on where the log is; then the clock is put right.
  await submit(world, "kept", { action: "line" });
  await world.event("attempt-started", "kept");
  await world.restart();
  await submit(world, "behind", {});
  assert.equal((await endOf(world, "behind")).state, "done");
  world.set(0);
  await submit(world, "right", {});
  assert.equal((await endOf(world, "right")).state, "done");
  ada.write("go");
  for (const id of ["held", "kept"]) {
    const { state, attempt, result } = await endOf(world, id);
    assert.deepEqual([state, attempt, result], ["done", 1, "line for ada"], id);
  }

  const events = await history(world);
  checkOrder(events);
  assert.ok(span(find(events, "task-assigned", "slow"), find(events, "task-failed", "slow")) >= TIMEOUT_MS);
  assert.ok(span(find(events, "permit-granted", "first"), find(events, "permit-granted", "second")) >= PERMIT_MS);
  assert.equal(
    events.some(({ kind, payload }) => kind === "worker-left" && payload.worker === "ada"),
    false,
  );
  assert.ok((await world.served.drover.verify()).ok);
});
