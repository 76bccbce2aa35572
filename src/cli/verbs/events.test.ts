import assert from "node:assert/strict";
import { test } from "node:test";
import type { EventJson } from "../../protocol/index.ts";
import { painter } from "../shell/text.ts";
import { eventLine } from "./events.ts";

test("who leads is seen in 80 columns: a public key does not stand in front of it", () => {
  const [kind, at] = ["node-joined", "2026-01-01T00:00:00.000Z"] as const;
  const payload = { kind, at: Date.parse(at), node: "a", url: "http://a:4747", key: "M".repeat(60), leads: true };
  const event = { seq: 1, at, kind, payload, priorHash: "", postHash: "" } as unknown as EventJson;
  assert.match(eventLine(event, { paint: painter(false), width: 80 }), /node=a url=http:\/\/a:4747 leads=true$/);
});

test("what was given back is told as that, with the words of its worker, and only what was lost is red", () => {
  const line = (cause: string, reason: string | null = null, restUntil = 1): string => {
    const [kind, at] = ["attempt-lost", "2026-01-01T00:00:00.000Z"] as const;
    const payload = { kind, task: "a", attempt: 1, tokens: null, cause, estimate: 0, restUntil, reason };
    const event = { seq: 1, at, kind, task: "a", attempt: 1, payload } as unknown as EventJson;
    return eventLine(event, { paint: (tint, text) => `<${tint}>${text}`, width: null });
  };
  assert.match(line("not-begun"), /<dim> {2}attempt-lost +a {2}attempt 1 {2}given back, not begun$/);
  assert.match(line("requeue", "the mirror is busy"), /<dim> .* attempt 1 {2}given back: the mirror is busy$/);
  assert.match(line("requeue"), /<dim> .* attempt 1 {2}given back$/);
  assert.match(line("rate-limited", "429"), /<dim> .* attempt 1 {2}given back, rate limited: 429$/);
  assert.match(line("worker-left"), /<dim> .* attempt 1 {2}put back, its worker left$/);
  assert.match(line("worker-lost"), /<red> {2}attempt-lost +a {2}attempt 1 {2}cause=worker-lost estimate=0$/);
  const rests = line("budget", null, Date.parse("2026-01-01T00:00:02.5Z"));
  assert.match(rests, /<red> .* cause=budget estimate=0 restUntil=2026-01-01T00:00:02\.500Z$/);
});

const lineOf = (facts: { readonly kind: string }): string => {
  const at = "2026-01-01T00:00:00.000Z";
  const payload = { task: "a", attempt: 1, ...facts };
  const event = { seq: 1, at, kind: facts.kind, task: "a", attempt: 1, payload } as unknown as EventJson;
  return eventLine(event, { paint: painter(false), width: null });
};

test("an attempt that was stopped before it began was given back; of others it says nothing of that", () => {
  const stopped = { kind: "attempt-stopped", tokens: 0 };
  assert.match(lineOf({ ...stopped, unbegun: true } as { kind: string }), /a {2}attempt 1 {2}given back, not begun$/);
  assert.match(lineOf({ ...stopped, unbegun: false } as { kind: string }), /a {2}attempt 1 {2}tokens=0$/);
});

test("who got a task is said in the words of the page, without the numbers of its rank", () => {
  const rank = { express: false, hold: false, level: 637_999.999, weight: 1, agentInFlight: 0, score: 12 };
  const assigned = { kind: "task-assigned", worker: "quick-1", rank, charge: 7, reserve: 0 };
  const given = (reason: object): string => lineOf({ ...assigned, reason } as { kind: string });
  assert.match(
    given({ type: "only-worker-available" }),
    /attempt 1 {2}given to quick-1, the only worker with room {2}charge=7 reserve=0$/,
  );
  assert.match(given({ type: "affinity", reason: "same-zone" }), /given to quick-1, it knows the work: same-zone /);
  assert.match(given({ type: "of-tomorrow" }), /given to quick-1, of-tomorrow /);
});

test("what has parts is told part by part, each whole, and as many as there is room for", () => {
  const settings = { weight: 0.30000000000000004, hold: null, budget: { limit: 5, windowMs: 60_000 } };
  assert.match(
    lineOf({ kind: "project-put", settings, tags: ["a", "b"], files: [{ size: 1 }], empty: {} } as { kind: string }),
    /attempt 1 {2}settings\.weight=0\.3 settings\.budget\.limit=5 … tags=a,b files=1$/,
  );
  assert.match(lineOf({ kind: "x", a: { ["b".repeat(60)]: 1, c: 2 } } as { kind: string }), / a=…$/);
});
