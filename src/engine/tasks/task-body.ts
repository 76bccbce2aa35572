/**
 * A task as people write it, read once.
 *
 * Every field is checked here and named in the refusal; past this file nothing is unknown. What decides
 * when and where the task runs becomes the core's `Submission`; the body as a whole, with payload and
 * params, is kept beside the log under its hash and never enters the core.
 */
import {
  agentId,
  INSTANT_MAX,
  type Instant,
  invariant,
  isRecord,
  ok,
  projectId,
  type Reader,
  type Refusal,
  sectionInWords,
  taskId,
} from "../../core/base/index.ts";
import { priority } from "../../core/config/index.ts";
import { actionName } from "../../core/fleet/index.ts";
import type { Submission } from "../../core/model/index.ts";
import { bringsCall } from "../../plan/index.ts";
import type { AnyParams, ApprovalView, CurrentRound, Inputs, PriorityName, TaskBody } from "../../protocol/index.ts";
import * as s from "../../protocol/schema/index.ts";
import { Checked } from "../../protocol/schema/index.ts";
import { taskFields } from "../../protocol/shapes/index.ts";
import type { SpelledKey } from "../base/canonical-json.ts";
import { canonical, escapedUntilNow, hashOfText, sizeOf, spelledKey, withField } from "../base/canonical-json.ts";
import { badInput, faultOfReading, refused } from "../base/drover-error.ts";

/** Of all but what a node or a token may have added on the way: id, agent and project. */
export const BODY_BYTES_MAX: number = 1024 * 1024;

/** What a program may say of a task: as on the wire, and an instant may be whole milliseconds. */
export type TaskInput<Params extends object = AnyParams> = Omit<TaskBody, "params" | "deadline" | "notBefore"> & {
  /** Arguments of the action. */
  readonly params?: Params;
  /** When it has failed if it has not ended. */
  readonly deadline?: string | number;
  /** When it may start at the earliest. */
  readonly notBefore?: string | number;
};

/** What a schedule submits: under an id that is made of schedule and instant, and that no caller may take first. */
export class ScheduledBody {
  readonly body: TaskInput;

  constructor(body: TaskInput) {
    this.body = body;
  }
}
const SCHEDULED_ID = /^sch_.+_\d{8}T\d{6}Z$/;

/**
 * `plain` is what parsing the text would give, where that is known without it: in a body of a program without lists and
 * objects. What comes over the wire goes to workers over the wire, which are given the text.
 */
export type ReadTask = {
  readonly submission: Submission;
  readonly text: string;
  readonly plain: PlainBody | null;
  readonly shown: ShownBody | null;
};
export type PlainBody = Record<string, unknown>;
/**
 * Where in its text a body has its id, which alone is not shown to a worker, and whether it names its project. Null for
 * a body of which more is shown otherwise than it was given.
 */
export type ShownBody = { readonly idFrom: number; readonly idTo: number; readonly hasProject: boolean };

const AN_INSTANT = "an instant: RFC 3339 text such as 2026-01-31T12:00:00Z, or whole milliseconds since 1970";
/** An instant as a program gives it. */
const instantInput: s.Schema<string | number> = s.either(s.instant(), s.whole(0, INSTANT_MAX), AN_INSTANT);
const instantOf = (given: string | number): number =>
  typeof given === "string" ? Date.parse(given) : plainZero(given);

export const instantField: Reader<number> = (value, field) => {
  const read = s.readShape(instantInput, value, field);
  return read.ok ? ok(instantOf(read.value)) : read;
};

/** The ids that are needed, each once, in the order given. */
const idsOf = (needs: NonNullable<TaskBody["needs"]>): readonly string[] =>
  unique(Array.isArray(needs) ? needs : Object.values(needs).filter((id) => id !== undefined));
/** Without repeats, in the order given. */
const unique = (names: readonly string[]): readonly string[] => [...new Set(names)];
/** Sorted, so that equal sets are equal values. */
const sorted = (names: readonly string[]): readonly string[] => unique(names).toSorted();
const plainZero = (count: number): number => (count === 0 ? 0 : count);
function priorityOf(given: number | PriorityName): number {
  const read = priority(given, "priority");
  invariant(read.ok, "a priority was checked before");
  return read.value;
}

