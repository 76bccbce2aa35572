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
import type * as calls from "../protocol/calls/index.ts";
import type * as wire from "../protocol/index.ts";
import { isEnded } from "../protocol/wire/index.ts";
import { kindInWords, present } from "../std/plain-json.ts";
import { createAddresses, DEFAULT_URL, leadsBy } from "./addresses.ts";
import type { CallOptions } from "./call-options.ts";
import { ClientError } from "./client-error.ts";
import { type AfterLoss, exchange, type Gather, restFor, type Wiring } from "./exchange.ts";
import type { Fetch } from "./fetch.ts";
import type { ClientFiles } from "./files.ts";
import type { FollowOptions } from "./follow-events.ts";
import { createPermitAsks, type PermitAskOptions } from "./permit-asks.ts";
import { type ClientOptions, readOptions } from "./read-options.ts";
import { createTurns } from "./turns.ts";
import type { Ask, Look, WaitUntil } from "./waited.ts";
import type { Waited } from "./watch.ts";
import { whenMet } from "./when-met.ts";

type Options = CallOptions;
type Reply<Name extends wire.CallName> = Promise<wire.Answered<Name>>;

/** Drover over HTTP. What it has in common with the embedded engine is `SharedCalls`; each call takes a signal too. */
export type Client = AsyncDisposable & {
  /** The address of the server; those of several nodes are separated by commas. */
  readonly url: string;
  /**
   * Takes no more calls, which are refused with `closed`, and resolves when every call that was made has its answer.
   * Who reads `events` or `files.open` may read on. A program that lets go of its client without this loses nothing
   * either: what was asked for still goes out.
   */
  close(): Promise<void>;
  /** Submits a task; answers when it is durable. A task without an id gets one, so that it may be sent again. */
  submit<Params extends object = wire.AnyParams>(task: wire.TaskBody<Params>, options?: Options): Reply<"submit">;
  /** Submits many tasks at once. A bad item never fails the others; items may need each other by id. */
  submitBatch(batch: wire.BatchBody, options?: Options): Reply<"submitBatch">;
  /** Pages through tasks, in the order of submission. */
  tasks(query?: wire.TasksFilter, options?: Options): Reply<"tasks">;
  /** Reads a task. */
  task<Result = unknown, Params extends object = wire.AnyParams>(
    id: string,
    options?: Options,
  ): Promise<wire.TaskView<Params, Result>>;
  /** Changes the priority or deadline of a task. */
  patch(id: string, change: wire.PatchBody, options?: Options): Reply<"patch">;
  /** Cancels a task at once; what runs is told to stop. One that has ended stays as it is: `conflict`. */
  cancel(id: string, options?: Options & wire.CancelBody): Reply<"cancel">;
  /** Cancels every live task the filter names, or all of them, at most 10 000 at once. */
  cancelWhere(filter: wire.CancelFilter, options?: Options): Reply<"cancelWhere">;
  /** Approves what a parked task asks, or denies it. */
  approve(id: string, answer?: Options & wire.ApproveBody): Reply<"approve">;
  /** Runs a failed, cancelled or skipped task again, as a new iteration. */
  retry(id: string, options?: Options): Reply<"retry">;
  /** Why a task is not running, condition by condition, now or as of an event. */
  why(id: string, options?: Options & wire.WhyQuery): Reply<"why">;
  /** Resolves with the task when it has ended; with `withinMs`, fails with code `timeout` if it has not by then. */
  wait<Result = unknown, Params extends object = wire.AnyParams>(
    id: string,
    options?: WaitOptions,
  ): Promise<wire.TaskView<Params, Result>>;
  /** The end of what an attempt wrote, as its exec worker keeps it. */
  logs(id: string, options?: Options & wire.LogsQuery): Reply<"logs">;
  /** What a task waits for, and what waits for it. */
  links(id: string, options?: Options & wire.LinksQuery): Reply<"links">;
  /** How far the tasks of a batch are. */
  group(id: string, options?: Options): Reply<"group">;
  /** Resolves when all tasks of a group have ended; with `withinMs`, fails with code `timeout` if not by then. */
  waitGroup(id: string, options?: WaitOptions): Reply<"waitGroup">;
  /** Cancels what has not ended of a group. */
  cancelGroup(id: string, options?: Options & wire.CancelBody): Reply<"cancelGroup">;
  /** Runs the failed, cancelled and skipped tasks of a group again. */
  retryGroup(id: string, options?: Options): Reply<"retryGroup">;
  /** What was used, summed up by project, agent, type, day or a label. */
  usage(query?: wire.UsageQuery, options?: Options): Reply<"usage">;
  /** Queues, totals and the rules in force. */
  stats(options?: Options): Reply<"stats">;
  /** How things stood, every ten seconds of the last six hours. */
  history(query?: wire.HistoryQuery, options?: Options): Reply<"history">;
  /** Queued tasks that need a person: those that can never run here, and those that wait too long. */
  stuck(options?: Options): Reply<"stuck">;
  /** Who waits, by project and agent, with the head of each queue; bounded. */
  queue(options?: Options): Reply<"queue">;
  /** What runs and what starts next, in order, with totals: of the tasks and of the calls; bounded. */
  line(query?: wire.LineQuery, options?: Options): Reply<"line">;
  /** The scheduler section in force. */
  config(options?: Options): Reply<"config">;
  /** Changes fields of the scheduler section, all or nothing. It lies over the file and survives a restart. */
  patchConfig(patch: wire.ConfigPatchBody, options?: Options): Reply<"patchConfig">;
  /** Has the server read its config file again; a bad file changes nothing. */
  reload(options?: Options): Reply<"reload">;
  /** Starts nothing more: of the fleet, a project or a task; what runs goes on. */
  pause(target?: wire.PauseBody, options?: Options): Reply<"pause">;
  /** Takes a pause back. */
  resume(target?: wire.PauseBody, options?: Options): Reply<"resume">;
  /** All projects: weight, budget, charge, level, target. */
  projects(options?: Options): Reply<"projects">;
  /** One project. */
  project(id: string, options?: Options): Reply<"project">;
  /** Registers a project, or changes its settings; what is absent keeps its value. */
  putProject(id: string, settings: wire.ProjectBody, options?: Options): Reply<"putProject">;
  /** All workers. */
  workers(options?: Options): Reply<"workers">;
  /** Joins as a worker. `startWorker` of drover/worker does this and all that follows. */
  joinWorker(worker: wire.JoinBody, options?: Options): Reply<"joinWorker">;
  /** Says what runs and what has ended; hears what to run and what to stop. */
  sync(id: string, said: wire.SyncBody, options?: Options): Reply<"sync">;
  /** Hands in the end of a log that the answer of a sync asked for. */
  handInLog(id: string, log: wire.LogBody, options?: Options): Reply<"handInLog">;
  /** Gives a worker nothing more, and lets it finish. */
  drainWorker(id: string, options?: Options & wire.LeaveQuery): Reply<"drainWorker">;
  /** Leaves; what the worker held is queued again. */
  leaveWorker(id: string, query?: wire.LeaveQuery, options?: Options): Reply<"leaveWorker">;
  /** Pages through recurring tasks, by their ids. */
  schedules(query?: wire.SchedulesQuery, options?: Options): Reply<"schedules">;
  /** One recurring task, and when it is next due. */
  schedule(id: string, options?: Options): Reply<"schedule">;
  /** Creates or replaces a recurring task. */
  putSchedule(id: string, schedule: wire.ScheduleBody, options?: Options): Reply<"putSchedule">;
  /** Removes a recurring task; what it has submitted stays. */
  removeSchedule(id: string, options?: Options): Reply<"removeSchedule">;
  /**
   * Asks for the right to make one LLM call. The same id again is the same ticket and keeps its place. A call that
   * is given up by its signal drops its ticket, unless it is to `keepTicket`.
   */
  askPermit(permit: wire.PermitBody, options?: PermitAskOptions): Reply<"askPermit">;
  /** Says what came of the call, and gives the permit back. */
  settlePermit(id: string, outcome?: wire.SettleBody, options?: Options): Reply<"settlePermit">;
  /** Gives up a ticket, or a permit that was not used. */
  dropPermit(id: string, options?: Options & wire.DropQuery): Reply<"dropPermit">;
  /** All gates: what is out, what waits, what holds them. */
  gates(options?: Options): Reply<"gates">;
  /** One gate: how it stands, its totals, and the calls that are out or wait. */
  gate(id: string, options?: Options): Reply<"gate">;
  /** Lifts the block of a gate, and forgets its throttles: it begins with a probe. */
  resetGate(id: string, options?: Options): Reply<"resetGate">;
  /** Removes a gate that the config does not name and that is not in use. */
  removeGate(id: string, options?: Options): Reply<"removeGate">;
  /** Tasks that are put as one. */
  readonly plans: ClientPlans;
  /** The files that tasks leave. */
  readonly files: ClientFiles;
  /** The events of the log as they happen, each once and in order, over as many connections as that takes. */
  events(options?: FollowOptions): AsyncGenerator<wire.EventJson>;
  /** The events of the log with their hashes: a page of them. */
  eventPage(query?: wire.EventsQuery, options?: Options): Reply<"events">;
  /** Who the token speaks for. */
  whoami(options?: Options): Reply<"whoami">;
  /** Whether anything has happened, and how much waits and runs. */
  pulse(options?: Options): Reply<"pulse">;
  /** Every knob in force, and who set it: file and line, variable, flag, patch or nobody. */
  settings(options?: Options): Reply<"settings">;
  /** Hashes the whole log anew, and says up to where it is as it was written. */
  verify(options?: Options): Reply<"verify">;
  /** Whether the process is alive. */
  health(options?: Options): Reply<"health">;
  /** Whether it takes work: 503 while it starts or shuts down, or when its log has failed. */
  ready(options?: Options): Reply<"ready">;
  /** Numbers for Prometheus. */
  metrics(options?: Options): Reply<"metrics">;
  /** The OpenAPI document of the server. */
  openapi(options?: Options): Reply<"openapi">;
  /** The nodes of the cluster, how far each is, and the health of their journal. */
  cluster(options?: Options): Reply<"cluster">;
};

