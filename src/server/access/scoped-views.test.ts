/**
 * What a token that is tied to projects sees of the line, and of the numbers.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { LineEntry, LinePart, LineView } from "../../protocol/index.ts";
import { createTestDrover } from "../../testing/index.ts";
import { ownLine, ownStats } from "./scoped-views.ts";

const call = (id: string, project: string, gate: string): LineEntry => ({ id, class: "normal", ms: 1, project, gate });
const NONE = { inFlight: 0, maxInFlight: 0, queued: 0, completed: 0, avgWaitMs: 0, avgRunMs: 0, running: [], next: [] };
const CALLS: LinePart = {
  ...{ ...NONE, inFlight: 2, maxInFlight: 8, queued: 1 },
  running: [call("a", "web", "anthropic/default"), call("b", "secret", "acme/of-others")],
  next: [call("c", "secret", "acme/of-others")],
  gates: ["anthropic/default", "acme/of-others"].map((id) => ({ id, inFlight: 1, maxInFlight: 4, queued: 0 })),
};
const LINE: LineView = {
  ...{ seq: 1, paused: false, waiting: 0, rateLimited: 0, isRateLimited: false, tasks: NONE, calls: CALLS },
};

test("a token of a project sees its own calls, and no gate that others use alone", async () => {
  const caller = { role: "viewer", projects: ["web"], agentId: null } as unknown as Parameters<typeof ownLine>[0];
  const { calls } = await ownLine(caller, { limit: 10 }, async () => LINE);
  assert.deepEqual(
    [calls.running.map(({ id }) => id), calls.next, calls.gates?.map(({ id }) => id)],
    [["a"], [], ["anthropic/default"]],
  );
});

test("a token of a project is told no parked task as queued", async () => {
  await using kit = await createTestDrover();
  const tasks = [
    { id: "asks", action: "x", approval: true as const },
    { id: "later", action: "x" },
  ];
  await kit.drover.submitBatch({ agentId: "ann", project: "web", tasks });
  const caller = { role: "viewer", projects: ["web"], agentId: null } as const;
  const { queue } = ownStats(kit.drover.state, caller, await kit.drover.stats());
  assert.deepEqual(queue.agents, { ann: { queued: 1, inflight: 0 } });
});
