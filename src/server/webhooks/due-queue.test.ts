import assert from "node:assert/strict";
import { test } from "node:test";
import { createHandClock } from "../../std/hand-clock.ts";
import { createDue, type DueEnd } from "./due-queue.ts";

function kit(options: { knownMax?: number; before?: number } = {}) {
  const clock = createHandClock({ at: 0 });
  const { settle } = clock;
  const pending = new Map<number, DueEnd>();
  const handed: string[] = [];
  let listener = (): void => {};
  let walks = 0;
  const end = (taskId: string): void => {
    const seq = pending.size === 0 ? 1 : Math.max(...pending.keys()) + 1;
    pending.set(seq, { taskId, seq, state: "done", host: "hook.example", project: "" });
    listener();
  };
  for (let index = 0; index < (options.before ?? 0); index++) end(`t${index}`);
  const due = createDue({
    source: {
      pending: () => {
        walks++;
        return pending.values();
      },
      onDue: (heard) => {
        listener = heard;
        return () => {
          listener = () => {};
        };
      },
    },
    clock,
    hand: ({ taskId, seq }) => handed.push(`${taskId}:${seq}`),
    ...(options.knownMax === undefined ? {} : { knownMax: options.knownMax }),
  });
  const over = (taskId: string): void => {
    for (const [seq, { taskId: id }] of pending) {
      if (id !== taskId) continue;
      pending.delete(seq);
      break;
    }
    due.over(taskId);
  };
  return { due, end, over, handed, clock, settle, walks: () => walks };
}

test("what was due before and what becomes due is handed on, each once", async () => {
  const { end, handed, settle } = kit({ before: 2 });
  await settle();
  assert.deepEqual(handed, ["t0:1", "t1:2"]);
  end("a");
  end("b");
  await settle();
  assert.deepEqual(handed, ["t0:1", "t1:2", "a:3", "b:4"]);
});

test("very many are known a part at a time; the next are taken when half of them are over", async () => {
  const { due, over, handed, settle } = kit({ before: 25, knownMax: 10 });
  await settle();
  assert.deepEqual([handed.length, due.known()], [10, 10]);
  for (const id of ["t0", "t1", "t2", "t3"]) over(id);
  await settle();
  assert.equal(handed.length, 10);
  over("t4");
  await settle();
  assert.deepEqual([handed.length, due.known()], [15, 10]);
  for (let index = 5; index < 25; index++) {
    over(`t${index}`);
    await settle();
  }
  assert.deepEqual([handed.length, new Set(handed).size, due.known()], [25, 25, 0]);
});

test("many ends in one turn are one walk, and a long walk is not begun at every commit", async () => {
  const { end, handed, settle, walks, clock } = kit({ before: 2000 });
  await settle();
  for (let index = 0; index < 5; index++) end(`u${index}`);
  await settle();
  assert.deepEqual([walks(), handed.length], [2, 2005]);
  for (let index = 0; index < 20; index++) {
    end(`v${index}`);
    await settle();
  }
  assert.deepEqual([walks(), handed.length], [2, 2005]);
  await clock.advance(250);
  assert.deepEqual([walks(), handed.length], [3, 2025]);
});

test("the ends of one task are handed on one after the other", async () => {
  const { due, end, over, handed, settle } = kit();
  for (const id of ["a", "a", "b", "a"]) end(id);
  await settle();
  assert.deepEqual(handed, ["a:1", "b:3"]);
  due.add({ taskId: "b", seq: null, state: "rejected", host: "hook.example", project: "" });
  over("a");
  over("b");
  over("a");
  assert.deepEqual(handed, ["a:1", "b:3", "a:2", "b:null", "a:4"]);
});

test("stopped, it takes nothing more", async () => {
  const { due, end, handed, settle, clock } = kit({ before: 1 });
  due.stop();
  end("a");
  await settle();
  await clock.advance(1000);
  assert.deepEqual(handed, []);
});
