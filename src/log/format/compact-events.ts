/**
 * The three events every task costs, in the compact encoding (format 2).
 *
 * As JSON they took a quarter of the engine's time, and 550 bytes a task that a thread had to hash and the disk to
 * store; now they are 140 or so. RECORDS is the whole format: from it a writer and a reader are generated for each
 * kind, as code, since a loop over fields would take longer than the bytes themselves. A record is:
 *
 *     02        the number of the format
 *     mark      the kind in the low half; a bit in the high half for each field that is a flag, in the order of RECORDS
 *     instant, cause or null, then the fields in the order of RECORDS, as `compact-values.ts` says
 *
 * `others` stands for the fields in USUAL: a number with a bit for each of them that is not what it usually is, then
 * those. A hash that may be null is a flag, and 32 bytes if it is set. What is nearly always null has no bytes, and an
 * event in which it is not is written as JSON.
 *
 * The bytes depend on the event and on nothing else. An event that holds what has no such form (a hash that is none, a
 * reason added since) is not written: the caller is told, and writes JSON. This is a file format: a kind that is to
 * hold something else gets another number, except that a submit may be given more fields at the end of USUAL.
 */
import { instant, type Seq, seq } from "../../core/base/index.ts";
import { type Event, type EventKind, FIELDS, type Reason } from "../../core/model/index.ts";
import { corruptAt } from "../log.ts";
import { type Block, makeRoom } from "./byte-block.ts";
import { HASH_BYTES } from "./chain.ts";
import * as values from "./compact-values.ts";
import { readByte, readNumber, readNumberOrNull, type Source } from "./compact-values.ts";

type Form =
  | "id"
  | "text"
  | "word"
  | "number"
  | "number or null"
  | "flag"
  | "hash"
  | "hash or null"
  | "reason"
  | "null"
  | "others";
type Fields = { readonly [Field in string]: Form | Fields };
type Write = (block: Block, event: Event, cause: number | null) => number;
type Read = (from: Source, mark: number, at: number) => Event;

export const COMPACT = 2;
const KIND_BITS = 0x0f;
const FIRST_FLAG = 0x10;
/** A reason's own words are short. */
const WORD_MAX = 27;
/** The most that an event takes beside its texts: sixteen values of nine bytes, a hash, and two words of a reason. */
const FIXED_BYTES_MAX: number = 16 * 9 + HASH_BYTES + 128;

const EMPTY: readonly never[] = Object.freeze([]);
/** What a submit usually holds. The order is that of the bits. */
export const USUAL: Readonly<Record<string, unknown>> = {
  type: "other",
  capabilities: EMPTY,
  cpu: 0,
  memory: 0,
  provider: null,
  locks: EMPTY,
  zone: null,
  tab: null,
  priority: 0,
  prioritised: false,
  depth: 0,
  parent: null,
  needs: EMPTY,
  artifact: null,
  notBefore: null,
  deadline: null,
  estimatedTokens: 0,
  iteration: 1,
  maxAttempts: 3,
  timeoutMs: null,
  onDependencyFailure: "skip",
  runnable: true,
  pin: null,
  onLoss: "retry",
  action: "",
  labels: EMPTY,
  group: null,
  maxRounds: 0,
  ofRunning: false,
  approval: null,
  wait: null,
};
const USUAL_NAMES = Object.keys(USUAL);

