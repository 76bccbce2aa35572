/**
 * The three events every task costs: they come back whatever they hold, older logs are read, and damage is refused.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { encodeEvent } from "../../../test/kits/encode-event.ts";
import { type Seq, seq } from "../../core/base/brand.ts";
import { FIELDS } from "../../core/model/event-fields.ts";
import type { Event, EventKind, Rank, Reason } from "../../core/model/events.ts";
import { LogFailure } from "../log.ts";
import { decodeEvent } from "./codec.ts";

/** In a quick run a tenth of them. */
const casesOf = (cases: number): number => (process.env.DROVER_QUICK === undefined ? cases : Math.ceil(cases / 10));

/** Names as people choose them, and as they should not. */
const name = fc.oneof(
  fc.stringMatching(/^[a-z]{1,8}-\d{1,9}$/),
  fc.stringMatching(/^tsk_\d{0,16}$/),
  fc.string({ unit: "grapheme", maxLength: 20 }),
  fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)), maxLength: 5 }),
  fc.tuple(fc.constantFrom("a", "é", "語"), fc.constantFrom(63, 64, 65, 255, 256, 700)).map(([a, n]) => a.repeat(n)),
);
const amount = fc.oneof(
  fc.nat(),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.maxSafeInteger(),
  fc.constantFrom(239, 240, 65_535, 65_536, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 48 - 1, 2 ** 48),
);
const orNull = <Value>(value: fc.Arbitrary<Value>): fc.Arbitrary<Value | null> => fc.option(value, { nil: null });
const names = fc.array(name, { maxLength: 2 });
const hash = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes).toString("hex"));
const rank: fc.Arbitrary<Rank> = fc.record<Rank>({
  ...{ express: fc.boolean(), hold: fc.boolean(), level: amount, weight: amount, agentInFlight: amount },
  ...{ priority: amount, overdue: fc.boolean(), score: amount },
});
type Said<Of> = { [Field in Exclude<keyof Of, "type">]: fc.Arbitrary<Of[Field]> };
/** What each reason says: one that is missing here does not compile. */
const REASONS: { [Type in Reason["type"]]: Said<Extract<Reason, { type: Type }>> } = {
  "only-worker-available": {},
  "round-robin": {},
  random: {},
  "least-loaded": { queueDepth: amount },
  "resource-fit": { availableCpu: orNull(amount), requiredCpu: amount },
  affinity: { reason: fc.constantFrom("data-locality", "previously-executed", "same-zone") },
};
const reason: fc.Arbitrary<unknown> = fc.oneof(
  ...Object.entries(REASONS).map(([type, said]) => fc.record({ type: fc.constant(type), ...said })),
  fc.record({ type: fc.constant("affinity"), reason: name }),
  fc.record({ type: name, more: amount }),
);
/** An event of each frequent kind; where a test does not care what a field holds it is text. */
const FREQUENT = {
  "task-submitted": {
    ...{ named: fc.boolean(), bodyHash: fc.oneof({ weight: 5, arbitrary: hash }, name), bodySize: amount },
    ...{ capabilities: names, locks: names, needs: names },
  },
  "task-assigned": { task: name, attempt: amount, worker: name, reason, rank, charge: amount, reserve: amount },
  "task-done": {
    ...{ task: name, attempt: amount, tokens: orNull(amount) },
    ...{ resultHash: orNull(fc.oneof(hash, name)), resultSize: amount, resultSeq: orNull(amount) },
  },
};
const PLAIN_SUBMIT = {
  ...{ kind: "task-submitted", at: 1_700_000_000_123, task: "tsk_70000", project: "default", agent: "ann" },
  ...{ named: false, bodyHash: "0123456789abcdef".repeat(4), bodySize: 37, type: "other", capabilities: [] },
  ...{ cpu: 0, memory: 0, provider: null, locks: [], zone: null, tab: null, priority: 0, prioritised: false, depth: 0 },
  ...{ parent: null, needs: [], artifact: null, notBefore: null, deadline: null, estimatedTokens: 0, iteration: 1 },
  ...{ maxAttempts: 3, timeoutMs: null, onDependencyFailure: "skip", runnable: true, pin: null, onLoss: "retry" },
  action: "",
  labels: [],
  group: null,
  maxRounds: 0,
  ofRunning: false,
  approval: null,
  wait: null,
};
const RANK = {
  ...{ express: false, hold: false, level: 0.5, weight: 1, agentInFlight: 300, priority: 0, overdue: true, score: 100 },
};
const LEAST_LOADED = { type: "least-loaded", queueDepth: 2 };
const PLAIN_START = {
  ...{ kind: "task-assigned", at: 1_700_000_000_123, task: "tsk_70000", attempt: 1, worker: "wrk_3" },
  ...{ reason: LEAST_LOADED, rank: RANK, charge: 11_000, reserve: 1 },
};
const PLAIN_END = {
  ...{ kind: "task-done", at: 1_700_000_000_123, task: "tsk_70000", attempt: 1, tokens: null, resultHash: null },
  resultSize: 0,
  resultSeq: null,
};

