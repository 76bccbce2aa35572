/**
 * A plan is put: read, held against what the state has of it, and brought about, as a whole or not at all.
 *
 * Everything is looked at before the first command is given: the document with all its mistakes, every body, the room
 * for all of them. Then the plan is known first and its tasks come in one go, what others need before them. The same
 * plan put once more finds what is there and adds what is missing, so whatever a crash has cut short is made whole.
 */
import { resolve } from "node:path";
import type { AgentId, ProjectId, TaskId } from "../../core/base/index.ts";
import { items } from "../../core/collections/index.ts";
import { decide } from "../../core/index.ts";
import { groupOfPlan, refusalForNew } from "../../core/lifecycle/index.ts";
import { hasEnded, type State } from "../../core/model/index.ts";
import {
  type Fate,
  type Found,
  fatesOf,
  type Known,
  type Matched,
  matchTasks,
  type PlanDefaults,
  type Plan as PlanFile,
  type PlanTask,
  readPlanValue,
  shownPath,
  withNeeds,
} from "../../plan/index.ts";
import { canonical, hashOfText } from "../base/canonical-json.ts";
import { accepted, badInput, DroverError, reading, refused } from "../base/drover-error.ts";
import { type ReadTask, readTaskBody } from "../tasks/task-body.ts";
import type { StorageGuard } from "../writer/storage-guard.ts";
import type { Writer } from "../writer/writer.ts";
import { planTaskBody } from "./plan-body.ts";

export type PutOptions = {
  readonly only?: readonly string[];
  readonly retryFailed?: boolean;
  readonly failFast?: boolean;
  readonly fresh?: boolean;
  readonly directory?: string;
  readonly unsaid?: PlanDefaults;
  readonly adopt?: boolean;
};
/** What putting it came to, in numbers of tasks; and what the caller should know. */
export type PutCounts = {
  readonly submitted: number;
  readonly retried: number;
  readonly kept: number;
  readonly cancelled: number;
  readonly warnings: readonly string[];
};

const PROBLEMS_MAX = 50;
/** A run of a plan takes ids that no task has; so often is another number tried. */
const RUNS_MAX = 10_000;
const NO_PART = "it is no part of the plan any more";

/** Decided and applied when it returns; durable later. */
export function putPlan(
  { writer, storage }: { readonly writer: Writer; readonly storage: Pick<StorageGuard, "room"> },
  id: string,
  document: unknown,
  options: PutOptions,
): PutCounts {
  const { state } = writer;
  const plan = readDocument(id, document, options.unsaid);
  const tasks = options.only === undefined ? plan.tasks : chosen(plan, options.only);
  const directory = options.directory === undefined ? null : resolve(options.directory);
  const { run, matched, strays } = match(state, id, tasks, options);
  const fates = fatesOf(matched, {
    retriesFailed: options.retryFailed ?? true,
    reasonOf: (task) => state.tasks.get(task as TaskId)?.end?.error ?? null,
  });
  const bodies = matched
    .filter((one) => fates.get(one.id) === "submit")
    .map((one) => readTaskBody(planTaskBody(one, id, directory)));
  checkRoom(writer, storage, bodies);
  const text = reading(document, "", () => canonical(document, ""));
  const facts = { directory, run, failsFast: options.failFast ?? false, project: plan.project as ProjectId };
  const entries = matched.map(({ task, id: taskId }) => ({ name: task.name, id: taskId as TaskId }));
  const adopted = matched.filter((one) => isAdopted(state, id, one)).length;
  const isPaused = state.plans.get(id)?.paused === "asked";
  const stored = { documentHash: hashOfText(text), documentSize: Buffer.byteLength(text) };
  const put = {
    type: "put-plan",
    plan: id,
    ...facts,
    tasks: entries,
    adopted,
    ...stored,
    adds: addsOf(bodies),
  } as const;
  accepted(writer.execute(put, text));
  const cancelled = carryOut(writer, id, strays, matched, fates, bodies);
  return {
    ...countsOf(fates),
    cancelled,
    warnings: [
      ...(options.adopt === true ? [] : warningsFor(plan)),
      ...(isPaused ? [`the plan ${id} is paused; resume it to go on`] : []),
    ],
  };
}

function countsOf(fates: ReadonlyMap<string, Fate>): Pick<PutCounts, "submitted" | "retried" | "kept"> {
  const count = (wanted: Fate): number => [...fates.values()].filter((fate) => fate === wanted).length;
  return { submitted: count("submit"), retried: count("retry"), kept: count("keep") };
}

/** One command after the other, without a pause: nothing starts in between. Answers how many were cancelled. */
function carryOut(
  writer: Writer,
  id: string,
  strays: readonly TaskId[],
  matched: readonly Matched[],
  fates: ReadonlyMap<string, Fate>,
  bodies: readonly ReadTask[],
): number {
  // Those that wait for others first, or the end of one would be the end of the next before it is its turn.
  for (const task of strays) accepted(writer.execute({ type: "cancel-task", task, reason: NO_PART }));
  let next = 0;
  for (const one of matched) {
    const fate = fates.get(one.id);
    if (fate === "retry") accepted(writer.execute({ type: "retry-task", task: one.id as TaskId }));
    if (fate !== "submit") continue;
    const { submission, text } = bodies[next++] as ReadTask;
    const command = {
      type: "submit-task",
      submission,
      group: groupOfPlan(id),
      ofRunning: null,
      counted: true,
    } as const;
    accepted(writer.execute(command, text));
  }
  return strays.length;
}

// ----------------------------------------------------------------- the document