const RECORDS: { readonly [Kind in EventKind]?: { readonly mark: number; readonly fields: Fields } } = {
  "task-submitted": {
    mark: 1,
    fields: {
      task: "id",
      project: "text",
      agent: "text",
      named: "flag",
      bodySize: "number",
      others: "others",
      bodyHash: "hash",
    },
  },
  "task-assigned": {
    mark: 2,
    fields: {
      task: "id",
      attempt: "number",
      worker: "text",
      reason: "reason",
      rank: {
        express: "flag",
        hold: "flag",
        level: "number",
        weight: "number",
        agentInFlight: "number",
        priority: "number",
        overdue: "flag",
        score: "number",
      },
      charge: "number",
      reserve: "number",
    },
  },
  "task-done": {
    mark: 3,
    fields: {
      task: "id",
      attempt: "number",
      tokens: "number or null",
      resultSize: "number",
      resultHash: "hash or null",
      resultSeq: "null",
    },
  },
};
type ReasonFields<Type> = { readonly [Field in Exclude<keyof Extract<Reason, { type: Type }>, "type">]: Form };
/** The reasons of a start. The number of each stands in every log: it is never changed, and never used again. */
const REASONS: { readonly [Type in Reason["type"]]: { readonly number: number; readonly fields: ReasonFields<Type> } } =
  {
    "only-worker-available": { number: 0, fields: {} },
    "least-loaded": { number: 1, fields: { queueDepth: "number" } },
    "round-robin": { number: 2, fields: {} },
    random: { number: 3, fields: {} },
    "resource-fit": { number: 4, fields: { availableCpu: "number or null", requiredCpu: "number" } },
    affinity: { number: 5, fields: { reason: "word" } },
  };

/** How one form becomes code: whether `x` has it, how `x` is written at `at`, and how it is read. */
const CODE: { readonly [Name in Form]: { readonly check: string; readonly write: string; readonly read: string } } = {
  id: { check: 'typeof x === "string"', write: "at = writeId(target, at, x);", read: "readId(from)" },
  text: { check: 'typeof x === "string"', write: "at = writeText(target, at, x);", read: "readText(from)" },
  word: {
    check: `typeof x === "string" && x.length <= ${WORD_MAX}`,
    write: "at = writeText(target, at, x);",
    read: "readText(from)",
  },
  number: { check: "Number.isFinite(x)", write: "at = writeNumber(target, at, x);", read: "readNumber(from)" },
  "number or null": {
    check: "(x === null || Number.isFinite(x))",
    write: "at = writeNumberOrNull(target, at, x);",
    read: "readNumberOrNull(from)",
  },
  flag: { check: 'typeof x === "boolean"', write: "", read: "(mark & FLAG) !== 0" },
  hash: {
    check: 'typeof x === "string"',
    write: "at = writeHash(target, at, x); if (at < 0) return -1;",
    read: "readHash(from)",
  },
  "hash or null": {
    check: '(x === null || typeof x === "string")',
    write: "if (x !== null) { at = writeHash(target, at, x); if (at < 0) return -1; }",
    read: "(mark & FLAG) === 0 ? null : readHash(from)",
  },
  reason: {
    check: "true",
    write: "at = writeReason(target, at, x); if (at < 0) return -1;",
    read: "readReason(from)",
  },
  null: { check: "x === null", write: "", read: "null" },
  others: { check: "true", write: "", read: "readMask(from)" },
};

/** One field of a record as it is flattened: where it stands in the event, and what it is called while it is read. */
type Field = { readonly path: string; readonly local: string; readonly form: Form; readonly flag: number };

function flatten(fields: Fields): Field[] {
  let flag = FIRST_FLAG;
  const walk = (some: Fields, path: string, local: string): Field[] =>
    Object.entries(some).flatMap(([name, form]) => {
      if (typeof form !== "string") return walk(form, `${path}.${name}`, `${local}${name}_`);
      const isFlag = form === "flag" || form === "hash or null";
      const field: Field = { path: `${path}.${name}`, local: `${local}${name}`, form, flag: isFlag ? flag : 0 };
      if (isFlag) flag *= 2;
      return [field];
    });
  return walk(fields, "e", "");
}

const fill = (code: string, { path, flag }: Field): string =>
  code.replaceAll(/\bx\b/g, path).replaceAll("FLAG", String(flag));