const encoded = (event: unknown, cause: number | null): Buffer =>
  Buffer.from(encodeEvent(event as Event, cause as Seq | null));
const decoded = (bytes: Uint8Array): unknown => decodeEvent(bytes, seq(1));
/** JSON knows no minus zero. */
const asRead = (event: unknown): unknown => JSON.parse(JSON.stringify(event));

function frequentOf(kind: keyof typeof FREQUENT): fc.Arbitrary<Record<string, unknown>> {
  const known: Record<string, fc.Arbitrary<unknown>> = FREQUENT[kind];
  const values = FIELDS[kind].map((field) => [field, known[field] ?? name] as [string, fc.Arbitrary<unknown>]);
  return fc.record({ kind: fc.constant(kind), at: fc.maxSafeNat(), ...Object.fromEntries(values) });
}
const KINDS = Object.keys(FREQUENT) as (keyof typeof FREQUENT)[];

test("a frequent event comes back whatever its fields hold, and its bytes depend on nothing else", () => {
  for (const kind of KINDS) {
    const events = frequentOf(kind);
    fc.assert(
      fc.property(events, events, orNull(fc.maxSafeNat()), (given, other, cause) => {
        const first = encoded(given, cause);
        // Again and again with one field changed: no event may leave a mark on the one behind it.
        for (const field of FIELDS[kind]) {
          const event = { ...given, [field]: other[field] };
          const bytes = encoded(event, cause);
          const told = decodeEvent(bytes, seq(1));
          assert.deepEqual(told, { event: asRead(event), cause });
          assert.deepEqual(Object.keys(told.event), ["kind", "at", ...FIELDS[kind]]);
          assert.deepEqual(encoded(structuredClone(event), cause), bytes);
          assert.deepEqual(encoded(given, cause), first);
        }
      }),
    );
  }
});

test("a submit that is plain but for one field comes back", () => {
  const anything = fc.oneof(
    name,
    names,
    amount,
    fc.boolean(),
    fc.constant(null),
    fc.constant([]),
    fc.constant({ a: 1 }),
  );
  for (const field of FIELDS["task-submitted"].filter((field) => !["task", "bodyHash"].includes(field)))
    fc.assert(
      fc.property(anything, (value) => {
        const event = { ...PLAIN_SUBMIT, [field]: value };
        assert.deepEqual(decoded(encoded(event, 7)), { event: asRead(event), cause: 7 });
      }),
      { numRuns: casesOf(30) },
    );
});

test("what has no short form is written as JSON, as every other event is", () => {
  const odd = [
    { ...PLAIN_SUBMIT, bodyHash: "0123456789ABCDEF".repeat(4) },
    { ...PLAIN_SUBMIT, bodyHash: "\u0130".repeat(64) },
    { ...PLAIN_SUBMIT, bodyHash: `${"0".repeat(63)}é` },
    { ...PLAIN_SUBMIT, bodyHash: `g${"0".repeat(63)}` },
    { ...PLAIN_SUBMIT, bodyHash: null },
    { ...PLAIN_SUBMIT, bodySize: Number.NaN },
    { ...PLAIN_SUBMIT, agent: undefined },
    { ...PLAIN_SUBMIT, needs: [["nested"]] },
    { ...PLAIN_SUBMIT, cpu: Number.POSITIVE_INFINITY },
    { ...PLAIN_START, charge: Number.NaN },
    { ...PLAIN_START, reason: { type: "added since", weight: 3 } },
    { ...PLAIN_START, reason: { type: "affinity", reason: "long".repeat(50) } },
    { ...PLAIN_START, rank: { ...RANK, score: Number.NEGATIVE_INFINITY } },
    { ...PLAIN_START, rank: { ...RANK, express: 1 } },
    { ...PLAIN_END, tokens: undefined },
    { ...PLAIN_END, resultHash: "short" },
    { ...PLAIN_END, resultHash: 5 },
    { kind: "pin-released", at: 5, task: "tsk_1" },
  ];
  for (const event of odd) {
    // What lies about from a good hash must not pass for the end of a bad one.
    assert.equal(encoded(PLAIN_SUBMIT, null)[0], 2);
    const bytes = encoded(event, null);
    const values = FIELDS[event.kind as EventKind].map((field) => (event as Record<string, unknown>)[field]);
    const whole = JSON.parse(JSON.stringify([1, event.kind, event.at, null, ...values])) as unknown[];
    const written = JSON.parse(bytes.toString()) as unknown[];
    assert.deepEqual(written, whole.slice(0, written.length));
    assert.deepEqual(Object.values((decoded(bytes) as { event: object }).event).slice(2), whole.slice(4));
  }
});

