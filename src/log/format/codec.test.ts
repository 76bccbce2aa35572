/**
 * Events as bytes: what is written can be read, and what could not be read is never written.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { encodeEvent } from "../../../test/kits/encode-event.ts";
import { type Instant, instant, seq, taskId } from "../../core/base/brand.ts";
import { BrokenInvariant } from "../../core/base/result.ts";
import { ADDED, FIELDS } from "../../core/model/event-fields.ts";
import { LogFailure, type LogRecord } from "../log.ts";
import { createGathering, gather, gatheredBatch, packedOf } from "./batch-builder.ts";
import { decodeEvent } from "./codec.ts";

const started = (at: Instant) => ({ kind: "engine-started", at, coreVersion: "1", policyHash: "" }) as const;

test("an event comes back as it was written, with its cause", () => {
  for (const at of [0, 1, Number.MAX_SAFE_INTEGER]) {
    const event = started(instant(at));
    assert.deepEqual(decodeEvent(encodeEvent(event, seq(7)), seq(8)), { event, cause: 7 });
  }
});

test("an event without an instant has no bytes", () => {
  for (const at of [Number.NaN, undefined, null, "5", Number.POSITIVE_INFINITY, -1, 0.5, 2 ** 53])
    assert.throws(() => encodeEvent(started(at as Instant), null), BrokenInvariant);
});

test("bytes of a format that is not known are refused by its number, and what is no event as damage", () => {
  const refusal = (bytes: Uint8Array): LogFailure => {
    try {
      return assert.fail(`it was read: ${JSON.stringify(decodeEvent(bytes, seq(9)))}`);
    } catch (error) {
      assert.ok(error instanceof LogFailure, String(error));
      assert.equal(error.seq, 9);
      return error;
    }
  };
  const later = encodeEvent(started(instant(5)), null).slice();
  later[1] = "3".charCodeAt(0);
  for (const [bytes, format] of [
    [Uint8Array.of(0, 1, 5), 0],
    [Uint8Array.of(1), 1],
    [Uint8Array.of(3, 1), 3],
    [later, 3],
  ] as const) {
    assert.equal(refusal(bytes).code, "unsupported-version");
    assert.match(refusal(bytes).message, new RegExp(`event 9 has format ${format}; this Drover reads 1 and 2`));
  }
  for (const text of ["", "[", "{}", "5", "[1]", '[1,"task-eaten",5,null]', '[1,"task-done",5,null,"tsk_1"]', "\xff"])
    assert.equal(refusal(Buffer.from(text, "latin1")).code, "corrupt");
});

/** Names as people choose them, and as they should not. */
const name = fc.oneof(fc.stringMatching(/^[a-z]{1,8}-\d{1,9}$/), fc.string({ unit: "grapheme", maxLength: 20 }));

test("what is gathered is the batch that would be packed record by record", () => {
  const given = fc.array(fc.tuple(name, fc.option(fc.json(), { nil: undefined })), { minLength: 1, maxLength: 30 });
  fc.assert(
    fc.property(given, (all) => {
      const gathering = createGathering();
      const records = all.map(([task, payload], index) => {
        const event = { kind: "pin-released", at: instant(index), task: taskId(task) } as const;
        gather(gathering, 7 + index, event, null, payload);
        const bytes = new Uint8Array(encodeEvent(event, null));
        return payload === undefined ? { bytes } : { bytes, payload: new TextEncoder().encode(payload) };
      });
      const batch = gatheredBatch(gathering, seq(7));
      const packed = packedOf({ firstSeq: seq(7), records });
      assert.equal(batch.packed?.count, records.length);
      assert.deepEqual(new Uint8Array(batch.packed.bytes), packed.bytes);
      assert.deepEqual(new Uint8Array(batch.packed.payloads), packed.payloads);
      const plain = ({ bytes, payload }: LogRecord) => [new Uint8Array(bytes), payload && new Uint8Array(payload)];
      assert.deepEqual(batch.records.map(plain), records.map(plain));
    }),
  );
});

test("an event of an older log, under the former name of its kind, reads as it is called now", () => {
  const { event } = decodeEvent(Buffer.from(JSON.stringify([1, "dependents-told", 5, null, "a", 3])), seq(1));
  assert.deepEqual(event, { kind: "dependents-notified", at: 5, task: "a", count: 3, rejoins: false });
});

test("an event of an older log, without the fields its kind was given since, reads as their defaults", () => {
  for (const [kind, added] of Object.entries(ADDED) as [keyof typeof FIELDS, Record<string, unknown>][]) {
    const fields: readonly string[] = FIELDS[kind];
    const before = fields.slice(0, fields.length - Object.keys(added).length);
    assert.deepEqual(fields.slice(before.length), Object.keys(added), `${kind} was given its new fields at the end`);
    const old = [1, kind, 5, null, ...before.map((field) => `the ${field}`)];
    const { event } = decodeEvent(Buffer.from(JSON.stringify(old)), seq(1));
    const told = Object.fromEntries(before.map((field) => [field, `the ${field}`]));
    assert.deepEqual(event, { kind, at: 5, ...told, ...added });
    assert.throws(() => decodeEvent(Buffer.from(JSON.stringify(old.slice(0, -1))), seq(1)), /values/);
  }
});

test("a field added since is written only where it says something else than its absence", () => {
  const stopped = { kind: "attempt-stopped", at: instant(5), task: taskId("t"), attempt: 1, tokens: 0 } as const;
  for (const [unbegun, written] of [
    [false, '[1,"attempt-stopped",5,null,"t",1,0]'],
    [true, '[1,"attempt-stopped",5,null,"t",1,0,true]'],
  ] as const) {
    const bytes = encodeEvent({ ...stopped, unbegun }, null);
    assert.equal(Buffer.from(bytes).toString(), written);
    assert.deepEqual(decodeEvent(bytes, seq(1)).event, { ...stopped, unbegun });
  }
});
