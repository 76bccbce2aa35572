/**
 * What leaves while requests have no answer, and what comes of them when nobody wants it any more.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type TestContext, test } from "node:test";
import { callsIn, names, type Story, serves, story, submitted, task, together } from "../../test/kits/gather-story.ts";
import type { Step } from "../../test/kits/script-server.ts";
import { fewTurns, isPending, until, within } from "../../test/kits/waits.ts";
// Loaded by clients when calls first meet: here that is to take a few turns only.
import "./gather.ts";

/** A server that answers when it is told to, and a client that has sixteen requests at it. */
function silentStory(
  t: TestContext,
  told: (
    at: Story & { calls: Promise<unknown>[]; answer: (() => void)[]; pass(ms: number): Promise<void>; wakes(): void },
  ) => Promise<void>,
): Promise<void> {
  const answer: (() => void)[] = [];
  let isHeld = false;
  const step: Step = (response, heard) => {
    if (isHeld) answer.push(() => serves()(response, heard));
    else serves()(response, heard);
  };
  return story(
    [step],
    async (at) => {
      await together(at.client, names(3));
      isHeld = true;
      t.mock.timers.enable({ apis: ["setTimeout"] });
      const calls: Promise<unknown>[] = [];
      const pass = async (ms: number): Promise<void> => {
        await fewTurns(5);
        t.mock.timers.tick(ms);
        await fewTurns();
      };
      const wakes = (): void => {
        isHeld = false;
      };
      for (let count = 1; count <= 16; count++) {
        calls.push(at.client.submit(task));
        await pass(count === 2 ? 1000 : 100);
        await until("it has come", () => answer.length === count);
      }
      await told({ ...at, calls, answer, pass, wakes });
    },
    { timeoutMs: 86_400_000 },
  );
}

test("while sixteen requests have no answer another leaves only now and then, and for one that is answered", (t) =>
  silentStory(t, async ({ client, heard, calls, answer, pass, wakes }) => {
    const leavesAfter = async (ms: number): Promise<void> => {
      const before = answer.length;
      calls.push(client.submit(task));
      await pass(ms - 1);
      assert.equal(answer.length, before);
      await pass(1);
      await until("one more has left", () => answer.length === before + 1);
    };
    for (const ms of [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]) await leavesAfter(ms);
    calls.push(client.submit(task));
    for (let minute = 0; minute < 10; minute++) await pass(60_000);
    assert.equal(answer.length, 24, "so many are the most");
    answer.shift()?.();
    await calls[0];
    await pass(999);
    assert.equal(answer.length, 23);
    await pass(1);
    await until("one more has left", () => answer.length === 24);
    wakes();
    for (const one of answer) one();
    assert.equal((await Promise.all(calls)).length, 25);
    assert.equal(heard.flatMap(callsIn).length, 28);
  }));

test("a trial that found nothing to send makes the rest before the next no longer", (t) =>
  silentStory(t, async ({ client, calls, answer, pass, wakes }) => {
    const givenUp = new AbortController();
    const call = client.submit(task, { signal: givenUp.signal }).catch(() => "given up");
    await fewTurns();
    givenUp.abort();
    assert.equal(await call, "given up");
    await pass(1000);
    assert.equal(answer.length, 16);
    calls.push(client.submit(task));
    await pass(1000);
    await until("the trial has left", () => answer.length === 17);
    wakes();
    for (const one of answer) one();
    await Promise.all(calls);
  }));

test("requests that were lost hold up what waits behind them until one that is sent now and then is answered", (t) =>
  silentStory(t, async ({ client, calls, answer, pass, wakes }) => {
    const patient = client.submit({ ...task, id: "patient" });
    wakes();
    await pass(999);
    assert.equal(await isPending(patient), true);
    await pass(1);
    assert.deepEqual(await patient, submitted("patient"));
    // The sixteen still have no answer. No timer rings any more.
    assert.equal((await together(client, names(600))).length, 600);
    for (const one of answer) one();
    await Promise.all(calls);
  }));

test("a bulk that all its callers have given up is given up, and holds up nothing; one that is wanted is not", () => {
  const gone: Promise<unknown>[] = [];
  const holds: Step = (response) => void gone.push(once(response, "close"));
  return story([serves(), holds, holds, serves()], async ({ client, heard }) => {
    const [early, late] = [new AbortController(), new AbortController()];
    const asked = (id: string, { signal }: AbortController): Promise<unknown> =>
      client.submit({ ...task, id }, { signal });
    const first = client.submit(task);
    const calls = [asked("a", early), asked("b", late)].map((call) => assert.rejects(call, /^Error: enough$/));
    await first;
    await until("the bulk is out", () => gone.length === 1);
    early.abort(new Error("enough"));
    await calls[0];
    await fewTurns();
    assert.equal(await isPending(gone[0] as Promise<unknown>), true, "somebody waits for the other");
    late.abort(new Error("enough"));
    await within("the end of the request", gone[0] as Promise<unknown>);
    await Promise.all(calls);
    // Nothing is out: so one that is alone goes as the request it is.
    const alone = client.submit({ ...task, id: "alone" });
    await until("it is out", () => gone.length === 2);
    assert.equal(heard.at(-1)?.url, "/tasks");
    void alone.catch(() => {});
  });
});

test("what comes while the first call of a client is out is sent when that has its answer, or behind it", async (t) => {
  const held: (() => void)[] = [];
  const holds: Step = (response, heard) => void held.push(() => serves()(response, heard));
  await story([holds, serves()], async ({ client, heard }) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const made = [client.submit(task), client.submit({ ...task, id: "next" })];
    await fewTurns();
    t.mock.timers.tick(999);
    await fewTurns();
    assert.equal(heard.length, 1);
    held[0]?.();
    await Promise.all(made);
    assert.equal(heard.length, 2);
  });
});
