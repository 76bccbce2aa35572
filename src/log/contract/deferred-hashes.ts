/**
 * The contract's word on hashes: one that the engine left blank is there once the batch is stored
 * (`format/batch-builder.ts`).
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { instant, type Seq, seconds, seq } from "../../core/base/index.ts";
import type { Event, TaskSubmitted } from "../../core/model/index.ts";
import { createGathering, emptied, type Gathering, gather, gatheredBatch } from "../format/batch-builder.ts";
import { decodeEvent } from "../format/codec.ts";
import { USUAL } from "../format/compact-events.ts";
import type { Log } from "../log.ts";
import type { Stories } from "./vocabulary.ts";

const PAYLOADS = ['{"action":"a"}', "", "ü".repeat(70_000), '{"action":"b","params":{}}'];
/** Kept though it is not the payload's: verify says so. */
const WRONG_HASH = "ab".repeat(32);
const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

/** A submit as the engine makes it, and with a number that only JSON has room for. */
export function submitted(task: number, more: object = {}): Event {
  const event = {
    kind: "task-submitted",
    at: instant(5),
    task: `tsk_${task}`,
    project: "default",
    agent: "ann",
    named: false,
    bodyHash: "",
    bodySize: 3,
    ...USUAL,
    ...more,
  };
  return event as unknown as TaskSubmitted;
}

/** Gathers a submit for each payload between events of other kinds; one that has its hash keeps it. */
export function gatherDeferred(gathering: Gathering, first: number): Map<number, string> {
  const expected = new Map<number, string>();
  let at = first;
  const add = (event: Event, payload?: string): void => gather(gathering, at++, event, null, payload);
  for (const payload of PAYLOADS) {
    add({ kind: "gate-opened", at: instant(5), gate: "g" } as Event);
    expected.set(at, sha256(payload));
    add(submitted(at), payload);
  }
  expected.set(at, WRONG_HASH);
  add(submitted(at, { bodyHash: WRONG_HASH, named: true }), PAYLOADS[0]);
  expected.set(at, sha256("[]"));
  add(submitted(at, { bodySize: { of: "an event that has no short form" } }), "[]");
  return expected;
}

async function checkStored(log: Log, expected: ReadonlyMap<number, string>): Promise<void> {
  for (const [at, hash] of expected) {
    const record = await log.readRecord(seq(at));
    assert.ok(record !== null);
    const { event } = decodeEvent(record.bytes, at as Seq);
    assert.equal(event.kind, "task-submitted");
    assert.equal((event as TaskSubmitted).bodyHash, hash, `event ${at}`);
  }
  const { events, problems } = await log.verify();
  assert.equal(events, (await log.head()).seq);
  assert.deepEqual(
    problems.map(({ seq }) => seq as number),
    [...expected].filter(([, hash]) => hash === WRONG_HASH).map(([at]) => at),
  );
}

async function storeTwice(log: Log): Promise<void> {
  const { epoch } = await log.acquireLead("node", seconds(1));
  const gathering = createGathering();
  const one = gatherDeferred(gathering, 1);
  const { head } = (await log.append(seq(0), epoch, gatheredBatch(gathering, seq(1)), "one")) as {
    head: { seq: number };
  };
  // Said again, it is the same batch; and what is gathered next does not remember it.
  assert.equal((await log.append(seq(0), epoch, gatheredBatch(gathering, seq(1)), "one")).type, "appended");
  const again = emptied(gathering);
  assert.equal(again, gathering);
  const two = gatherDeferred(gathering, head.seq + 1);
  const next = await log.append(seq(head.seq), epoch, gatheredBatch(gathering, seq(head.seq + 1)), "two");
  assert.equal(next.type, "appended");
  await checkStored(log, new Map([...one, ...two]));
}

export const deferredHashes: Stories = {
  "a hash that was left blank is that of the payload, also of a batch that was said twice": ({ log }) =>
    storeTwice(log),
};
