/**
 * Nodes sign how far they are with keys that the log names, and verify compares its history with that.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createCluster, type TestNode } from "../../../test/kits/cluster.ts";
import { vouchFor } from "../../log/journal/announcement.ts";

const task = (id: string) => ({ id, agentId: "ann", action: "build" });

test("the others have signed this history; what they did not sign, or of another, is told", async (context) => {
  const { nodes, clock } = await createCluster(context, ["a", "b", "c"]);
  const [a, b, c] = nodes as [TestNode, TestNode, TestNode];
  await a.life().drover.submit(task("t"));
  await clock.advance(4000);
  const { seq } = a.applied();
  const both = [
    { node: "b", seq },
    { node: "c", seq },
  ];
  assert.deepEqual(await a.witnessed(), { by: both, problems: [] });
  assert.deepEqual(
    (await b.witnessed()).by.map(({ node }) => node),
    ["a", "c"],
    "also where it follows",
  );

  const word = (await a.journal.nodes()).nodes.find(({ node }) => node === "c");
  assert.ok(word?.signature !== undefined);
  await c.journal.announce({ ...word, hash: "0".repeat(64) });
  const { by, problems } = await a.witnessed();
  assert.deepEqual(by, [{ node: "b", seq }]);
  assert.match(problems[0]?.message ?? "", /of node c at event \d+ is not signed with the key that the log names/);
  await c.journal.announce({ ...word, key: "bm8ga2V5", hash: "0".repeat(64) });
  assert.deepEqual((await a.witnessed()).problems, [], "a key that the log does not name is no witness");
  await c.journal.announce(word);
  assert.deepEqual((await a.witnessed()).by, both);

  const zeros = { ...word, hash: "0".repeat(64) };
  await c.journal.announce({ ...zeros, signature: vouchFor(c.key.signer, zeros) });
  const [differs] = (await a.witnessed()).problems;
  assert.equal(differs?.seq, seq);
  assert.match(differs?.message ?? "", /node c has signed 0+: it has another history/);

  a.journal.fault({ cut: "both" });
  assert.deepEqual(await a.witnessed(), { by: [], problems: [] }, "out of reach there are no witnesses");
});
