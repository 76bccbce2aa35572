/**
 * The config of a node, over nodes in this process.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createCluster, type TestNode } from "../../../test/kits/cluster.ts";
import { type Config, readConfig } from "../../core/config/index.ts";
import { keepNodeConfig } from "./node-config.ts";

function configWith(given: object): Config {
  const read = readConfig(given);
  assert.ok(read.ok);
  return read.value;
}
const inFlight = (count: number): Config => configWith({ scheduler: { maxInFlight: count } });

test("a leader puts its config in force; a follower keeps its own and says once what differs", async (context) => {
  const cluster = await createCluster(context, ["a", "b"], { scheduler: { maxInFlight: 7 } });
  const { clock, settle } = cluster;
  const [a, b] = cluster.nodes as [TestNode, TestNode];
  const said: string[] = [];
  const keep = (node: TestNode, config: Config) =>
    keepNodeConfig(config, () => node, { complain: (text) => said.push(`${node.id}: ${text}`), clock });
  const [ofA, ofB] = [keep(a, inFlight(7)), keep(b, inFlight(7))];
  context.after(() => [ofA, ofB].map((config) => config.stop()));
  await clock.advance(4000);
  assert.deepEqual(said, []);

  await ofA.change(inFlight(9));
  await settle();
  assert.equal(b.drover.state.config.scheduler.maxInFlight, 9, "in force on all nodes");
  await clock.advance(10_000);
  assert.equal(said.length, 1, said.join("\n"));
  assert.match(said[0] ?? "", /^b: .* is that of a, the leader: they differ in scheduler\.maxInFlight\. Give all/);

  await ofB.change(inFlight(9));
  await clock.advance(4000);
  assert.equal(said.length, 1);
  await ofB.change(configWith({ scheduler: { maxInFlight: 3, maxQueue: 11 }, workers: { killGrace: "1s" } }));
  assert.equal(said.length, 2);
  assert.match(said[1] ?? "", /scheduler\.maxInFlight, scheduler\.maxQueue, workers\.killGrace\. Give/);
  assert.equal(b.drover.state.config.scheduler.maxInFlight, 9, "a follower changes nothing");
  assert.equal(ofB.own().scheduler.maxInFlight, 3);
});

test("before there is a node, and where nobody leads, nothing is compared", async (context) => {
  const cluster = await createCluster(context, ["a", "b"]);
  const [a, b] = cluster.nodes as [TestNode, TestNode];
  const said: string[] = [];
  let node: TestNode | null = null;
  const config = keepNodeConfig(inFlight(7), () => node, { complain: (text) => said.push(text), clock: cluster.clock });
  context.after(() => config.stop());
  await cluster.clock.advance(4000);
  await config.change(inFlight(8));
  assert.deepEqual(said, []);
  node = a;
  await cluster.clock.advance(4000);
  assert.deepEqual(said, [], "the leader's own is what counts");
  node = b;
  await cluster.clock.advance(4000);
  assert.equal(said.length, 1);
});
