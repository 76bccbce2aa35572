/**
 * What callers ask about tasks that are there already: pages, changes, cancelling, reasons, output.
 */

import type {
  CancelBody,
  CancelFilter,
  Cancelled,
  CancelledMany,
  CancelWhereBody,
  LogsQuery,
  PatchBody,
  TaskLogs,
  TaskPage,
  TasksQuery,
  WaitQuery,
  WhyAhead,
  WhyAnswer,
  WhyCondition,
  WhyQuery,
} from "../generated/task-calls.ts";
import * as s from "../schema/schema.ts";
import { PAGE_MAX } from "../wire/endpoints.ts";
import { TASK_STATES, type TaskState, WAIT_MS_DEFAULT, WAIT_MS_MAX } from "../wire/task-state.ts";
import { priority, taskView } from "./tasks.ts";

export type * from "../generated/task-calls.ts";

/** Which tasks. */
export type TaskFilter = Omit<TasksQuery, "limit" | "cursor">;

export const PAGE_DEFAULT = 100;
const TAIL_LINES_MAX = 10_000;
export const TAIL_LINES_DEFAULT = 200;

const filterState = (): s.Schema<TaskState> => s.oneOf<TaskState>(...TASK_STATES);
const filterFields: s.Fields<Omit<TaskFilter, "state">> = {
  agentId: s.optional(s.name()),
  project: s.optional(s.name()),
  type: s.optional(s.name()),
};

export const tasksQuery: s.Schema<TasksQuery> = s.object<TasksQuery>({
  ...filterFields,
  state: s.described(
    s.optional(s.list(filterState(), { min: 1, max: 100 })),
    "One or more, as in state=queued,running. Rejected tasks, which were never let in, are listed only if asked for.",
  ),
  limit: s.described(s.optional(s.whole(1, PAGE_MAX)), "How many at most; large tasks end a page sooner.", {
    default: PAGE_DEFAULT,
  }),
  cursor: s.described(
    s.optional(s.refined(s.text(1, 17), (value) => /^r?\d{1,16}$/.test(value), "the nextCursor of a former page")),
    "The nextCursor of the page before.",
  ),
});
export const taskPage: s.Schema<TaskPage> = s.component(
  "TaskPage",
  s.answer<TaskPage>({
    tasks: s.described(
      s.list(taskView),
      "In the order of submission, which does not change. Results are left out: read each task for its own.",
    ),
    count: s.described(s.whole(0), "Of this page."),
    nextCursor: s.described(s.optional(s.text(1, 17)), "Where to go on. Absent on the last page, and only there."),
  }),
);

export const patchBody: s.Schema<PatchBody> = s.object<PatchBody>({
  priority: s.optional(priority()),
  deadline: s.described(s.optional(s.nullable(s.instant())), "Null takes the deadline away."),
});
export const cancelBody: s.Schema<CancelBody> = s.object<CancelBody>({
  reason: s.described(s.optional(s.text(0, 1024)), "For people; it becomes the task's error."),
});
export const cancelled: s.Schema<Cancelled> = s.answer<Cancelled>({ status: s.oneOf("cancelled"), taskId: s.name() });

const cancelFilter: s.Schema<CancelFilter> = s.refined(
  s.object<CancelFilter>({
    ...filterFields,
    state: s.optional(
      s.either(
        filterState(),
        s.list(filterState(), { min: 1, max: 100 }),
        `one of ${TASK_STATES.join(", ")}, or a list of these`,
      ),
    ),
    all: s.described(s.optional(s.exactly(true)), "Every task there is; alone."),
  }),
  (filter) => {
    const given = Object.values(filter).filter((value) => value !== undefined).length;
    return given > 0 && (filter.all === undefined || given === 1);
  },
  "at least one of agentId, project, state and type; or { all: true }, alone, for every task",
);
export const cancelWhereBody: s.Schema<CancelWhereBody> = s.object<CancelWhereBody>(
  { filter: cancelFilter },
  { examples: [{ filter: { project: "site", state: ["waiting", "queued"] } }] },
);
export const cancelledMany: s.Schema<CancelledMany> = s.answer<CancelledMany>({
  status: s.oneOf("cancelled"),
  count: s.described(s.whole(0), "How many; at most 10 000 are cancelled at once, so repeat until it is 0."),
});

export const whyQuery: s.Schema<WhyQuery> = s.object<WhyQuery>({
  at: s.described(s.optional(s.whole(1)), "The number of an event: why it was not running then. Absent: now."),
});
export const waitQuery: s.Schema<WaitQuery> = s.object<WaitQuery>({
  timeoutMs: s.described(s.optional(s.whole(0, WAIT_MS_MAX)), "How long to wait for its end at most.", {
    default: WAIT_MS_DEFAULT,
  }),
});
export const logsQuery: s.Schema<LogsQuery> = s.object<LogsQuery>({
  attempt: s.described(s.optional(s.whole(1, 1_000_000_000)), "Which attempt; absent: the last."),
  tail: s.described(s.optional(s.whole(1, TAIL_LINES_MAX)), "How many lines from the end.", {
    default: TAIL_LINES_DEFAULT,
  }),
});
export const taskLogs: s.Schema<TaskLogs> = s.component(
  "TaskLogs",
  s.answer<TaskLogs>({
    taskId: s.name(),
    attempt: s.whole(1),
    text: s.described(s.text(0, 10_000_000), "The last lines of what the attempt wrote."),
    truncated: s.described(s.flag(), "Whether there was more before."),
  }),
);

const numberOrText = s.nullable(s.either(s.finite(-1e300, 1e300), s.text(0, 10_000), "a number or text"));
export const whyAnswer: s.Schema<WhyAnswer> = s.component(
  "Why",
  s.answer<WhyAnswer>({
    task: s.name(),
    state: s.oneOf<TaskState>(...TASK_STATES),
    summary: s.described(s.text(0, 10_000), "One sentence, for people."),
    conditions: s.described(
      s.list(
        s.answer<WhyCondition>({
          code: s.name(),
          ok: s.described(s.flag(), "Whether this condition lets the task through."),
          detail: s.text(0, 10_000),
          numbers: s.described(s.table(numberOrText), "What decides."),
        }),
      ),
      "Every condition between the task and its start, met or not.",
    ),
    ahead: s.answer<WhyAnswer["ahead"]>({
      count: s.described(s.whole(0), "Tasks of its agent that are ahead of it."),
      next: s.list(s.answer<WhyAhead>({ task: s.name(), agent: s.name(), reason: s.text(0, 1000) })),
    }),
    earliestStart: s.described(
      s.optional(s.instant()),
      "When time alone could let it start; absent if that depends on other events.",
    ),
  }),
);
