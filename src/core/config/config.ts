/**
 * Every knob, its default and its limits.
 *
 * A config is read as a whole and over the defaults: what is absent has its default, what is unknown
 * or out of bounds is refused by name, and nothing changes then. Spans are whole milliseconds from
 * here on. The effective config is itself an event in the log, so that a replay decides under the
 * rules of its day. Zero is never "unset": where nothing is meant, the value is null.
 */
import {
  type Fields,
  finite,
  flag,
  isRecord,
  join,
  NAMED_IN_WORDS,
  name,
  oneOf,
  orNull,
  type Reader,
  readSection,
  section,
  sectionInWords,
  size,
  span,
  text,
  whole,
} from "../base/readers.ts";
import { badField, type Refusal } from "../base/refusal.ts";
import { fail, ok, type Result } from "../base/result.ts";
import { DEFAULT_GATE_SETTINGS, type GateSettings } from "../gate/settings.ts";
import { DEFAULT_FILE_RULES, type FileRules, readFileRules } from "./file-rules.ts";
import { allFilled, filled } from "./filled.ts";

/** The names of all strategies of placement. */
export const STRATEGIES = ["least-loaded", "round-robin", "random", "affinity", "best-fit"] as const;
/** Which of the workers that fit gets a task. */
export type Strategy = (typeof STRATEGIES)[number];

