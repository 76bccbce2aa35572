/**
 * Bulks that are too large for the server: what takes their place is begun in the order in which the calls were made.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  callsIn,
  idIn,
  names,
  type Story,
  serves,
  story,
  submitted,
  task,
  together,
} from "../../test/kits/gather-story.ts";
import { answers, type Heard, type Step } from "../../test/kits/script-server.ts";
import { fewTurns, until } from "../../test/kits/waits.ts";
import { createBulkOrder } from "../server/bulk-order.ts";
// Loaded by clients when calls first meet: here that is to take a few turns only.
import "./gather.ts";

const bytesOf = ({ body }: Heard): number => Buffer.byteLength(JSON.stringify(body));
const idsIn = (heard: Heard): string[] => callsIn(heard).map(idIn);
const tooLarge = (details: object = {}): Step => answers(413, { error: "large", code: "too_large", details });

type Server = {
  readonly bodyLimit: number;
  /** Whether it says what its limit is. */
  readonly says: boolean;
  /** Whether it waits for a bulk that does not come. */
  readonly waits?: boolean;
  /** What to do in place of a refusal. */
  readonly instead?: (heard: Heard, refuse: () => void) => void;
};
/** A server that begins bulks in their order. */
function limited({ bodyLimit, says, waits = true, instead = (_, refuse) => refuse() }: Server) {
  const ringAt = (_: number, ring: () => void): (() => void) => {
    if (!waits) setImmediate(ring);
    return () => {};
  };
  const order = createBulkOrder({ elapsed: () => 0, ringAt });
  const begun: string[] = [];
  const refused: Heard[] = [];
  const take = async (...[response, heard]: Parameters<Step>): Promise<void> => {
    const isBegun = await order.turn(heard.headers["drover-bulk"]);
    begun.push(...idsIn(heard));
    isBegun();
    serves()(response, heard);
  };
  const step: Step = (response, heard) => {
    if (bytesOf(heard) <= bodyLimit) return void take(response, heard);
    refused.push(heard);
    instead(heard, () => tooLarge(says ? { bodyLimit } : {})(response, heard));
  };
  return { step, begun, refused };
}
const sized = ({ client }: Story, id: string, text: string): Promise<unknown> =>
  client.submit({ ...task, id, params: { text } });

const ids = names(700);
const rows = [
  { name: "8 KiB, as it says", bodyLimit: 8192, says: true, refusedMax: 2 },
  { name: "the least, as it says", bodyLimit: 1024, says: true, refusedMax: 2 },
  { name: "8 KiB, as it does not say", bodyLimit: 8192, says: false, refusedMax: 12 },
  { name: "less than a server may have, as something on the way does not say", bodyLimit: 400, says: false },
];
for (const { name, bodyLimit, says, refusedMax = Number.POSITIVE_INFINITY } of rows)
  for (const [letters, text] of Object.entries({ ASCII: "x".repeat(90), other: "é漢".repeat(18) }))
    test(`many calls of ${letters} letters to a server that takes less in one request are in order: ${name}`, () => {
      const { step, begun, refused } = limited({ bodyLimit, says });
      return story([step], async (at) => {
        assert.deepEqual(await Promise.all(ids.map((id) => sized(at, id, text))), ids.map(submitted));
        assert.deepEqual(begun, ids);
        assert.ok(refused.length <= refusedMax, `${refused.length} were refused`);
        const before = refused.length;
        if (bodyLimit >= 1024) await Promise.all(ids.map((id) => sized(at, id, text)));
        assert.equal(refused.length, before, "the next are as small");
      });
    });

test("a call that is too large by itself is refused itself, and no other is", () => {
  const { step, begun } = limited({ bodyLimit: 1024, says: true, waits: false });
  return story([step], async (at) => {
    const isLarge = (index: number): boolean => index % 50 === 30;
    const calls = ids.map((id, index) => sized(at, id, "x".repeat(isLarge(index) ? 1024 : 90)));
    const ended = await Promise.allSettled(calls);
    const refusedIds = ids.filter((_, index) => ended[index]?.status === "rejected");
    assert.deepEqual(
      refusedIds,
      ids.filter((_, index) => isLarge(index)),
    );
    assert.deepEqual(begun.toSorted(), ids.filter((_, index) => !isLarge(index)).toSorted());
  });
});

/** The first call has its answer; a bulk that is too large is out, and behind it another. */
async function twoOut(at: Story, other: readonly string[]): Promise<readonly Promise<unknown>[]> {
  const large = (id: string): Promise<unknown> => sized(at, id, "x".repeat(300));
  await together(at.client, names(3));
  const calls = ["a", "b", "c", "d"].map(large);
  await until("it is out", () => at.heard.length === 3);
  calls.push(...other.map(large));
  await until("both are out", () => at.heard.length === 4);
  return calls;
}

test("what had left behind a bulk that was too large is begun behind those that take its place", () => {
  const refusing: (() => void)[] = [];
  const { step, begun } = limited({ bodyLimit: 1024, says: true, instead: (_, refuse) => refusing.push(refuse) });
  return story([step], async (at) => {
    const calls = await twoOut(at, ["e"]);
    await fewTurns();
    assert.deepEqual(begun.slice(3), []);
    refusing[0]?.();
    await Promise.all(calls);
    assert.deepEqual(begun.slice(3), ["a", "b", "c", "d", "e"]);
  });
});

for (const firstHeard of [0, 1])
  test(`two bulks that are both too large go again in their order, whichever is refused first (${firstHeard})`, () => {
    const refusing: (() => void)[] = [];
    const { step, begun } = limited({ bodyLimit: 1024, says: true, instead: (_, refuse) => refusing.push(refuse) });
    return story([step], async (at) => {
      const calls = await twoOut(at, ["e", "f", "g", "h"]);
      refusing[firstHeard]?.();
      await until("smaller ones have left", () => at.heard.length > 4);
      refusing[1 - firstHeard]?.();
      await Promise.all(calls);
      assert.deepEqual(begun.slice(3), ["a", "b", "c", "d", "e", "f", "g", "h"]);
    });
  });

test("what was given up while it was out goes no more", () => {
  const refusing: (() => void)[] = [];
  const { step, begun } = limited({ bodyLimit: 1024, says: true, instead: (_, refuse) => refusing.push(refuse) });
  return story([step], async (at) => {
    const enough = new AbortController();
    await together(at.client, names(3));
    const params = { text: "x".repeat(300) };
    const calls = ["a", "b", "gone", "c"].map((id) =>
      at.client.submit({ ...task, id, params }, id === "gone" ? { signal: enough.signal } : {}),
    );
    await until("it is out", () => refusing.length === 1);
    enough.abort(new Error("enough"));
    await assert.rejects(calls[2] as Promise<unknown>, /^Error: enough$/);
    refusing[0]?.();
    await Promise.all(calls.toSpliced(2, 1));
    assert.deepEqual(begun.slice(3), ["a", "b", "c"]);
  });
});
