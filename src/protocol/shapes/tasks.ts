/**
 * Tasks on the wire: what a caller says of one, and what Drover says of it.
 *
 * The items of a batch are read one by one by the engine, because a bad item never fails its batch; the document shows
 * what an item is.
 */
import { priority as corePriority } from "../../core/config/index.ts";
import type * as wire from "../generated/tasks.ts";
import * as s from "../schema/schema.ts";
import { expectedBy, type Fields } from "../schema/schema.ts";
import { TASK_STATES, type TaskState } from "../wire/task-state.ts";
import { approvalBody, approvalView } from "./approvals.ts";
import { fileRefs, outputs } from "./files.ts";
import { labels } from "./labels.ts";
import { currentRound, loop, round } from "./loops.ts";
import { attemptUsage, usageView } from "./usage.ts";

const PRIORITY_MAX = 1_000_000_000;
const SCORE_MAX = Number.MAX_SAFE_INTEGER;

export const priority = (): s.Schema<number | wire.PriorityName> =>
  s.either(
    s.whole(-PRIORITY_MAX, PRIORITY_MAX),
    s.oneOf<wire.PriorityName>("critical", "high", "normal", "low"),
    expectedBy(corePriority),
  );

/** `tab:` and a tab's whole name. */
export const CAPABILITY_LENGTH_MAX = 260;
const names = (max: number, lengthMax?: number): s.Schema<readonly string[]> =>
  s.noted(s.list(s.name(lengthMax), { max }), { expected: `a list of at most ${max} names` });

const NEEDS_MAX = 1000;
/** Of a task of a plan it has the values that stand for it, in brackets. */
const NEED_NAME_MAX = 1000;
const SOME_NEEDS = `a list of at most ${NEEDS_MAX} ids, or an object of at most ${NEEDS_MAX} ids by name`;
const needs = (): s.Schema<readonly string[] | Readonly<Record<string, string>>> =>
  s.either(
    names(NEEDS_MAX),
    s.refined(
      s.table(s.name(), s.text(1, NEED_NAME_MAX)),
      (given) => Object.keys(given).length <= NEEDS_MAX,
      SOME_NEEDS,
    ),
    SOME_NEEDS,
  );

export const resources: s.Schema<wire.Resources> = s.object({
  cpuMillicores: s.optional(s.whole(0, 1_000_000_000), "Thousandths of a CPU."),
  memoryBytes: s.optional(s.whole(0)),
});

const batchTaskFields: Fields<Omit<wire.TaskBody, "agentId">> = {
  action: s.described(
    s.text(1, 1024),
    "What is to be done; `exec` runs the command in `params.command`. Push workers get it as `kind`, exec workers as " +
      "JSON.",
    { expected: "what is to be done: text of 1 to 1024 characters" },
  ),
  id: s.optional(
    s.name(),
    "The task's id, chosen by the caller. The same id and body again is the same task: a lost answer may be repeated.",
  ),
  project: s.optional(s.name(), "Who pays.", { default: "default" }),
  type: s.optional(s.name(), "A kind of work, with a base score and perhaps a limit.", { default: "other" }),
  tabId: s.optional(s.name(), "The browser tab it is for: only a worker with capability tab:<id> runs it."),
  ref: s.optional(s.text(0, 4096), "What in the tab it is about."),
  selector: s.optional(s.text(0, 4096), "Where in the tab, such as `#buy`."),
  params: s.optional(s.anyObject(), "Arguments of the action."),
  payload: s.optional(s.anything(), "Any JSON for its worker. Drover does not look into it."),
  priority: s.optional(
    priority(),
    "Lower is sooner; critical is -200, high -100, normal 0, low 100. Without one, the parent's, else 0.",
  ),
  deadline: s.optional(s.instant(), "When it has failed if it has not ended."),
  notBefore: s.optional(s.instant(), "When it may start at the earliest."),
  callbackUrl: s.optional(s.webUrl(), "Where the task is posted when it has ended."),
  parent: s.optional(s.name(), "The task it belongs to: it waits for it and is one level deeper."),
  needs: s.optional(
    needs(),
    "Tasks that must be done first: a list of ids, or an object of ids by name. How they ended it sees in its " +
      "inputs, by that name or the id.",
  ),
  inputArtifact: s.optional(
    s.text(1, 4096),
    "What must exist before it may start: a file that its parent leaves, or one under artifacts.root.",
  ),
  resources: s.optional(resources),
  capabilities: s.optional(names(64, CAPABILITY_LENGTH_MAX), "What a worker must offer."),
  locks: s.optional(names(64), "Keys that no two running tasks hold at once."),
  zone: s.optional(s.name(), "Its preferred zone, where placement looks at zones."),
  provider: s.optional(s.name(), "The gate whose block also holds this task."),
  estimatedTokens: s.optional(
    s.finite(0, 1_000_000_000_000),
    "Tokens it will use, for shares and budgets; 0 is none, and waits for no budget. Without one, what tasks of its " +
      "project and type used on average.",
  ),
  iteration: s.optional(s.whole(0, 1_000_000), "Which try at the same work this is; each failure adds 1.", {
    default: 1,
  }),
  maxAttempts: s.optional(s.whole(1, 1_000_000), "Own failures it may have; 3, or 1 with a tabId."),
  timeoutMs: s.optional(s.whole(1, 31_556_952_000_000), "How long one attempt may take."),
  onDependencyFailure: s.optional(
    s.oneOf("skip", "run"),
    "What becomes of it when a parent or need does not end as done.",
    { default: "skip" },
  ),
  onLoss: s.optional(
    s.oneOf("retry", "fail"),
    "What becomes of it when an attempt that had begun is lost: it runs again, or it fails, its outcome unknown. " +
      "Without one, fail with a tabId, else retry.",
  ),
  outputs: s.optional(
    outputs(),
    "Files that an exec worker keeps of its workspace when the command has ended: paths, or patterns with `*`, `?` " +
      "and `**`.",
  ),
  labels: s.described(s.optional(labels()), 'At most 32 texts by name, by which tasks are found: `{ team: "web" }`.'),
  loop: s.optional(
    loop,
    "It runs again until its work is good: each round that its worker answers with again is followed by another one.",
  ),
  approval: s.optional(
    s.either(s.exactly(true), approvalBody, "true, or an object such as { question, timeoutMs }"),
    "Somebody must approve it before it is queued for the first time: it is parked until then.",
  ),
  wait: s.optional(
    s.oneOf("children"),
    "children: when its attempt is done, it is parked, holding nothing, until all has ended that it and tasks below " +
      "it submitted while they ran; then it is done with what that attempt answered.",
  ),
};
const agentId = (): s.Schema<string> =>
  s.described(s.name(), "Who submits: the unit of fairness inside a project.", {
    expected: `the agent that submits: ${s.notesOf(s.name()).expected}`,
  });

