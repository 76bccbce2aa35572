import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { fewTurns } from "../../test/kits/waits.ts";
import { createTurns, type Turns } from "./turns.ts";

/** Calls about one task; those that were made, and how each is answered. */
function story() {
  const turns = createTurns();
  const made: string[] = [];
  const answers = new Map<string, PromiseWithResolvers<string>>();
  const call = (name: string, signal?: AbortSignal): Promise<string> => {
    const answer = Promise.withResolvers<string>();
    answers.set(name, answer);
    return turns(about, signal, () => {
      made.push(name);
      return answer.promise;
    });
  };
  const answer = (name: string): void => answers.get(name)?.resolve(name);
  const refuse = (name: string): void => answers.get(name)?.reject(new Error(`no: ${name}`));
  return { call, made, answer, refuse };
}
const about: Parameters<Turns>[0] = { own: ["t"], named: ["t"] };

test("who gives up a call that waits opens the way for nobody: the next waits for those before it", async () => {
  const { call, made, answer } = story();
  const enough = new AbortController();
  const submit = call("submit");
  const cancels = ["one", "two"].map((name) => call(name, enough.signal));
  enough.abort(new Error("enough"));
  for (const cancel of cancels) await assert.rejects(cancel, /^Error: enough$/);
  const last = call("last");
  await fewTurns();
  assert.deepEqual(made, ["submit"]);
  answer("submit");
  await submit;
  const behind = call("behind");
  await fewTurns();
  assert.deepEqual(made, ["submit", "last"]);
  answer("last");
  answer("behind");
  await Promise.all([last, behind]);
  assert.deepEqual(made, ["submit", "last", "behind"]);
});

test("of a call that is over nothing is kept: no listener, and the next about its task is made at once", async () => {
  const { call, made, answer, refuse } = story();
  const given = new AbortController();
  const [taken, refused, last] = [call("taken"), call("refused", given.signal), call("last", given.signal)];
  answer("taken");
  refuse("refused");
  answer("last");
  await Promise.all([taken, assert.rejects(refused), last]);
  assert.deepEqual(getEventListeners(given.signal, "abort"), []);
  await fewTurns();
  const alone = call("alone");
  assert.equal(made.at(-1), "alone");
  refuse("alone");
  await assert.rejects(alone);
  await fewTurns();
  void call("next");
  assert.equal(made.at(-1), "next");
});

test("calls that follow each other without a gap keep no answer of those that are over", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const turns = createTurns();
  const answers: WeakRef<object>[] = [];
  let answerLast = (): void => {};
  for (let count = 0; count < 10; count++) {
    const asked = Promise.withResolvers<object>();
    void turns(about, undefined, () => asked.promise);
    await fewTurns(2);
    answerLast();
    await fewTurns(2);
    answerLast = () => {
      const answer = { count };
      answers.push(new WeakRef(answer));
      asked.resolve(answer);
    };
  }
  await fewTurns(2);
  collect();
  const alive = answers.filter((answer) => answer.deref() !== undefined);
  assert.deepEqual([answers.length, alive.length], [9, 0]);
});
