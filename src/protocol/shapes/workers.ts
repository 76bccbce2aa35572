/**
 * Workers on the wire: joining, and the one call by which a worker hears and says everything.
 *
 * `sync` is level-triggered: each answer lists all attempts the worker should hold and has not yet named, so a lost
 * answer loses nothing and every sync may be repeated.
 */
import type * as wire from "../generated/workers.ts";
import * as s from "../schema/schema.ts";
import { fileRefs } from "./files.ts";
import { assignedView, CAPABILITY_LENGTH_MAX, leanFields, resources } from "./tasks.ts";

export const SESSION_MAX = 256;
export const SLOTS_MAX = 100_000;
export const AHEAD_MAX = 10_000;
const CAPABILITIES_MAX = 10_000;
const PATTERNS_MAX = 100;
const NOTE_MAX = 1000;
/** How many of its tasks a worker is shown with. */
export const WORKER_TASKS_MAX = 100;
const ATTEMPT_MAX = 1_000_000_000;
const REPORTS_MAX = 10_000;
const TOKENS_MAX = 1_000_000_000_000;
/** Of a report on the wire: longer than what a task keeps of it (core/base/error-text.ts). */
const ERROR_SENT_MAX = 1_048_576;

const capabilities = (): s.Schema<readonly string[]> =>
  s.noted(s.list(s.name(CAPABILITY_LENGTH_MAX), { max: CAPABILITIES_MAX }), {
    expected: `a list of at most ${CAPABILITIES_MAX} names`,
  });
const patterns = (): s.Schema<readonly string[]> =>
  s.noted(s.list(s.name(), { max: PATTERNS_MAX }), {
    expected: `a list of at most ${PATTERNS_MAX} names or patterns such as build-*`,
  });
const workerResources: s.Schema<wire.WorkerResources> = s.object({
  cpuMillicores: s.optional(s.nullable(s.whole(0)), "Null: as much as is asked for."),
  memoryBytes: s.optional(s.nullable(s.whole(0)), "Null: as much as is asked for."),
});
export const usage: s.Schema<wire.Usage> = s.namedObject(
  "Usage",
  {
    inputTokens: s.optional(s.whole(0, TOKENS_MAX)),
    outputTokens: s.optional(s.whole(0, TOKENS_MAX)),
    cacheCreationTokens: s.optional(s.whole(0, TOKENS_MAX)),
    cachedTokens: s.optional(s.whole(0, TOKENS_MAX), "Tokens read from a cache. They are shown, and not charged."),
    cost: s.optional(s.finite(0, 1_000_000_000), "What it cost, in a currency of your own. It is shown and summed up."),
  },
  { expected: "an object with inputTokens and outputTokens" },
);

