/**
 * A task as people write it, read once.
 *
 * Every field is checked here and named in the refusal; past this file nothing is unknown. What decides
 * when and where the task runs becomes the core's `Submission`; the body as a whole, with payload and
 * params, is kept beside the log under its hash and never enters the core.
 */
import {
  agentId,
  badField,
  type Fields,
  fail,
  finite,
  INSTANT_MAX,
  type Instant,
  instantInWords,
  instantTextFault,
  invariant,
  isRecord,
  name,
  ok,
  oneOf,
  projectId,
  type Reader,
  type Refusal,
  section,
  sectionInWords,
  setOf,
  taskId,
  text,
  whole,
} from "../../core/base/index.ts";
import { priority } from "../../core/config/index.ts";
import { actionName } from "../../core/fleet/index.ts";
import type { Submission } from "../../core/model/index.ts";
import type { TaskBody } from "../../protocol/index.ts";
import {
  canonical,
  escapedUntilNow,
  hashOf,
  type SpelledKey,
  sizeOf,
  spelledKey,
  withField,
} from "../writer/canonical-json.ts";
import { badInput, faultOfReading, refused } from "../writer/drover-error.ts";

export const BODY_BYTES_MAX: number = 1024 * 1024;
const AN_INSTANT = "an instant: RFC 3339 text such as 2026-01-31T12:00:00Z, or whole milliseconds since 1970";

