/**
 * Events as bytes: what is written can be read, and what could not be read is never written.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type Instant, instant, type Seq, seq, taskId } from "../core/brand.ts";
import { ADDED, type Event, FIELDS } from "../core/events.ts";
import { BrokenInvariant } from "../core/result.ts";
import { decodeEvent, encodeEvent } from "./codec.ts";
import { batchOf, createGathering, gather, packedOf } from "./gathering.ts";
import type { LogRecord } from "./log.ts";

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

/** Names as people choose them, and as they should not. */
const name = fc.oneof(fc.stringMatching(/^[a-z]{1,8}-\d{1,9}$/), fc.string({ unit: "grapheme", maxLength: 20 }));
const amount = fc.oneof(
  fc.nat(),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.maxSafeInteger(),
);
const orNull = <Value>(value: fc.Arbitrary<Value>): fc.Arbitrary<Value | null> => fc.option(value, { nil: null });
const names = fc.array(name, { maxLength: 2 });
const rank = fc.record({
  ...{ express: fc.boolean(), hold: fc.boolean(), level: amount, weight: amount, agentInFlight: amount },
  ...{ priority: amount, overdue: fc.boolean(), score: amount },
});
const reason = fc.oneof(
  fc.constantFrom({ type: "only-worker-available" }, { type: "round-robin" }),
  fc.record({ type: fc.constant("least-loaded"), queueDepth: fc.nat() }),
  fc.record({ type: fc.constant("resource-fit"), availableCpu: orNull(amount), requiredCpu: amount }),
);
/** An event of each frequent kind; where a test does not care what a field holds it is text. */
const FREQUENT = {
  "task-submitted": { named: fc.boolean(), bodySize: amount, capabilities: names, locks: names, needs: names },
  "task-assigned": { task: name, attempt: amount, worker: name, reason, rank, charge: amount, reserve: amount },
  "task-done": { task: name, attempt: amount, tokens: orNull(amount), resultHash: orNull(name), resultSize: amount },
};

test("the frequent events are written in the order of FIELDS and as JSON spells them, like all others", () => {
  for (const [kind, known] of Object.entries(FREQUENT) as [keyof typeof FREQUENT, Record<string, unknown>][]) {
    const fields: readonly string[] = FIELDS[kind];
    const values = fields.map((field) => [field, known[field] ?? name] as [string, fc.Arbitrary<unknown>]);
    const events = fc.record({ kind: fc.constant(kind), at: fc.maxSafeNat(), ...Object.fromEntries(values) });
    fc.assert(
      fc.property(events, events, orNull(fc.nat()), (given, other, cause) => {
        // Again and again with one field changed: what is like the event before may be written another way.
        for (const field of ["kind", ...fields, "kind"]) {
          const event: Record<string, unknown> = { ...given, [field]: (other as Record<string, unknown>)[field] };
          const spelled = JSON.stringify([1, kind, event.at, cause, ...fields.map((field) => event[field])]);
          const bytes = encodeEvent(event as unknown as Event, cause as Seq | null);
          assert.equal(Buffer.from(bytes).toString(), spelled);
          assert.deepEqual(decodeEvent(bytes, seq(1)), { event: asRead(event), cause });
        }
      }),
    );
  }
});

/** JSON knows no minus zero. */
const asRead = (event: unknown): unknown => JSON.parse(JSON.stringify(event));

test("what is gathered is the batch that would be packed record by record", () => {
  const given = fc.array(fc.tuple(name, fc.option(fc.json(), { nil: undefined })), { minLength: 1, maxLength: 30 });
  fc.assert(
    fc.property(given, (all) => {
      const gathering = createGathering();
      const records = all.map(([task, payload], index) => {
        const event = { kind: "pin-released", at: instant(index), task: taskId(task) } as const;
        gather(gathering, 7 + index, event, null, payload);
        const bytes = new Uint8Array(encodeEvent(event, null));
        return payload === undefined ? { bytes } : { bytes, beside: new TextEncoder().encode(payload) };
      });
      const batch = batchOf(gathering, seq(7));
      const packed = packedOf({ firstSeq: seq(7), records });
      assert.equal(batch.packed?.count, records.length);
      assert.deepEqual(new Uint8Array(batch.packed.bytes), packed.bytes);
      assert.deepEqual(new Uint8Array(batch.packed.beside), packed.beside);
      const plain = ({ bytes, beside }: LogRecord) => [new Uint8Array(bytes), beside && new Uint8Array(beside)];
      assert.deepEqual(batch.records.map(plain), records.map(plain));
    }),
  );
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
