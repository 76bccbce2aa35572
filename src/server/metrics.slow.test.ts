import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { openServer } from "../../test/kits/server-kit.ts";

/** Whether promtool is there; as root it is installed where apt-get can. */
function hasPromtool(): boolean {
  const isThere = (): boolean => spawnSync("promtool", ["--version"]).status === 0;
  if (isThere()) return true;
  if (process.getuid?.() === 0) spawnSync("apt-get", ["install", "-y", "prometheus"], { timeout: 120_000 });
  return isThere();
}

const reason = hasPromtool()
  ? false
  : "promtool is missing: install the package prometheus (apt-get install prometheus)";
test("Prometheus' own tool finds nothing to complain about in the metrics", { skip: reason }, async () => {
  await using at = await openServer();
  await at.ask("submit", { body: { agentId: "ann", action: "x", project: 'odd "name"\\' } });
  await at.ask("askPermit", { body: { gate: "anthropic/default" } });
  await at.ask("joinWorker", { body: {} });
  const { text } = await at.call("GET", "/metrics");
  const checked = spawnSync("promtool", ["check", "metrics"], { input: text, encoding: "utf8" });
  assert.equal(checked.stdout + checked.stderr, "");
  assert.equal(checked.status, 0);
});
