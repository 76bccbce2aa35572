import assert from "node:assert/strict";
import { test } from "node:test";
import { cannedServer, drover, Refusal } from "../../../test/kits/cli/canned-server.ts";
import { createClient } from "../../client/index.ts";
import { NO_WORD, nodeWord } from "./trouble.ts";

const part = {
  ...{ inFlight: 0, maxInFlight: 0, queued: 0, completed: 0, avgWaitMs: 0, avgRunMs: 0, running: [], next: [] },
};
const line = { seq: 9, paused: false, waiting: 0, rateLimited: 0, isRateLimited: false, calls: part, tasks: part };
const ready = { status: "ready", seq: 9, serverId: "s1", logTimeAheadMs: 0 };
const node = { ...ready, role: "follower", epoch: 3, lagMs: 2100 };
const behind = (lagMs: number): Refusal =>
  new Refusal(503, "behind", "this node has not been sure", { role: "follower", epoch: 3, lagMs });
const log = { kind: "etcd", address: "etcd://h1", seq: 9, hash: "a", epoch: 3, prunedTo: 0, warnings: [], members: [] };
const away = { nodes: [], log: { ...log, awayMs: 12_300, ageMs: 13_000 } };

async function lookAt(answers: object): Promise<{ readonly head: string; readonly asked: string }> {
  const { out, asked, err } = await drover(["top", "--once"], { "GET /scheduler/line": line, ...answers });
  assert.equal(err, "");
  return { head: out.slice(0, out.indexOf("┌")), asked: asked.map(({ call }) => call).join(" ") };
}

test("a server that is no node, and a node that is well, have nothing above the box: no more is asked", async () => {
  for (const answer of [ready, node, { ...node, role: "leader", lagMs: 0 }]) {
    const { head, asked } = await lookAt({ "GET /readyz": answer });
    assert.equal(head, "");
    assert.doesNotMatch(asked, /cluster/);
  }
});

test("a full journal is said with its reason, which takes no more calls", async () => {
  const readOnly = "the journal is full. Make room there.";
  for (const answer of [
    { ...node, readOnly },
    new Refusal(503, "behind", "behind", { role: "follower", lagMs: 9000, readOnly }),
  ]) {
    const { head, asked } = await lookAt({ "GET /readyz": answer });
    assert.equal(head, `The cluster is read-only: ${readOnly}\n`);
    assert.doesNotMatch(asked, /cluster/);
  }
});

test("a journal that is away is said before the node is not ready any more, and after", async () => {
  for (const answer of [{ ...node, lagMs: 5001 }, behind(9957)]) {
    const { head } = await lookAt({ "GET /readyz": answer, "GET /cluster": away });
    assert.match(head, /^The journal is out of reach for 12s: .*\n$/);
  }
});

test("a node that is behind a journal that answers says so, and where the cluster may not be read too", async () => {
  for (const cluster of [{ nodes: [], log }, new Refusal(403, "forbidden", "no")]) {
    const { head } = await lookAt({ "GET /readyz": behind(9957), "GET /cluster": cluster });
    assert.match(head, /^This node is behind its journal for 9\.9s: .*\n$/);
  }
});

test("a node that is down is named; where the cluster may not be read it is counted", async () => {
  const one = { id: "c", url: "http://c", role: "down", epoch: 3, seq: 9, hash: "a", lagMs: 0, heardMs: 12_000 };
  const up = { ...one, id: "a", role: "leader", heardMs: 0 };
  const rows: readonly (readonly [unknown, string])[] = [
    [{ nodes: [up, one], log }, "Down: node c (silent for 12s).\n"],
    [{ nodes: [up, one, { ...one, id: "d" }], log }, "Down: nodes c (silent for 12s), d (silent for 12s).\n"],
    [{ nodes: [up, { ...one, role: "follower" }], log }, ""],
    [new Refusal(403, "forbidden", "no"), "1 of the nodes is down.\n"],
  ];
  for (const [cluster, said] of rows) {
    const { head } = await lookAt({ "GET /readyz": { ...node, nodesDown: 1 }, "GET /cluster": cluster });
    assert.equal(head, said);
  }
});

test("a server that is about to end says nothing of a cluster, and is asked again", async () => {
  const answer = new Refusal(503, "closed", "the server shuts down");
  const { head } = await lookAt({ "GET /readyz": answer });
  assert.equal(head, "");
  const { fetch } = cannedServer({ "GET /readyz": answer });
  assert.deepEqual(await nodeWord(createClient({ url: "http://127.0.0.1:4747", fetch })), NO_WORD);
});
