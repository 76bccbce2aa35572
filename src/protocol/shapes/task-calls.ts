/**
 * What callers ask about tasks that are there already: pages, changes, cancelling, reasons, output.
 */
import type * as wire from "../generated/task-calls.ts";
import * as s from "../schema/schema.ts";
import { PAGE_MAX, SKIP_MAX } from "../wire/endpoints.ts";
import { TASK_STATES, type TaskState, WAIT_MS_DEFAULT, WAIT_MS_MAX } from "../wire/task-state.ts";
import { labelFilter } from "./labels.ts";
import { priority, taskView } from "./tasks.ts";

export const PAGE_DEFAULT = 100;
const TAIL_LINES_MAX = 10_000;
export const TAIL_LINES_DEFAULT = 200;

const filterState = (): s.Schema<TaskState> => s.oneOf<TaskState>(...TASK_STATES);
const filterFields: s.Fields<
  Pick<wire.TasksQuery, "agentId" | "project" | "type" | "label" | "group" | "parent" | "root">
> = {
  agentId: s.optional(s.name()),
  project: s.optional(s.name()),
  type: s.optional(s.name()),
  label: s.optional(labelFilter(), "Only with this label, as in label=team=web; given again, with all of them."),
  group: s.optional(s.name(), "Only of this group."),
  parent: s.optional(s.name(), "Only tasks that name this one as parent."),
  root: s.optional(s.name(), "Only this task and all below it: its children, theirs, and so on."),
};

export const tasksQuery: s.Schema<wire.TasksQuery> = s.object({
  ...filterFields,
  state: s.optional(
    s.list(filterState(), { min: 1, max: 100 }),
    "One or more, as in state=queued,running. Rejected tasks, which were never let in, are listed only if asked for.",
  ),
  order: s.optional(
    s.oneOf("oldest", "newest", "asc", "desc"),
    "Whether those that were submitted first come first, or last; asc is oldest, desc is newest.",
    { default: "oldest" },
  ),
  q: s.optional(
    s.text(1, 200),
    "Only those whose id, agent, project, type, a label, or action where that is one word, holds this text, " +
      "in either case.",
  ),
  asking: s.optional(s.flag(), "Only those that wait for somebody's word; false: only those that do not."),
  since: s.optional(s.instant(), "Only those that were submitted or have ended since."),
  limit: s.optional(s.whole(1, PAGE_MAX), "How many at most; large tasks end a page sooner.", {
    default: PAGE_DEFAULT,
  }),
  cursor: s.optional(
    s.refined(s.text(1, 17), (value) => /^r?\d{1,16}$/.test(value), "the nextCursor of a former page"),
    "The nextCursor of the page before.",
  ),
  skip: s.optional(s.whole(0, SKIP_MAX), "How many of those behind the cursor are passed over.", { default: 0 }),
});
export const taskPage: s.Schema<wire.TaskPage> = s.namedAnswer("TaskPage", {
  tasks: s.described(
    s.list(taskView),
    "In the order of submission, which does not change, or the newest first. Results are left out: read each task.",
  ),
  count: s.described(s.whole(0), "Of this page."),
  total: s.optional(
    s.whole(0),
    "How many match behind the cursor, those passed over among them; where the newest come first.",
  ),
  nextCursor: s.optional(s.text(1, 17), "Where to go on. Absent on the last page, and only there."),
});

export const patchBody: s.Schema<wire.PatchBody> = s.object({
  priority: s.optional(priority()),
  deadline: s.optional(s.nullable(s.instant()), "Null takes the deadline away."),
});
export const cancelBody: s.Schema<wire.CancelBody> = s.object({
  reason: s.optional(s.text(0, 1024), "For people; it becomes the task's error."),
});
export const cancelled: s.Schema<wire.Cancelled> = s.answer({ status: s.oneOf("cancelled"), taskId: s.name() });

const cancelFilter: s.Schema<wire.CancelFilter> = s.refined(
  s.object<wire.CancelFilter>({
    ...filterFields,
    state: s.optional(
      s.either(
        filterState(),
        s.list(filterState(), { min: 1, max: 100 }),
        `one of ${TASK_STATES.join(", ")}, or a list of these`,
      ),
    ),
    all: s.optional(s.exactly(true), "Every task there is; alone."),
  }),
  (filter) => {
    const given = Object.values(filter).filter((value) => value !== undefined).length;
    return given > 0 && (filter.all === undefined || given === 1);
  },
  "at least one of agentId, project, state, type, label, group, parent and root; " +
    "or { all: true }, alone, for every task",
);
export const cancelWhereBody: s.Schema<wire.CancelWhereBody> = s.object(
  { filter: cancelFilter },
  { examples: [{ filter: { project: "site", state: ["waiting", "queued"] } }] },
);
export const cancelledMany: s.Schema<wire.CancelledMany> = s.answer({
  status: s.oneOf("cancelled"),
  count: s.described(s.whole(0), "How many; at most 10 000 are cancelled at once, so repeat until it is 0."),
});

export const whyQuery: s.Schema<wire.WhyQuery> = s.object({
  at: s.optional(s.whole(1), "The number of an event: why it was not running then. Absent: now."),
  time: s.optional(s.instant(), "An instant, where there is no `at`: as of the last event up to it."),
});
export const waitQuery: s.Schema<wire.WaitQuery> = s.object({
  timeoutMs: s.optional(s.whole(0, WAIT_MS_MAX), "How long to wait for its end at most.", { default: WAIT_MS_DEFAULT }),
});
export const logsQuery: s.Schema<wire.LogsQuery> = s.object({
  attempt: s.optional(s.whole(1, 1_000_000_000), "Which attempt; absent: the last."),
  tail: s.optional(s.whole(1, TAIL_LINES_MAX), "How many lines from the end.", { default: TAIL_LINES_DEFAULT }),
});
export const taskLogs: s.Schema<wire.TaskLogs> = s.namedAnswer("TaskLogs", {
  taskId: s.name(),
  attempt: s.whole(1),
  text: s.described(s.text(0, 10_000_000), "The last lines of what the attempt wrote."),
  truncated: s.described(s.flag(), "Whether there was more before."),
});

const numberOrText = s.nullable(s.either(s.finite(-1e300, 1e300), s.text(0, 10_000), "a number or text"));
export const whyAnswer: s.Schema<wire.WhyAnswer> = s.namedAnswer("Why", {
  task: s.name(),
  state: s.oneOf<TaskState>(...TASK_STATES),
  summary: s.described(s.text(0, 10_000), "One sentence, for people."),
  conditions: s.described(
    s.list(
      s.answer<wire.WhyCondition>({
        code: s.name(),
        ok: s.described(s.flag(), "Whether this condition lets the task through."),
        detail: s.text(0, 10_000),
        numbers: s.described(s.table(numberOrText), "What decides."),
      }),
    ),
    "Every condition between the task and its start, met or not.",
  ),
  ahead: s.answer<wire.WhyAnswer["ahead"]>({
    count: s.described(s.whole(0), "Tasks of its agent that are ahead of it."),
    next: s.list(s.answer<wire.WhyAhead>({ task: s.name(), agent: s.name(), reason: s.text(0, 1000) })),
  }),
  earliestStart: s.optional(s.instant(), "When time alone could let it start; absent if that depends on other events."),
});
