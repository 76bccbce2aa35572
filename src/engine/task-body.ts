/**
 * A task as people write it, read once.
 *
 * Every field is checked here and named in the refusal; past this file nothing is unknown. What decides
 * when and where the task runs becomes the core's `Submission`; the body as a whole, with payload and
 * params, is kept beside the log under its hash and never enters the core.
 */
import { agentId, type Instant, projectId, taskId } from "../core/brand.ts";
import type { Submission } from "../core/commands.ts";
import { priority } from "../core/config.ts";
import { badField, type Refusal } from "../core/refusal.ts";
import { fail, invariant, ok } from "../core/result.ts";
import {
  type Fields,
  finite,
  isRecord,
  name,
  oneOf,
  type Reader,
  section,
  sectionInWords,
  setOf,
  text,
  whole,
} from "../core/shape-of-input.ts";
import {
  canonical,
  escapedUntilNow,
  isPlainObject,
  type Payload,
  payloadOfText,
  type SpelledKey,
  spelledKey,
  withField,
} from "./canonical.ts";
import { badInput, refused } from "./drover-error.ts";

export const BODY_BYTES_MAX: number = 1024 * 1024;
const INSTANT_MAX = 253_402_300_799_999;
const RFC_3339 = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/;

/** What a caller may say of a task. Instants are RFC 3339 text or whole milliseconds. */
export type TaskBody = {
  readonly agentId: string;
  readonly action: string;
  readonly id?: string;
  readonly project?: string;
  readonly type?: string;
  readonly tabId?: string;
  readonly ref?: string;
  readonly selector?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly payload?: unknown;
  readonly priority?: number | "critical" | "high" | "normal" | "low";
  readonly deadline?: string | number;
  readonly notBefore?: string | number;
  readonly parent?: string;
  readonly needs?: readonly string[];
  readonly inputArtifact?: string;
  readonly resources?: { readonly cpuMillicores?: number; readonly memoryBytes?: number };
  readonly capabilities?: readonly string[];
  readonly locks?: readonly string[];
  readonly zone?: string;
  readonly provider?: string;
  readonly estimatedTokens?: number;
  readonly iteration?: number;
  readonly maxAttempts?: number;
  readonly timeoutMs?: number;
  readonly onDependencyFailure?: "skip" | "run";
  /** Where to post the task when it has ended. */
  readonly callbackUrl?: string;
};

/** What a schedule submits: under an id that is made of schedule and instant, and that no caller may take first. */
export class ScheduledBody {
  readonly body: TaskBody;

  constructor(body: TaskBody) {
    this.body = body;
  }
}
const SCHEDULED_ID = /^sch_.+_\d{8}T\d{6}Z$/;

export type ReadTask = { readonly submission: Submission; readonly text: string };

export const instantField: Reader<number> = (value, field) => {
  const at = typeof value === "string" && RFC_3339.test(value) ? Date.parse(value) : value;
  return typeof at === "number" && Number.isSafeInteger(at) && at >= 0 && at <= INSTANT_MAX
    ? ok(at)
    : fail(
        badField(
          field,
          value,
          "an instant: RFC 3339 text such as 2026-01-31T12:00:00Z, or whole milliseconds since 1970",
        ),
      );
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
  capabilities: setOf(name(), 64),
  locks: setOf(name(), 64),
  zone: name(),
  provider: name(),
  estimatedTokens: finite(0, 1_000_000_000_000),
  iteration: whole(0, 1_000_000),
  maxAttempts: whole(1, 1_000_000),
  timeoutMs: whole(1, 31_556_952_000_000),
  onDependencyFailure: oneOf("skip", "run"),
  callbackUrl: text(1, 2048),
} satisfies Fields<Known>;
type Parsed = { [Key in keyof typeof FIELDS]?: (typeof FIELDS)[Key] extends Reader<infer Value> ? Value : never };

/** The fields in the order of the text. A set of them is a number with the bits of those that are in it. */
const IN_ORDER = (Object.keys(FIELDS) as (keyof Parsed)[]).sort();
invariant(IN_ORDER.length < 32, "every field of a body has a bit of its own");
const KEYS = IN_ORDER.map((field) => spelledKey(field) as SpelledKey);
type Field = { readonly reader: Reader<unknown>; readonly bit: number };
const FIELD_OF: ReadonlyMap<string, Field> = new Map(
  IN_ORDER.map((field, rank) => [field, { reader: FIELDS[field], bit: 1 << rank }]),
);
/** Has all fields, so that what is read into its copies changes no shape. */
const NOTHING: Parsed = Object.fromEntries(IN_ORDER.map((field) => [field, undefined])) as Parsed;

export function readTaskBody(given: unknown): ReadTask {
  const body = given instanceof ScheduledBody ? given.body : given;
  if (!isRecord(body)) throw badInput("(body)", body, sectionInWords(Object.keys(FIELDS)));
  const parsed: Parsed = { ...NOTHING };
  const said = readFields(body, parsed);
  if (typeof said !== "number") throw refused(said);
  if (parsed.agentId === undefined) throw badInput("agentId", undefined, "the name of the agent that submits");
  if (parsed.action === undefined) throw badInput("action", undefined, "what is to be done, as text");
  if (parsed.id !== undefined && body === given && SCHEDULED_ID.test(parsed.id))
    throw badInput("id", parsed.id, "an id not of the form sch_<schedule>_<instant>, which schedules make themselves");
  const since = escapedUntilNow();
  const text = isPlainObject(body) ? textOf(body, said, NO_FIELDS, 0) : null;
  const payload = payloadOfText(text ?? canonical(body, ""), since);
  if (payload.size > BODY_BYTES_MAX) {
    throw badInput("(body)", `${payload.size} bytes`, `at most ${BODY_BYTES_MAX} bytes; put more into an artifact`);
  }
  return { submission: toSubmission(parsed, parsed.agentId, payload), text: payload.text };
}