/** Plans over HTTP: what the embedded engine has too, and each call takes a signal. */
export type ClientPlans = {
  /** Runs a plan or goes on with it; the document is a plan file as JSON. All of it is taken, or nothing. */
  put(id: string, document: wire.PlanDocument, options?: Options & wire.PutPlanQuery): Reply<"putPlan">;
  /** A page of plans, the one that was put last first. */
  list(query?: wire.PlansQuery, options?: Options): Reply<"plans">;
  /** How far a plan is, task by task. */
  get(id: string, options?: Options & wire.PlanQuery): Reply<"plan">;
  /** The plan, once all of its tasks have ended. */
  wait(id: string, options?: WaitOptions): Reply<"plan">;
  /** Cancels what has not ended. */
  cancel(id: string, options?: Options & wire.CancelBody): Reply<"cancelPlan">;
  /** Runs the failed, cancelled and skipped tasks again; a plan that a failure has paused goes on. */
  retry(id: string, options?: Options): Reply<"retryPlan">;
  /** Starts nothing more of it; what runs may end. */
  pause(id: string, options?: Options): Reply<"pausePlan">;
  /** Goes on with it. */
  resume(id: string, options?: Options): Reply<"resumePlan">;
  /** Forgets a plan that has ended; its tasks are then kept as any others. */
  remove(id: string, options?: Options): Reply<"removePlan">;
};

