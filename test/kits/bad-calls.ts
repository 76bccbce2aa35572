/**
 * Calls of the engine that mean nothing, and the field each refusal must name.
 */
import type { Drover } from "../../src/engine/index.ts";
import { LONE } from "./bad-values.ts";

export type Expected = { readonly field: string | RegExp; readonly code?: string };
export const wrong = (value: unknown): never => value as never;
export const body = (more: object): never => wrong({ agentId: "ann", action: "build", ...more });

export const badCalls: { name: string; call: (drover: Drover) => unknown; expected: Expected }[] = [
  {
    name: "an id that stands for another body",
    call: (drover) => drover.submit(body({ id: "known", ref: "other" })),
    expected: { field: "known", code: "conflict" },
  },
  {
    name: "an id of Drover's own kind",
    call: (drover) => drover.submit(body({ id: "tsk_5" })),
    expected: { field: "id" },
  },
  {
    name: "an id of the kind that schedules make",
    call: (drover) => drover.submit(body({ id: "sch_nightly_20260131T120000Z" })),
    expected: { field: "id" },
  },
  { name: "a past deadline", call: (drover) => drover.submit(body({ deadline: 1 })), expected: { field: "deadline" } },
  {
    name: "an unknown parent",
    call: (drover) => drover.submit(body({ parent: "nobody" })),
    expected: { field: /^parent names nobody/ },
  },
  {
    name: "an unknown need",
    call: (drover) => drover.submit(body({ needs: ["known", "nobody"] })),
    expected: { field: /^needs names nobody/ },
  },
  {
    name: "a task that needs itself",
    call: (drover) => drover.submit(body({ id: "me", needs: ["me"] })),
    expected: { field: /cycle: me → me/ },
  },
  {
    name: "a batch without an agent",
    call: (drover) => drover.submitBatch(wrong({ tasks: [{ action: "x" }] })),
    expected: { field: "agentId" },
  },
  {
    name: "a batch of nothing",
    call: (drover) => drover.submitBatch({ agentId: "ann", tasks: [] }),
    expected: { field: "tasks" },
  },
  {
    name: "a batch of no list",
    call: (drover) => drover.submitBatch({ agentId: "ann", tasks: wrong({ length: 1 }) }),
    expected: { field: "tasks" },
  },
  {
    name: "a misspelt batch",
    call: (drover) => drover.submitBatch(wrong({ agentId: "ann", task: [] })),
    expected: { field: "task" },
  },
  {
    name: "a batch in a nameless project",
    call: (drover) => drover.submitBatch({ agentId: "ann", project: "", tasks: [{ action: "x" }] }),
    expected: { field: "project" },
  },
  {
    name: "a batch whose callbackUrl is no text, though no item takes it",
    call: (drover) =>
      drover.submitBatch({ agentId: "ann", callbackUrl: wrong(5), tasks: [{ action: "x", callbackUrl: "http://a" }] }),
    expected: { field: /^callbackUrl is 5/ },
  },
  {
    name: "too large a batch",
    call: (drover) => drover.submitBatch({ agentId: "ann", tasks: Array(6).fill({ action: "x" }) }),
    expected: { field: "6 tasks", code: "batch_too_large" },
  },
  {
    name: "patching nothing known",
    call: (drover) => drover.patch("known", wrong({ prio: 1 })),
    expected: { field: "prio" },
  },
  { name: "patching with null", call: (drover) => drover.patch("known", wrong(null)), expected: { field: "(body)" } },
  {
    name: "patching a bad priority",
    call: (drover) => drover.patch("known", { priority: wrong("urgent") }),
    expected: { field: "priority" },
  },
  {
    name: "patching a bad deadline",
    call: (drover) => drover.patch("known", { deadline: Number.NaN }),
    expected: { field: "deadline" },
  },
  {
    name: "patching a past deadline",
    call: (drover) => drover.patch("known", { deadline: 1 }),
    expected: { field: "deadline" },
  },
  {
    name: "patching what has ended",
    call: (drover) => drover.patch("ended", { priority: 1 }),
    expected: { field: "ended", code: "conflict" },
  },
  {
    name: "cancelling twice",
    call: (drover) => drover.cancel("ended"),
    expected: { field: "ended", code: "conflict" },
  },
  {
    name: "running again what runs",
    call: (drover) => drover.retry("known"),
    expected: { field: "known", code: "conflict" },
  },
  {
    name: "a reason that is no text",
    call: (drover) => drover.cancel("known", { reason: wrong(5) }),
    expected: { field: "options.reason" },
  },
  {
    name: "a reason of broken text",
    call: (drover) => drover.cancel("known", { reason: LONE }),
    expected: { field: "options.reason" },
  },
  {
    name: "a misspelt option of cancel",
    call: (drover) => drover.cancel("known", wrong({ why: "x" })),
    expected: { field: "options.why" },
  },
  {
    name: "a false signal to wait",
    call: (drover) => drover.wait("known", { signal: wrong({}) }),
    expected: { field: "options.signal" },
  },
  { name: "a page of no tasks", call: (drover) => drover.tasks({ limit: 0 }), expected: { field: "limit" } },
  { name: "a page of too many", call: (drover) => drover.tasks({ limit: 1001 }), expected: { field: "limit" } },
  { name: "a page of NaN", call: (drover) => drover.tasks({ limit: Number.NaN }), expected: { field: "limit" } },
  { name: "a cursor nobody gave", call: (drover) => drover.tasks({ cursor: "-1" }), expected: { field: "cursor" } },
  {
    name: "a cursor that is a number",
    call: (drover) => drover.tasks({ cursor: wrong(5) }),
    expected: { field: "cursor" },
  },
  { name: "an unknown state", call: (drover) => drover.tasks({ state: wrong("dead") }), expected: { field: "state" } },
  {
    name: "an empty state",
    call: (drover) => drover.tasks({ state: wrong(["queued", ""]) }),
    expected: { field: "state" },
  },
  { name: "an unknown filter", call: (drover) => drover.tasks(wrong({ agent: "ann" })), expected: { field: "agent" } },
  { name: "Q17 a type None", call: (drover) => drover.tasks({ type: "None" }), expected: { field: "type" } },
  {
    name: "cancelling by an unknown filter",
    call: (drover) => drover.cancelWhere(wrong({ all: true, project: "p" })),
    expected: { field: "all" },
  },
  {
    name: "cancelling an unknown state",
    call: (drover) => drover.cancelWhere({ state: wrong("x") }),
    expected: { field: "state" },
  },
  {
    name: "a worker without handler",
    call: (drover) => drover.worker({}, wrong(null)),
    expected: { field: "handler" },
  },
  { name: "no slots", call: (drover) => drover.worker({ slots: 0 }, () => 1), expected: { field: "slots" } },
  { name: "half a slot", call: (drover) => drover.worker({ slots: 0.5 }, () => 1), expected: { field: "slots" } },
  { name: "a nameless worker", call: (drover) => drover.worker({ id: "" }, () => 1), expected: { field: "id" } },
  { name: "a worker called null", call: (drover) => drover.worker({ id: "null" }, () => 1), expected: { field: "id" } },
  {
    name: "a capability that is no name",
    call: (drover) => drover.worker({ capabilities: ["a b"] }, () => 1),
    expected: { field: "capabilities[0]" },
  },
  {
    name: "negative memory",
    call: (drover) => drover.worker({ resources: { memoryBytes: -1 } }, () => 1),
    expected: { field: "resources.memoryBytes" },
  },
  {
    name: "a misspelt worker",
    call: (drover) => drover.worker(wrong({ slot: 1 }), () => 1),
    expected: { field: "slot" },
  },
  { name: "a project without name", call: (drover) => drover.putProject("", {}), expected: { field: "project" } },
  { name: "a project called None", call: (drover) => drover.putProject("None", {}), expected: { field: "project" } },
  { name: "Q4 no weight", call: (drover) => drover.putProject("p", { weight: 0 }), expected: { field: "weight" } },
  {
    name: "a weight of NaN",
    call: (drover) => drover.putProject("p", { weight: Number.NaN }),
    expected: { field: "weight" },
  },
  {
    name: "a budget of nothing",
    call: (drover) => drover.putProject("p", { budget: { limit: 0 } }),
    expected: { field: "budget.limit" },
  },
  {
    name: "a project's unknown field",
    call: (drover) => drover.putProject("p", wrong({ maxconcurrent: 1 })),
    expected: { field: "maxconcurrent" },
  },
  {
    name: "pausing an unknown thing",
    call: (drover) => drover.pause(wrong({ agent: "a" })),
    expected: { field: "agent" },
  },
  {
    name: "pausing two things",
    call: (drover) => drover.pause({ project: "p", task: "t" }),
    expected: { field: "task" },
  },
  { name: "pausing nobody", call: (drover) => drover.pause({ task: "" }), expected: { field: "task" } },
  {
    name: "resuming an unknown project",
    call: (drover) => drover.resume({ project: "nobody" }),
    expected: { field: "nobody", code: "not_found" },
  },
  {
    name: "events from before the first",
    call: (drover) => drover.events({ after: -1 }),
    expected: { field: "options.after" },
  },
  {
    name: "events from NaN on",
    call: (drover) => drover.events({ after: Number.NaN }),
    expected: { field: "options.after" },
  },
  {
    name: "following maybe",
    call: (drover) => drover.events({ follow: wrong("yes") }),
    expected: { field: "options.follow" },
  },
  {
    name: "a false signal to events",
    call: (drover) => drover.events({ signal: wrong(1) }),
    expected: { field: "options.signal" },
  },
  { name: "a misspelt feed", call: (drover) => drover.events(wrong({ from: 1 })), expected: { field: "options.from" } },
  {
    name: "half an anchor",
    call: (drover) => drover.verify({ expect: wrong({ seq: 1 }) }),
    expected: { field: "options.expect.hash" },
  },
  {
    name: "an anchor before the first",
    call: (drover) => drover.verify({ expect: { seq: -1, hash: "0".repeat(64) } }),
    expected: { field: "options.expect.seq" },
  },
  {
    name: "an anchor of text",
    call: (drover) => drover.verify({ expect: wrong("x") }),
    expected: { field: "options.expect" },
  },
  { name: "a nameless gate", call: (drover) => drover.withPermit("", () => 1), expected: { field: "gate" } },
  { name: "a gate called None", call: (drover) => drover.withPermit("None", () => 1), expected: { field: "gate" } },
  { name: "no call", call: (drover) => drover.withPermit("llm", wrong(undefined)), expected: { field: "call" } },
  {
    name: "an unknown class",
    call: (drover) => drover.withPermit("llm", () => 1, { class: wrong("urgent") }),
    expected: { field: "options.class" },
  },
  {
    name: "negative tokens",
    call: (drover) => drover.withPermit("llm", () => 1, { tokens: -1 }),
    expected: { field: "options.tokens" },
  },
  {
    name: "a permit for nobody",
    call: (drover) => drover.withPermit("llm", () => 1, { project: "" }),
    expected: { field: "options.project" },
  },
  {
    name: "a false signal to withPermit",
    call: (drover) => drover.withPermit("llm", () => 1, { signal: wrong({ aborted: false }) }),
    expected: { field: "options.signal" },
  },
  {
    name: "a misspelt permit",
    call: (drover) => drover.withPermit("llm", () => 1, wrong({ priority: "high" })),
    expected: { field: "options.priority" },
  },
];
