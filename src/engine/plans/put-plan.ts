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
import type { Command, CommandOf, Decision, Plan, State, Task } from "../../core/model/index.ts";
import {
  type Found,
  type Hashed,
  hasEnded,
  hashTasks,
  type Known,
  type Matched,
  matchHashed,
  type PlanDefaults,
  type Plan as PlanFile,
  type PlanTask,
  planReading,
  shownPath,
  withNeeds,
} from "../../plan/index.ts";
import type { PlanPut } from "../../protocol/index.ts";
import { atOnce, type Clock, inSlices } from "../../std/index.ts";
import { canonicalSteps, hashOfText } from "../base/canonical-json.ts";
import { accepted, badInput, DroverError, faultOfReading, refused } from "../base/drover-error.ts";
import { type ReadTask, readTaskBody } from "../tasks/task-body.ts";
import type { Writer } from "../writer/writer.ts";
import { copySteps } from "./own-copy.ts";
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
  readonly guard?: PlanGuard;
};
/** Who lets others put plans says what they may put. Both throw to refuse. */
export type PlanGuard = {
  /** The plan was read. */
  onRead(tasks: readonly PlanTask[]): Promise<void>;
  /** It is carried out next, and nothing comes between. */
  check(): void;
};
/** What putting it came to, in numbers of tasks. */
type PutCounts = Pick<PlanPut, "submitted" | "retried" | "kept" | "cancelled">;

const PROBLEMS_MAX = 50;
/** A run of a plan takes ids that no task has; so often is another number tried. */
const RUNS_MAX = 10_000;
const READ_AT_ONCE = 250;
/** So often it is looked anew what there is of a plan, when others put it too. */
const ROUNDS_MAX = 10;
const NO_PART = "it is no part of the plan any more";

/** Decided and applied when it resolves; durable later. What a large plan takes is done in slices before. */
export const putPlan = (
  { writer, clock }: { readonly writer: Writer; readonly clock: Pick<Clock, "stopwatch"> },
  id: string,
  document: unknown,
  options: PutOptions,
): Promise<PlanPut> => inSlices(putting(writer, id, document, options), clock);