/** How long to wait for the end of a task, a group or a plan. */
export type WaitOptions = Options & {
  /** Fails with code `timeout` if it has not ended by then; absent: as long as it takes. */
  readonly withinMs?: number;
};

const TIMEOUT_MS = 30_000;
const RETRIES = 4;

/** A client of the server at an address; without one, of this machine's. */
export function createClient(given: ClientOptions = {}): Client {
  const options = readOptions(given);
  const { url = DEFAULT_URL, token, timeoutMs = TIMEOUT_MS, retries = RETRIES, rest = restFor } = options;
  const { fetch = usualFetch } = options;
  const isPatient = options.retries === undefined;
  const addresses = createAddresses({ url, token }, leadsBy(fetch));
  const gather: Gather = gatherWith(() => wiring);
  const turns = createTurns();
  const wiring: Wiring = {
    addresses,
    fetch,
    timeoutMs,
    retries,
    isPatient,
    rest,
    gather,
    turns,
  };
  const { during, beside, close } = untilClosed();
  const exchanged: Ask = (name, asked, more, afterLoss) => exchange(wiring, name, asked, more, afterLoss);
  const ask: Ask = (name, asked, more, afterLoss) => during(() => exchange(wiring, name, asked, more, afterLoss));
  const ended = waitsWith(wiring, exchanged);
  const permits = createPermitAsks(wiring, exchanged, beside);
  const until = untilWith(wiring, exchanged);
  const askAll: AskAll = (asks) => during(() => asks(exchanged, until));
  return {
    url: addresses.text,
    close,
    [Symbol.asyncDispose]: close,
    ...taskMethods(ask, (...given) => during(() => ended(...given))),
    ...groupMethods(ask, askAll),
    ...schedulerMethods(ask),
    ...fleetMethods(ask),
    ...permitMethods(ask, (...given) => during(() => permits(...given))),
    plans: planMethods(ask, askAll),
    files: filesOver(wiring, during),
    events: async function* (follow = {}) {
      const { followEvents } = await during(() => import("./follow-events.ts"));
      yield* followEvents(wiring, follow);
    },
  };
}

