/**
 * A task as people see it: the fields they submitted, where it stands now, how it ended.
 *
 * Times are RFC 3339 and what is unset is absent. `position` is one more than the number of tasks ahead in
 * its agent's queue, counted now.
 */
import { priority as readPriority } from "../../core/config/index.ts";
import { openBelow } from "../../core/lifecycle/index.ts";
import type {
  Approval,
  AttemptUsage as CoreAttemptUsage,
  Round as CoreRound,
  EndedTask,
  State,
  Task,
  Tombstone,
} from "../../core/model/index.ts";
import { countAhead, effectivePriority, fixedOf, type Held, heldBy, shownScore } from "../../core/turn/index.ts";
import type { ApprovalView, AttemptUsage, CurrentRound, Round, TaskBody, TaskView } from "../../protocol/index.ts";
import { isoTime } from "../../std/index.ts";
import { quoted } from "../base/canonical-json.ts";
import { usageView } from "../base/charged-tokens.ts";
import type { KeptBody } from "./body-store.ts";
import type { TaskInput } from "./task-body.ts";

export const viewOf = (state: State, task: Task, body: TaskInput | null, now: number): TaskView =>
  glance(state, task, now)(body);

/** Where a task stands at this moment, to be shown with its body, which may have to be fetched first. */
export function glance(state: State, task: Task, now: number): (body: TaskInput | null) => TaskView {
  const seen = standing(state, task, now);
  const { priority: inForce } = task;
  return (body) => {
    const { priority, deadline: _, ...submitted } = submittedOf(body);
    return { ...submitted, ...priorityOf(inForce, priority), ...seen };
  };
}

/** As it was given, while that is still so; a patch or a limit of its project may have changed it. */
function priorityOf(inForce: number, given: TaskInput["priority"]): Pick<TaskView, "priority"> {
  const read = given === undefined ? null : readPriority(given, "priority");
  if (read?.ok === true && read.value === inForce) return { priority: given as NonNullable<typeof given> };
  return given === undefined && inForce === 0 ? {} : { priority: inForce };
}

type Shown<Body, Key> = { [Field in keyof Body]: Field extends Key ? Exclude<Body[Field], number> : Body[Field] };

/** Instants are shown as text, however they were given. */
export function withInstantsAsText<Body extends object, Key extends keyof Body>(
  body: Body,
  ...keys: readonly Key[]
): Shown<Body, Key> {
  const numbers = keys.filter((key) => typeof body[key] === "number");
  const texts = numbers.map((key) => [key, isoTime(body[key] as number)] as const);
  return (texts.length === 0 ? body : { ...body, ...Object.fromEntries(texts) }) as Shown<Body, Key>;
}

/** The fields as they were submitted. */
function submittedOf(body: TaskInput | null): Partial<Omit<TaskBody, "id" | "approval">> & Pick<TaskView, "approval"> {
  if (body === null) return {};
  const { id: _, approval, ...submitted } = body;
  const shown = withInstantsAsText(submitted, "deadline", "notBefore");
  return approval === undefined ? shown : { ...shown, approval: approval === true ? {} : approval };
}

/** A task as it had ended, whatever has become of it since. */
export function endedView(task: EndedTask, body: TaskInput | null): TaskView {
  const { priority, deadline: _, ...submitted } = submittedOf(body);
  return { ...submitted, ...priorityOf(task.priority, priority), ...known(task) };
}

/** Where a task stands, without its body. */
function standing(state: State, task: Task, now: number): TaskView {
  return {
    ...known(task),
    ...(task.group === null ? {} : { position: countAhead(state, task, now) + 1 }),
    ...heldView(heldBy(state, task, now)),
    ...(task.end === null ? turnOf(state, task, now) : {}),
  };
}

const heldView = (held: Held | null): Pick<TaskView, "held" | "heldUntil"> =>
  held === null ? {} : { held: held.by, ...(held.until === null ? {} : { heldUntil: isoTime(held.until) }) };

