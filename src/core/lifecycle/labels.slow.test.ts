/**
 * What different labels take has a bound, by real numbers: one agent fills what is not kept for others, and no more.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createWorld } from "../../../test/kits/conformance/world.ts";
import { sentence } from "../base/refusal.ts";

const ROOM = { maxQueue: 1_000_000, maxPerAgent: 1_000_000, resultMax: 1, resultTtl: 1, remember: 1 };

test("so many different labels are known at a time, the last tenth for agents that have few", () => {
  const world = createWorld({ scheduler: ROOM });
  const { state } = world;
  const submit = (agent: string, ...labels: string[]): string => {
    const decided = world.trySubmit(null, { agent, labels });
    return decided.ok ? "" : sentence(decided.failure);
  };
  const own = (prefix: string, count: number): string[] =>
    Array.from({ length: count }, (_, index) => `${prefix}${index}=v`);
  let refusal = "";
  for (let task = 0; refusal === ""; task++) refusal = submit("eve", ...own(`e${task}-`, 32));
  assert.equal(state.labels.size, 179_968, "as many as there are but for the last tenth");
  const many = "of at most 200000 different labels of tasks the last 20000 are kept";
  assert.equal(refusal, `${many}: agent eve has 179968 of them; give fewer tasks labels of their own`);
  assert.equal(submit("eve"), "", "a task without labels is taken");
  assert.equal(submit("eve", ...own("e0-", 32)), "", "and so is one with labels that are known");
  assert.equal(submit("ann", ...own("a-", 32)), "", "and so is one of an agent that has few");
  refusal = "";
  for (let agent = 0; refusal === ""; agent++)
    for (let task = 0; task < 60 && refusal === ""; task++)
      refusal = submit(`b${agent}`, ...own(`b${agent}.${task}-`, 32));
  assert.equal(state.labels.size, 200_000);
  assert.match(refusal, /^there are 200000 different labels of tasks already, which is the maximum: agent b\d+ has /);
  assert.equal(state.loads.get("eve" as never)?.labels, 179_968);

  world.atOnce(() => {
    for (const { id, agent } of [...state.tasks.values()]) if (String(agent.id) !== "eve") world.cancel(id);
  });
  world.wait(10);
  assert.equal(state.labels.size, 179_968, "what is forgotten leaves room");
  assert.equal(submit("ann", ...own("a-", 32)), "");
});

test("a label counts as one of the agent that has the oldest task with it", () => {
  const world = createWorld({ scheduler: ROOM });
  const { state } = world;
  const counts = (): number[] => ["ann", "bob"].map((agent) => state.loads.get(agent as never)?.labels ?? 0);
  world.submit("one", { agent: "ann", labels: ["team=web", "run=1"] });
  world.submit("two", { agent: "bob", labels: ["team=web"] });
  world.submit("three", { agent: "ann", labels: ["team=web"] });
  assert.deepEqual(counts(), [2, 0]);
  world.cancel("one");
  world.wait(10);
  assert.deepEqual(counts(), [0, 1]);
  world.cancel("two");
  world.wait(10);
  assert.deepEqual(counts(), [1, 0]);
});
