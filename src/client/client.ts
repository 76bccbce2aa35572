/**
 * Drover over HTTP: one method for each call.
 *
 *     const drover = createClient();
 *     const { taskId } = await drover.submit({ agentId: "ann", action: "build" });
 *     const task = await drover.wait(taskId);
 *
 * Every call may be given an AbortSignal. Calls are made again where that is safe, and they are made safe where that is
 * possible: a task, a permit or a worker that the caller gave no id gets one, so that a repeat after a lost answer
 * is the same task, permit or worker.
 */

import type {
  Answered,
  Asked,
  BatchBody,
  CallName,
  CancelFilter,
  ConfigPatchBody,
  DropQuery,
  EventJson,
  EventsQuery,
  JoinBody,
  LeaveQuery,
  LogBody,
  LogsQuery,
  PatchBody,
  PauseBody,
  PermitBody,
  ProjectBody,
  ScheduleBody,
  SchedulesQuery,
  SettleBody,
  SyncBody,
  TaskBody,
  TasksQuery,
  TaskView,
} from "../protocol/index.ts";
import { isEnded, WAIT_MS_DEFAULT } from "../protocol/wire/index.ts";

import { ClientError } from "./client-error.ts";
import { type AfterLoss, type CallOptions, exchange, type Fetch, type Wiring } from "./exchange.ts";
import type { FollowOptions } from "./follow-events.ts";
import { type ClientOptions, readOptions } from "./read-options.ts";
import { DEFAULT_URL, readAddress } from "./server-address.ts";
import { restFor } from "./try-again.ts";

type Options = CallOptions;
type Reply<Name extends CallName> = Promise<Answered<Name>>;

export type Client = {
  readonly url: string;
  submit(task: TaskBody, options?: Options): Reply<"submit">;
  submitBatch(batch: BatchBody, options?: Options): Reply<"submitBatch">;
  tasks(query?: TasksQuery, options?: Options): Reply<"tasks">;
  task(id: string, options?: Options): Reply<"task">;
  patch(id: string, change: PatchBody, options?: Options): Reply<"patch">;
  cancel(id: string, options?: Options & { readonly reason?: string }): Reply<"cancel">;
  /** Cancels every live task the filter names, at most 10 000 at once. */
  cancelWhere(filter: CancelFilter, options?: Options): Reply<"cancelWhere">;
  retry(id: string, options?: Options): Reply<"retry">;
  why(id: string, options?: Options & { readonly at?: number }): Reply<"why">;
  /** Resolves with the task when it has ended; with `withinMs`, fails with code `timeout` if it has not by then. */
  wait(id: string, options?: Options & { readonly withinMs?: number }): Promise<TaskView>;
  logs(id: string, options?: Options & LogsQuery): Reply<"logs">;
  stats(options?: Options): Reply<"stats">;
  queue(options?: Options): Reply<"queue">;
  config(options?: Options): Reply<"config">;
  patchConfig(patch: ConfigPatchBody, options?: Options): Reply<"patchConfig">;
  reload(options?: Options): Reply<"reload">;
  pause(target?: PauseBody, options?: Options): Reply<"pause">;
  resume(target?: PauseBody, options?: Options): Reply<"resume">;
  projects(options?: Options): Reply<"projects">;
  project(id: string, options?: Options): Reply<"project">;
  putProject(id: string, settings: ProjectBody, options?: Options): Reply<"putProject">;
  workers(options?: Options): Reply<"workers">;
  joinWorker(worker: JoinBody, options?: Options): Reply<"joinWorker">;
  sync(id: string, said: SyncBody, options?: Options): Reply<"sync">;
  handInLog(id: string, log: LogBody, options?: Options): Reply<"handInLog">;
  drainWorker(id: string, options?: Options & LeaveQuery): Reply<"drainWorker">;
  leaveWorker(id: string, query?: LeaveQuery, options?: Options): Reply<"leaveWorker">;
  schedules(query?: SchedulesQuery, options?: Options): Reply<"schedules">;
  schedule(id: string, options?: Options): Reply<"schedule">;
  putSchedule(id: string, schedule: ScheduleBody, options?: Options): Reply<"putSchedule">;
  removeSchedule(id: string, options?: Options): Reply<"removeSchedule">;
  askPermit(permit: PermitBody, options?: Options): Reply<"askPermit">;
  settlePermit(id: string, outcome?: SettleBody, options?: Options): Reply<"settlePermit">;
  dropPermit(id: string, options?: Options & DropQuery): Reply<"dropPermit">;
  gates(options?: Options): Reply<"gates">;
  gate(id: string, options?: Options): Reply<"gate">;
  resetGate(id: string, options?: Options): Reply<"resetGate">;
  removeGate(id: string, options?: Options): Reply<"removeGate">;
  /** The events of the log as they happen, each once and in order, over as many connections as that takes. */
  events(options?: FollowOptions): AsyncGenerator<EventJson>;
  eventPage(query?: EventsQuery, options?: Options): Reply<"events">;
  health(options?: Options): Reply<"health">;
  ready(options?: Options): Reply<"ready">;
  metrics(options?: Options): Reply<"metrics">;
  openapi(options?: Options): Reply<"openapi">;
};

