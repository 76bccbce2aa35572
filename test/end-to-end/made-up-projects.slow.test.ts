/**
 * Names of unregistered projects: they cost nothing, and their places never come back. Whoever makes up as
 * many as there are shuts out neither what the config names nor what tokens list, nor the project of no name.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openServer, type Reply, type TestServer } from "../kits/test-server.ts";

const tokenOf = (name: string): string => `token-of-${name}-0123456789`;
const tokens = [
  { role: "admin", token: tokenOf("admin") },
  { role: "agent", token: tokenOf("anybody") },
  { role: "agent", token: tokenOf("site"), projects: ["site", "shop"] },
];
const ROOM = { scheduler: { maxQueue: 100_000, maxBatch: 100, maxPerAgent: 1000 } };
let at: TestServer;
before(async () => {
  at = await openServer({ settings: { server: { tokens }, projects: { listed: { weight: 2 } }, ...ROOM } });
});
after(() => at.server.close());

const submit = (who: string, agentId: string, project?: string): Promise<Reply> =>
  at.ask("submit", { body: { agentId, action: "x", ...(project === undefined ? {} : { project }) } }, asA(who));
const asA = (who: string): { token: string } => ({ token: tokenOf(who) });
const makeUp = (agentId: string, count: number): Promise<Reply> => {
  const tasks = Array.from({ length: count }, (_, n) => ({ action: "x", project: `${agentId}-${n}` }));
  return at.ask("submitBatch", { body: { agentId, tasks } }, asA("anybody"));
};

test("an agent has tasks in a hundred unregistered projects, and in any registered one", async () => {
  const batch = await makeUp("greedy", 100);
  assert.equal(batch.status, 202, batch.text);
  const { problem } = await submit("anybody", "greedy", "one-more");
  const words =
    "there are 100 unregistered projects of agent greedy already, which is the maximum: " +
    "name one-more in the config, or have an admin put it";
  assert.deepEqual([problem.code, problem.error], ["limit", words]);
  const call = await at.ask("askPermit", { body: { gate: "g", project: "called" } }, asA("anybody"));
  assert.equal(call.status, 200, call.text);
  assert.equal((await submit("anybody", "greedy", "called")).problem.code, "limit", "nor one that a call has made");
  assert.equal((await submit("anybody", "greedy", "greedy-7")).status, 202, "one it has");
  assert.equal((await submit("anybody", "greedy", "listed")).status, 202);
  assert.equal((await submit("anybody", "greedy")).status, 202);
  assert.equal((await submit("site", "greedy", "shop")).status, 202);
  assert.equal((await submit("anybody", "modest", "of-modest")).status, 202);
});

test("when nine tenths are made up, those that somebody registered still find room", async () => {
  for (let n = 0; n < 90; n++) await makeUp(`sock-${n}`, 100);
  assert.equal(at.drover.state.projects.size, 9000);
  const refused = await submit("anybody", "calm", "calm");
  assert.equal(refused.problem.code, "limit");
  assert.match(refused.text, /the last 1000 are kept: name calm in the config, or have an admin put it/);
  const call = await at.ask("askPermit", { body: { gate: "g", project: "calm" } }, asA("anybody"));
  assert.equal(call.problem.code, "limit", "nor does a call make one");
  assert.equal((await submit("site", "ann", "site")).status, 202, "the token lists it");
  assert.equal((await at.ask("putProject", { params: { id: "calm" }, body: {} }, asA("admin"))).status, 200);
  assert.equal((await submit("anybody", "calm", "calm")).status, 202, "an admin put it");
});