type During = <Value>(call: () => Promise<Value>) => Promise<Value>;

/** Calls are made until it is closed; closed it is when the last of them has its answer. */
function untilClosed(): { during: During; beside(work: Promise<unknown>): void; close(): Promise<void> } {
  const closed = Promise.withResolvers<void>();
  let isClosing = false;
  /** The calls, and one for the client itself. */
  let underWay = 1;
  /** In a turn of its own: by then whoever made the last call has its answer. */
  const isOver = (): void => {
    if (--underWay === 0) setImmediate(closed.resolve);
  };
  const answered = <Value>(value: Value): Value => {
    isOver();
    return value;
  };
  const failed = (error: unknown): never => {
    isOver();
    throw error;
  };
  return {
    during(call) {
      if (isClosing) return Promise.reject(new ClientError("closed", "this client is closed; make another one"));
      underWay++;
      try {
        return call().then(answered, failed);
      } catch (error) {
        isOver();
        return Promise.reject(error);
      }
    },
    /** What is left to do of a call that is over: it does not fail it, and may begin when no call may. */
    beside(work) {
      underWay++;
      work.then(isOver, isOver);
    },
    close() {
      if (!isClosing) isOver();
      isClosing = true;
      return closed.promise;
    },
  };
}

/** Loaded with the first call: a program that brings its own `fetch`, as the command line does, is without it. */
const usualFetch: Fetch = (url, request) => (loadedFetch ?? loadingFetch)(url, request);
const loadingFetch: Fetch = async (url, request) => {
  loadedFetch = (await import("./http-fetch.ts")).usualFetch;
  return loadedFetch(url, request);
};
let loadedFetch: Fetch | undefined;