/** The score of a task. */
export type PriorityRules = {
  /** The base score of each type; null takes one out. */
  readonly base: Readonly<Record<string, number>>;
  /** What each minute of waiting adds. */
  readonly agePerMinute: number;
  /** What waiting adds at most. */
  readonly ageMax: number;
  /** What each ancestor adds. */
  readonly depthBoost: number;
  /** What each further iteration takes. */
  readonly retryPenalty: number;
  /** What iterations take at most. */
  readonly retryMax: number;
  /** Who waits so long goes first in its queue. */
  readonly starvationAfter: number;
};
/** Whose turn it is. */
export type FairnessRules = {
  /** How projects take turns. */
  readonly rule: "level" | "deficit";
  /** Whether the agents of a project take turns. */
  readonly agents: "fair" | "none";
  /** How fast what a project was charged is forgotten. */
  readonly halfLife: number;
  /** What a start costs, in tokens. */
  readonly startCost: number;
  /** The charge of a task nobody knows. */
  readonly defaultTokens: number;
  /** For the deficit rule: the window of the shares. */
  readonly window: number;
};
/** Which worker. */
export type PlacementRules = {
  /** Which of the workers that fit gets a task. */
  readonly strategy: Strategy;
  /** Affinity as the first tie-break of the others. */
  readonly preferLocality: boolean;
  /** Tasks a worker may hold beyond its slots. */
  readonly maxQueuePerWorker: number;
  /** How long a preferred busy worker is waited for. */
  readonly affinityWait: number;
  /** When a task whose tab nobody owns fails. */
  readonly unresolvedAfter: number;
};
/** When callers are slowed down or turned away. */
export type BackpressureRules = {
  /** Tasks a worker is good for; null: not counted. */
  readonly perWorker: number | null;
  /** Usage from which tasks are refused. */
  readonly rejectThreshold: number;
  /** Usage above which callers are asked to slow down. */
  readonly throttleAt: number;
  /** Whether tasks are taken with no worker there. */
  readonly acceptWithoutWorkers: boolean;
};
/** What runs next, and where. */
export type SchedulerRules = {
  /** Running tasks, whole fleet. */
  readonly maxInFlight: number;
  /** Running tasks of one agent, over all its projects. */
  readonly maxPerAgentInFlight: number;
  /** Waiting and queued tasks, whole fleet. */
  readonly maxQueue: number;
  /** Waiting and queued tasks of one agent, over all its projects. */
  readonly maxPerAgent: number;
  /** Tasks in one batch. */
  readonly maxBatch: number;
  /** How long a task that is done or was cancelled is kept at hand. */
  readonly resultTtl: number;
  /** How many of those are kept at hand. */
  readonly resultMax: number;
  /** How long a task that failed or was skipped is kept at hand, and can run again. */
  readonly failedTtl: number;
  /** How many of those are kept at hand. */
  readonly failedMax: number;
  /** How long a plan that has ended is known, with the records of its tasks. */
  readonly planTtl: number;
  /** How many plans are known. */
  readonly plansMax: number;
  /** How long the id of an ended task stays taken. */
  readonly remember: number;
  /** Running tasks of one type; null takes a limit out. */
  readonly perType: Readonly<Record<string, number>>;
  /** The express lane. */
  readonly critical: {
    /** Attempts at once that came by the express lane. */
    readonly maxInFlight: number;
  };
  /** The score of a task. */
  readonly priority: PriorityRules;
  /** Whose turn it is. */
  readonly fairness: FairnessRules;
  /** Which worker. */
  readonly placement: PlacementRules;
  /** When callers are slowed down or turned away. */
  readonly backpressure: BackpressureRules;
  /** Another attempt. */
  readonly retry: {
    /** The rest after the first failure; it doubles. */
    readonly base: number;
    /** The longest rest; at least base. */
    readonly max: number;
    /** Attempts lost by no fault of their task. */
    readonly maxLosses: number;
    /** How often a worker may give a task back. */
    readonly maxRequeues: number;
  };
};
/** A token budget. */
export type BudgetRules = {
  /** Tokens that may be used within the window; null: no limit. */
  readonly limit: number | null;
  /** How long what was used counts, in milliseconds. */
  readonly window: number;
};
/** The settings of a project. */
export type ProjectSettings = {
  /** Its share among the projects that have work. */
  readonly weight: number;
  /** How many of its tasks run at once. */
  readonly maxConcurrent: number;
  /** A token budget. */
  readonly budget: BudgetRules;
  /** The most urgent its tasks and calls may be; critical opens the express lane. */
  readonly maxPriority: number;
  /** The gate of tasks that name none. */
  readonly provider: string | null;
  /** What it may store in a minute; null: as much as it likes. */
  readonly bytesPerMinute: number | null;
};
/** Who executes. */
type WorkerRules = {
  /** A worker silent for so long is given up. */
  readonly lease: number;
  /** Worktrees an exec worker keeps at most. */
  readonly maxWorktrees: number;
  /** How long a task that must stop may take to end. */
  readonly killGrace: number;
  /** How often missing input artifacts are looked for. */
  readonly artifactPoll: number;
};
/** The files that tasks wait for. */
type ArtifactRules = {
  /** The directory that input artifacts lie under; null: where the process runs. */
  readonly root: string | null;
  /** Whether an input artifact may be any path. */
  readonly anywhere: boolean;
};
/** Where everything is remembered. */
type LogRules = {
  /** Events between two snapshots. */
  readonly snapshotEvery: number;
  /** How long events are kept. */
  readonly retain: number;
  /** A clock that jumps ahead further is believed after a minute. */
  readonly maxClockJump: number;
  /** Beyond so many bytes no more work is taken in; null: as long as there is room. */
  readonly maxBytes: number | null;
  /** How much of the end may be unsigned. */
  readonly signEvery: {
    /** So many events may be unsigned. */
    readonly events: number;
    /** And so many milliseconds from the first of them to the last. */
    readonly time: number;
  };
};
/** Every rule in force. Spans are whole milliseconds. */
export type Config = {
  /** What runs next, and where. */
  readonly scheduler: SchedulerRules;
  /** The token budget of all projects together. */
  readonly budget: BudgetRules;
  /** Who pays; each by its name. */
  readonly projects: {
    /** Whether a project nobody registered is created. */
    readonly autoCreate: boolean;
    /** What one has that says nothing else. */
    readonly default: ProjectSettings;
    /** Each by its name. */
    readonly named: Readonly<Record<string, ProjectSettings>>;
  };
  /** Provider accounts and other scarce things; each by its name, such as anthropic/default. */
  readonly gates: {
    /** The settings of gates without settings of their own. */
    readonly default: GateSettings;
    /** The settings of gates by name. */
    readonly named: Readonly<Record<string, GateSettings>>;
  };
  /** Who executes. */
  readonly workers: WorkerRules;
  /** The files that tasks wait for. */
  readonly artifacts: ArtifactRules;
  /** The files that tasks leave. */
  readonly files: FileRules;
  /** Where everything is remembered. */
  readonly log: LogRules;
};

