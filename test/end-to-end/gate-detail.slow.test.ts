/**
 * One gate over HTTP: what it has done, who is at it, and what a token that is scoped may know of that.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { openServer } from "../kits/test-server.ts";

const tokenOf = (name: string): { token: string } => ({ token: `token-of-${name}-0123456789` });
const [admin, ann, bob] = ["admin", "ann", "bob"].map(tokenOf) as [More, More, More];
type More = ReturnType<typeof tokenOf>;
const tokens = [
  { role: "admin", ...admin },
  { role: "agent", ...ann, project: "web", agentId: "ann" },
  { role: "agent", ...bob, project: "docs", agentId: "bob" },
];

test("a gate is asked for by its name: totals, calls, and of a scoped caller's its own only", async () => {
  const settings = { server: { tokens }, gates: { "anthropic/default": { maxConcurrent: 1 } } };
  await using at = await openServer({ settings });
  const gate = "anthropic/default";
  const ask = async (id: string, more: More) =>
    (await at.ask("askPermit", { body: { gate, id, ...(more === admin ? {} : { class: "high" }) } }, more)).json;
  assert.equal((await ask("out", ann)).status, "granted");
  const { status, position, estimatedWaitMs } = await ask("waits", bob);
  assert.deepEqual([status, position, estimatedWaitMs], ["queued", 1, 30_000]);
  await ask("third", admin);
  const look = async (more: More) => (await at.ask("gate", { params: { id: gate } }, more)).json;
  const { id, running, queued, stats, calls } = await look(admin);
  assert.deepEqual([id, running, queued, stats.scheduled, stats.peakQueued], [gate, 1, 2, 1, 2]);
  assert.deepEqual(
    calls.map(({ seconds, ...call }) => [call, typeof seconds]),
    [
      [{ id: "out", class: "high", state: "running", project: "web" }, "number"],
      [{ id: "waits", class: "high", state: "queued", project: "docs" }, "number"],
      [{ id: "third", class: "normal", state: "queued", project: "default" }, "number"],
    ],
  );
  const idsOf = async (more: More) => (await look(more)).calls.map((call) => call.id);
  assert.deepEqual([await idsOf(ann), await idsOf(bob)], [["out"], ["waits"]]);
  await at.ask("settlePermit", { params: { id: "out" }, body: { rateLimited: { retryAfterMs: 60_000 } } }, ann);
  const next = await ask("waits", bob);
  assert.equal(next.status, "rate-limited");
  assert.ok((next.retryAfterMs ?? 0) > 0);
  assert.equal((await look(admin)).stats.rateLimited, 1);
  assert.equal((await at.ask("gate", { params: { id: "nobody" } }, admin)).status, 404);
  await at.ask("askPermit", { body: { gate: "others" } }, admin);
  assert.equal((await at.ask("gate", { params: { id: "others" } }, ann)).status, 404, "no gate of its projects");
});