/** A call that is alone goes as it is. The rest is loaded when calls first meet. */
function gatherWith(wiring: () => Wiring): Gather {
  let underWay: Promise<unknown> | undefined;
  let loading: Promise<Gather> | undefined;
  let gather: Gather | undefined;
  const load = async (first: Promise<unknown> | undefined): Promise<Gather> => {
    gather = (await import("./gather.ts")).createGather(wiring(), first);
    return gather;
  };
  return (call) => {
    if (gather !== undefined) return gather(call);
    if (underWay === undefined && loading === undefined) {
      underWay = call.alone().finally(() => {
        underWay = undefined;
      });
      return underWay;
    }
    loading ??= load(underWay);
    return loading.then((loaded) => loaded(call));
  };
}

/** What is rarely needed is loaded when it is. */
const filesOver = (wiring: Wiring, during: During): ClientFiles => ({
  put: (content, options) => during(async () => (await import("./files.ts")).put(wiring, content, options)),
  get: (hash, options) => during(async () => (await import("./files.ts")).get(wiring, hash, options)),
  open: async function* (hash, options) {
    const { open } = await during(() => import("./files.ts"));
    yield* open(wiring, hash, options);
  },
});

/** Asks as often as it takes: one call to whoever closes the client. */
type AskAll = <Value>(asks: (ask: Ask, until: WaitUntil) => Promise<Value>) => Promise<Value>;

/** Gone already, and this very call was perhaps what took it away. */
const ifGone =
  <Answer>(answer: Answer): AfterLoss<Answer> =>
  ({ code }) =>
    code === "not_found" ? answer : undefined;

const untilWith =
  (wiring: Wiring, ask: Ask): WaitUntil =>
  async (...given) =>
    (await import("./waited.ts")).waited(wiring, ask, ...given);

function waitsWith(wiring: Wiring, ask: Ask): WaitForEnd {
  const met = whenMet(async () => (await import("./watch.ts")).createWatch(wiring));
  const until = untilWith(wiring, ask);
  return (id, withinMs, options) => {
    const lookWith: Look<wire.TaskView> = (ask, timeoutMs, once) =>
      ask("wait", { params: { id }, query: { timeoutMs } }, once);
    const alone = (): Promise<Waited<wire.TaskView>> =>
      until(withinMs, options, lookWith, ({ state }) => state && isEnded(state));
    // What has a time of its own for each try goes by itself.
    if (options.timeoutMs !== undefined) return alone();
    const look = (timeoutMs: number, timed: Options): Promise<wire.TaskView> => lookWith(ask, timeoutMs, timed);
    return met(alone, (watch) => watch({ id, withinMs, options, look }));
  };
}

const groupEnd = (until: WaitUntil, id: string, withinMs: number | undefined, options: Options) =>
  until(
    withinMs,
    options,
    (ask, timeoutMs, once) => ask("waitGroup", { params: { id }, query: { timeoutMs } }, once),
    ({ counts, endedAt }) => counts && endedAt !== undefined,
  );

function groupMethods(ask: Ask, askAll: AskAll): Pick<Client, keyof calls.GroupCalls> {
  return {
    group: (id, options) => ask("group", { params: { id } }, options),
    waitGroup: async (id, { withinMs, ...options } = {}) => {
      const { found: group, isOver } = await askAll((_, until) => groupEnd(until, id, withinMs, options));
      if (isOver) return group;
      throw new ClientError("timeout", `group ${id} has not ended after ${withinMs} ms`, {
        retryable: true,
        details: { groupId: id, counts: group.counts },
      });
    },
    cancelGroup: (id, { reason, ...options } = {}) =>
      ask("cancelGroup", { params: { id }, body: reason === undefined ? {} : { reason } }, options),
    retryGroup: (id, options) => ask("retryGroup", { params: { id } }, options),
  };
}