/** What the core takes where that is another value than the one given. */
const CONVERTED = {
  priority: priorityOf,
  deadline: instantOf,
  notBefore: instantOf,
  needs: idsOf,
  capabilities: sorted,
  locks: sorted,
  estimatedTokens: plainZero,
  iteration: plainZero,
};
type Converted = typeof CONVERTED;
type Parsed = {
  [Key in keyof TaskInput]?: Key extends keyof Converted ? ReturnType<Converted[Key]> : NonNullable<TaskInput[Key]>;
};

/** The index of a field in the sequence of the text, under which its value is kept while a body is read. */
type Index<Key> = number & { readonly of?: Key };
const KNOWN: readonly string[] = Object.keys(taskFields);
const IN_ORDER = ([...KNOWN] as (keyof Parsed)[]).sort();
/** Sets of fields have a bit for each, in numbers of 32: `given` for the first, and `more` for those that follow. */
const BITS = 32;
invariant(IN_ORDER.length <= 2 * BITS, "at most 64 fields, a bit each in two numbers");
const AT = Object.fromEntries(IN_ORDER.map((field, index) => [field, index])) as {
  [Key in keyof Parsed]-?: Index<Key>;
};
const KEYS = IN_ORDER.map((field) => spelledKey(field) as SpelledKey);
type Field = {
  readonly index: number;
  /** Null: it was checked before. */
  readonly check: s.Check | null;
  readonly schema: s.Schema | null;
  readonly convert: ((given: never) => unknown) | null;
};
type FieldTable = ReadonlyMap<string, Field>;
const tableOf = (schemas: Partial<Readonly<Record<string, s.Schema>>>): FieldTable =>
  new Map(
    IN_ORDER.map((field, index) => {
      const schema = schemas[field] ?? null;
      const convert = CONVERTED[field as keyof Converted] ?? null;
      return [field, { index, check: schema?.["~check"] ?? null, schema, convert }];
    }),
  );
/** A body of a program, an item of a batch that came over the wire, and a body that the server has checked. */
const FROM_PROGRAM = tableOf({ ...taskFields, deadline: instantInput, notBefore: instantInput });
const FROM_WIRE = tableOf({ ...taskFields });
const CHECKED = tableOf({});

/** What has been read of a body: the value of each field by its index, and which were given. */
class Reading {
  readonly values: unknown[];
  given: number;
  more: number;
  /** What was given where that is not what it was read as, by index: nothing is asked for twice. */
  raw: unknown[] | null = null;
  /** Whether all values are text, numbers, true and false. */
  isPlain = true;
  /** Where its id stands in its text. */
  idFrom = 0;
  idTo = 0;

  constructor(shared: Reading | null) {
    this.values = shared === null ? NOTHING.slice() : shared.values.slice();
    this.given = shared === null ? 0 : shared.given;
    this.more = shared === null ? 0 : shared.more;
  }

  /** As it was when it was made of this one. */
  beginAnew(shared: Reading): void {
    for (let left = this.given; left !== 0; left &= left - 1) {
      const index = lowestIn(left);
      this.values[index] = shared.values[index];
    }
    for (let left = this.more; left !== 0; left &= left - 1) {
      const index = BITS + lowestIn(left);
      this.values[index] = shared.values[index];
    }
    this.given = shared.given;
    this.more = shared.more;
    this.raw = null;
    this.isPlain = true;
    this.idFrom = this.idTo = 0;
  }
}
/** The index of the first field in a set that is not empty. */
const lowestIn = (fields: number): number => 31 - Math.clz32(fields & -fields);
const NOTHING: readonly unknown[] = IN_ORDER.map(() => undefined);
const NOTHING_READ = new Reading(null);
const CHECKED_READING = new Reading(null);
const at = <Key extends keyof Parsed>(values: readonly unknown[], index: Index<Key>): Parsed[Key] =>
  values[index] as Parsed[Key];

