import assert from "node:assert/strict";
import { test } from "node:test";
import { drover, Refusal } from "../../../test/kits/cli/canned-server.ts";
import { lines } from "../../../test/kits/cli/test-terminal.ts";
import type { ClusterNode, ClusterView } from "../../protocol/index.ts";

const hash = (digit: string): string => digit.repeat(64);
const node = (id: string, more: Partial<ClusterNode> = {}): ClusterNode => ({
  id,
  url: `http://${id}:4747`,
  role: "follower",
  epoch: 3,
  seq: 1204,
  hash: hash("a"),
  lagMs: 0,
  ...more,
});
const view = (nodes: readonly ClusterNode[], log: Partial<ClusterView["log"]> = {}): ClusterView => ({
  nodes,
  log: {
    kind: "etcd",
    address: "etcd://h1:2379,h2:2379/drover",
    version: "3.5.16",
    seq: 1204,
    hash: hash("a"),
    epoch: 3,
    prunedTo: 0,
    warnings: [],
    members: [],
    ...log,
  },
});
const leader = node("a", { role: "leader" });

test("the nodes, how far each is, and the log's health are told", async () => {
  const nodes = [
    { ...leader, heardMs: 0 },
    node("b", { seq: 1200, lagMs: 40, heardMs: 1900 }),
    node("c", { heardMs: 4000, ageMs: 4000 }),
    node("d", { role: "down", epoch: 2, lagMs: 303_000, heardMs: 303_000 }),
    node("e", { role: "stopped", heardMs: 700 }),
  ];
  const answer = view(nodes, {
    bytes: 2_097_152,
    prunedTo: 100,
    warnings: ["fsync is off"],
    members: [
      { name: "m1", address: "http://h1:2379", isUp: true },
      { name: "", address: "http://h2:2379", isUp: false },
    ],
  });
  const { code, out } = await drover(["cluster", "status"], { "GET /cluster": answer });
  assert.equal(code, 1);
  assert.equal(
    out,
    lines(
      "ID  ROLE          EPOCH  EVENT   LAG      HEARD  URL",
      "a   leader            3  1 204     -        now  http://a:4747",
      "b   follower          3  1 200  40ms     1s ago  http://b:4747",
      "c   was follower      3  1 204     ?     4s ago  http://c:4747",
      "d   down              2  1 204     ?  5m 3s ago  http://d:4747",
      "e   stopped           3  1 204     -        now  http://e:4747",
      "",
      "The log: etcd 3.5.16 at etcd://h1:2379,h2:2379/drover: event 1 204, epoch 3, begins behind 100, 2 MiB, " +
        "m1 is up, http://h2:2379 is down.",
      "warning: fsync is off",
      "alarm: d is down: it was heard of last 5m 3s ago; start it again. One that is silent for an hour is forgotten.",
    ),
  );
});

test("a log that is out of reach is told with since when, and what is known of the nodes", async () => {
  const answer = view([{ ...leader, ageMs: 14_000 }, node("b", { lagMs: 13_000 })], {
    awayMs: 12_000,
    ageMs: 14_000,
    warnings: ["the journal has been out of reach for 12 s."],
    members: [{ name: "m1", address: "http://h1:2379", isUp: true }],
  });
  const { code, out } = await drover(["cluster", "status"], { "GET /cluster": answer });
  assert.equal(code, 1);
  assert.equal(
    out,
    lines(
      "ID  ROLE        EPOCH  EVENT  LAG  URL",
      "a   was leader      3  1 204    ?  http://a:4747",
      "b   follower        3  1 204  13s  http://b:4747",
      "",
      "The log: etcd 3.5.16 at etcd://h1:2379,h2:2379/drover: out of reach for 12s. 14s ago: event 1 204, epoch 3, " +
        "m1 was up.",
      "warning: the journal has been out of reach for 12 s.",
    ),
  );
});