/** What a program may say of a task: as on the wire, and an instant may be whole milliseconds. */
export type TaskInput = Omit<TaskBody, "deadline" | "notBefore"> & {
  readonly deadline?: string | number;
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

/** `plain` is what parsing the text would give, where that is known without it: in a body without lists and objects. */
export type ReadTask = { readonly submission: Submission; readonly text: string; readonly plain: PlainBody | null };
export type PlainBody = Record<string, unknown>;

export const instantField: Reader<number> = (value, field) => {
  const at = typeof value === "string" && instantTextFault(value) === null ? Date.parse(value) : value;
  return typeof at === "number" && Number.isSafeInteger(at) && at >= 0 && at <= INSTANT_MAX
    ? ok(at)
    : fail(badField(field, value, instantInWords(AN_INSTANT, value)));
};

const anything: Reader<unknown> = (value) => ok(value);
const object: Reader<Readonly<Record<string, unknown>>> = (value, field) =>
  isRecord(value) ? ok(value) : fail(badField(field, value, "an object"));
/** A list that keeps its order: dependencies. */
const needs: Reader<readonly string[]> = (value, field) => {
  const read = setOf(name(), 1000)(value, field);
  return read.ok ? ok([...new Set(value as string[])]) : read;
};

type Known = { [Key in keyof TaskBody]-?: unknown };
const FIELDS = {
  agentId: name(),
  action: text(1, 1024),
  id: name(),
  project: name(),
  type: name(),
  tabId: name(),
  ref: text(0, 4096),
  selector: text(0, 4096),
  params: object,
  payload: anything,
  priority,
  deadline: instantField,
  notBefore: instantField,
  parent: name(),
  needs,
  inputArtifact: text(1, 4096),
  resources: section(
    { cpuMillicores: whole(0, 1_000_000_000), memoryBytes: whole(0) },
    { cpuMillicores: 0, memoryBytes: 0 },
  ),
  capabilities: setOf(name(260), 64),
  locks: setOf(name(), 64),
  zone: name(),
  provider: name(),
  estimatedTokens: finite(0, 1_000_000_000_000),
  iteration: whole(0, 1_000_000),
  maxAttempts: whole(1, 1_000_000),
  timeoutMs: whole(1, 31_556_952_000_000),
  onDependencyFailure: oneOf("skip", "run"),
  onLoss: oneOf("retry", "fail"),
  callbackUrl: text(1, 2048),
} satisfies Fields<Known>;
type Parsed = { [Key in keyof typeof FIELDS]?: (typeof FIELDS)[Key] extends Reader<infer Value> ? Value : never };

/** The place of a field in the order of the text, which is where its value is kept while a body is read. */
type Place<Key> = number & { readonly of?: Key };
const IN_ORDER = (Object.keys(FIELDS) as (keyof Parsed)[]).sort();
invariant(IN_ORDER.length < 32, "a set of fields is a number in which each has a bit");
const AT = Object.fromEntries(IN_ORDER.map((field, place) => [field, place])) as {
  [Key in keyof Parsed]-?: Place<Key>;
};
const KEYS = IN_ORDER.map((field) => spelledKey(field) as SpelledKey);
type Field = { readonly reader: Reader<unknown>; readonly place: number };
const FIELD_OF: ReadonlyMap<string, Field> = new Map(
  IN_ORDER.map((field, place) => [field, { reader: FIELDS[field], place }]),
);

/** What has been read of a body: the value of each field by its place, which were given, and which were respelled. */
class Reading {
  readonly values: unknown[];
  given: number;
  respelled = 0;
  /** What was given where that is not what it was read as, by place: nothing is asked for twice. */
  raw: unknown[] | null = null;
  /** Whether all values are text, numbers, true and false. */
  isPlain = true;

  constructor(shared: Reading | null) {
    this.values = shared === null ? NOTHING.slice() : shared.values.slice();
    this.given = shared === null ? 0 : shared.given;
  }

  /** As it was when it was made of this one. */
  beginAnew(shared: Reading): void {
    for (let left = this.given; left !== 0; left &= left - 1) {
      const place = lowestIn(left);
      this.values[place] = shared.values[place];
    }
    this.given = shared.given;
    this.respelled = 0;
    this.raw = null;
    this.isPlain = true;
  }
}
/** The place of the first field in a set that is not empty. */
const lowestIn = (fields: number): number => 31 - Math.clz32(fields & -fields);
const NOTHING: readonly unknown[] = IN_ORDER.map(() => undefined);
const at = <Key extends keyof Parsed>(values: readonly unknown[], place: Place<Key>): Parsed[Key] =>
  values[place] as Parsed[Key];

export function readTaskBody(given: unknown): ReadTask {
  try {
    return given instanceof ScheduledBody ? readBody(given.body, true) : readBody(given, false);
  } catch (thrown) {
    throw faultOfReading(thrown, given, "");
  }
}

function readBody(body: unknown, isScheduled: boolean): ReadTask {
  if (!isRecord(body)) throw badInput("(body)", body, sectionInWords(Object.keys(FIELDS)));
  const reading = new Reading(null);
  const fault = readFields(body, reading);
  if (fault !== null) throw refused(fault);
  const { values } = reading;
  if (at(values, AT.agentId) === undefined) throw badInput("agentId", undefined, "the name of the agent that submits");
  if (at(values, AT.action) === undefined) throw badInput("action", undefined, "what is to be done, as text");
  const id = at(values, AT.id);
  if (id !== undefined && !isScheduled && SCHEDULED_ID.test(id))
    throw badInput("id", id, "an id not of the form sch_<schedule>_<instant>, which schedules make themselves");
  const since = escapedUntilNow();
  const text = textOf(reading) ?? canonical(body, "");
  const size = sizeOf(text, since);
  if (size > BODY_BYTES_MAX)
    throw badInput("(body)", `${size} bytes`, `at most ${BODY_BYTES_MAX} bytes; put more into an artifact`);
  return { submission: toSubmission(values, text, size), text, plain: plainOf(reading) };
}

/** What all items of a batch have in common, as fields of a body; an item may say otherwise, but not of the agent. */
type SharedFields = Pick<TaskInput, "agentId" | "project" | "callbackUrl">;
export type ItemReader = (item: Readonly<Record<string, unknown>>) => ReadTask;

/**
 * Reads the items of one batch, each as if it had been submitted alone with what it shares. That is read once; only an
 * item with a fault is put together and read as a body of its own, which tells of the first one.
 */
export function itemReader({ agentId, project, callbackUrl }: SharedFields): ItemReader {
  const said = {
    ...(project === undefined ? {} : { project }),
    ...(callbackUrl === undefined ? {} : { callbackUrl }),
  };
  const shared = new Reading(null);
  const isShared = readFields({ ...said, agentId }, shared) === null;
  const reading = new Reading(shared);
  const { values } = reading;
  return (item) => {
    reading.beginAnew(shared);
    const isRead = isShared && readFields(item, reading) === null && at(values, AT.action) !== undefined;
    const id = at(values, AT.id);
    const since = escapedUntilNow();
    const text = isRead && (id === undefined || !SCHEDULED_ID.test(id)) ? textOf(reading) : null;
    const size = text === null ? 0 : sizeOf(text, since);
    if (text === null || size > BODY_BYTES_MAX) return readTaskBody({ ...said, ...item, agentId });
    return { submission: toSubmission(values, text, size), text, plain: plainOf(reading) };
  };
}

/** Reads each field to its place; what is wrong with the first bad one, if any is. */
function readFields(body: Readonly<Record<string, unknown>>, reading: Reading): Refusal | null {
  const { values } = reading;
  for (const key of Object.keys(body)) {
    const field = FIELD_OF.get(key);
    if (field === undefined) return { type: "unknown-field", field: key, known: Object.keys(FIELDS) };
    const { place } = field;
    const value = body[key];
    const read = value === undefined ? UNSAID : field.reader(value, key);
    if (!read.ok) return read.failure;
    values[place] = read.value;
    reading.given |= 1 << place;
    if (read.value !== value) {
      reading.respelled |= 1 << place;
      reading.raw ??= [];
      reading.raw[place] = value;
    }
    if (typeof value === "object") reading.isPlain = false;
  }
  return null;
}

const UNSAID = ok(undefined);

/** The canonical text: of what was given, not of what it was read as. Null if a field of the body cannot be spelled. */
function textOf({ values, given, respelled, raw }: Reading): string | null {
  let text: string | null = "";
  for (let left = given; left !== 0; left &= left - 1) {
    const place = lowestIn(left);
    const value = ((respelled >>> place) & 1) === 0 ? values[place] : raw?.[place];
    if (value === undefined) continue;
    text = withField(text, KEYS[place] as SpelledKey, value, 1);
    if (text === null) return null;
  }
  return `${text}}`;
}

/** In the order of the text, and without the caller's id, which no handler is shown. */
function plainOf({ values, given, respelled, isPlain }: Reading): PlainBody | null {
  if (!isPlain || respelled !== 0) return null;
  const plain: PlainBody = {};
  for (let left = given & ~(1 << AT.id); left !== 0; left &= left - 1) {
    const place = lowestIn(left);
    const value = values[place];
    // Minus zero is zero in JSON.
    if (value !== undefined) plain[IN_ORDER[place] as string] = value === 0 ? 0 : value;
  }
  return plain;
}

const NO_NAMES: readonly never[] = [];

/**
 * The hash tells whether a chosen id stands for the same body. Without one it is left to the log
 * (log/format/deferred-hashes.ts).
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
    bodyHash: id === undefined ? "" : hashOf(text),
    bodySize: size,
    type: at(values, AT.type) ?? "other",
    capabilities: at(values, AT.capabilities) ?? NO_NAMES,
    cpu: resources?.cpuMillicores ?? 0,
    memory: resources?.memoryBytes ?? 0,
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
    action: actionName(at(values, AT.action) as string, hasCommand(at(values, AT.params))),
    callback: at(values, AT.callbackUrl) !== undefined,
  };
}

/** Whether a worker that runs commands finds one there: a line that is not blank, or a list of words. */
function hasCommand(params: Readonly<Record<string, unknown>> | undefined): boolean {
  const command = params !== undefined && Object.hasOwn(params, "command") ? params.command : undefined;
  if (typeof command === "string") return command.trim() !== "";
  return Array.isArray(command) && (command[0] ?? "") !== "" && command.every((word) => typeof word === "string");
}

/** A stored body as it was given. */
export const parseStored = (text: string): TaskBody => JSON.parse(text) as TaskBody;

export type AssignedTask = Omit<TaskBody, "id"> & { readonly taskId: string; readonly attempt: number };

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
