/**
 * A data directory belongs to one node of one cluster.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { checkCluster, clusterOf, identityFor, identityIn, keepIdentity } from "../base/node-identity.ts";
import { openDrover } from "../drover.ts";

function directory(context: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), "drover-identity-"));
  context.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}
const refused = (said: RegExp) => (error: unknown) => {
  assert.equal((error as { code?: unknown }).code, "refused");
  assert.match(String(error), said);
  return true;
};

test("a name that is made once is kept; nothing is written before the cluster is known", (context) => {
  const data = directory(context);
  const made = identityFor(data, null);
  assert.match(made.id, /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/);
  assert.deepEqual(readdirSync(data), []);
  keepIdentity(data, made, "c1");
  assert.deepEqual(identityFor(data, null), { id: made.id, cluster: "c1" });
  assert.deepEqual(identityFor(data, made.id), { id: made.id, cluster: "c1" });
  keepIdentity(data, identityFor(data, null), "c1");
  assert.notEqual(identityFor(directory(context), null).id, made.id);
});

test("another name, another cluster and a file that makes no sense are refused", (context) => {
  const data = directory(context);
  keepIdentity(data, identityFor(data, "n1"), "c1");
  assert.throws(() => identityFor(data, "n2"), refused(/is that of node n1, not of n2\. Leave out --node/));
  assert.throws(() => checkCluster(data, identityFor(data, null), "c2"), refused(/of node n1 in another cluster/));
  assert.deepEqual(identityIn(data), { id: "n1", cluster: "c1" });
  writeFileSync(join(data, "node.json"), "{");
  assert.throws(() => identityFor(data, null), { code: "corrupt" });
});

test("an engine without a cluster does not write into the replica of a node", async (context) => {
  const data = directory(context);
  keepIdentity(data, identityFor(data, "n1"), "c1");
  await assert.rejects(openDrover({ data }), refused(/is that of node n1 of a cluster, whose log is elsewhere/));
  assert.deepEqual(readdirSync(data), ["node.json"]);
});

test("the name of a cluster follows from its secret, and does not tell it", () => {
  const secret = "5e".repeat(32);
  assert.equal(clusterOf(secret), clusterOf(secret));
  assert.notEqual(clusterOf(secret), clusterOf("5f".repeat(32)));
  assert.equal(secret.includes(clusterOf(secret)), false);
});