const workerFields: s.Fields<wire.WorkerOptions> = {
  id: s.optional(s.name(), "Keep it over restarts, so that the worker keeps its name."),
  slots: s.optional(s.whole(1, SLOTS_MAX), "How many tasks at once.", { default: 1 }),
  capabilities: s.optional(capabilities()),
  resources: s.optional(workerResources),
  zone: s.optional(s.nullable(s.name())),
  actions: s.optional(
    s.nullable(patterns()),
    "Which tasks it takes, by their action: names, or patterns with `*`. Absent: all, but no task that brings " +
      "what is to be run (`exec` with a command, or with the work of a plan's task): a worker takes those only " +
      "if it names `exec`, or a pattern for it. An action that is no name (with blanks, or over 128 characters) " +
      "is taken by `*` only.",
  ),
  types: s.optional(s.nullable(patterns()), "The same, by their type."),
  projects: s.optional(s.nullable(patterns()), "The same, by their project."),
  worktrees: s.optional(
    s.nullable(s.whole(0, SLOTS_MAX)),
    "How many of its tasks may have a worktree at the same time: those that bring what is to be run and want one. " +
      "Absent or null: any number.",
  ),
};
export const workerOptions: s.Schema<wire.WorkerOptions> = s.object(workerFields);
export const joinBody: s.Schema<wire.JoinBody> = s.component(
  "JoinBody",
  s.refined(
    s.object<wire.JoinBody>(
      {
        ...workerFields,
        endpoint: s.optional(s.webUrl(), "A push worker: Drover posts each task to this address."),
        path: s.optional(
          s.refined(s.text(1, 2048), (value) => value.startsWith("/"), "a path that begins with /, such as /run"),
          "The path under the endpoint; {tabId} and {taskId} in it are filled in.",
        ),
      },
      { examples: [{ id: "mac-1", slots: 4, capabilities: ["git"] }] },
    ),
    ({ endpoint, path }) => path === undefined || endpoint !== undefined,
    "an object that has a path only beside an endpoint",
  ),
);
export const joined: s.Schema<wire.Joined> = s.namedAnswer("Joined", {
  workerId: s.name(),
  session: s.described(s.text(1, SESSION_MAX), "Say it in every sync: it tells this run of the worker from another."),
  leaseMs: s.described(s.whole(1), "A worker silent for so long is given up."),
  maxWorktrees: s.optional(s.whole(1), "How many worktrees a worker of this fleet may keep."),
  brief: s.optional(s.exactly(true), "This server takes brief syncs."),
  ahead: s.optional(s.exactly(true), "This server gives tasks ahead, and takes back those that were not begun."),
  tokenKey: s.optional(
    s.text(1, 256),
    "This server takes lean syncs, and this is what their worker makes the tokens of its attempts with: " +
      "drover-attempt.{id}.{attempt}.{code}, where the id is in base64url, and the code is the SHA-512/256 of " +
      "`{tokenKey} {taskSeq} {attempt} {taskId}` in base64url. Show it to no one.",
  ),
});

const attemptName = { taskId: s.name(), attempt: s.whole(1, ATTEMPT_MAX) };
export const taskSeq = (): s.OptionalSchema<number> =>
  s.optional(
    s.whole(1),
    "The number of the event that submitted the task, as its assignment says it. It tells the task from a later one " +
      "of the same id: a worker that says it is never heard of another task than it means.",
  );
