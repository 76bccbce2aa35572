/**
 * What a round is planned from, read and checked.
 *
 * A snapshot is plain data from another program: unknown fields are left alone, values that cannot
 * be are refused by the path of their field. What is read is a copy with every default in place, so the plan keeps
 * its own counts and never touches what it was given.
 */

import { finite, name, oneOf, orNull, type Reader, readSection, setOf, text, whole } from "../base/readers.ts";
import { badField } from "../base/refusal.ts";
import { fail, ok } from "../base/result.ts";
import { type FairnessRules, priority, STRATEGIES, type Strategy } from "../config/config.ts";
import { objectOf, orThrow, readAmounts } from "./formulas.ts";

type RoundResources = { readonly cpuMillicores?: number; readonly memoryBytes?: number };
/** A project in a round. */
export type RoundProject = {
  /** Its id. */
  readonly id: string;
  /** A paused project gets nothing. */
  readonly status: "active" | "paused";
  /** Its share among the projects that have work. */
  readonly weight: number;
  /** Tokens it may use in the window; null or absent: no limit. */
  readonly budgetLimit?: number | null;
  /** How many of its tasks run at once. */
  readonly maxConcurrent: number;
};
/** A task in a round. */
export type RoundTask = {
  /** Its id. */
  readonly id: string;
  /** The id of its project. */
  readonly project: string;
  /** Kept for the reader: agents are no level of this round. */
  readonly agent?: string;
  /** `queued` is ready; any other is passed over. */
  readonly status: string;
  /** Lower goes first; 0 if absent. */
  readonly priority?: number;
  /** Its type, for `perType`. */
  readonly type?: string;
  /** When it became runnable, in milliseconds; the oldest goes first. */
  readonly runnableAt?: number;
  /** Tokens it will use; absent if that is unknown. */
  readonly estimatedTokens?: number;
  /** What it needs of its worker. */
  readonly resources?: RoundResources;
  /** What its worker must offer. */
  readonly capabilities?: readonly string[];
  /** The zone it prefers. */
  readonly zone?: string;
};
/** A worker in a round. */
export type RoundWorker = {
  /** Its id. */
  readonly id: string;
  /** Only an idle or busy worker gets tasks. */
  readonly status: "idle" | "busy" | "overloaded" | "draining" | "unreachable";
  /** How many tasks it runs at once; 1 if absent. */
  readonly slots?: number;
  /** How many tasks it runs now; if absent, all its slots while busy, else 0. */
  readonly inFlight?: number;
  /** What is free now; absent is unlimited. */
  readonly resources?: RoundResources;
  /** What it offers. */
  readonly capabilities?: readonly string[];
  /** The zone it is in. */
  readonly zone?: string;
};
type Amounts = Readonly<Record<string, number>>;
/** What a round is planned from. */
export type RoundSnapshot = {
  /** The instant of the round, in milliseconds. */
  readonly now: number;
  /** All projects, in the order that settles ties. */
  readonly projects: readonly RoundProject[];
  /** All tasks, in the order that settles ties. */
  readonly tasks: readonly RoundTask[];
  /** All workers, in the order that settles ties. */
  readonly workers: readonly RoundWorker[];
  /** By project: tokens in the window. */
  readonly usage?: Amounts;
  /** By project: attempts running. */
  readonly active?: Amounts;
  /** By project: tasks started in the window. */
  readonly started?: Amounts;
  /** By project: tasks completed in the window. */
  readonly completed?: Amounts;
  /** Tokens that all projects may use together; null or absent: no limit. */
  readonly globalBudget?: number | null;
  /** Absent: the sum of `usage`. */
  readonly globalUsed?: number;
};
/** The rules of a round. */
export type RoundPolicy = {
  /** Whether a start is charged before the next is chosen; `estimate` if absent. */
  readonly charge?: "estimate" | "none";
  /** What counts for the guarantee of one task in the window; `started` if absent. */
  readonly guarantee?: "started" | "completed";
  /** Which of the workers that fit gets a task. */
  readonly strategy?: Strategy;
  /** What a start costs, in tokens. */
  readonly startCost?: number;
  /** The charge of a task without an estimate, in tokens. */
  readonly defaultTokens?: number;
  /** At most so many of a type at once: what the snapshot calls assigned or running, and what this round starts. */
  readonly perType?: Amounts;
};