export const taskFields: Fields<wire.TaskBody> = { agentId: agentId(), ...batchTaskFields };
export const taskBody: s.Schema<wire.TaskBody> = s.namedObject("TaskBody", taskFields, {
  examples: [
    { agentId: "ann", action: "exec", params: { command: "echo hello" } },
    { agentId: "ann", action: "code", project: "site", type: "code", needs: ["spec-1"], priority: "high" },
  ],
});
export const batchTask: s.Schema<wire.BatchTask> = s.namedObject("BatchTask", {
  agentId: s.optional(s.name(), "The batch's own, where it is named at all."),
  ...batchTaskFields,
});

export const batchBody: s.Schema<wire.BatchBody> = s.namedObject("BatchBody", {
  agentId: agentId(),
  project: s.optional(s.name(), "For items that name none."),
  callbackUrl: s.optional(s.webUrl(), "For items that name none."),
  tasks: s.described(
    s.noted(s.list(s.noted(s.anything(), { shownAs: batchTask }) as s.Schema<wire.BatchTask>, { min: 1 }), {
      expected: "a list of at least one task",
    }),
    "At most scheduler.maxBatch. Items may need each other by id; a bad item does not fail the others.",
  ),
});

const taskState = (): s.Schema<TaskState> => s.oneOf(...TASK_STATES);
const position = s.described(s.whole(1), "1 + the tasks ahead in its agent's queue, counted now.");
const warning: s.Schema<wire.Warning> = s.answer({
  type: s.name(),
  detail: s.optional(s.text(0, 10_000)),
  asked: s.optional(s.finite(-PRIORITY_MAX, PRIORITY_MAX), "The priority that was asked for."),
  given: s.optional(s.finite(-PRIORITY_MAX, PRIORITY_MAX), "The priority it got."),
});

export const submitted: s.Schema<wire.Submitted> = s.namedAnswer("Submitted", {
  taskId: s.name(),
  state: taskState(),
  position: s.optional(position),
  createdAt: s.instant(),
  throttle: s.optional(s.exactly(true), "The queue is filling: submit more slowly. See Retry-After."),
  warnings: s.optional(s.list(warning), "What was accepted but will not go as asked, and why."),
});
export const batchAnswer: s.Schema<wire.BatchAnswer> = s.namedAnswer("BatchAnswer", {
  groupId: s.optional(
    s.name(),
    "The group of those that are new; if none is, that of the first known one. Absent if there is none.",
  ),
  tasks: s.described(
    s.list(
      s.answer<wire.BatchItem>({
        taskId: s.optional(s.name()),
        state: taskState(),
        position: s.optional(position),
        error: s.optional(s.text(0, 10_000), "Names a field by its item: `tasks[1].action`."),
      }),
    ),
    "One for each item, in their order.",
  ),
  submitted: s.whole(0),
  accepted: s.whole(0),
  rejected: s.whole(0),
});