const MIB = 1_048_576;
/** Bounds of a bound on bytes. */
export const BYTES_MIN = 1024;
export const BYTES_MAX: number = 1024 * 1024 * 1024 * MIB;
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** The config where nothing is given. */
export const DEFAULT_CONFIG: Config = {
  scheduler: {
    maxInFlight: 50,
    maxPerAgentInFlight: 10,
    maxQueue: 100_000,
    maxPerAgent: 10_000,
    maxBatch: 50,
    resultTtl: 300_000,
    resultMax: 100_000,
    failedTtl: 86_400_000,
    failedMax: 10_000,
    planTtl: 7 * DAY,
    plansMax: 1000,
    remember: DAY,
    perType: { plan: 2, spec: 5, phase: 20, code: 50 },
    critical: { maxInFlight: 5 },
    priority: {
      base: { plan: 40, spec: 60, phase: 80, code: 100, ralph: 100, other: 100 },
      agePerMinute: 1,
      ageMax: 50,
      depthBoost: 10,
      retryPenalty: 5,
      retryMax: 30,
      starvationAfter: HOUR,
    },
    fairness: {
      rule: "level",
      agents: "fair",
      halfLife: 10 * MINUTE,
      startCost: 1000,
      defaultTokens: 10_000,
      window: DAY,
    },
    placement: {
      strategy: "least-loaded",
      preferLocality: false,
      maxQueuePerWorker: 0,
      affinityWait: 120_000,
      unresolvedAfter: 60_000,
    },
    backpressure: { perWorker: null, rejectThreshold: 1, throttleAt: 0.5, acceptWithoutWorkers: true },
    retry: { base: 1000, max: 5 * MINUTE, maxLosses: 5, maxRequeues: 100 },
  },
  budget: { limit: null, window: DAY },
  projects: {
    autoCreate: true,
    default: {
      weight: 1,
      maxConcurrent: 50,
      budget: { limit: null, window: DAY },
      maxPriority: -100,
      provider: null,
      bytesPerMinute: 256 * MIB,
    },
    named: {},
  },
  gates: { default: DEFAULT_GATE_SETTINGS, named: {} },
  workers: { lease: 10_000, maxWorktrees: 50, killGrace: 10_000, artifactPoll: 1000 },
  artifacts: { root: null, anywhere: false },
  files: DEFAULT_FILE_RULES,
  log: {
    snapshotEvery: 500_000,
    retain: 30 * DAY,
    maxClockJump: 5 * MINUTE,
    maxBytes: null,
    signEvery: { events: 10_000, time: MINUTE },
  },
};

const PRIORITY_NAMES: ReadonlyMap<unknown, number> = new Map([
  ["critical", -200],
  ["high", -100],
  ["normal", 0],
  ["low", 100],
]);
const PRIORITY_MAX = 1_000_000_000;
const SCORE_MAX = 1_000_000;
const NAMED_MAX = 10_000;

/** Any whole number, lower is sooner; or one of the four names. */
export const priority: Reader<number> = (value, field) => {
  const named = PRIORITY_NAMES.get(value);
  if (named !== undefined) return ok(named);
  const read = whole(-PRIORITY_MAX, PRIORITY_MAX)(value, field);
  return read.ok ? read : fail(badField(field, value, "critical, high, normal, low or a whole number"));
};

/** An entry of such a table. What every object inherits is none: a type may be called `constructor`. */
export const entryOf = <Value>(entries: Readonly<Record<string, Value>>, key: string): Value | undefined =>
  Object.hasOwn(entries, key) ? entries[key] : undefined;

/** How many of a type may run at once. */
export const typeLimit = (config: Config, type: string): number =>
  entryOf(config.scheduler.perType, type) ?? Number.POSITIVE_INFINITY;

/** A table of numbers by name; null takes an entry out, absent entries keep the base's. */
function table(
  reader: Reader<number>,
  base: Readonly<Record<string, number>>,
): Reader<Readonly<Record<string, number>>> {
  return (value, field) => {
    if (!isRecord(value)) return fail(badField(field, value, "an object of numbers by name"));
    const read = new Map(Object.entries(base));
    for (const key of Object.keys(value)) {
      const named = name()(key, join(field, key));
      if (!named.ok) return named;
      if (value[key] === null) {
        read.delete(key);
        continue;
      }
      const one = reader(value[key], join(field, key));
      if (!one.ok) return one;
      read.set(key, one.value);
    }
    return ok(Object.fromEntries(read));
  };
}

const budgetFields: Fields<BudgetRules> = { limit: orNull(whole(1)), window: span(1000) };
const BUDGET_DEFAULT = DEFAULT_CONFIG.budget;

export function projectFields(base: ProjectSettings): Fields<ProjectSettings> {
  return {
    weight: finite(0, 1_000_000, true),
    maxConcurrent: whole(1),
    budget: section(budgetFields, base.budget),
    maxPriority: priority,
    provider: orNull(name()),
    bytesPerMinute: orNull(size(BYTES_MIN, BYTES_MAX)),
  };
}