export function readTaskBody(given: unknown): ReadTask {
  try {
    if (given instanceof Checked) return readChecked(given.body);
    return given instanceof ScheduledBody ? readBody(given.body, FROM_PROGRAM, true) : readBody(given, FROM_PROGRAM);
  } catch (thrown) {
    throw faultOfReading(thrown, given, "");
  }
}

/** What was parsed of JSON runs no code when it is read, so no other can be read meanwhile: one place does for all. */
function readChecked(body: unknown): ReadTask {
  try {
    return readBody(body, CHECKED, false, CHECKED_READING);
  } finally {
    CHECKED_READING.beginAnew(NOTHING_READ);
  }
}

function readBody(body: unknown, fields: FieldTable, isScheduled = false, reading = new Reading(null)): ReadTask {
  if (!isRecord(body)) throw badInput("(body)", body, sectionInWords(KNOWN));
  const fault = readFields(body, reading, fields) ?? missingIn(reading.values);
  if (fault !== null) throw refused(fault);
  const { values } = reading;
  const id = at(values, AT.id);
  if (id !== undefined && !isScheduled && SCHEDULED_ID.test(id))
    throw badInput("id", id, "an id not of the form sch_<schedule>_<instant>, which schedules make themselves");
  const since = escapedUntilNow();
  const text = textOf(reading) ?? canonical(body, "");
  const size = sizeOf(text, since);
  const counted = size > BODY_BYTES_MAX ? size - addedBytes(values) : size;
  if (counted > BODY_BYTES_MAX)
    throw badInput("(body)", `${counted} bytes`, `at most ${BODY_BYTES_MAX} bytes; put more into an artifact`);
  const plain = fields === FROM_PROGRAM ? plainOf(reading) : null;
  return { submission: toSubmission(values, text, size), text, plain, shown: shownOf(reading) };
}

const ADDED = ["id", "agentId", "project"] as const;
/** What a body takes more because of these. */
function addedBytes(values: readonly unknown[]): number {
  let bytes = 0;
  for (const field of ADDED) {
    const value = at(values, AT[field]);
    if (value !== undefined) bytes += Buffer.byteLength(`${JSON.stringify(field)}:${JSON.stringify(value)},`);
  }
  return bytes;
}

function missingIn(values: readonly unknown[]): Refusal | null {
  for (const field of ["agentId", "action"] as const)
    if (at(values, AT[field]) === undefined) return refusalOf(taskFields[field], undefined, field);
  return null;
}

function refusalOf(schema: s.Schema, value: unknown, field: string): Refusal {
  const read = s.readShape(schema, value, field);
  invariant(!read.ok, "only what was found wrong is put into words");
  return read.failure;
}

/** What all items of a batch have in common, as fields of a body; an item may say otherwise, but not of the agent. */
type SharedFields = Pick<TaskInput, "agentId" | "project" | "callbackUrl">;
export type ItemReader = (item: Readonly<Record<string, unknown>>) => ReadTask;

/**
 * Reads the items of one batch, each as if it had been submitted alone with what it shares, which was read before. An
 * item with a fault is put together and read as a body of its own, which tells of the first one.
 */
export function itemReader({ agentId, project, callbackUrl }: SharedFields, isFromWire: boolean): ItemReader {
  const fields = isFromWire ? FROM_WIRE : FROM_PROGRAM;
  const said = {
    ...(project === undefined ? {} : { project }),
    ...(callbackUrl === undefined ? {} : { callbackUrl }),
  };
  const shared = new Reading(null);
  readFields({ ...said, agentId }, shared, CHECKED);
  const reading = new Reading(shared);
  const { values } = reading;
  return (item) => {
    reading.beginAnew(shared);
    const isRead = readFields(item, reading, fields) === null && at(values, AT.action) !== undefined;
    const id = at(values, AT.id);
    const since = escapedUntilNow();
    const text = isRead && (id === undefined || !SCHEDULED_ID.test(id)) ? textOf(reading) : null;
    const size = text === null ? 0 : sizeOf(text, since);
    if (text === null || size > BODY_BYTES_MAX) return readBody({ ...said, ...item, agentId }, fields);
    const plain = isFromWire ? null : plainOf(reading);
    return { submission: toSubmission(values, text, size), text, plain, shown: shownOf(reading) };
  };
}

