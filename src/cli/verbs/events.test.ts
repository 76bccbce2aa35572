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

test("what was given back before it began is told as that, and only what was lost is red", () => {
  const line = (cause: string): string => {
    const [kind, at] = ["attempt-lost", "2026-01-01T00:00:00.000Z"] as const;
    const payload = { kind, task: "a", attempt: 1, tokens: null, cause, estimate: 0, restUntil: 1, reason: null };
    const event = { seq: 1, at, kind, task: "a", attempt: 1, payload } as unknown as EventJson;
    return eventLine(event, { paint: (tint, text) => `<${tint}>${text}`, width: null });
  };
  assert.match(line("not-begun"), /<dim> {2}attempt-lost +a {2}attempt 1 {2}given back, not begun$/);
  assert.match(
    line("worker-lost"),
    /<red> {2}attempt-lost +a {2}attempt 1 {2}cause=worker-lost estimate=0 restUntil=1$/,
  );
});