test("a cluster that takes nothing is exit code 1, and --json says why", async () => {
  const rows: readonly [ClusterView, readonly string[]][] = [
    [view([leader, node("b")]), []],
    [view([leader, node("b", { role: "down" })]), ["node-down"]],
    [view([leader, node("b", { role: "stopped" }), node("c", { ageMs: 4000 })]), []],
    [view([node("a", { role: "down" }), node("b")]), ["no-leader", "node-down"]],
    [view([leader, node("b", { role: "down", ageMs: 9 })], { readOnly: "full" }), ["read-only"]],
    [view([leader], { readOnly: "it has no room left." }), ["read-only"]],
    [view([{ ...leader, ageMs: 9 }, node("b")], { awayMs: 8, ageMs: 9 }), ["journal-away"]],
  ];
  for (const [answer, troubles] of rows) {
    const { code, out } = await drover(["cluster", "status", "--json"], { "GET /cluster": answer });
    assert.deepEqual([code, JSON.parse(out)], [troubles.length === 0 ? 0 : 1, { ...answer, troubles }]);
    const told = await drover(["cluster", "status"], { "GET /cluster": answer });
    assert.deepEqual([told.code, told.out.includes("alarm: no node")], [code, troubles.includes("no-leader")]);
  }
});

test("a node with another history is an alarm and exit code 1, whoever saw it", async () => {
  const odd = node("b", { seq: 900, hash: hash("b"), differs: true });
  const ahead = [node("c", { seq: 2000, hash: hash("c") }), node("d", { seq: 2000, hash: hash("d") })];
  for (const [nodes, named] of [
    [[leader, odd], ["b"]],
    [
      [leader, ...ahead],
      ["c", "d"],
    ],
  ] as const) {
    const told = await drover(["cluster", "status"], { "GET /cluster": view(nodes) });
    assert.equal(told.code, 1);
    for (const id of named) {
      assert.match(told.out, new RegExp(`\\n${id} .* another history\\n`));
      assert.match(
        told.out,
        new RegExp(`\\nalarm: ${id} has another hash at event .*; stop it, and run drover verify`),
      );
    }
    const json = await drover(["cluster", "status", "--json"], { "GET /cluster": view(nodes) });
    assert.equal(json.code, 1);
    const flagged = (JSON.parse(json.out) as ClusterView).nodes.filter(({ differs }) => differs);
    assert.deepEqual(
      flagged.map(({ id }) => id),
      named,
    );
  }
});

test("nodes that are at nothing, or at other events, are no alarm", async () => {
  const nodes = [leader, node("b", { seq: 0, hash: hash("0") }), node("c", { seq: 0, hash: hash("1") })];
  const { code, out } = await drover(["cluster"], {
    "GET /cluster": view([...nodes, node("d", { seq: 7, hash: hash("7") })]),
  });
  assert.equal(code, 0);
  assert.doesNotMatch(out, /alarm:|another history/);
});

test("a server that is no node says so, and that is no fault", async () => {
  const answers = {
    "GET /cluster": new Refusal(404, "not_found", "this server is no node of a cluster: it has a log of its own"),
    "GET /readyz": { status: "ready", seq: 41, serverId: "s", logTimeAheadMs: 0 },
  };
  const { code, out } = await drover(["cluster", "status"], answers);
  assert.deepEqual([code, out], [0, "This server is no node of a cluster. Its own log is at event 41.\n"]);
  const json = await drover(["cluster", "status", "--json"], answers);
  assert.deepEqual([json.code, JSON.parse(json.out)], [0, { nodes: [], log: { kind: "own", seq: 41 } }]);
});

test("where no server is, the exit code is 3", async () => {
  const fetch = (() =>
    Promise.reject(Object.assign(new Error("no"), { code: "ECONNREFUSED" }))) as typeof globalThis.fetch;
  const { code, err } = await drover(["cluster", "status", "--url", "http://a:1,http://b:1"], {}, { fetch });
  assert.equal(code, 3);
  assert.match(err, /none of http:\/\/a:1, http:\/\/b:1 answers/);
});

test("the words of nodes cannot play with the terminal", async () => {
  const nodes = [node("\u001b[31mx", { differs: true }), leader];
  const { out } = await drover(["cluster", "status"], { "GET /cluster": view(nodes, { warnings: ["a\u001b]0;b"] }) });
  assert.ok(!out.includes("\u001b"), JSON.stringify(out));
});
