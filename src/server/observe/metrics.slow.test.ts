import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { isMissing } from "../../../test/kits/optional-tool.ts";
import { openServer } from "../../../test/kits/test-server.ts";

test("Prometheus' own tool finds nothing to complain about in the metrics", {
  skip: isMissing("promtool", "prometheus"),
}, async () => {
  await using at = await openServer();
  await at.ask("submit", { body: { agentId: "ann", action: "x", project: 'odd "name"\\' } });
  await at.ask("askPermit", { body: { gate: "anthropic/default" } });
  await at.ask("joinWorker", { body: {} });
  const { text } = await at.call("GET", "/metrics");
  const checked = spawnSync("promtool", ["check", "metrics"], { input: text, encoding: "utf8" });
  assert.equal(checked.stdout + checked.stderr, "");
  assert.equal(checked.status, 0);
});