const TIMEOUT_MS = 30_000;
const RETRIES = 4;

export function createClient(given: ClientOptions = {}): Client {
  const options = readOptions(given);
  const { url = DEFAULT_URL, token, timeoutMs = TIMEOUT_MS, retries = RETRIES, rest = restFor } = options;
  const address = readAddress(url, token);
  // Looked up at each call, so that a program may put its own in the place of the global one at any time.
  const fetch: Fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
  const wiring: Wiring = { address, fetch, timeoutMs, retries, rest };
  return {
    url: address.base,
    ...taskMethods(wiring),
    ...schedulerMethods(wiring),
    ...fleetMethods(wiring),
    ...permitMethods(wiring),
    ...serverMethods(wiring),
  };
}

/** Asks with what is known to be safe to repeat because this client made it so. */
type Ask = <Name extends CallName>(
  name: Name,
  asked: Asked<Name>,
  options?: Options,
  afterLoss?: AfterLoss<Answered<Name>>,
) => Reply<Name>;
const askOf =
  (wiring: Wiring): Ask =>
  (name, asked, options, afterLoss) =>
    exchange(wiring, name, asked, options, afterLoss);

/** Gone already, and this very call was perhaps what took it away. */
const ifGone =
  <Answer>(answer: Answer): AfterLoss<Answer> =>
  ({ code }) =>
    code === "not_found" ? answer : undefined;

type TaskMethods = Pick<
  Client,
  "submit" | "submitBatch" | "tasks" | "task" | "patch" | "cancel" | "cancelWhere" | "retry" | "why" | "wait" | "logs"
>;

function taskMethods(wiring: Wiring): TaskMethods {
  const ask = askOf(wiring);

  async function wait(id: string, { withinMs, ...options }: Options & { withinMs?: number } = {}): Promise<TaskView> {
    const until = withinMs === undefined ? Number.POSITIVE_INFINITY : performance.now() + withinMs;
    for (;;) {
      const left = Math.max(0, until - performance.now());
      const timeoutMs = Math.ceil(Math.min(left, WAIT_MS_DEFAULT));
      const task = await ask("wait", { params: { id }, query: { timeoutMs } }, options);
      if (isEnded(task.state)) return task;
      if (performance.now() >= until)
        throw new ClientError("timeout", `task ${id} is ${task.state} after ${withinMs} ms`, {
          retryable: true,
          details: { taskId: id, state: task.state },
        });
    }
  }

  return {
    submit: (body, options) => ask("submit", { body }, options),
    submitBatch: (body, options) => ask("submitBatch", { body }, options),
    tasks: (query = {}, options) => ask("tasks", { query }, options),
    task: (id, options) => ask("task", { params: { id } }, options),
    patch: (id, body, options) => ask("patch", { params: { id }, body }, options),
    cancel: (id, { reason, ...options } = {}) =>
      ask("cancel", { params: { id }, body: reason === undefined ? {} : { reason } }, options, (refusal) =>
        refusal.code === "conflict" && refusal.details.state === "cancelled"
          ? { status: "cancelled", taskId: id }
          : undefined,
      ),
    cancelWhere: (filter, options) => ask("cancelWhere", { body: { filter } }, options),
    retry: (id, options) => ask("retry", { params: { id } }, options),
    why: (id, { at, ...options } = {}) =>
      ask("why", { params: { id }, query: at === undefined ? {} : { at } }, options),
    wait,
    logs: (id, { attempt, tail, ...options } = {}) => {
      const query: LogsQuery = {
        ...(attempt === undefined ? {} : { attempt }),
        ...(tail === undefined ? {} : { tail }),
      };
      return ask("logs", { params: { id }, query }, options);
    },
  };
}

