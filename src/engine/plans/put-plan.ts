/**
 * A plan is put: read, held against what the state has of it, and brought about, as a whole or not at all.
 *
 * Everything is looked at before the first command is given: the document with all its mistakes, every body, the room
 * for all of them. Then the plan is known first and its tasks come in one go, what others need before them. The same
 * plan put once more finds what is there and adds what is missing, so whatever a crash has cut short is made whole.
 */
import { isAbsolute } from "node:path";
import type { AgentId, ProjectId, TaskId } from "../../core/base/index.ts";
import { groupOfPlan } from "../../core/lifecycle/index.ts";
import type { CommandOf, Decision, Plan, State, Task } from "../../core/model/index.ts";
import {
  type Found,
  hasEnded,
  hashTasks,
  type Known,
  type Matched,
  matchHashed,
  type PlanDefaults,
  type Plan as PlanFile,
  type PlanTask,
  readPlanValue,
  shownPath,
  withNeeds,
} from "../../plan/index.ts";
import type { PlanPut } from "../../protocol/index.ts";
import { nextTurn } from "../../std/index.ts";
import { canonical, hashOfText } from "../base/canonical-json.ts";
import { accepted, badInput, DroverError, reading, refused } from "../base/drover-error.ts";
import { type ReadTask, readTaskBody } from "../tasks/task-body.ts";
import type { Writer } from "../writer/writer.ts";
import { planTaskBody } from "./plan-body.ts";
import { planView, tasksOf } from "./plan-view.ts";

export type PutOptions = {
  readonly only?: readonly string[];
  readonly retryFailed?: boolean;
  readonly failFast?: boolean;
  readonly fresh?: boolean;
  readonly directory?: string;
  readonly unsaid?: PlanDefaults;
  readonly adopt?: boolean;
};
/** What putting it came to, in numbers of tasks. */
type PutCounts = Pick<PlanPut, "submitted" | "retried" | "kept" | "cancelled">;

const PROBLEMS_MAX = 50;
/** A run of a plan takes ids that no task has; so often is another number tried. */
const RUNS_MAX = 10_000;
const READ_AT_ONCE = 250;
const NO_PART = "it is no part of the plan any more";

/** Decided and applied when it resolves; durable later. What a large plan takes is done in slices before. */
export async function putPlan(writer: Writer, id: string, document: unknown, options: PutOptions): Promise<PlanPut> {
  const { state } = writer;
  const { directory = null } = options;
  if (directory !== null && !isAbsolute(directory)) throw badInput("directory", directory, "an absolute path");
  const before = state.plans.get(id);
  const plan = readDocument(id, document, options.unsaid);
  const only = options.only === undefined ? null : chosen(plan, options.only);
  const isLarge = plan.tasks.length > READ_AT_ONCE;
  if (isLarge) await nextTurn();
  const text = reading(document, "", () => canonical(document, ""));
  const stored = { text, hash: hashOfText(text) };
  if (isLarge) await nextTurn();
  const hashing = hashTasks(plan.tasks);
  let step = hashing.next();
  for (; step.done !== true; step = hashing.next()) await nextTurn();
  const hashed = step.value;
  const bodies = new Map<string, ReadTask>();
  const bodyOf = (one: Matched): ReadTask => {
    const body = bodies.get(one.id) ?? readTaskBody(planTaskBody(one, id, directory));
    bodies.set(one.id, body);
    return body;
  };
  for (const one of match(state, id, hashed, only, options).matched) {
    if (one.fate !== "submit") continue;
    bodyOf(one);
    if (bodies.size % READ_AT_ONCE === 0) await nextTurn();
  }
  // From here on nothing comes between. Who may put a plan was judged of the one that there was.
  if (state.plans.get(id) !== before)
    throw new DroverError("conflict", `the plan ${id} was put or removed by another call; put it again`);
  const isPaused = before?.paused === "asked";
  const { clamped, ...counts } = bringAbout(
    writer,
    id,
    { stored, directory, plan, bodyOf, ...match(state, id, hashed, only, options) },
    options,
  );
  // Another call may have it forgotten before the answer leaves.
  return {
    ...planView(state, state.plans.get(id) as Plan),
    ...counts,
    warnings: [
      ...(options.adopt === true ? [] : warningsFor(plan)),
      ...clamped,
      ...(isPaused ? [`the plan ${id} is paused; resume it to go on`] : []),
    ],
  };
}