function readDocument(id: string, document: unknown, unsaid: PlanDefaults = {}): PlanFile {
  const read = reading(document, "", () => readPlanValue(document, id, unsaid));
  if (!read.ok) throw badPlan(read.failure);
  if (read.value.name !== id)
    throw badInput("name", read.value.name, `${id}, by which it is put, or absent in the document`);
  return read.value;
}

function badPlan(found: readonly Found[]): DroverError {
  const shown = found.slice(0, PROBLEMS_MAX).map(({ message, path }) => ({ path: shownPath(path), message }));
  const [first = { path: "", message: "" }] = shown;
  const more = found.length === 1 ? "" : ` (and ${found.length - 1} more: see details.problems)`;
  const where = first.path === "" || first.message.startsWith(first.path) ? "" : `${first.path}: `;
  return new DroverError("bad_request", `the plan cannot be run: ${where}${first.message}${more}`, {
    details: { problems: shown, count: found.length },
  });
}

/** The named tasks, by their own name or that of all their values, and what they need. */
function chosen({ tasks }: PlanFile, names: readonly string[]): PlanTask[] {
  const wanted = names.flatMap((name, index) => {
    const found = tasks.filter((task) => task.name === name || task.definition === name);
    if (found.length === 0) throw badInput(`only[${index}]`, name, "the name of a task of the plan");
    return found.map((task) => task.name);
  });
  return withNeeds(tasks, wanted);
}

function warningsFor({ unused }: PlanFile): string[] {
  if (unused.length === 0) return [];
  const many = unused.length === 1 ? "section is" : "sections are";
  return [`the ${many} for running alone, and not used here: ${unused.join(", ")}; the server has its own`];
}

// ------------------------------------------------------------- what there is of it

type Match = { readonly run: number; readonly matched: readonly Matched[]; readonly strays: readonly TaskId[] };

function match(state: State, id: string, tasks: readonly PlanTask[], options: PutOptions): Match {
  const plan = state.plans.get(id);
  const known = [...knownOf(state, id)];
  const legacy = options.adopt === true ? [...legacyIn(state, id)] : [];
  const first = plan === undefined ? 1 : plan.run + (options.fresh === true ? 1 : 0);
  const mayBeKnown = plan !== undefined && options.fresh !== true;
  for (let run = first; run < first + RUNS_MAX; run++) {
    const prefix = run === 1 ? `${id}.` : `${id}.${run}.`;
    const own = mayBeKnown ? known.filter((task) => task.id.startsWith(prefix)) : [];
    const done = options.fresh === true ? [] : legacy.filter(({ phase }) => phase === "done");
    const { matched } = matchTasks(tasks, [...done, ...own], prefix);
    const mine = new Set(matched.map((one) => one.id));
    const strays = [...known, ...legacy].filter((task) => !mine.has(task.id) && !hasEnded(task as never));
    if (mayBeKnown || matched.every((one) => one.phase !== null || isFree(state, one.id)))
      return { run, matched, strays: strays.map((task) => task.id as TaskId).reverse() };
  }
  throw refused({ type: "too-many", what: `runs of the plan ${id}`, max: RUNS_MAX, remedy: "choose another name" });
}

const isFree = ({ tasks, tombstones }: State, id: string): boolean =>
  !tasks.has(id as TaskId) && !tombstones.has(id as TaskId);

/** In the order of submission. */
function* knownOf({ groups }: State, id: string): Generator<Known> {
  const group = groups.get(groupOfPlan(id));
  if (group !== undefined) for (const task of items(group.tasks)) yield { id: task.id, phase: task.phase };
}

/** Tasks of a log that has one plan alone, from before plans had groups. */
function* legacyIn({ tasks, tombstones }: State, plan: string): Generator<Known> {
  const group = groupOfPlan(plan);
  for (const { id, phase } of tombstones.values()) yield { id, phase };
  for (const { id, phase, extra } of tasks.values()) if (extra?.group?.group.id !== group) yield { id, phase };
}

const isAdopted = ({ tasks }: State, plan: string, { id, phase }: Matched): boolean =>
  phase === "done" && tasks.get(id as TaskId)?.extra?.group?.group.id !== groupOfPlan(plan);

// ------------------------------------------------------------------ room for all

/** Throws what the first of them that cannot be let in would be refused for. What they need is not there yet. */
function checkRoom(writer: Writer, storage: Pick<StorageGuard, "room">, bodies: readonly ReadTask[]): void {
  const { state } = writer;
  const now = writer.now();
  const bytes = new Map<string, { readonly keeper: ReadTask["submission"]; total: number }>();
  for (const { submission } of bodies) {
    const alone = { ...submission, needs: [], parent: null };
    accepted(decide(state, { type: "submit-task", submission: alone }, now));
    const key = `${submission.project}\n${submission.agent}`;
    const entry = bytes.get(key) ?? { keeper: submission, total: 0 };
    entry.total += submission.bodySize;
    bytes.set(key, entry);
  }
  const crowded = refusalForNew(
    state,
    bodies.map(({ submission }) => submission),
  );
  if (crowded !== null) throw refused(crowded);
  for (const { keeper, total } of bytes.values()) {
    const full = storage.room(keeper, total, now);
    if (full !== null) throw refused(full);
  }
}

function addsOf(bodies: readonly ReadTask[]): [agent: AgentId, count: number][] {
  const counts = new Map<AgentId, number>();
  for (const { submission } of bodies) counts.set(submission.agent, (counts.get(submission.agent) ?? 0) + 1);
  return [...counts];
}
