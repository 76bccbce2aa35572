/**
 * What differs between two configs, and how it is shown.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Settings } from "../../protocol/index.ts";
import { shownPath } from "../../protocol/schema/index.ts";
import { asInForce, differing } from "./differences.ts";
import { readWhole } from "./settings.ts";

function configOf(given: object): Settings["config"] {
  const read = readWhole(given);
  assert.ok(read.ok);
  return read.value.config;
}

test("differences stand where a file has them, names in their section", () => {
  const own = configOf({ projects: { web: { weight: 2 }, ours: {} }, gates: { llm: { requests: 5 } } });
  const inForce = configOf({
    projects: { web: { weight: 3 } },
    gates: { llm: { requests: 5 } },
    log: { retain: "1h" },
  });
  const found = differing(own, inForce).map(({ path }) => shownPath(path));
  assert.deepEqual(found, ["projects.web.weight", "projects.ours", "log.retain"]);
  assert.deepEqual(differing(own, own), []);
});

test("a project or a gate may be called as the key is under which the core keeps names", () => {
  const own = configOf({ projects: { named: { weight: 2 }, web: {} }, gates: { named: { requests: 5 } } });
  const inForce = configOf({ projects: { named: { weight: 3 }, web: {} } });
  const all = differing(own, inForce);
  assert.deepEqual(
    all.map(({ path }) => shownPath(path)),
    ["projects.named.weight", "gates.named"],
  );
  const [weight, requests] = asInForce(
    [
      { path: "projects.named.weight", value: 2, origin: "file" },
      { path: "gates.named.requests", value: 5, origin: "file" },
    ],
    { leader: "b", all },
  );
  assert.deepEqual([weight?.value, weight?.own?.value], [3, 2]);
  assert.deepEqual([requests?.value, requests?.own?.value], [null, 5]);
});

test("each knob is shown as it is in force; of a name that only one side has, what stands in the files", () => {
  const all = differing(
    configOf({ projects: { ours: { weight: 2 } } }),
    configOf({ projects: { theirs: { weight: 3 } } }),
  );
  const where = "drover.yml:2";
  const shown = asInForce(
    [
      { path: "projects.ours.weight", value: 2, origin: "file", where, about: "Its share." },
      { path: "scheduler.maxInFlight", value: 50, default: 50, origin: "default" },
    ],
    { leader: "b", all },
  );
  const ofLeader = { origin: "leader", where: "node b" };
  const own = { value: 2, origin: "file", where };
  assert.deepEqual(shown.slice(0, 2), [
    { path: "projects.ours.weight", about: "Its share.", value: null, ...ofLeader, own },
    { path: "scheduler.maxInFlight", value: 50, default: 50, origin: "default" },
  ]);
  const theirs = new Map(shown.slice(2).map((setting) => [setting.path, setting]));
  const none = { value: null, origin: "default" };
  const window = { path: "projects.theirs.budget.window", value: "24h", ...ofLeader, own: none };
  assert.deepEqual(theirs.get("projects.theirs.budget.window"), window);
  assert.equal(theirs.get("projects.theirs.weight")?.value, 3);
  for (const path of theirs.keys()) assert.match(path, /^projects\.theirs\./);
});