const { id: _id, ...shownFields } = batchTaskFields;

/** Every submitted field may be absent from an answer: of a task long gone the log may have no body any more. */
const maybe = Object.fromEntries(
  Object.entries({ agentId: s.name(), ...shownFields }).map(([key, field]) => [key, s.optional<unknown>(field)]),
) as unknown as Fields<Partial<Omit<wire.TaskBody, "id">>>;

const shownTask: Fields<Omit<wire.TaskView, "held" | "heldUntil">> = {
  ...maybe,
  taskId: s.name(),
  state: taskState(),
  attempt: s.described(s.whole(0), "The number of the last attempt; 0 before the first."),
  createdAt: s.optional(s.instant()),
  runnableAt: s.optional(s.instant()),
  startedAt: s.optional(s.instant(), "When its attempt began; absent while it waits for another one."),
  completedAt: s.optional(s.instant()),
  latencyMs: s.optional(s.whole(0), "From submit to its end."),
  worker: s.optional(s.name(), "Where its last attempt runs or ran."),
  result: s.optional(s.anything()),
  branch: s.optional(s.text(1, 4096), "The branch that an exec worker kept its work on."),
  error: s.optional(s.text(0, 100_000)),
  files: s.optional(fileRefs(), "The files it left: GET /files/{hash} has each."),
  position: s.optional(position),
  depth: s.optional(s.whole(0), "How many ancestors it has."),
  children: s.optional(
    s.answer<wire.TaskView["children"] & {}>({
      total: s.described(s.whole(0), "Tasks that name it as parent and are not forgotten."),
      open: s.described(s.whole(0), "Tasks that grew below it, at any depth, and have not ended."),
    }),
    "Absent if it has none.",
  ),
  score: s.optional(
    s.finite(-SCORE_MAX, SCORE_MAX),
    "By type, age, depth and failures, counted now; higher goes first.",
  ),
  effectivePriority: s.optional(
    s.finite(-PRIORITY_MAX, PRIORITY_MAX),
    "Its priority after what it gained by waiting, counted now; lower goes first.",
  ),
  group: s.optional(s.name(), "The group of its batch."),
  usage: s.optional(usageView(), "What its attempts used in all, as they said at their ends."),
  attempts: s.optional(
    s.list(attemptUsage),
    "The same by attempt, in their order: the last 100 that said what they used.",
  ),
  approval: s.optional(approvalView, "Who is asked what, or what was answered."),
  progress: s.optional(s.anything(), "What its worker last said of it."),
  rounds: s.optional(s.list(round), "Of a loop: the rounds that have ended, since it was submitted or last retried."),
  warnings: s.optional(s.list(warning), "What a change of it could not do as asked, and why."),
};
export const taskView: s.Schema<wire.TaskView> = s.namedAnswer("Task", {
  ...shownTask,
  held: s.optional(
    s.oneOf("never-fits", "budget", "no-workers"),
    "No worker here could ever run it, its budget has no room, or no worker is here.",
  ),
  heldUntil: s.optional(s.instant(), "When the clock alone ends that; absent if it takes somebody."),
});

/** What a task sees of one that it needed. A fact that the view of a task gains goes here too. */
export const input: s.Schema<wire.Input> = s.namedAnswer("Input", {
  taskId: s.name(),
  state: taskState(),
  result: s.optional(
    s.anything(),
    "What it answered. All results that a task sees have 256 KiB together, in the order of its needs: one that does " +
      "not fit is { file: { hash, size } }, and GET /files/{hash}?task= has it.",
  ),
  error: s.optional(s.text(0, 100_000)),
  branch: s.optional(s.text(1, 4096), "The branch that an exec worker kept its work on."),
  usage: s.optional(usageView(), "What its attempts used; absent if none said, or its record was gone before."),
  files: s.optional(fileRefs(), "The files it left: GET /files/{hash} has each."),
});
export const inputs: s.Schema<wire.Inputs> = s.table(input, s.text(1, 256));
const forAttempt: Fields<Pick<wire.AssignedView, "inputs" | "round">> = {
  inputs: s.optional(
    inputs,
    "How the tasks ended that it needs, each by its name, its id or `parent`. Absent if it needs none.",
  ),
  round: s.optional(currentRound, "Of a loop: which round this is, and what the one before left for it."),
};
export const assignedView: s.Schema<wire.AssignedView> = s.namedAnswer("AssignedTask", { ...shownTask, ...forAttempt });
const { taskId: _taskId, state: _state, attempt: _attempt, worker: _worker, ...shownLeanly } = shownTask;
/** The same without what its worker knows without it. */
export const leanFields: Fields<Omit<wire.AssignedView, "taskId" | "state" | "attempt" | "worker">> = {
  ...shownLeanly,
  ...forAttempt,
};