/** What it yields in the end is not waited for: from the last look at the state on nothing comes between. */
function* putting(writer: Writer, id: string, document: unknown, options: PutOptions): Generator<unknown, PlanPut> {
  const { state } = writer;
  const { directory = null, guard } = options;
  if (directory !== null && !isAbsolute(directory)) throw badInput("directory", directory, "an absolute path");
  const own = yield* copied(document);
  const plan = yield* readDocument(id, own, options.unsaid);
  if (guard !== undefined) yield guard.onRead(plan.tasks);
  const only = options.only === undefined ? null : chosen(plan, options.only);
  const text = yield* canonicalSteps(own, "");
  const stored = { text, hash: hashOfText(text) };
  const hashed = yield* hashTasks(plan.tasks);
  const { match, bodies } = yield* prepare(state, id, { hashed, only, directory }, options);
  guard?.check();
  const isPaused = state.plans.get(id)?.paused === "asked";
  const { clamped, ...counts } = bringAbout(writer, id, { stored, directory, plan, bodies, ...match }, options);
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

type Given = { readonly hashed: readonly Hashed[]; readonly only: Only; readonly directory: string | null };
type Bodies = ReadonlyMap<string, ReadTask>;

/** What is to be done, with the bodies that it takes, as the state is when this ends. */
function* prepare(
  state: State,
  id: string,
  { hashed, only, directory }: Given,
  options: PutOptions,
): Generator<unknown, { readonly match: Match; readonly bodies: Bodies }> {
  const bodies = new Map<string, ReadTask>();
  const missing = ({ matched }: Match): Matched[] =>
    matched.filter((one) => one.fate === "submit" && !bodies.has(one.id));
  const read = (one: Matched): void => void bodies.set(one.id, readTaskBody(planTaskBody(one, id, directory)));
  for (let round = 1; round <= ROUNDS_MAX; round++) {
    const early = yield* matching(state, id, hashed, only, options);
    for (const one of missing(early)) {
      read(one);
      yield;
    }
    // Its tasks go on meanwhile: then it is looked once more, in one go. Another put may make much of it new.
    const match = isStill(state, id, early) ? early : atOnce(matching(state, id, hashed, only, options));
    const late = missing(match);
    if (late.length > READ_AT_ONCE) continue;
    for (const one of late) read(one);
    return { match, bodies };
  }
  throw new DroverError("conflict", `the plan ${id} was changed again and again while it was put; put it again`);
}

type Prepared = Match & {
  /** Its document, as it is stored. */
  readonly stored: { readonly text: string; readonly hash: string };
  readonly directory: string | null;
  readonly plan: PlanFile;
  readonly bodies: Bodies;
};

/** One command after the other, without a pause: nothing starts in between. */
function bringAbout(
  writer: Writer,
  id: string,
  { stored, directory, plan, bodies, run, matched, others, strays }: Prepared,
  { failFast: failsFast = false }: PutOptions,
): PutCounts & { readonly clamped: readonly string[] } {
  const { state } = writer;
  const withFate = (fate: Matched["fate"]): Matched[] => matched.filter((one) => one.fate === fate);
  const [retries, submits] = [withFate("retry"), withFate("submit")];
  const added = submits.map((one) => bodies.get(one.id) as ReadTask);
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
    submissions: added.map((body) => body.submission),
  } as const;
  const known = state.plans.get(id);
  const isSame = known !== undefined && isAsItWas(known, put);
  // All of it is at one time.
  const at = writer.sureNow();
  const give = (command: Command, payload?: string): Decision => accepted(writer.execute(command, payload, at));
  if (isSame) give({ type: "renew-plan", plan: id });
  else give(put, stored.text);
  // Those that wait for others first, or the end of one would be the end of the next before it is its turn.
  for (const task of strays) give({ type: "cancel-task", task, reason: NO_PART });
  for (const one of retries) give({ type: "retry-task", task: one.id as TaskId });
  const submit = { type: "submit-task", group: groupOfPlan(id), ofRunning: null, counted: true } as const;
  const decided = added.map(({ submission, text: body }) => give({ ...submit, submission }, body));
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

function* copied(document: unknown): Generator<unknown, unknown> {
  try {
    return yield* copySteps(document);
  } catch (thrown) {
    throw faultOfReading(thrown, document, "");
  }
}

function* readDocument(id: string, document: unknown, unsaid: PlanDefaults = {}): Generator<unknown, PlanFile> {
  const read = yield* planReading(document, id, unsaid);
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
  const byName = new Set(tasks.map(({ name }) => name));
  const byDefinition = Map.groupBy(tasks, ({ definition }) => definition);
  const wanted = names.flatMap((name, index) => {
    const found = byDefinition.get(name)?.map((task) => task.name) ?? (byName.has(name) ? [name] : []);
    if (found.length === 0) throw badInput(`only[${index}]`, name, "the name of a task of the plan");
    return found;
  });
  return new Set(withNeeds(tasks, wanted));
}

function warningsFor({ unused }: PlanFile): string[] {
  if (unused.length === 0) return [];
  const many = unused.length === 1 ? "section is" : "sections are";
  return [`the ${many} for running alone, and not used here: ${unused.join(", ")}; the server has its own`];
}

// ------------------------------------------------------------- what there is of it

type Match = {
  /** What it was made of: the put of the plan, and the tasks that it had, each with its phase and its end. */
  readonly seq: number | null;
  readonly known: readonly Pick<Task, "id" | "phase" | "end">[];
  readonly run: number;
  readonly matched: readonly Matched[];
  /** What is there of tasks that are left out. */
  readonly others: readonly TaskId[];
  readonly strays: readonly TaskId[];
};
/** The chosen ones; null: all of them. */
type Only = ReadonlySet<PlanTask> | null;

function* matching(
  state: State,
  id: string,
  hashed: readonly Hashed[],
  only: Only,
  options: PutOptions,
): Generator<unknown, Match> {
  const plan = state.plans.get(id);
  const { seq, run: lastRun } = plan ?? { seq: null, run: 0 };
  const known = knownOf(state, plan);
  const legacy = options.adopt === true ? [...legacyIn(state, id)] : [];
  const done = options.fresh === true ? [] : legacy.filter(({ phase }) => phase === "done");
  const among = (run: number, all: readonly Matched[]): Match => {
    const isChosen = ({ task }: Matched): boolean => only === null || only.has(task);
    const left = all.filter((one) => !isChosen(one) && isIn(state, id, one.id));
    // A log of one plan alone runs what was chosen and nothing else. On a server the rest goes on as it is.
    const goesOn = options.adopt === true ? [] : left;
    const kept = new Set(goesOn);
    const matched = all
      .filter((one) => isChosen(one) || kept.has(one))
      .map((one): Matched => (kept.has(one) ? { ...one, fate: "keep" } : one));
    const mine = new Set(matched.map((one) => one.id));
    const live = [...known, ...legacy].filter((task) => !mine.has(task.id) && !hasEnded(task.phase));
    const strays = live.map((task) => task.id as TaskId).reverse();
    return {
      seq,
      known,
      run,
      matched,
      others: left.filter((one) => !kept.has(one)).map((one) => one.id as TaskId),
      strays,
    };
  };
  const isTaken = (task: string): boolean => isKnown(state, task);
  const prefix = prefixOf(id, lastRun || 1);
  if (plan !== undefined && options.fresh !== true) {
    const own = known.filter((task) => task.id.startsWith(prefix)).map(knownAs);
    const retriesFailed = options.retryFailed ?? true;
    return among(lastRun, yield* matchHashed(hashed, [...done, ...own], { prefix, isTaken, retriesFailed }));
  }
  const matched = yield* matchHashed(hashed, done, { prefix });
  const first = lastRun + 1;
  for (let run = first; run < first + RUNS_MAX; run++) {
    const to = prefixOf(id, run);
    if (matched.some((one) => one.phase === null && isTaken(to + one.id.slice(prefix.length)))) continue;
    return among(run, moved(matched, prefix, to));
  }
  throw refused({ type: "too-many", what: `runs of the plan ${id}`, max: RUNS_MAX, remedy: "choose another name" });
}

/** As they are now: another may change them while they are looked at. */
const knownOf = (state: State, plan: Plan | undefined): Match["known"] =>
  plan === undefined ? [] : Array.from(tasksOf(state, plan), ({ id, phase, end }) => ({ id, phase, end }));

/** Whether the same would come of it now. */
function isStill(state: State, plan: string, { seq, known, matched, others }: Match): boolean {
  const current = state.plans.get(plan);
  if ((current?.seq ?? null) !== seq) return false;
  const now = knownOf(state, current);
  const isSame = ({ id, phase, end }: Match["known"][number], at: number): boolean =>
    now[at]?.id === id && now[at]?.phase === phase && now[at]?.end === end;
  if (now.length !== known.length || !known.every(isSame)) return false;
  const isFree = ({ id, phase }: Matched): boolean => phase !== null || !isKnown(state, id);
  return matched.every(isFree) && others.every((id) => isIn(state, plan, id));
}

const isKnown = ({ tasks, tombstones }: State, id: string): boolean =>
  tasks.has(id as TaskId) || tombstones.has(id as TaskId);

const prefixOf = (id: string, run: number): string => (run === 1 ? `${id}.` : `${id}.${run}.`);

/** The new ones of these begin with something else. */
function moved(matched: readonly Matched[], from: string, to: string): readonly Matched[] {
  if (from === to) return matched;
  const fresh = new Map(matched.filter((one) => one.phase === null).map(({ id }) => [id, to + id.slice(from.length)]));
  const idOf = (id: string): string => fresh.get(id) ?? id;
  return matched.map((one) => ({ ...one, id: idOf(one.id), needs: one.needs.map(idOf) }));
}

const knownAs = ({ id, phase, end }: Pick<Task, "id" | "phase" | "end">): Known => ({
  id,
  phase,
  error: end?.error ?? null,
});

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
