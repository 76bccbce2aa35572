/**
 * Input artifacts: that one appeared is an event, and nobody waits longer than one poll for it.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createLogInHand } from "../../../test/kits/log-in-hand.ts";
import { isPending } from "../../../test/kits/waits.ts";
import type { Clock } from "../../std/clock.ts";
import { createHandClock } from "../../std/hand-clock.ts";
import { createTestDrover, type TestDrover } from "../../testing/index.ts";
import { openDrover } from "../drover.ts";

const task = (id: string, more: object = {}) => ({ id, agentId: "ann", action: "build", ...more });
const stateOf = async ({ drover }: TestDrover, id: string): Promise<string> => (await drover.task(id)).state;

test("L14 a task waits for its artifact, and is queued at the first poll that finds it", async () => {
  const kit = await createTestDrover({ config: { workers: { artifactPoll: 2000 } } });
  for (const id of ["a", "b"]) await kit.drover.submit(task(id, { inputArtifact: "plan.md" }));
  await kit.clock.advance(2000);
  kit.artifacts.add("plan.md");
  await kit.clock.advance(1999);
  assert.deepEqual([await stateOf(kit, "a"), await stateOf(kit, "b")], ["waiting", "waiting"]);
  await kit.clock.advance(1);
  assert.deepEqual([await stateOf(kit, "a"), await stateOf(kit, "b")], ["queued", "queued"]);
  const kinds: string[] = [];
  for await (const { kind } of kit.drover.events()) kinds.push(kind);
  assert.equal(kinds.filter((kind) => kind === "artifact-appeared").length, 1);
});

test("an artifact that is there at submit is not waited for, and lookForArtifacts looks at once", async () => {
  const kit = await createTestDrover();
  kit.artifacts.add("here");
  assert.equal((await kit.drover.submit(task("a", { inputArtifact: "here" }))).state, "queued");
  const batch = { agentId: "ann", tasks: [{ action: "x", id: "b", inputArtifact: "here" }] };
  assert.equal((await kit.drover.submitBatch(batch)).tasks[0]?.state, "queued");
  await kit.drover.submit(task("c", { inputArtifact: "there", needs: ["a"] }));
  await kit.drover.cancel("a");
  await kit.drover.submit(task("d", { inputArtifact: "there" }));
  kit.artifacts.add("there");
  await kit.drover.lookForArtifacts();
  assert.deepEqual([await stateOf(kit, "c"), await stateOf(kit, "d")], ["skipped", "queued"]);
});

test("what was found is durable when lookForArtifacts answers", async () => {
  const hand = createLogInHand();
  const kit = await createTestDrover({ log: hand.log });
  await kit.drover.submit(task("a", { inputArtifact: "x" }));
  kit.artifacts.add("x");
  hand.hold();
  const looked = kit.drover.lookForArtifacts();
  assert.ok(await isPending(looked));
  hand.release();
  await looked;
});

test("one that cannot be looked for is told of once, until it works again, and the others are found", async () => {
  const clock = createHandClock({ at: 0 });
  const there = new Set<string>();
  const away = new Set<string>();
  const warnings: string[] = [];
  await using drover = await openDrover({
    clock,
    config: { workers: { artifactPoll: 1000 } },
    onWarning: (message) => void warnings.push(message),
    // It may throw or reject: it is the host's.
    artifactExists: (artifact) => {
      if (away.has(artifact)) throw new Error("the share is away");
      return Promise.resolve(there.has(artifact));
    },
  });
  for (const id of ["a", "b", "c"]) await drover.submit(task(id, { inputArtifact: id }));
  away.add("a");
  there.add("c");
  await clock.advance(3000);
  assert.equal((await drover.task("c")).state, "queued");
  assert.deepEqual(warnings, ['inputArtifact "a" cannot be looked for, and is tried again: the share is away']);
  away.delete("a");
  await clock.advance(1000);
  away.add("a");
  await drover.lookForArtifacts();
  assert.equal(warnings.length, 2, "it had worked in between");
  away.delete("a");
  there.add("a");
  await clock.advance(1000);
  assert.equal((await drover.task("a")).state, "queued");
  assert.equal((await drover.task("b")).state, "waiting");
});

test("a submit whose artifact cannot be looked for is refused by name, and only that item of a batch", async () => {
  await using drover = await openDrover({
    artifactExists: async (artifact) => {
      if (artifact === "bad") throw new Error("EACCES");
      return false;
    },
  });
  const message = 'inputArtifact "bad" cannot be looked for: EACCES';
  await assert.rejects(drover.submit(task("t", { inputArtifact: "bad" })), {
    ...{ name: "DroverError", code: "bad_request", message },
  });
  const items = [
    { id: "a", action: "x", inputArtifact: "bad" },
    { id: "b", action: "x", inputArtifact: "good" },
    { id: "c", action: "x", needs: ["a"] },
  ];
  const { tasks, accepted } = await drover.submitBatch({ agentId: "ann", tasks: items });
  assert.deepEqual([tasks[0], tasks[1]?.state, accepted], [{ state: "rejected", error: message }, "waiting", 1]);
  assert.match(tasks[2]?.error ?? "", /needs/);
});

test("while an artifact is awaited the alarm keeps the program alive, and looks within one poll", async () => {
  const clock = createHandClock({ at: 0 });
  const { settle } = clock;
  const alarms = new Map<() => void, { readonly at: number; readonly keepAlive?: boolean }>();
  const ringAt: Clock["ringAt"] = (at, ring, options) => {
    alarms.set(ring, { at, ...options });
    const once = (act: () => void) => (): void => {
      alarms.delete(ring);
      act();
    };
    return once(clock.ringAt(at, once(ring), options));
  };
  const there = new Set<string>();
  const kept = (): number[] => [...alarms.values()].filter(({ keepAlive }) => keepAlive).map(({ at }) => at);
  const drover = await openDrover({
    clock: { ...clock, ringAt },
    config: { workers: { artifactPoll: 1000 } },
    artifactExists: async (artifact) => there.has(artifact),
  });
  await clock.advance(300);
  assert.deepEqual([kept(), alarms.size], [[], 1], "nothing is awaited: the program may end");
  await drover.submit(task("a", { inputArtifact: "x" }));
  await drover.submit(task("b", { inputArtifact: "y" }));
  assert.deepEqual([kept(), alarms.size], [[1300], 1]);
  there.add("x").add("y");
  await clock.advance(1000);
  assert.equal((await drover.task("a")).state, "queued");
  await settle();
  assert.deepEqual([kept(), alarms.size], [[], 1], "nothing is awaited any more");
  await drover.close();
  assert.equal(alarms.size, 0);
});