type Prepared = Match & {
  /** Its document, as it is stored. */
  readonly stored: { readonly text: string; readonly hash: string };
  readonly directory: string | null;
  readonly plan: PlanFile;
  readonly bodyOf: (one: Matched) => ReadTask;
};

/** One command after the other, without a pause: nothing starts in between. */
function bringAbout(
  writer: Writer,
  id: string,
  { stored, directory, plan, bodyOf, run, matched, others, strays }: Prepared,
  { failFast: failsFast = false }: PutOptions,
): PutCounts & { readonly clamped: readonly string[] } {
  const { state } = writer;
  const withFate = (fate: Matched["fate"]): Matched[] => matched.filter((one) => one.fate === fate);
  const [retries, submits] = [withFate("retry"), withFate("submit")];
  const bodies = submits.map(bodyOf);
  const put = {
    type: "put-plan",
    plan: id,
    directory,
    run,
    failsFast,
    project: plan.project as ProjectId,
    agent: whoPuts(plan),
    others,
    tasks: matched.map(({ task, id: taskId }) => ({ name: task.name, id: taskId as TaskId })),
    adopted: matched.filter((one) => isAdopted(state, id, one)).length,
    documentHash: stored.hash,
    documentSize: Buffer.byteLength(stored.text),
    cancels: strays,
    retries: retries.map((one) => one.id as TaskId),
    submissions: bodies.map((body) => body.submission),
  } as const;
  const known = state.plans.get(id);
  const isSame = known !== undefined && isAsItWas(known, put);
  accepted(isSame ? writer.execute({ type: "renew-plan", plan: id }) : writer.execute(put, stored.text));
  // Those that wait for others first, or the end of one would be the end of the next before it is its turn.
  for (const task of strays) accepted(writer.execute({ type: "cancel-task", task, reason: NO_PART }));
  for (const one of retries) accepted(writer.execute({ type: "retry-task", task: one.id as TaskId }));
  const added = { type: "submit-task", group: groupOfPlan(id), ofRunning: null, counted: true } as const;
  const decided = bodies.map(({ submission, text: body }) => accepted(writer.execute({ ...added, submission }, body)));
  return {
    clamped: clampedIn(submits, decided),
    submitted: submits.length,
    retried: retries.length,
    kept: matched.length - retries.length - submits.length,
    cancelled: strays.length,
  };
}

/** Which of the new tasks, each with its decision, are less urgent than asked: the first by its name. */
function clampedIn(submits: readonly Matched[], decided: readonly Decision[]): readonly string[] {
  const found = submits.flatMap(({ task }, index) =>
    (decided[index]?.warnings ?? []).flatMap((one) => (one.type === "priority-clamped" ? [{ task, ...one }] : [])),
  );
  const [first] = found;
  if (first === undefined) return [];
  const { task, asked, given } = first;
  const more = found.length === 1 ? "" : `, and so for ${found.length - 1} more`;
  const most = `the most urgent that project ${task.rules.project} may have (maxPriority)`;
  return [`task ${task.name} asks for priority ${asked} and has ${given}, ${most}${more}`];
}

/** A token of an agent puts tasks of that agent alone; who may put those of others says whose it is by the first. */
const whoPuts = ({ tasks }: PlanFile): AgentId => (tasks[0] as PlanTask).rules.agent as AgentId;

/** Whether putting this changes nothing. A put lets a plan go on that a failure has paused, so that is a change. */
function isAsItWas(plan: Plan, put: CommandOf<"put-plan">): boolean {
  if (put.cancels.length + put.retries.length + put.submissions.length > 0) return false;
  if (plan.paused === "failed" || plan.hasFailed || plan.dropped > 0) return false;
  const isEqual = SAME.every((field) => plan[field] === put[field]);
  if (!isEqual || plan.tasks.length !== put.tasks.length || plan.others.size !== put.others.length) return false;
  const isThere = ({ name, id }: Plan["tasks"][number], at: number): boolean =>
    plan.tasks[at]?.id === id && plan.tasks[at]?.name === name;
  return put.tasks.every(isThere) && put.others.every((id) => plan.others.has(id));
}
const SAME = ["documentHash", "project", "agent", "directory", "run", "failsFast", "adopted"] as const;

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
function chosen({ tasks }: PlanFile, names: readonly string[]): ReadonlySet<PlanTask> {
  const wanted = names.flatMap((name, index) => {
    const found = tasks.filter((task) => task.name === name || task.definition === name);
    if (found.length === 0) throw badInput(`only[${index}]`, name, "the name of a task of the plan");
    return found.map((task) => task.name);
  });
  return new Set(withNeeds(tasks, wanted));
}