/** What all items of a batch have in common, as fields of a body; an item may say otherwise, but not of the agent. */
type SharedFields = Pick<TaskBody, "agentId" | "project" | "callbackUrl">;
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
  const shared = { ...said, agentId };
  const base: Parsed = { ...NOTHING };
  const bits = readFields(shared, base);
  return (item) => {
    const parsed: Parsed = { ...base };
    const own = readFields(item, parsed);
    const since = escapedUntilNow();
    const isGood = typeof bits === "number" && typeof own === "number" && parsed.action !== undefined;
    const text =
      isGood && (parsed.id === undefined || !SCHEDULED_ID.test(parsed.id)) ? textOf(item, own, shared, bits) : null;
    const payload = text === null ? null : payloadOfText(text, since);
    if (payload === null || payload.size > BODY_BYTES_MAX) return readTaskBody({ ...said, ...item, agentId });
    return { submission: toSubmission(parsed, agentId, payload), text: payload.text };
  };
}

type Body = Readonly<Record<string, unknown>>;
const NO_FIELDS: Body = {};

/** Reads each field into its place; the set of those that were given, or what is wrong with the first bad one. */
function readFields(body: Body, parsed: Parsed): number | Refusal {
  let given = 0;
  for (const key of Object.keys(body)) {
    const field = FIELD_OF.get(key);
    if (field === undefined) return { type: "unknown-field", field: key, known: Object.keys(FIELDS) };
    given |= field.bit;
    const value = body[key];
    const read = value === undefined ? UNSAID : field.reader(value, key);
    if (!read.ok) return read.failure;
    (parsed as Record<string, unknown>)[key] = read.value;
  }
  return given;
}

const UNSAID = ok(undefined);

/** The canonical text of a body over another, whose fields count where it has none; null if it has no such text. */
function textOf(body: Body, given: number, under: Body, givenUnder: number): string | null {
  let text: string | null = "";
  for (let left = given | givenUnder; left !== 0; left &= left - 1) {
    const rank = 31 - Math.clz32(left & -left);
    const field = IN_ORDER[rank] as string;
    const value = ((given >>> rank) & 1) === 1 ? body[field] : under[field];
    if (value === undefined) continue;
    text = withField(text, KEYS[rank] as SpelledKey, value, 1);
    if (text === null) return null;
  }
  return `${text}}`;
}

const NO_NAMES: readonly never[] = [];

function toSubmission(parsed: Parsed, agent: string, payload: Payload): Submission {
  const tab = parsed.tabId ?? null;
  return {
    id: parsed.id === undefined ? null : taskId(parsed.id),
    project: projectId(parsed.project ?? "default"),
    agent: agentId(agent),
    bodyHash: payload.hash,
    bodySize: payload.size,
    type: parsed.type ?? "other",
    capabilities: parsed.capabilities ?? NO_NAMES,
    cpu: parsed.resources?.cpuMillicores ?? 0,
    memory: parsed.resources?.memoryBytes ?? 0,
    provider: parsed.provider ?? null,
    locks: parsed.locks ?? NO_NAMES,
    zone: parsed.zone ?? null,
    tab,
    priority: parsed.priority ?? null,
    parent: parsed.parent === undefined ? null : taskId(parsed.parent),
    needs: parsed.needs === undefined ? NO_NAMES : parsed.needs.map(taskId),
    artifact: parsed.inputArtifact ?? null,
    artifactReady: false,
    notBefore: (parsed.notBefore ?? null) as Instant | null,
    deadline: (parsed.deadline ?? null) as Instant | null,
    estimatedTokens: parsed.estimatedTokens === undefined ? null : Math.ceil(parsed.estimatedTokens),
    iteration: parsed.iteration ?? 1,
    maxAttempts: parsed.maxAttempts ?? null,
    timeoutMs: parsed.timeoutMs ?? null,
    onDependencyFailure: parsed.onDependencyFailure ?? "skip",
    callback: parsed.callbackUrl !== undefined,
  };
}

/** A stored body as it was given. */
export const parseStored = (text: string): TaskBody => JSON.parse(text) as TaskBody;

export type AssignedTask = Omit<TaskBody, "id"> & { readonly taskId: string; readonly attempt: number };

/** A stored body as its handler sees it: without the caller's id, and with the names of task and attempt. */
export function assignedTask(text: string, taskId: string, attempt: number): AssignedTask {
  const body = parseStored(text) as { -readonly [Field in keyof AssignedTask]: AssignedTask[Field] } & { id?: string };
  if (body.id !== undefined) {
    const { id: _, ...rest } = body;
    return { ...rest, taskId, attempt };
  }
  // It was parsed for this attempt alone, so it may be added to.
  body.taskId = taskId;
  body.attempt = attempt;
  return body;
}
