import assert from "node:assert/strict";
import { test } from "node:test";
import type { EventJson, EventsQuery } from "../../protocol/generated/index.ts";
import { createLogTail } from "./log-tail.ts";

/** A log of numbers, read by pages of two. */
function createWorld() {
  const world = { serverId: "first", seqs: [1, 2, 3, 4, 5], pulse: 5, known: 5, prunedTo: 0 };
  const asked: EventsQuery[] = [];
  const [pages, signal]: [string[], AbortSignal] = [[], new AbortController().signal];
  let got: number[] = [];
  const read = createLogTail(
    {
      wanted: { task: "t" },
      begin: () => ({ after: 1 }),
      anew: () => {
        got = [];
      },
      take: (events, isWhole) => {
        got = [...got, ...events.map(({ seq }) => seq)];
        pages.push(isWhole ? "whole" : "part");
        return false;
      },
    },
    {
      ask: async (query) => {
        asked.push(query);
        const { after = 0 } = query;
        if (after > 0 && after < world.prunedTo)
          throw Object.assign(new Error("pruned"), { status: 400, details: { field: "after" } });
        const later = world.seqs.filter((seq) => seq > after && seq > world.prunedTo);
        const events = later.slice(0, 2).map((seq) => ({ seq }) as EventJson);
        return later.length > 2 ? { events, nextAfter: events[1]?.seq as number } : { events };
      },
      pulse: () => ({ seq: world.pulse, serverId: world.serverId }),
      known: () => world.known,
    },
  );
  return { world, asked, pages, look: () => read(signal), got: () => got };
}

test("a look reads to the end of the log, and the next one takes up there", async () => {
  const { world, pages, look, got } = createWorld();
  await look();
  assert.deepEqual(got(), [2, 3, 4, 5]);
  world.seqs.push(6);
  await look();
  assert.deepEqual(got(), [2, 3, 4, 5, 6]);
  assert.deepEqual(pages, ["part", "whole", "whole"]);
});

test("what was there at the last pulse is not looked through again, unless a server had not come to that", async () => {
  const { world, asked, look } = createWorld();
  Object.assign(world, { seqs: [], pulse: 9, known: 9 });
  await look();
  await look();
  assert.equal(asked.at(-1)?.after, 9);
  Object.assign(world, { pulse: 20, known: 0 });
  await look();
  await look();
  assert.equal(asked.at(-1)?.after, 9);
});

test("another start of the server may have another log: it is read anew", async () => {
  const { world, look, got } = createWorld();
  await look();
  Object.assign(world, { serverId: "second", seqs: [1, 2, 3], pulse: 3, known: 3 });
  await look();
  assert.deepEqual(got(), [2, 3]);
});

test("where the place was pruned, it is read from the first event that is left", async () => {
  const { world, look, got } = createWorld();
  await look();
  Object.assign(world, { seqs: [6, 7, 8, 9], prunedTo: 7 });
  await look();
  assert.deepEqual(got(), [8, 9]);
});