function gateFields(base: GateSettings): Fields<GateSettings> {
  return {
    maxConcurrent: whole(1, 1_000_000),
    requests: whole(1),
    windowMs: span(1),
    tokens: section<GateSettings["tokens"]>(
      {
        perMinute: orNull(whole(1)),
        perHour: orNull(whole(1)),
        perDay: orNull(whole(1)),
        kind: oneOf("sliding", "fixed"),
      },
      base.tokens,
    ),
    defaultPriority: oneOf("critical", "high", "normal", "low"),
    agingPerClassMs: span(1),
    permitTtlMs: span(1),
  };
}

const GATE_SPELLINGS: ReadonlyMap<string, string> = new Map([
  ["window", "windowMs"],
  ["agingPerClass", "agingPerClassMs"],
  ["permitTtl", "permitTtlMs"],
]);

/** A gate's section: the file says `window`, `agingPerClass`, `permitTtl`; inside they name their unit. */
function readGate(base: GateSettings): Reader<GateSettings> {
  return (value, field) => {
    if (!isRecord(value)) return fail(badField(field, value, "an object"));
    const respelled: Record<string, unknown> = {};
    for (const key of Object.keys(value)) respelled[GATE_SPELLINGS.get(key) ?? key] = value[key];
    const read = readSection(gateFields(base), base, respelled, field);
    if (read.ok || read.failure.type !== "bad-field") return read;
    const { failure } = read;
    const written = Object.keys(value).find((key) => join(field, GATE_SPELLINGS.get(key) ?? key) === failure.field);
    return written === undefined ? read : fail({ ...failure, field: join(field, written) });
  };
}

const S = DEFAULT_CONFIG.scheduler;
const schedulerFields: Fields<SchedulerRules> = {
  maxInFlight: whole(1),
  maxPerAgentInFlight: whole(1),
  maxQueue: whole(1, 10_000_000),
  maxPerAgent: whole(1, 10_000_000),
  maxBatch: whole(1, 10_000),
  resultTtl: span(1),
  resultMax: whole(1, 5_000_000),
  failedTtl: span(1),
  failedMax: whole(1, 5_000_000),
  planTtl: span(1),
  plansMax: whole(1, 10_000),
  remember: span(1),
  perType: table(whole(1), S.perType),
  critical: section({ maxInFlight: whole(1) }, S.critical),
  priority: section<PriorityRules>(
    {
      base: table(finite(-SCORE_MAX, SCORE_MAX), S.priority.base),
      agePerMinute: finite(0, SCORE_MAX),
      ageMax: finite(0, SCORE_MAX),
      depthBoost: finite(-SCORE_MAX, SCORE_MAX),
      retryPenalty: finite(0, SCORE_MAX),
      retryMax: finite(0, SCORE_MAX),
      starvationAfter: span(1),
    },
    S.priority,
  ),
  fairness: section<FairnessRules>(
    {
      rule: oneOf("level", "deficit"),
      agents: oneOf("fair", "none"),
      halfLife: span(1000),
      startCost: whole(0, 1_000_000_000),
      defaultTokens: whole(0, 1_000_000_000_000),
      window: span(1000),
    },
    S.fairness,
  ),
  placement: section<PlacementRules>(
    {
      strategy: oneOf(...STRATEGIES),
      preferLocality: flag,
      maxQueuePerWorker: whole(0, 1_000_000),
      affinityWait: span(0),
      unresolvedAfter: span(0),
    },
    S.placement,
  ),
  backpressure: section<BackpressureRules>(
    {
      perWorker: orNull(whole(1)),
      rejectThreshold: finite(0, 1_000_000, true),
      throttleAt: finite(0, 1_000_000),
      acceptWithoutWorkers: flag,
    },
    S.backpressure,
  ),
  retry: section(
    { base: span(1), max: span(1), maxLosses: whole(1, 1_000_000), maxRequeues: whole(1, 1_000_000) },
    S.retry,
  ),
};