/** A function from its source, which sees what is given by name. */
const compile = (params: string, body: string, scope: object): unknown =>
  new Function(...Object.keys(scope), `"use strict"; return (${params}) => {\n${body}\n};`)(...Object.values(scope));

const isOther = (name: string): string => {
  const usual = USUAL[name];
  return usual === EMPTY ? `!isEmpty(e.${name})` : `e.${name} !== ${JSON.stringify(usual)}`;
};
const bitOf = (name: string): number => 1 << USUAL_NAMES.indexOf(name);

function writerOf(mark: number, fields: readonly Field[]): Write {
  const texts = fields.filter(({ form }) => form === "id" || form === "text").map(({ path }) => `${path}.length`);
  const flags = fields.filter(({ flag }) => flag > 0);
  const hasOthers = fields.some(({ form }) => form === "others");
  const names = hasOthers ? USUAL_NAMES : [];
  const mask = names.map((name) => `(${isOther(name)} ? ${bitOf(name)} : 0)`).join(" | ");
  const lines = [
    `if (!(${fields.map((field) => fill(CODE[field.form].check, field)).join(" && ")})) return -1;`,
    `const others = ${mask || "0"};`,
    `let room = ${FIXED_BYTES_MAX} + ${values.CHARACTER_BYTES_MAX} * (${texts.join(" + ")});`,
    ...names.map((name) => `if ((others & ${bitOf(name)}) !== 0) room += roomFor(e.${name});`),
    "if (room === Infinity) return -1;",
    "makeRoom(block, room);",
    "const target = block.bytes;",
    `target[block.length] = ${COMPACT};`,
    `target[block.length + 1] = ${mark}${flags.map((field) => ` | (${isSet(field)} ? ${field.flag} : 0)`).join("")};`,
    "let at = writeNumberOrNull(target, writeNumber(target, block.length + 2, e.at), cause);",
    ...fields.flatMap((field) => (field.form === "others" ? writeOthers() : [fill(CODE[field.form].write, field)])),
    "return at;",
  ];
  return compile("block, e, cause", lines.join("\n"), { ...values, makeRoom, isEmpty, writeReason }) as Write;
}

const isSet = ({ form, path }: Field): string => (form === "flag" ? path : `${path} !== null`);
const isEmpty = (list: unknown): boolean => Array.isArray(list) && list.length === 0;

const writeOthers = (): string[] => [
  "at = writeNumber(target, at, others);",
  ...USUAL_NAMES.map((name) => `if ((others & ${bitOf(name)}) !== 0) at = writeValue(target, at, e.${name});`),
];

/** Every event of a kind is made by one literal, so that all have one shape for the engine that runs them. */
function readerOf(kind: EventKind, given: Fields, fields: readonly Field[]): Read {
  const usual = Object.values(USUAL);
  const lines = fields.flatMap((field) => [
    `const ${field.local} = ${fill(CODE[field.form].read, field)};`,
    ...(field.form !== "others" ? [] : USUAL_NAMES).map(
      (name, index) => `const ${name} = (others & ${bitOf(name)}) === 0 ? usual[${index}] : readValue(from);`,
    ),
  ]);
  const literal = FIELDS[kind].map((name) => {
    const form = given[name];
    if (form === undefined || typeof form === "string") return name;
    return `${name}: { ${Object.keys(form).map((inner) => `${inner}: ${name}_${inner}`)} }`;
  });
  lines.push(`return { kind: ${JSON.stringify(kind)}, at, ${literal.join(", ")} };`);
  return compile("from, mark, at", lines.join("\n"), { ...values, usual, readReason, readMask }) as Read;
}

function readMask(from: Source): number {
  const mask = readNumber(from);
  if (!Number.isInteger(mask) || mask < 0 || mask >= 2 ** USUAL_NAMES.length)
    throw corruptAt(from.seq, `it holds values ${mask}, of ${USUAL_NAMES.length}`);
  return mask;
}