const attemptRef: s.Fields<wire.AttemptRef> = { ...attemptName, taskSeq: taskSeq() };
export const syncBody: s.Schema<wire.SyncBody> = s.namedObject("SyncBody", {
  session: s.optional(s.text(1, SESSION_MAX), "As joining gave it. A worker token must say it."),
  n: s.optional(s.whole(0), "Counts up. A lower one than seen before is refused: stale_sync."),
  want: s.optional(s.whole(0, SLOTS_MAX), "How many more it would take; absent: its free slots."),
  ahead: s.optional(
    s.whole(0, AHEAD_MAX),
    "If joining said so: how many it may hold beyond its slots. They are to be begun within moments. Nothing is " +
      "given ahead while a project may use the express lane.",
    { default: 0 },
  ),
  waitMs: s.optional(s.whole(0, 60_000), "Wait so long if there is nothing to say.", { default: 0 }),
  brief: s.optional(
    s.flag(),
    "If joining said that the server takes brief syncs. The answer then lists in results only those that were not " +
      "simply taken, says until when the lease holds once, and waits for waitMs also where results were reported.",
  ),
  lean: s.optional(
    s.flag(),
    "Beside brief, if joining gave a tokenKey. The answer then has named and tasks in the place of assignments.",
  ),
  status: s.optional(s.oneOf("ready", "overloaded", "draining")),
  note: s.optional(
    s.text(0, NOTE_MAX),
    "Why it takes nothing now, or nothing with a worktree; shown with the worker and by why. A sync without it " +
      "takes it back.",
  ),
  capabilities: s.optional(
    capabilities(),
    "What it offers from now on. A tab:… that another worker owned is this one's now.",
  ),
  resources: s.optional(workerResources),
  worktrees: s.optional(s.nullable(s.whole(0, SLOTS_MAX)), "How many of its tasks may have a worktree from now on."),
  running: s.optional(
    s.list(
      s.object<wire.RunningReport>({
        ...attemptRef,
        progress: s.optional(s.anything(), "Shown with the task; not kept."),
        usage: s.optional(usage),
      }),
      { max: REPORTS_MAX },
    ),
    "All attempts that run. One that ran and is missing is queued again; absent: all are renewed.",
  ),
  unbegun: s.optional(
    s.list(s.object<wire.AttemptRef>(attemptRef), { max: REPORTS_MAX }),
    "If joining said that tasks are given ahead: attempts that it gives back. They never began, and are queued again " +
      "at no cost.",
  ),
  results: s.optional(
    s.list(
      s.object<wire.ResultReport>({
        ...attemptRef,
        outcome: s.described(
          s.oneOf("done", "failed", "cancelled", "requeue", "skipped", "again", "ask"),
          "How it ended. requeue gives the task back; skipped says that there was nothing to do, and why is in " +
            "error; again asks for another round of its loop; ask parks it until somebody answers.",
        ),
        result: s.optional(s.anything(), "At most 256 KiB as JSON."),
        error: s.optional(s.text(0, ERROR_SENT_MAX)),
        usage: s.optional(usage),
        retryAfterMs: s.optional(s.finite(0, 31_556_952_000_000), "Rest at least so long."),
        rateLimited: s.optional(
          s.flag(),
          "With requeue: the provider said 429 or 529. It shuts the gate of the task's provider and costs nothing.",
        ),
        permanent: s.optional(s.flag(), "It would fail again: no further attempt."),
        question: s.optional(s.text(0, ERROR_SENT_MAX), "With ask: what is asked."),
        timeoutMs: s.optional(
          s.whole(1, 31_556_952_000_000),
          "With ask: how long there is to answer; absent: for ever.",
        ),
        note: s.optional(s.text(0, ERROR_SENT_MAX), "With again: what the next round of its loop is to see."),
        files: s.optional(fileRefs(), "With done or failed: the files it left, each put before by PUT /files/{hash}."),
      }),
      { max: REPORTS_MAX },
    ),
    "Attempts that have ended. Each is said again until an answer names it.",
  ),
  logPlace: s.optional(
    s.name(100),
    "It keeps the logs of its attempts and hands them in when asked. A name for where they lie, kept over restarts.",
  ),
});
export const leaveQuery: s.Schema<wire.LeaveQuery> = s.object({
  session: s.optional(
    s.text(1, SESSION_MAX),
    "As joining gave it: one that was replaced then does not touch its successor. A worker token must say it.",
  ),
});
const wantedLog: s.Schema<wire.WantedLog> = s.answer({
  id: s.described(s.name(), "Name it when handing the log in."),
  ...attemptName,
  lines: s.described(s.whole(1), "The last so many lines at most."),
  bytes: s.described(s.whole(1), "And no more bytes than this, as a JSON string."),
  taskAgeMs: s.optional(
    s.whole(0),
    "The task was submitted so long ago: a log last written before is of another task that had this id, and is none.",
  ),
});
export const leanTask: s.Schema<wire.LeanTask> = s.namedAnswer("LeanTask", leanFields);
export const syncAnswer: s.Schema<wire.SyncAnswer> = s.namedAnswer("SyncAnswer", {
  named: s.optional(
    s.list(
      s.answer<wire.NamedAssignment>({
        ...attemptRef,
        onLoss: s.optional(s.oneOf("fail"), "It must be named in running before it is begun."),
        goesOn: s.optional(s.exactly(true), "It was kept for this worker: do not give it back as unbegun."),
      }),
    ),
    "The first field of a lean answer: all attempts this worker should hold and has not yet named in running.",
  ),
  assignments: s.described(
    s.list(
      s.answer<wire.Assignment>({
        ...attemptRef,
        task: assignedView,
        leaseUntil: s.optional(s.instant(), "When the lease ends, unless it is renewed; absent in a brief answer."),
        token: s.optional(
          s.text(1, 1024),
          "By which the attempt submits children of its task and reads them, while it lasts. Show it to no one.",
        ),
      }),
    ),
    "All attempts this worker should hold and has not yet named in running. A lean answer has none here.",
  ),
  tasks: s.optional(
    s.list(leanTask),
    "The last field of a lean answer: the tasks of named, each in its place there. A program that only passes them " +
      "on to another need not read them. A runnableAt that is absent is createdAt, a depth or effectivePriority 0.",
  ),
  cancel: s.described(
    s.list(s.answer<wire.AttemptRef>(attemptRef)),
    "Stop these, and report them as cancelled. With taskSeq if the worker named one that is not its own any more so.",
  ),
  results: s.described(
    s.list(
      s.answer<wire.ResultAnswer>({
        ...attemptRef,
        accepted: s.described(s.flag(), "Whether it counts."),
        code: s.optional(
          s.name(),
          "duplicate: it had come before; stale_attempt: another counts; not_held, not_found, conflict; " +
            "files_missing: a file that it lists was not put.",
        ),
      }),
    ),
    "What became of each result that was reported; in a brief answer, of those that were not simply taken.",
  ),
  n: s.optional(s.whole(0), "Of the sync that it answers; an answer that has another one is to be passed over."),
  leaseUntil: s.instant(),
  heldMs: s.optional(
    s.whole(1),
    "For so long it was held: the lease lasts leaseMs from so long after the sync was sent.",
  ),
  tokenKey: s.optional(
    s.text(1, 256),
    "In a lean answer: what the worker makes the tokens of its attempts with from now on. It is another one behind a " +
      "server that was moved to another directory.",
  ),
  leaseMs: s.described(s.whole(1), "How long a lease is now; it may have changed since the worker joined."),
  maxWorktrees: s.optional(s.whole(1), "How many worktrees it may keep now; that may have changed too."),
  logs: s.optional(
    s.list(wantedLog),
    "Hand these in by POST /workers/{id}/logs, soon; only to a worker that named its logPlace.",
  ),
  over: s.optional(
    s.list(s.name()),
    "Tasks whose last attempt was here, which were to go on, and have ended: what is kept for them may go. Said for " +
      "a minute.",
  ),
  lost: s.optional(
    s.list(s.name(CAPABILITY_LENGTH_MAX)),
    "Tabs that another worker has named since: it owns them no more. Said until it names its capabilities anew.",
  ),
  drain: s.optional(s.exactly(true), "Finish what runs, take nothing more, leave."),
  closing: s.optional(s.exactly(true), "The server stops: keep what runs, and come back when it is there."),
});
const workerView: s.Schema<wire.WorkerView> = s.namedAnswer("Worker", {
  id: s.name(),
  kind: s.described(s.name(), "local, pull or push."),
  status: s.oneOf("idle", "busy", "overloaded", "draining", "unreachable"),
  slots: s.described(
    s.whole(0),
    "How many tasks it runs at once now: those it has, or as many as it limits itself to.",
  ),
  inFlight: s.described(s.whole(0), "How many it has: more than its slots while it fetches short tasks ahead."),
  capabilities: s.list(s.name(CAPABILITY_LENGTH_MAX)),
  note: s.optional(s.text(0, NOTE_MAX), "In its own words: why it takes nothing, or nothing with a worktree."),
  zone: s.optional(s.name()),
  actions: s.optional(s.list(s.name()), "Which tasks it takes, by their action; absent: all that bring no command."),
  types: s.optional(s.list(s.name()), "The same, by their type."),
  projects: s.optional(s.list(s.name()), "The same, by their project."),
  heldFor: s.optional(s.name(), "The large overdue task for which it is kept free."),
  endpoint: s.optional(s.webUrl(), "Where a push worker is posted its tasks."),
  path: s.optional(s.text(1, 2048)),
  resources: s.optional(resources, "What it offers; absent: as much as is asked for."),
  free: s.optional(resources, "What of it nothing runs on now."),
  tasks: s.described(s.list(s.name()), `What it runs, at most ${WORKER_TASKS_MAX} of them.`),
  worktrees: s.optional(s.whole(0), "How many of its tasks may have a worktree at the same time; absent: any number."),
  joinedAt: s.instant(),
});
export const workerList: s.Schema<wire.WorkerList> = s.answer({ workers: s.list(workerView), count: s.whole(0) });
export const workerStatus: s.Schema<wire.WorkerStatus> = s.answer({
  status: s.oneOf("draining", "left"),
  workerId: s.name(),
});
