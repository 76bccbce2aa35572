import assert from "node:assert/strict";
import { test } from "node:test";
import { sentence } from "../core/base/refusal.ts";
import { type Drover, DroverError, openDrover } from "../engine/index.ts";
import { CALLS } from "./calls/calls.ts";
import type { Schema } from "./schema/schema.ts";
import { readShape } from "./schema/validate.ts";
import { WIRE_CODES } from "./wire/codes.ts";
import type { CallName } from "./wire/endpoints.ts";

/**
 * What the engine says is what the document promises. Instants that the engine gives as milliseconds are text on the
 * wire; here that is done as plainly as possible.
 */
const iso = (at: number | null): string | undefined => (at === null ? undefined : new Date(at).toISOString());

function isAnswer(name: CallName, answer: unknown): void {
  const wire = JSON.parse(JSON.stringify(answer)) as unknown;
  const [schema] = Object.values(CALLS[name].answers) as Schema[];
  const read = readShape(schema as Schema, wire);
  if (!read.ok) assert.fail(`${name}: ${sentence(read.failure)}`);
  assert.deepEqual(undeclared(schema as Schema, wire, name), []);
}

type Walked = {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: unknown;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
};
/** Answers are open, so that they may gain fields; what is sent today must be in the document all the same. */
function undeclared(schema: Schema, value: unknown, at: string): string[] {
  const { properties, additionalProperties, items, anyOf } = schema as Walked;
  if (typeof value !== "object" || value === null) return [];
  if (anyOf !== undefined) {
    const found = anyOf.filter((one) => readShape(one, value).ok).map((one) => undeclared(one, value, at));
    return found.find((one) => one.length === 0) ?? found.flat();
  }
  if (Array.isArray(value)) return value.flatMap((item, index) => undeclared(items as Schema, item, `${at}[${index}]`));
  if (properties === undefined && typeof additionalProperties !== "object") return [];
  return Object.entries(value).flatMap(([key, inner]) => {
    const known = properties?.[key] ?? additionalProperties;
    return typeof known === "object" ? undeclared(known as Schema, inner, `${at}.${key}`) : [`${at}.${key}`];
  });
}

async function withWork(told: (drover: Drover) => Promise<void>): Promise<void> {
  await using drover = await openDrover({
    config: { gates: { "anthropic/default": { tokens: { perMinute: 1000 } } } },
  });
  await drover.submit({ id: "first", agentId: "ann", action: "build", estimatedTokens: 5, priority: "critical" });
  await drover.submit({ id: "second", agentId: "bob", action: "build", project: "site", needs: ["first"] });
  await told(drover);
}

test("what is said of tasks is what the document promises", () =>
  withWork(async (drover) => {
    const deadline = "2099-01-31T12:00:00Z";
    isAnswer(
      "submit",
      await drover.submit({ agentId: "ann", action: "x", capabilities: ["gpu"], deadline, payload: 1 }),
    );
    isAnswer("submitBatch", await drover.submitBatch({ agentId: "ann", tasks: [{ action: "a" }, { action: "" }] }));
    isAnswer("tasks", await drover.tasks({ limit: 2 }));
    for (const id of ["first", "second"]) {
      isAnswer("task", await drover.task(id));
      const { earliestStart, ...why } = await drover.why(id);
      isAnswer("why", { ...why, earliestStart: iso(earliestStart) });
    }
    const { warnings } = await drover.patch("first", { priority: 5, deadline: null });
    isAnswer("patch", { ...(await drover.task("first")), ...(warnings === undefined ? {} : { warnings }) });
    await drover.cancel("first", { reason: "enough" });
    isAnswer("wait", await drover.wait("first"));
    isAnswer("wait", await drover.wait("second"));
    isAnswer("retry", await drover.retry("first"));
  }));

test("what is said of the whole is what the document promises", () =>
  withWork(async (drover) => {
    isAnswer("stats", await drover.stats());
    isAnswer("queue", await drover.queue());
    isAnswer("config", drover.effectiveConfig().scheduler);
    isAnswer("patchConfig", (await drover.patchConfig({ maxInFlight: 7 })).scheduler);
    const projects = await drover.projects();
    isAnswer("projects", { projects, count: projects.length });
    isAnswer("putProject", await drover.putProject("site", { weight: 2 }));
    const events = [];
    for await (const event of drover.events()) events.push({ ...event, at: iso(event.at) });
    assert.ok(events.length > 3);
    isAnswer("events", { events, nextAfter: events.length });
  }));

test("what is said to workers, callers and clocks is what the document promises", () =>
  withWork(async (drover) => {
    const joined = await drover.remote.join({ id: "w1", slots: 2, zone: "here" });
    isAnswer("joinWorker", joined);
    const given = await drover.remote.sync("w1", { session: joined.session, n: 1, waitMs: 1000 });
    assert.equal(given.assignments.length, 1);
    isAnswer("sync", given);
    const results = [{ taskId: "first", attempt: 1, outcome: "done" as const, result: { fine: true } }];
    isAnswer("sync", await drover.remote.sync("w1", { session: joined.session, n: 2, running: [], results }));
    isAnswer("task", await drover.task("first"));
    const workers = await drover.workers();
    isAnswer("workers", { workers, count: workers.length });
    const gate = "anthropic/default";
    isAnswer("askPermit", await drover.permits.ask({ gate, id: "c1", tokens: 10 }));
    isAnswer("askPermit", await drover.permits.ask({ gate, id: "c2", tokens: 10 }));
    await drover.permits.settle("c1", { ok: false, rateLimited: { retryAfterMs: 5000 } });
    const gates = (await drover.gates()).map(({ blockedUntil, heldUntil, ...view }) => ({
      ...view,
      blockedUntil: iso(blockedUntil),
      heldUntil: iso(heldUntil),
    }));
    isAnswer("gates", { gates, count: gates.length });
    isAnswer("putSchedule", await drover.schedules.put("s1", { cron: "@daily", task: { agentId: "a", action: "b" } }));
    isAnswer("schedules", await drover.schedules.list({ limit: 1 }));
  }));

test("every refusal of the engine has a code of the wire, but for those of a program that embeds it", async () => {
  const drover = await openDrover();
  await drover.close();
  await assert.rejects(
    drover.submit({ agentId: "ann", action: "x" }),
    (error) => error instanceof DroverError && Object.hasOwn(WIRE_CODES, error.code),
  );
});