/** What does not change by the mere passing of time. */
function known(task: Task | EndedTask): TaskView {
  const { end } = task;
  const { usage = null, attempts = null, loop = null, files = null, approval = null, group = null } = task.extra ?? {};
  return {
    taskId: task.id,
    state: task.phase,
    attempt: task.attempts,
    project: task.project.id,
    agentId: task.agent.id,
    createdAt: isoTime(task.createdAt),
    ...(task.runnableAt < 0 ? {} : { runnableAt: isoTime(task.runnableAt) }),
    ...(task.startedAt < 0 ? {} : { startedAt: isoTime(task.startedAt) }),
    ...(task.deadline < 0 ? {} : { deadline: isoTime(task.deadline) }),
    ...(task.requirements.onLoss === "fail" ? { onLoss: "fail" } : {}),
    ...(task.lastWorker === null ? {} : { worker: task.lastWorker }),
    ...(end === null ? {} : { completedAt: isoTime(end.at), latencyMs: end.at - task.createdAt }),
    ...(end === null || end.error === null ? {} : { error: end.error }),
    ...(group === null ? {} : { group: group.group.id }),
    ...(usage === null ? {} : { usage: usageView(usage) }),
    ...(attempts === null ? {} : { attempts: attempts.map(attemptView) }),
    ...(files === null ? {} : { files }),
    depth: task.depth,
    ...childrenOf(task),
    ...(task.ownFailures === 0 && loop === null ? {} : { iteration: task.iteration + task.ownFailures }),
    ...(approval === null ? {} : { approval: approvalView(approval) }),
    ...(loop === null || loop.rounds.length === 0 ? {} : { rounds: loop.rounds.map(roundView) }),
  };
}

/**
 * The view of a task that is assigned, as the text of JSON, its body in it as it is stored. Null if anything is to be
 * said of it that is not said of every task.
 */
export function assignedText(state: State, task: Task, kept: KeptBody, now: number): string | null {
  if (!isSaidPlainly(task, kept)) return null;
  const { score, effectivePriority } = turnOf(state, task, now);
  const { id, phase, attempts, lastWorker } = task;
  return (
    `${bodyIn(task, kept)},"taskId":${quoted(id)},"state":"${phase}","attempt":${attempts}` +
    `,"createdAt":"${isoTime(task.createdAt)}","runnableAt":"${isoTime(task.runnableAt)}"` +
    `,"startedAt":"${isoTime(task.startedAt)}","worker":${quoted(lastWorker ?? "")}` +
    `,"depth":${task.depth},"score":${score},"effectivePriority":${effectivePriority}}`
  );
}

/** The same without what its worker knows: the names, the state, itself, and what is as it mostly is. */
export function leanlyAssigned(state: State, task: Task, kept: KeptBody, now: number): string | null {
  if (!isSaidPlainly(task, kept)) return null;
  const { score, effectivePriority } = turnOf(state, task, now);
  const { createdAt, runnableAt, depth } = task;
  let text = `${bodyIn(task, kept)},"createdAt":"${isoTime(createdAt)}","startedAt":"${isoTime(task.startedAt)}"`;
  if (runnableAt !== createdAt) text += `,"runnableAt":"${isoTime(runnableAt)}"`;
  if (depth !== 0) text += `,"depth":${depth}`;
  if (effectivePriority !== 0) text += `,"effectivePriority":${effectivePriority}`;
  return `${text},"score":${score}}`;
}

function isSaidPlainly(task: Task, { shown }: KeptBody): boolean {
  const { extra, links, lastWorker, requirements } = task;
  const isPlain = task.priority === 0 && task.ownFailures === 0 && task.deadline < 0 && requirements.onLoss !== "fail";
  if (shown === null || !isPlain || lastWorker === null || (links !== null && links.children > 0)) return false;
  return extra === null || saysOnlyGroup(extra);
}