export type RoundDemand = { readonly cpu: number; readonly memory: number; readonly capabilities: readonly string[] };
export type ReadyTask = RoundDemand & {
  readonly id: string;
  /** Tasks of one shape fit the same workers. */
  readonly shape: string;
  readonly project: string;
  readonly index: number;
  readonly priority: number;
  readonly type: string | null;
  readonly runnableAt: number;
  readonly estimate: number | null;
  readonly zone: string | null;
};
export type PlanWorker = {
  readonly id: string;
  readonly index: number;
  readonly isTaking: boolean;
  readonly slots: number;
  readonly capabilities: ReadonlySet<string>;
  readonly zone: string | null;
  inFlight: number;
  cpu: number;
  memory: number;
};
export type PlanProject = {
  readonly id: string;
  readonly isActive: boolean;
  readonly weight: number;
  readonly limit: number | null;
  readonly maxConcurrent: number;
  readonly completed: number;
  readonly usage: number;
  /** What this round's starts were charged, for the shares, and what they set aside, for the budgets. */
  charged: number;
  reserved: number;
  active: number;
  started: number;
};
export type RoundPlan = {
  readonly projects: readonly PlanProject[];
  readonly tasks: readonly ReadyTask[];
  readonly workers: readonly PlanWorker[];
  readonly typesRunning: Map<string, number>;
  readonly globalLimit: number | null;
  readonly globalUsed: number;
};

const AMOUNT_MAX = Number.MAX_SAFE_INTEGER;
const LIST_MAX = 1_000_000;
const CAPABILITIES_MAX = 1000;
const amount = finite(0, AMOUNT_MAX);
const instantOf = finite(-AMOUNT_MAX, AMOUNT_MAX);
const id = text(1, 1024);
const capabilities = setOf(text(1, 1024), CAPABILITIES_MAX);

export type ReadPolicy = Required<Omit<RoundPolicy, "perType">> & { readonly perType: ReadonlyMap<string, number> };

export function readPolicy(value: unknown, fairness: FairnessRules): ReadPolicy {
  const { startCost, defaultTokens } = fairness;
  const perType: Reader<ReadonlyMap<string, number>> = (given, field) => {
    const read = readAmounts(given, field);
    return read.ok ? ok(new Map(read.value)) : read;
  };
  const base: ReadPolicy = {
    charge: "estimate",
    guarantee: "started",
    strategy: "least-loaded",
    startCost,
    defaultTokens,
    perType: new Map(),
  };
  const fields = {
    charge: oneOf("estimate", "none"),
    guarantee: oneOf("started", "completed"),
    strategy: oneOf(...STRATEGIES),
    startCost: amount,
    defaultTokens: amount,
    perType,
  };
  return orThrow(readSection<ReadPolicy>(fields, base, value ?? {}, "policy"));
}

export function readSnapshot(value: unknown): RoundPlan {
  const given = objectOf(value, "snapshot");
  const now = orThrow(instantOf(given.now, "now"));
  const usage = tableOf(given.usage, "usage");
  const active = tableOf(given.active, "active");
  const started = tableOf(given.started, "started");
  const completed = tableOf(given.completed, "completed");
  const projects = listOf(given.projects, "projects", readProject).map((project) => ({
    ...project,
    usage: usage.get(project.id) ?? 0,
    charged: 0,
    reserved: 0,
    active: active.get(project.id) ?? 0,
    started: started.get(project.id) ?? 0,
    completed: completed.get(project.id) ?? 0,
  }));
  const known = new Set(projects.map((project) => project.id));
  const all = listOf(given.tasks, "tasks", (row, index) => readTask(row, { index, now, known }));
  const sum = [...usage.values()].reduce((total, tokens) => total + tokens, 0);
  return {
    projects,
    tasks: all.filter((task) => task.status === "queued"),
    workers: listOf(given.workers, "workers", readWorker),
    typesRunning: countTypes(all),
    globalLimit: given.globalBudget === undefined ? null : orThrow(orNull(amount)(given.globalBudget, "globalBudget")),
    globalUsed: given.globalUsed === undefined ? sum : orThrow(amount(given.globalUsed, "globalUsed")),
  };
}