/** Reads each field to its index; what is wrong with the first bad one, if any is. */
function readFields(body: Readonly<Record<string, unknown>>, reading: Reading, fields: FieldTable): Refusal | null {
  const { values } = reading;
  for (const key of Object.keys(body)) {
    const field = fields.get(key);
    if (field === undefined) return { type: "unknown-field", field: key, known: KNOWN };
    const { index, check, convert } = field;
    const given = body[key];
    if (given !== undefined && check?.(given) === false) return refusalOf(field.schema as s.Schema, given, key);
    const value = given === undefined || convert === null ? given : convert(given as never);
    values[index] = value;
    if (index < BITS) reading.given |= 1 << index;
    else reading.more |= 1 << index;
    if (value !== given) {
      reading.raw ??= [];
      reading.raw[index] = given;
    }
    if (typeof given === "object") reading.isPlain = false;
  }
  return null;
}

/** The canonical text: of what was given, not of what it was read as. Null if a field of the body cannot be spelled. */
function textOf(reading: Reading): string | null {
  const { values, given, more, raw } = reading;
  let text: string | null = "";
  for (let left = given; left !== 0; left &= left - 1) {
    const index = lowestIn(left);
    const before: number = text.length;
    text = withValue(text, values, raw, index);
    if (text === null) return null;
    if (index !== AT.id || text.length === before) continue;
    reading.idFrom = before;
    reading.idTo = text.length;
  }
  for (let left = more; left !== 0; left &= left - 1) {
    text = withValue(text, values, raw, BITS + lowestIn(left));
    if (text === null) return null;
  }
  return `${text}}`;
}

function withValue(text: string, values: readonly unknown[], raw: unknown[] | null, index: number): string | null {
  // What was read as another value was not undefined before.
  const value = raw?.[index] ?? values[index];
  return value === undefined ? text : withField(text, KEYS[index] as SpelledKey, value, 1);
}

/** What is shown otherwise than it was given, or may be: as it stands by now. */
const SHOWN_OTHERWISE = (["approval", "deadline", "iteration", "loop", "notBefore", "onLoss", "priority"] as const).map(
  (field) => AT[field],
);
invariant(AT.id < BITS, "the id is among the first fields");

function shownOf({ values, idFrom, idTo }: Reading): ShownBody | null {
  for (const index of SHOWN_OTHERWISE) if (values[index] !== undefined) return null;
  if (bringsCall(at(values, AT.params)) || (idTo === 0 && at(values, AT.id) !== undefined)) return null;
  return { idFrom, idTo, hasProject: at(values, AT.project) !== undefined };
}

/** In the order of the text, and without the caller's id, which no handler is shown. */
function plainOf({ values, given, more, raw, isPlain }: Reading): PlainBody | null {
  if (!isPlain || raw !== null) return null;
  const plain: PlainBody = {};
  for (let left = given & ~(1 << AT.id); left !== 0; left &= left - 1) putPlain(plain, values, lowestIn(left));
  for (let left = more; left !== 0; left &= left - 1) putPlain(plain, values, BITS + lowestIn(left));
  return plain;
}

function putPlain(plain: PlainBody, values: readonly unknown[], index: number): void {
  const value = values[index];
  // Minus zero is zero in JSON.
  if (value !== undefined) plain[IN_ORDER[index] as string] = value === 0 ? 0 : value;
}

const NO_NAMES: readonly never[] = [];

/**
 * The hash tells whether a chosen id stands for the same body. Without one it is left to the log
 * (log/format/batch-builder.ts).
 */