type WriteReason = (target: Buffer, at: number, reason: Reason) => number;
const REASON_WRITERS = new Map<string, WriteReason>();
const REASON_READERS: ((from: Source) => Reason)[] = [];
for (const [type, { number, fields }] of Object.entries(REASONS)) {
  const flat = flatten(fields);
  const checks = flat.map((field) => fill(CODE[field.form].check, field));
  const write = [
    `if (!(${["true", ...checks].join(" && ")})) return -1;`,
    `target[at++] = ${number};`,
    ...flat.map((field) => fill(CODE[field.form].write, field)),
    "return at;",
  ];
  REASON_WRITERS.set(type, compile("target, at, e", write.join("\n"), values) as WriteReason);
  const read = flat.map((field) => `const ${field.local} = ${fill(CODE[field.form].read, field)};`);
  read.push(`return { type: ${JSON.stringify(type)}${flat.map(({ local }) => `, ${local}`).join("")} };`);
  REASON_READERS[number] = compile("from", read.join("\n"), values) as (from: Source) => Reason;
}

/** The number of the reason, then what it says more; less than 0 for one that has no number. */
function writeReason(target: Buffer, at: number, reason: Reason): number {
  return REASON_WRITERS.get(reason.type)?.(target, at, reason) ?? -1;
}

function readReason(from: Source): Reason {
  const number = readByte(from);
  const read = REASON_READERS[number];
  if (read === undefined) throw corruptAt(from.seq, `its reason is of no known kind (${number})`);
  return read(from);
}

const WRITERS: { [Kind in EventKind]?: Write } = {};
const READERS: { readonly read: Read; readonly flags: number }[] = [];
for (const [name, { mark, fields }] of Object.entries(RECORDS)) {
  const flat = flatten(fields);
  WRITERS[name as EventKind] = writerOf(mark, flat);
  const flags = flat.reduce((all, { flag }) => all | flag, 0);
  READERS[mark] = { read: readerOf(name as EventKind, fields, flat), flags };
}

/** Writes the event behind what the block holds, or answers false: it has no such form. */
export function writeCompact(block: Block, event: Event, cause: number | null): boolean {
  if (cause !== null && !Number.isFinite(cause)) return false;
  const end = WRITERS[event.kind]?.(block, event, cause) ?? -1;
  if (end < 0) return false;
  block.length = end;
  return true;
}

/** An event of format 2 and its cause. */
export function readCompact(bytes: Uint8Array, number: Seq): { readonly event: Event; readonly cause: Seq | null } {
  const from: Source = { bytes, at: 1, seq: number };
  const mark = readByte(from);
  const at = readNumber(from);
  if (!Number.isSafeInteger(at) || at < 0) throw corruptAt(number, `its instant is ${at}`);
  const cause = readNumberOrNull(from);
  const known = READERS[mark & KIND_BITS];
  if (known === undefined) throw corruptAt(number, `it is of no known kind (${mark & KIND_BITS})`);
  if ((mark & ~(KIND_BITS | known.flags)) !== 0) throw corruptAt(number, `its second byte is ${mark}`);
  const event = known.read(from, mark, instant(at));
  if (from.at !== bytes.length) throw corruptAt(number, `${bytes.length - from.at} bytes follow it`);
  return { event, cause: cause === null ? null : seq(cause) };
}

type Make = (kind: string, at: unknown, values: readonly unknown[], offset: number) => Event;
const MAKERS: { [Kind in EventKind]?: Make } = {};

/** An event from its values in the order of FIELDS: of the same shape as one that was read from format 2. */
export function eventFrom(kind: EventKind, at: unknown, given: readonly unknown[], offset: number): Event {
  MAKERS[kind] ??= compile(
    "kind, at, values, offset",
    `return { kind, at, ${FIELDS[kind].map((name, index) => `${name}: values[offset + ${index}]`).join(", ")} };`,
    {},
  ) as Make;
  return MAKERS[kind](kind, at, given, offset);
}