test("the id of a task comes back, also where it only looks like one of Drover's own", () => {
  const numbers = [
    "0",
    "7",
    "239",
    "240",
    "65536",
    "4294967296",
    "99999999999999",
    "00",
    "01",
    "",
    "-1",
    "1.5",
    "1e3",
    "٣",
  ];
  const large = ["100000000000000", "281474976710656", "999999999999999", "9007199254740993", "1".repeat(300)];
  const ids = [
    ...[...numbers, ...large].map((number) => `tsk_${number}`),
    "",
    "tsk",
    "tsx_5",
    "task_5",
    "Tsk_5",
    "tsk_5 ",
  ];
  for (const task of ids) {
    const event = { ...PLAIN_END, task };
    // Twice: the second time it may be at hand.
    for (let again = 0; again < 2; again++) assert.deepEqual(decoded(encoded(event, 7)), { event, cause: 7 });
  }
});

/** A log that was written by one version is read by every later one: these bytes may never change. */
const AS_STORED: readonly (readonly [event: object, cause: number | null, bytes: string])[] = [
  [
    PLAIN_SUBMIT,
    null,
    "0201f27b68e5cf8b01f4f170110100f70764656661756c74f703616e6e" +
      "25000123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
  ],
  [
    {
      ...{ ...PLAIN_SUBMIT, task: "böse", named: true, type: "code", locks: ["main", "語"] },
      ...{ priority: -5, prioritised: true, runnable: false },
    },
    3,
    "0211f27b68e5cf8b0103f70462f67365f70764656661756c74f703616e6e25" +
      "f121032000f704636f6465fa02000000f7046d61696ef9010000009e8af300000000000014c0f6f5" +
      "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
  ],
  [
    PLAIN_START,
    70_000,
    "0242f27b68e5cf8b01f170110100f17011010001f70577726b5f330102f3000000000000e03f01f02c010064f0f82a01",
  ],
  [
    { ...PLAIN_START, reason: { type: "resource-fit", availableCpu: null, requiredCpu: 2 } },
    70_000,
    "0242f27b68e5cf8b01f170110100f17011010001f70577726b5f3304f402f3000000000000e03f01f02c010064f0f82a01",
  ],
  [PLAIN_END, 70_001, "0203f27b68e5cf8b01f171110100f17011010001f400"],
  [
    { ...PLAIN_END, tokens: 5_000_000_000, resultHash: "fedcba9876543210".repeat(4), resultSize: 12 },
    70_001,
    "0213f27b68e5cf8b01f171110100f17011010001f200f2052a01000c" +
      "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210",
  ],
];

test("the bytes of a frequent event are these, today and in ten years", () => {
  for (const [event, cause, bytes] of AS_STORED) {
    assert.equal(encoded(event, cause).toString("hex"), bytes);
    assert.deepEqual(decoded(Buffer.from(bytes, "hex")), { event, cause });
  }
});

test("the number of a reason is this, today and in ten years", () => {
  const numbered: readonly Reason[] = [
    { type: "only-worker-available" },
    { type: "least-loaded", queueDepth: 2 },
    { type: "round-robin" },
    { type: "random" },
    { type: "resource-fit", availableCpu: 3, requiredCpu: 2 },
    { type: "affinity", reason: "same-zone" },
  ];
  for (const [number, reason] of numbered.entries()) {
    const bytes = encoded({ ...PLAIN_START, reason }, 70_000);
    assert.equal(bytes[bytes.indexOf("wrk_3") + "wrk_3".length], number, reason.type);
    assert.deepEqual(decoded(bytes), { event: { ...PLAIN_START, reason }, cause: 70_000 });
  }
});

