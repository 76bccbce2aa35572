/**
 * A large plan is put in slices: others have their turns meanwhile, and whatever they do, all of it or nothing is put.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { checkInvariants } from "../../core/invariants/index.ts";
import type { PlanPut } from "../../protocol/index.ts";
import { nextTurn } from "../../std/index.ts";
import { createTestDrover } from "../../testing/index.ts";

/** Enough for several slices. */
const MANY = 120;
const range = Array.from({ length: MANY }, (_, at) => at);
const large = (command: string): { tasks: Record<string, { run: string; needs: string[] }> } => ({
  tasks: Object.fromEntries(
    range.map((at) => [`t${at}`, { run: `${command} ${at}`, needs: at === 0 ? [] : [`t${at >> 1}`] }]),
  ),
});

/** The put, and how many turns of the event loop others had until it was done. */
async function beside(put: Promise<PlanPut>): Promise<{ readonly turns: number; readonly answer: PlanPut }> {
  const waited = { isOver: false, turns: 0 };
  const counting = (async () => {
    for (; !waited.isOver; waited.turns++) await nextTurn();
  })();
  const answer = await put;
  waited.isOver = true;
  await counting;
  return { turns: waited.turns, answer };
}

test("others have many turns while a large plan is put, and few while it is carried out", async () => {
  await using kit = await createTestDrover();
  const { plans, state } = kit.drover;
  const seen = new Set<number>();
  const look = async (): Promise<void> => {
    for (let at = 0; at < 1000 && !state.plans.has("large"); at++) {
      seen.add(state.tasks.size);
      await nextTurn();
    }
    seen.add(state.tasks.size);
  };
  const [first] = await Promise.all([beside(plans.put("large", large("echo"))), look()]);
  assert.ok(first.turns >= 6, `${first.turns} turns`);
  assert.deepEqual([...seen], [0, MANY], "all of its tasks came in one turn");
  const again = await beside(plans.put("large", large("echo")));
  assert.deepEqual([again.answer.kept, again.answer.submitted], [MANY, 0]);
  assert.ok(again.turns >= 6, `${again.turns} turns`);
});

test("of a large plan that is put twice at once, the second is put over the first", async () => {
  await using kit = await createTestDrover();
  const { plans, state } = kit.drover;
  const same = await Promise.all([plans.put("same", large("echo")), plans.put("same", large("echo"))]);
  assert.deepEqual(
    same.map(({ submitted, kept, cancelled }) => [submitted, kept, cancelled]),
    [
      [MANY, 0, 0],
      [0, MANY, 0],
    ],
  );
  const other = await Promise.all([plans.put("other", large("echo")), plans.put("other", large("printf"))]);
  assert.deepEqual(
    other.map(({ submitted, cancelled }) => [submitted, cancelled]),
    [
      [MANY, 0],
      [MANY, MANY],
    ],
  );
  const known = await Promise.all([
    plans.put("same", large("printf")),
    plans.put("same", large("echo"), { fresh: true }),
  ]);
  assert.deepEqual(
    known.map(({ submitted, cancelled }) => [submitted, cancelled]),
    [
      [MANY, MANY],
      [MANY, MANY],
    ],
    "the state has the same object for it all the time",
  );
  for (const id of ["same", "other"])
    assert.deepEqual((({ total, counts }) => [total, counts.cancelled])(await plans.get(id)), [MANY, 0]);
  assert.deepEqual(checkInvariants(state), []);
});

test("what a caller does with a document after the call is nothing to the plan", async () => {
  await using kit = await createTestDrover();
  const { plans } = kit.drover;
  const given = large("echo");
  const putting = plans.put("mine", given);
  for (const at of range) given.tasks[`t${at}`] = { run: "", needs: ["nothing"] };
  given.tasks.more = { run: "more", needs: [] };
  const { total } = await putting;
  const { document } = await plans.get("mine", { document: true });
  assert.equal(total, MANY);
  assert.deepEqual(document, large("echo"));
});

test("a program waits for the end of a plan, and may stop waiting", async () => {
  await using kit = await createTestDrover();
  const { plans } = kit.drover;
  await plans.put("p", { tasks: { a: "a", b: { run: "b", needs: "a" } } });
  const waiting = plans.wait("p");
  const gone = new AbortController();
  const stopped = plans.wait("p", { signal: gone.signal });
  gone.abort(new Error("no longer"));
  await assert.rejects(stopped, /no longer/);
  await kit.drover.worker({ id: "w", slots: 1, actions: ["*"] }, () => null);
  await kit.settle();
  assert.deepEqual((({ state, counts }) => [state, counts.done])(await waiting), ["done", 2]);
  assert.equal((await plans.wait("p")).state, "done", "at once, when it has ended");
  await assert.rejects(plans.wait("q"), { code: "not_found" });
});

test("who may put a plan is asked when it was read, and once more when it is carried out", async () => {
  await using kit = await createTestDrover();
  const { plans, state } = kit.drover;
  const asked: string[] = [];
  const guard = {
    onRead: async (tasks: readonly unknown[]) => void asked.push(`read ${tasks.length}`),
    check: () => {
      asked.push(`check ${state.tasks.size}`);
      throw new Error("not yours");
    },
  };
  const putting = plans.put("p", large("echo"), {}, guard);
  await kit.drover.submit({ agentId: "a", action: "x" });
  await assert.rejects(putting, /not yours/);
  assert.deepEqual(asked, [`read ${MANY}`, "check 1"]);
  assert.equal(state.plans.has("p"), false);
});