/** A stored body up to its last brace, without the id that its caller chose, and with project and group. */
function bodyIn({ project, extra }: Task, { text, shown }: KeptBody): string {
  if (shown === null) return "{";
  const body = shown.idTo === 0 ? text.slice(0, -1) : text.slice(0, shown.idFrom) + text.slice(shown.idTo, -1);
  const named = shown.hasProject ? body : `${body},"project":${quoted(project.id)}`;
  return extra === null || extra.group === null ? named : `${named},"group":${quoted(extra.group.group.id)}`;
}

const saysOnlyGroup = ({ usage, attempts, loop, files, approval }: Task["extra"] & {}): boolean =>
  usage === null && attempts === null && loop === null && files === null && approval === null;

const attemptView = ({ attempt, worker, usage }: CoreAttemptUsage): AttemptUsage => ({
  attempt,
  ...(worker === "" ? {} : { worker }),
  usage: usageView(usage),
});

const roundView = ({ iteration, outcome, note, tokens, usage }: CoreRound): Round => ({
  iteration,
  outcome,
  ...(note === null ? {} : { note }),
  ...(tokens === null ? {} : { usage: { tokens, ...(usage === null ? {} : usageView(usage)) } }),
});

/** What somebody is asked about a task, or has answered. */
export function approvalView({ required, question, until, given }: Approval): ApprovalView {
  const text = question ?? required?.question ?? null;
  return {
    ...(text === null ? {} : { question: text }),
    ...(required === null || required.timeoutMs === null ? {} : { timeoutMs: required.timeoutMs }),
    ...(until < 0 ? {} : { until: isoTime(until) }),
    ...(given === null ? {} : { at: isoTime(given.at) }),
    ...(given === null || given.note === null ? {} : { note: given.note }),
  };
}

/** Which round of its loop a task is in; null if it has none. */
export function currentRound({ extra }: Pick<Task, "extra">): CurrentRound | null {
  const loop = extra?.loop ?? null;
  if (loop === null) return null;
  const note = loop.rounds.at(-1)?.note ?? null;
  return { number: loop.rounds.length + 1, max: loop.max, ...(note === null ? {} : { note }) };
}

function childrenOf(task: Task | EndedTask): Pick<TaskView, "children"> {
  const total = "links" in task ? (task.links?.children ?? 0) : 0;
  return "links" in task && total > 0 ? { children: { total, open: openBelow(task) } } : {};
}

/** One that is not runnable yet is shown as it would stand if it were. */
function turnOf(state: State, task: Task, now: number): Pick<TaskView, "score" | "effectivePriority"> {
  const { priority: rules } = state.config.scheduler;
  const waitedMs = task.runnableAt < 0 ? 0 : now - task.runnableAt;
  const { maxPriority } = task.project.settings;
  return {
    score: shownScore(fixedOf(state, task), waitedMs, rules),
    effectivePriority: effectivePriority(task.priority, waitedMs, maxPriority, rules.starvationAfter),
  };
}

type TurnedAway = {
  readonly id: string;
  readonly agent: { readonly id: string };
  readonly project: { readonly id: string };
  readonly at: number;
  readonly error: string;
};

/** One that was never let in: as it was submitted, and why not. */
export const rejectedView = ({ id, agent, project, at, error }: TurnedAway, body: TaskInput): TaskView => ({
  ...submittedOf(body),
  taskId: id,
  state: "rejected",
  attempt: 0,
  agentId: agent.id,
  project: project.id,
  error,
  createdAt: isoTime(at),
  completedAt: isoTime(at),
  latencyMs: 0,
});

export function tombstoneView(stone: Tombstone, body: TaskInput | null): TaskView {
  return {
    ...submittedOf(body),
    taskId: stone.id,
    state: stone.phase,
    attempt: 0,
    depth: stone.depth,
    createdAt: isoTime(stone.createdAt),
    completedAt: isoTime(stone.endedAt),
  };
}