test("a log of format 1 holds the frequent events as JSON, and is read as ever", () => {
  const submit =
    '[1,"task-submitted",1700000000123,null,"tsk_70000","default","ann",false,' +
    '"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",37,"other",[],0,0,' +
    'null,[],null,null,0,false,0,null,[],null,null,null,0,1,3,null,"skip",true,null]';
  const start =
    '[1,"task-assigned",1700000000123,70000,"tsk_70000",1,"wrk_3",{"type":"least-loaded","queueDepth":2},' +
    '{"express":false,"hold":false,"level":0.5,"weight":1,"agentInFlight":300,"priority":0,"overdue":true,' +
    '"score":100},11000,1]';
  const end = '[1,"task-done",1700000000123,70001,"tsk_70000",1,null,null,0]';
  const stored = [
    [submit, PLAIN_SUBMIT, null],
    [start, PLAIN_START, 70_000],
    [end, PLAIN_END, 70_001],
  ] as const;
  for (const [text, event, cause] of stored) {
    const told = decodeEvent(Buffer.from(text), seq(1));
    assert.deepEqual(told, { event, cause });
    // Of one shape with what is read from format 2.
    assert.equal(JSON.stringify(told), JSON.stringify(decoded(encoded(event, cause))));
  }
});

/** Null if the bytes are an event; otherwise the failure, which must be the log's own. */
function refusalOf(bytes: Uint8Array): LogFailure | null {
  try {
    decodeEvent(bytes, seq(9));
    return null;
  } catch (error) {
    assert.ok(error instanceof LogFailure, `${String(error)} at ${Buffer.from(bytes).toString("hex")}`);
    assert.equal(error.seq, 9);
    return error;
  }
}

test("an event that is cut off, or that goes on behind its end, is damage", () => {
  for (const kind of KINDS)
    fc.assert(
      fc.property(frequentOf(kind), orNull(fc.maxSafeNat()), fc.nat(255), (event, cause, more) => {
        const bytes = encoded(event, cause);
        for (let length = 0; length < bytes.length; length++)
          assert.equal(refusalOf(bytes.subarray(0, length))?.code, "corrupt");
        // JSON may go on with a space.
        if (bytes[0] === 2) assert.equal(refusalOf(Buffer.concat([bytes, Buffer.of(more)]))?.code, "corrupt");
      }),
      { numRuns: casesOf(30) },
    );
});

test("any bytes at all are an event or a failure of the log", () => {
  const start = fc.constantFrom([], [2], ...[1, 2, 3, 0x11, 0x72].map((mark) => [2, mark, 5, 0xf4, 7]));
  fc.assert(
    fc.property(start, fc.uint8Array({ maxLength: 80 }), (first, rest) => {
      refusalOf(Uint8Array.of(...first, ...rest));
    }),
    { numRuns: casesOf(2000) },
  );
  for (const [event, cause] of AS_STORED)
    fc.assert(
      fc.property(fc.nat(200), fc.nat(255), (place, byte) => {
        const bytes = encoded(event, cause);
        bytes[place % bytes.length] = byte;
        refusalOf(bytes);
      }),
      { numRuns: casesOf(1000) },
    );
});

test("a damaged kind, flag, reason, instant, count or value is named", () => {
  const refused = (hex: string, finding: RegExp): void => {
    const failure = refusalOf(Buffer.from(hex, "hex"));
    assert.equal(failure?.code, "corrupt");
    assert.match(failure?.message ?? "", finding);
  };
  refused("02", /cut off/);
  refused("020405f407", /no known kind \(4\)/);
  refused("022305f4070100f4", /second byte is 35/);
  refused("0203f3000000000000f03ff407", /cut off/);
  refused("0203f3000000000000e03ff4070100", /instant is 0.5/);
  refused("0203f3000000000000f07ff4070100", /no such value/);
  refused("0203f405", /no such value/);
  refused("020305f4f4", /no such value/);
  refused("020205f40701f7016107", /reason is of no known kind \(7\)/);
  refused("020305f4f9ffffffff6100", /cut off/);
  const plain = encoded(PLAIN_SUBMIT, null)
    .toString("hex")
    .slice(0, -2 - 64);
  refused(`${plain}f1ffffffff`, /values 4294967295, of \d+/);
  refused(`${plain}02faffffffff`, /cut off/);
  refused(`${plain}02fa01000000fa01000000`, /no such value/);
});
