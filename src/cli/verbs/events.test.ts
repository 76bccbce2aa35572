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