/** A section whose own fields come first and whose other keys are names: projects and gates. */
function namedSection<Own extends object, Item>(
  own: Fields<Own>,
  base: Own & { readonly default: Item; readonly named: Readonly<Record<string, Item>> },
  readItem: (base: Item) => Reader<Item>,
): Reader<Own & { readonly default: Item; readonly named: Readonly<Record<string, Item>> }> {
  return (value, field) => {
    if (!isRecord(value)) return fail(badField(field, value, NAMED_IN_WORDS));
    if (value.named !== undefined && !isRecord(value.named))
      return fail(badField(`${field}.named`, value.named, NAMED_IN_WORDS));
    const first =
      value.default === undefined ? ok(base.default) : readItem(base.default)(value.default, `${field}.default`);
    if (!first.ok) return first;
    const [mine, entries] = partsOf(value, own);
    const named: [string, Item][] = [];
    for (const [key, given] of entries) {
      const checked = name()(key, `${field}.${key}`);
      if (!checked.ok) return checked;
      const item = readItem(first.value)(given, `${field}.${key}`);
      if (!item.ok) return item;
      named.push([key, item.value]);
    }
    if (named.length > NAMED_MAX) return fail({ type: "too-many", what: `entries in ${field}`, max: NAMED_MAX });
    const rest = readSection(own, base as Own, mine, field);
    return rest.ok ? ok({ ...rest.value, default: first.value, named: Object.fromEntries(named) }) : rest;
  };
}

/**
 * The own fields of such a section, and its entries. An effective config, given back, has its names under `named`, and
 * there every name is one of an entry, also that of an own field.
 */
function partsOf(
  { default: _, named, ...others }: Record<string, unknown>,
  own: object,
): [mine: Record<string, unknown>, entries: [string, unknown][]] {
  const mine = Object.entries(others).filter(([key]) => Object.hasOwn(own, key));
  const rest = Object.entries(others).filter(([key]) => !Object.hasOwn(own, key));
  const entries = [...Object.entries(isRecord(named) ? named : {}), ...rest];
  return [Object.fromEntries(mine), entries.filter(([, given]) => given !== undefined)];
}

const configFields: Fields<Config> = {
  scheduler: section(schedulerFields, DEFAULT_CONFIG.scheduler),
  budget: section(budgetFields, BUDGET_DEFAULT),
  projects: namedSection<{ readonly autoCreate: boolean }, ProjectSettings>(
    { autoCreate: flag },
    DEFAULT_CONFIG.projects,
    (base) => section(projectFields(base), base),
  ),
  gates: namedSection<object, GateSettings>({}, DEFAULT_CONFIG.gates, readGate),
  workers: section<WorkerRules>(
    { lease: span(100), maxWorktrees: whole(1, 100_000), killGrace: span(0), artifactPoll: span(1) },
    DEFAULT_CONFIG.workers,
  ),
  artifacts: section<ArtifactRules>({ root: orNull(text(1, 4096)), anywhere: flag }, DEFAULT_CONFIG.artifacts),
  files: readFileRules,
  log: section<LogRules>(
    {
      snapshotEvery: whole(1),
      retain: span(1000),
      maxClockJump: span(1000),
      maxBytes: orNull(size(BYTES_MIN, BYTES_MAX)),
      signEvery: section({ events: whole(1), time: span(1000) }, DEFAULT_CONFIG.log.signEvery),
    },
    DEFAULT_CONFIG.log,
  ),
};

/** The settings of a project in an older log or snapshot. */
export const completedProject = (settings: ProjectSettings): ProjectSettings =>
  filled(settings, DEFAULT_CONFIG.projects.default);

/** A config of an older log or snapshot, which lacks what was added since, whatever it is. */
export function completed(config: Config): Config {
  const full = filled(config, DEFAULT_CONFIG);
  const { projects, gates } = full;
  // The order of its sections stays: a snapshot made of a restored state has the same bytes.
  return {
    ...full,
    projects: { ...projects, named: allFilled(projects.named, DEFAULT_CONFIG.projects.default) },
    gates: { ...gates, named: allFilled(gates.named, DEFAULT_CONFIG.gates.default) },
  };
}

/** The effective config: the defaults with the given fields over them, checked as a whole. */
export function readConfig(value: unknown): Result<Config, Refusal> {
  const given = value === undefined ? {} : value;
  if (!isRecord(given)) return fail(badField("config", given, sectionInWords(Object.keys(configFields))));
  const read = readSection(configFields, DEFAULT_CONFIG, given, "");
  if (!read.ok) return read;
  const { retry } = read.value.scheduler;
  if (retry.max < retry.base) {
    return fail(badField("scheduler.retry.max", retry.max, `at least scheduler.retry.base (${retry.base} ms)`));
  }
  return read;
}

/** The settings the config gives a project that was not put by hand. */
export function settingsFor(config: Config, id: string): [ProjectSettings, "named" | "default"] {
  const named = entryOf(config.projects.named, id);
  return named === undefined ? [config.projects.default, "default"] : [named, "named"];
}

/** The settings the config gives a gate. */
export function gateSettings(config: Config, id: string): GateSettings {
  return entryOf(config.gates.named, id) ?? config.gates.default;
}