function toSubmission(values: readonly unknown[], text: string, size: number): Submission {
  const id = at(values, AT.id);
  const parent = at(values, AT.parent);
  const resources = at(values, AT.resources);
  const estimatedTokens = at(values, AT.estimatedTokens);
  return {
    id: id === undefined ? null : taskId(id),
    project: projectId(at(values, AT.project) ?? "default"),
    agent: agentId(at(values, AT.agentId) as string),
    bodyHash: id === undefined ? "" : hashOfText(text),
    bodySize: size,
    type: at(values, AT.type) ?? "other",
    capabilities: at(values, AT.capabilities) ?? NO_NAMES,
    cpu: plainZero(resources?.cpuMillicores ?? 0),
    memory: plainZero(resources?.memoryBytes ?? 0),
    provider: at(values, AT.provider) ?? null,
    locks: at(values, AT.locks) ?? NO_NAMES,
    zone: at(values, AT.zone) ?? null,
    tab: at(values, AT.tabId) ?? null,
    priority: at(values, AT.priority) ?? null,
    parent: parent === undefined ? null : taskId(parent),
    needs: at(values, AT.needs)?.map(taskId) ?? NO_NAMES,
    artifact: at(values, AT.inputArtifact) ?? null,
    artifactReady: false,
    notBefore: (at(values, AT.notBefore) ?? null) as Instant | null,
    deadline: (at(values, AT.deadline) ?? null) as Instant | null,
    estimatedTokens: estimatedTokens === undefined ? null : Math.ceil(estimatedTokens),
    iteration: at(values, AT.iteration) ?? 1,
    maxAttempts: at(values, AT.maxAttempts) ?? null,
    timeoutMs: at(values, AT.timeoutMs) ?? null,
    onDependencyFailure: at(values, AT.onDependencyFailure) ?? "skip",
    onLoss: at(values, AT.onLoss) ?? null,
    action: actionName(at(values, AT.action) as string, at(values, AT.params)),
    callback: hostOf(at(values, AT.callbackUrl)),
    labels: labelsOf(at(values, AT.labels)),
    maxRounds: at(values, AT.loop)?.max ?? 0,
    approval: approvalOf(at(values, AT.approval)),
    wait: at(values, AT.wait) ?? null,
  };
}

function approvalOf(given: TaskInput["approval"]): (Submission["approval"] & {}) | null {
  if (given === undefined) return null;
  const { question = null, timeoutMs = null } = given === true ? {} : given;
  return { question, timeoutMs };
}

function labelsOf(labels: TaskInput["labels"]): readonly string[] {
  if (labels === undefined) return NO_NAMES;
  const given = Object.entries(labels).filter(([, value]) => value !== undefined);
  return given.map(([key, value]) => `${key}=${value}`).sort();
}

/** Of a URL; empty if it is none. */
const hostOf = (url: string | undefined): string | null => (url === undefined ? null : (URL.parse(url)?.host ?? ""));

/** A stored body as it was given. */
export const parseStored = (text: string): TaskBody => JSON.parse(text) as TaskBody;

/** A task as it was submitted, and which attempt of it this is. */
export type AssignedTask<Params extends object = AnyParams, Needed extends object = Inputs> = Omit<
  TaskBody,
  "id" | "params" | "approval"
> & {
  /** The id of the task. */
  readonly taskId: string;
  /** The number of the attempt. */
  readonly attempt: number;
  /** Arguments of the action. */
  readonly params?: Params;
  /** How the tasks ended that it needs, each by its name, its id or `parent`. Absent if it needs none. */
  readonly inputs?: Needed;
  /** Of a loop: which round this is, and what the one before left for it. */
  readonly round?: CurrentRound;
  /** What was asked of somebody, and the answer. */
  readonly approval?: ApprovalView;
};

/** A stored body as its handler sees it: without the caller's id, and with the names of task and attempt. */
export function assignedTask(text: string, plain: PlainBody | null, taskId: string, attempt: number): AssignedTask {
  const body = (plain ?? parseStored(text)) as { -readonly [Field in keyof AssignedTask]: AssignedTask[Field] } & {
    id?: string;
  };
  if (body.id !== undefined) {
    const { id: _, ...rest } = body;
    return { ...rest, taskId, attempt };
  }
  // It was made for this attempt alone, so it may be added to.
  body.taskId = taskId;
  body.attempt = attempt;
  return body;
}