type SchedulerMethods = Pick<
  Client,
  "stats" | "queue" | "config" | "patchConfig" | "reload" | "pause" | "resume" | "projects" | "project" | "putProject"
>;

function schedulerMethods(wiring: Wiring): SchedulerMethods {
  const ask = askOf(wiring);
  return {
    stats: (options) => ask("stats", {}, options),
    queue: (options) => ask("queue", {}, options),
    config: (options) => ask("config", {}, options),
    patchConfig: (body, options) => ask("patchConfig", { body }, options),
    reload: (options) => ask("reload", {}, options),
    pause: (body = {}, options) => ask("pause", { body }, options),
    resume: (body = {}, options) => ask("resume", { body }, options),
    projects: (options) => ask("projects", {}, options),
    project: (id, options) => ask("project", { params: { id } }, options),
    putProject: (id, body, options) => ask("putProject", { params: { id }, body }, options),
  };
}

type FleetMethods = Pick<
  Client,
  | ("workers" | "joinWorker" | "sync" | "handInLog" | "drainWorker" | "leaveWorker")
  | ("schedules" | "schedule" | "putSchedule" | "removeSchedule")
>;

function fleetMethods(wiring: Wiring): FleetMethods {
  const ask = askOf(wiring);
  return {
    workers: (options) => ask("workers", {}, options),
    joinWorker: (body, options) => ask("joinWorker", { body }, options),
    sync: (id, body, options) => ask("sync", { params: { id }, body }, options),
    handInLog: (id, body, options) => ask("handInLog", { params: { id }, body }, options),
    drainWorker: (id, { session, ...options } = {}) =>
      ask("drainWorker", { params: { id }, query: saidBy(session) }, options),
    leaveWorker: (id, query = {}, options) =>
      ask("leaveWorker", { params: { id }, query }, options, ifGone({ status: "left", workerId: id })),
    schedules: (query = {}, options) => ask("schedules", { query }, options),
    schedule: (id, options) => ask("schedule", { params: { id } }, options),
    putSchedule: (id, body, options) => ask("putSchedule", { params: { id }, body }, options),
    removeSchedule: (id, options) =>
      ask("removeSchedule", { params: { id } }, options, ifGone({ status: "removed", id })),
  };
}

const saidBy = (session: string | undefined): { session?: string } => (session === undefined ? {} : { session });

type PermitMethods = Pick<
  Client,
  "askPermit" | "settlePermit" | "dropPermit" | "gates" | "gate" | "resetGate" | "removeGate"
>;

function permitMethods(wiring: Wiring): PermitMethods {
  const ask = askOf(wiring);
  return {
    askPermit: (body, options) => ask("askPermit", { body }, options),
    settlePermit: (id, body = {}, options) =>
      ask("settlePermit", { params: { id }, body }, options, ifGone({ status: "settled", permitId: id })),
    dropPermit: (id, { session, ...options } = {}) =>
      ask(
        "dropPermit",
        { params: { id }, query: saidBy(session) },
        options,
        ifGone({ status: "dropped", permitId: id }),
      ),
    gates: (options) => ask("gates", {}, options),
    gate: (id, options) => ask("gate", { params: { id } }, options),
    resetGate: (id, options) => ask("resetGate", { params: { id } }, options),
    removeGate: (id, options) =>
      ask("removeGate", { params: { id } }, options, ifGone({ status: "removed", gate: id })),
  };
}

function serverMethods(
  wiring: Wiring,
): Pick<Client, "events" | "eventPage" | "health" | "ready" | "metrics" | "openapi"> {
  const ask = askOf(wiring);
  return {
    events: async function* (options = {}) {
      yield* (await import("./follow-events.ts")).followEvents(wiring, options);
    },
    eventPage: (query = {}, options) => ask("events", { query }, options),
    health: (options) => ask("health", {}, options),
    ready: (options) => ask("ready", {}, options),
    metrics: (options) => ask("metrics", {}, options),
    openapi: (options) => ask("openapi", {}, options),
  };
}