function warningsFor({ unused }: PlanFile): string[] {
  if (unused.length === 0) return [];
  const many = unused.length === 1 ? "section is" : "sections are";
  return [`the ${many} for running alone, and not used here: ${unused.join(", ")}; the server has its own`];
}

// ------------------------------------------------------------- what there is of it

type Hashed = Parameters<typeof matchHashed>[0];
type Match = {
  readonly run: number;
  readonly matched: readonly Matched[];
  /** What is there of tasks that are left out. */
  readonly others: readonly TaskId[];
  readonly strays: readonly TaskId[];
};
/** The chosen ones; null: all of them. */
type Only = ReadonlySet<PlanTask> | null;

function match(state: State, id: string, hashed: Hashed, only: Only, options: PutOptions): Match {
  const plan = state.plans.get(id);
  const known = plan === undefined ? [] : [...tasksOf(state, plan)];
  const legacy = options.adopt === true ? [...legacyIn(state, id)] : [];
  const done = options.fresh === true ? [] : legacy.filter(({ phase }) => phase === "done");
  const among = (run: number, all: readonly Matched[]): Match => {
    const matched = only === null ? all : all.filter(({ task }) => only.has(task));
    const left = only === null ? [] : all.filter((one) => !only.has(one.task) && isIn(state, id, one.id));
    const mine = new Set(matched.map((one) => one.id));
    const live = [...known, ...legacy].filter((task) => !mine.has(task.id) && !hasEnded(task.phase));
    const strays = live.map((task) => task.id as TaskId).reverse();
    return { run, matched, others: left.map((one) => one.id as TaskId), strays };
  };
  const isTaken = (task: string): boolean => state.tasks.has(task as TaskId) || state.tombstones.has(task as TaskId);
  const prefix = prefixOf(id, plan?.run ?? 1);
  if (plan !== undefined && options.fresh !== true) {
    const own = known.filter((task) => task.id.startsWith(prefix)).map(knownAs);
    const matched = matchHashed(hashed, [...done, ...own], {
      prefix,
      isTaken,
      retriesFailed: options.retryFailed ?? true,
    });
    return among(plan.run, matched);
  }
  const matched = matchHashed(hashed, done, { prefix });
  const first = plan === undefined ? 1 : plan.run + 1;
  for (let run = first; run < first + RUNS_MAX; run++) {
    const to = prefixOf(id, run);
    if (matched.some((one) => one.phase === null && isTaken(to + one.id.slice(prefix.length)))) continue;
    return among(run, moved(matched, prefix, to));
  }
  throw refused({ type: "too-many", what: `runs of the plan ${id}`, max: RUNS_MAX, remedy: "choose another name" });
}

const prefixOf = (id: string, run: number): string => (run === 1 ? `${id}.` : `${id}.${run}.`);

/** The new ones of these begin with something else. */
function moved(matched: readonly Matched[], from: string, to: string): readonly Matched[] {
  if (from === to) return matched;
  const fresh = new Map(matched.filter((one) => one.phase === null).map(({ id }) => [id, to + id.slice(from.length)]));
  const idOf = (id: string): string => fresh.get(id) ?? id;
  return matched.map((one) => ({ ...one, id: idOf(one.id), needs: one.needs.map(idOf) }));
}

const knownAs = ({ id, phase, end }: Task): Known => ({ id, phase, error: end?.error ?? null });

/** Tasks of a log that has one plan alone, from before plans had groups. What a running task submitted is in none. */
function* legacyIn({ tasks, tombstones }: State, plan: string): Generator<Known> {
  const group = groupOfPlan(plan);
  for (const { id, phase } of tombstones.values()) yield { id, phase };
  for (const { id, phase, extra, links } of tasks.values())
    if (extra?.group?.group.id !== group && links?.ofRunning !== true) yield { id, phase };
}

const isAdopted = (state: State, plan: string, { id, phase }: Pick<Matched, "id" | "phase">): boolean =>
  phase === "done" && !isIn(state, plan, id);

const isIn = ({ tasks }: State, plan: string, id: string): boolean =>
  tasks.get(id as TaskId)?.extra?.group?.group.id === groupOfPlan(plan);