function planMethods(ask: Ask, askAll: AskAll): ClientPlans {
  return {
    put: (id, body, { only, retryFailed, failFast, fresh, directory, ...options } = {}) => {
      const said = Object.entries({ only, retryFailed, failFast, fresh, directory });
      const query = Object.fromEntries(said.filter(([, value]) => value !== undefined));
      return ask("putPlan", { params: { id }, query, body }, options);
    },
    list: (query = {}, options) => ask("plans", { query }, options),
    get: (id, { document, ...options } = {}) =>
      ask("plan", { params: { id }, query: document === undefined ? {} : { document } }, options),
    wait: async (id, { withinMs, ...options } = {}) => {
      const { plan, isOver } = await askAll(async (askNow, until) => {
        const get = (): Reply<"plan"> => askNow("plan", { params: { id }, query: {} }, options);
        const { groupId } = await get();
        const { isOver } = await groupEnd(until, groupId, withinMs, options);
        return { plan: await get(), isOver };
      });
      if (isOver) return plan;
      throw new ClientError("timeout", `plan ${id} is ${plan.state} after ${withinMs} ms`, {
        retryable: true,
        details: { planId: id, counts: plan.counts },
      });
    },
    cancel: (id, { reason, ...options } = {}) =>
      ask("cancelPlan", { params: { id }, body: reason === undefined ? {} : { reason } }, options),
    retry: (id, options) => ask("retryPlan", { params: { id } }, options),
    pause: (id, options) => ask("pausePlan", { params: { id } }, options),
    resume: (id, options) => ask("resumePlan", { params: { id } }, options),
    remove: (id, options) => ask("removePlan", { params: { id } }, options, ifGone({ status: "removed", id })),
  };
}

type WaitForEnd = (id: string, withinMs: number | undefined, options: Options) => Promise<Waited<wire.TaskView>>;

/** Whoever has submitted the task wonders: it was there, and has ended since. */
function orForgotten(error: unknown): never {
  if (!(error instanceof ClientError) || error.code !== "not_found") throw error;
  const { message, status, details } = error;
  const said = `${message}; one that was submitted is forgotten when it has ended longer ago than scheduler.remember`;
  throw new ClientError("not_found", said, { status, details, cause: error });
}

function taskMethods(ask: Ask, ended: WaitForEnd): Pick<Client, keyof calls.TaskCalls> {
  async function wait<Result, Params extends object>(
    id: string,
    { withinMs, ...options }: WaitOptions = {},
  ): Promise<wire.TaskView<Params, Result>> {
    // Beside others it would be refused for all of them.
    if (typeof id !== "string")
      throw new ClientError("bad_request", `id is ${kindInWords(id)}, and must be the id of a task`);
    const { found: task, isOver } = await ended(id, withinMs, options).catch(orForgotten);
    if (isOver) return task as wire.TaskView<Params, Result>;
    throw new ClientError("timeout", `task ${id} is ${task.state} after ${withinMs} ms`, {
      retryable: true,
      details: { taskId: id, state: task.state },
    });
  }

  return {
    submit: (body, options) => ask("submit", { body: body as wire.TaskBody }, options),
    submitBatch: (body, options) => ask("submitBatch", { body }, options),
    tasks: (query = {}, options) => ask("tasks", { query: query as wire.TasksQuery }, options),
    task: <Result, Params extends object>(id: string, options?: Options) =>
      ask("task", { params: { id } }, options) as Promise<wire.TaskView<Params, Result>>,
    patch: (id, body, options) => ask("patch", { params: { id }, body }, options),
    cancel: (id, { reason, ...options } = {}) =>
      ask("cancel", { params: { id }, body: reason === undefined ? {} : { reason } }, options, (refusal) =>
        refusal.code === "conflict" && refusal.details.state === "cancelled"
          ? { status: "cancelled", taskId: id }
          : undefined,
      ),
    cancelWhere: (filter, options) => ask("cancelWhere", { body: { filter } }, options),
    approve: (id, { note, deny, ...options } = {}) =>
      ask(
        "approve",
        { params: { id }, body: { ...(note === undefined ? {} : { note }), ...(deny === undefined ? {} : { deny }) } },
        options,
      ),
    retry: (id, options) => ask("retry", { params: { id } }, options),
    why: (id, { at, ...options } = {}) =>
      ask("why", { params: { id }, query: at === undefined ? {} : { at } }, options),
    wait,
    logs: (id, { attempt, tail, ...options } = {}) =>
      ask("logs", { params: { id }, query: { attempt, tail } as wire.LogsQuery }, options),
  };
}

