import assert from "node:assert/strict";
import { test } from "node:test";
import type { Logger } from "pino";
import type { Event } from "../../core/model/index.ts";
import type { Applied } from "../../engine/writer/index.ts";
import { createLifecycleLog } from "./event-log.ts";

const rows: Readonly<
  Record<Extract<Event, { kind: "attempt-lost" }>["cause"], readonly [level: string, message: string]>
> = {
  "not-begun": ["debug", "attempt given back before it began"],
  requeue: ["info", "worker gave the task back, it runs again"],
  "rate-limited": ["info", "worker gave the task back, it runs again"],
  "worker-lost": ["warn", "attempt lost, the task runs again"],
  "worker-left": ["warn", "attempt lost, the task runs again"],
  budget: ["warn", "attempt lost, the task runs again"],
};
for (const [cause, expected] of Object.entries(rows))
  test(`an attempt that ends by ${cause} is a line of level ${expected[0]}`, () => {
    const lines: unknown[] = [];
    const taking = (level: string) => (facts: { cause?: string }, message: string) =>
      lines.push([level, message, facts.cause]);
    const logger = { isLevelEnabled: () => true, debug: taking("debug"), info: taking("info"), warn: taking("warn") };
    const event = { kind: "attempt-lost", at: 1, task: "a", attempt: 1, cause, tokens: null, reason: "secret" };
    createLifecycleLog(logger as unknown as Logger).onCommitted([{ event, seq: 1, task: null } as unknown as Applied]);
    assert.deepEqual(lines, [[...expected, cause]]);
  });
