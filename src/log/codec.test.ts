/**
 * Events as bytes: what is written can be read, and what could not be read is never written.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Instant, instant, seq } from "../core/brand.ts";
import { ADDED, type Event, FIELDS } from "../core/events.ts";
import { BrokenInvariant } from "../core/result.ts";
import { decodeEvent, encodeEvent } from "./codec.ts";

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

test("the frequent events are written in the order of FIELDS, like all others", () => {
  for (const kind of ["task-submitted", "task-assigned", "task-done"] as const) {
    const fields: readonly string[] = FIELDS[kind];
    const event = { kind, at: instant(1), ...Object.fromEntries(fields.map((field) => [field, `the ${field}`])) };
    const written = JSON.parse(Buffer.from(encodeEvent(event as unknown as Event, null)).toString()) as unknown[];
    assert.deepEqual(written, [1, kind, 1, null, ...fields.map((field) => `the ${field}`)]);
    assert.deepEqual(decodeEvent(encodeEvent(event as unknown as Event, null), seq(1)).event, event);
  }
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