type SchedulerMethods =
  | keyof (calls.SchedulerCalls & calls.ProjectCalls & calls.WatchCalls & calls.ServerCalls & calls.ClusterCalls)
  | "eventPage";
function schedulerMethods(ask: Ask): Pick<Client, SchedulerMethods> {
  return {
    usage: (query = {}, options) => ask("usage", { query }, options),
    stats: (options) => ask("stats", {}, options),
    history: (query = {}, options) => ask("history", { query }, options),
    stuck: (options) => ask("stuck", {}, options),
    links: (id, { limit, upSkip, downSkip, ...options } = {}) =>
      ask("links", { params: { id }, query: { limit, upSkip, downSkip } as wire.LinksQuery }, options),
    whoami: (options) => ask("whoami", {}, options),
    pulse: (options) => ask("pulse", {}, options),
    settings: (options) => ask("settings", {}, options),
    verify: (options) => ask("verify", {}, options),
    queue: (options) => ask("queue", {}, options),
    line: (query = {}, options) => ask("line", { query }, options),
    config: (options) => ask("config", {}, options),
    patchConfig: (body, options) => ask("patchConfig", { body }, options),
    reload: (options) => ask("reload", {}, options),
    pause: (body = {}, options) => ask("pause", { body }, options),
    resume: (body = {}, options) => ask("resume", { body }, options),
    projects: (options) => ask("projects", {}, options),
    project: (id, options) => ask("project", { params: { id } }, options),
    putProject: (id, body, options) => ask("putProject", { params: { id }, body }, options),
    eventPage: (query = {}, options) => ask("events", { query }, options),
    health: (options) => ask("health", {}, options),
    ready: (options) => ask("ready", {}, options),
    metrics: (options) => ask("metrics", {}, options),
    openapi: (options) => ask("openapi", {}, options),
    cluster: (options) => ask("cluster", {}, options),
  };
}

function fleetMethods(ask: Ask): Pick<Client, keyof (calls.WorkerCalls & calls.ScheduleCalls)> {
  return {
    workers: (options) => ask("workers", {}, options),
    joinWorker: (body, options) => ask("joinWorker", { body }, options),
    sync: (id, body, options) => ask("sync", { params: { id }, body }, options),
    handInLog: (id, body, options) => ask("handInLog", { params: { id }, body }, options),
    drainWorker: (id, { session, ...options } = {}) =>
      ask("drainWorker", { params: { id }, query: present({ session }) }, options),
    leaveWorker: (id, query = {}, options) =>
      ask("leaveWorker", { params: { id }, query }, options, ifGone({ status: "left", workerId: id })),
    schedules: (query = {}, options) => ask("schedules", { query }, options),
    schedule: (id, options) => ask("schedule", { params: { id } }, options),
    putSchedule: (id, body, options) => ask("putSchedule", { params: { id }, body }, options),
    removeSchedule: (id, options) =>
      ask("removeSchedule", { params: { id } }, options, ifGone({ status: "removed", id })),
  };
}

function permitMethods(ask: Ask, askPermit: Client["askPermit"]): Pick<Client, keyof calls.GateCalls> {
  return {
    askPermit,
    settlePermit: (id, body = {}, options) =>
      ask("settlePermit", { params: { id }, body }, options, ifGone({ status: "settled", permitId: id })),
    dropPermit: (id, { session, unheard, ...options } = {}) =>
      ask(
        "dropPermit",
        { params: { id }, query: present({ session, unheard }) },
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