function tableOf(value: unknown, field: string): ReadonlyMap<string, number> {
  return new Map(value === undefined ? [] : orThrow(readAmounts(value, field)));
}

/** How the fields of one row are read: one that must be there, and one with a default. */
type Row = {
  readonly path: string;
  must<Value>(key: string, reader: Reader<Value>): Value;
  may<Value, Default>(key: string, reader: Reader<Value>, absent: Default): Value | Default;
};

function rowOf(value: unknown, path: string): Row {
  const given = objectOf(value, path);
  const must: Row["must"] = (key, reader) => orThrow(reader(given[key], `${path}.${key}`));
  return { path, must, may: (key, reader, absent) => (given[key] === undefined ? absent : must(key, reader)) };
}

/** A list of rows with ids, each id once. */
function listOf<Item extends { readonly id: string }>(
  value: unknown,
  field: string,
  read: (row: Row, index: number) => Item,
): Item[] {
  if (!Array.isArray(value) || value.length > LIST_MAX) {
    return orThrow(fail(badField(field, value, `a list of at most ${LIST_MAX} objects`)));
  }
  const seen = new Set<string>();
  return Array.from(value, (item: unknown, index) => {
    const path = `${field}[${index}]`;
    const row = read(rowOf(item, path), index);
    if (seen.has(row.id)) orThrow(fail(badField(`${path}.id`, row.id, "an id no other row of the list has")));
    seen.add(row.id);
    return row;
  });
}

const readProject = ({
  must,
  may,
}: Row): Pick<PlanProject, "id" | "isActive" | "weight" | "limit" | "maxConcurrent"> => ({
  id: must("id", id),
  isActive: must("status", oneOf("active", "paused")) === "active",
  weight: must("weight", finite(0, AMOUNT_MAX, true)),
  limit: may("budgetLimit", orNull(amount), null),
  maxConcurrent: must("maxConcurrent", whole(0)),
});

function readTask(
  row: Row,
  { index, now, known }: { readonly index: number; readonly now: number; readonly known: ReadonlySet<string> },
): ReadyTask & { readonly status: string } {
  const { path, must, may } = row;
  const project = must("project", id);
  if (!known.has(project)) orThrow(fail(badField(`${path}.project`, project, "the id of a project in the snapshot")));
  may("agent", id, null);
  const needed = may("capabilities", capabilities, []);
  const { cpu, memory } = resourcesOf(row, 0);
  return {
    id: must("id", id),
    project,
    index,
    status: must("status", id),
    priority: may("priority", priority, 0),
    type: may("type", name(), null),
    runnableAt: may("runnableAt", instantOf, now),
    estimate: may("estimatedTokens", amount, null),
    zone: may("zone", id, null),
    capabilities: needed,
    cpu,
    memory,
    shape: JSON.stringify([cpu, memory, ...needed]),
  };
}

function readWorker(row: Row, index: number): PlanWorker {
  const { must, may } = row;
  const status = must("status", oneOf("idle", "busy", "overloaded", "draining", "unreachable"));
  const slots = may("slots", whole(0), 1);
  return {
    id: must("id", id),
    index,
    slots,
    isTaking: status === "idle" || status === "busy",
    inFlight: may("inFlight", whole(0), status === "busy" ? slots : 0),
    capabilities: new Set(may("capabilities", capabilities, [])),
    zone: may("zone", id, null),
    ...resourcesOf(row, Number.POSITIVE_INFINITY),
  };
}

function resourcesOf({ path, may }: Row, absent: number): { cpu: number; memory: number } {
  const given = may("resources", ok, {});
  const resources = rowOf(given, `${path}.resources`);
  return { cpu: resources.may("cpuMillicores", amount, absent), memory: resources.may("memoryBytes", amount, absent) };
}

function countTypes(tasks: readonly { readonly status: string; readonly type: string | null }[]): Map<string, number> {
  const running = new Map<string, number>();
  for (const { status, type } of tasks) {
    if (type === null || (status !== "assigned" && status !== "running")) continue;
    running.set(type, (running.get(type) ?? 0) + 1);
  }
  return running;
}
