/**
 * What Drover does alike inside a program and over HTTP.
 *
 * The embedded engine and the client both are this type, so that a program may be written for either. They differ where
 * their worlds do: the client's calls take a signal and are made again, the engine takes instants as numbers too, runs
 * handlers itself and reads its log without a network.
 */
import type * as wire from "./generated/index.ts";

/** Arguments of a task of which nothing is known. */
export type AnyParams = Readonly<Record<string, unknown>>;

/** Which tasks, and how many of them: of one state or of several. */
export type TasksFilter = Omit<wire.TasksQuery, "state"> & {
  /** Only in this state, or these. Rejected tasks, which were never let in, are listed only if asked for. */
  readonly state?: wire.TaskState | readonly wire.TaskState[];
};

/** The calls that the embedded engine and the client have in common. */
export type SharedCalls = {
  /** Submits a task; answers when it is durable. The same id and body again is the same task. */
  submit<Params extends object = AnyParams>(task: wire.TaskBody<Params>): Promise<wire.Submitted>;
  /** Submits many tasks at once. A bad item never fails the others; items may need each other by id. */
  submitBatch(batch: wire.BatchBody): Promise<wire.BatchAnswer>;
  /** Reads a task. */
  task<Result = unknown, Params extends object = AnyParams>(id: string): Promise<wire.TaskView<Params, Result>>;
  /** Pages through tasks, in the order of submission. */
  tasks(query?: TasksFilter): Promise<wire.TaskPage>;
  /** Resolves with the task when it has ended. */
  wait<Result = unknown, Params extends object = AnyParams>(
    id: string,
    options?: {
      /** Stops the waiting. */
      readonly signal?: AbortSignal;
    },
  ): Promise<wire.TaskView<Params, Result>>;
  /** Cancels a task at once; what runs is stopped. One that has ended stays as it is. */
  cancel(
    id: string,
    options?: {
      /** For people; it becomes the task's error. */
      readonly reason?: string;
    },
  ): Promise<wire.Cancelled>;
  /** Cancels every live task the filter names, or all of them, at most 10 000 at once. */
  cancelWhere(filter: wire.CancelFilter): Promise<wire.CancelledMany>;
  /** Approves what a parked task asks, or denies it. */
  approve(
    id: string,
    answer?: {
      /** What the next attempt sees; with `deny`, why. */
      readonly note?: string;
      /** It is denied, and fails. */
      readonly deny?: boolean;
    },
  ): Promise<wire.Submitted>;
  /** Runs a failed, cancelled or skipped task again, as a new iteration. */
  retry(id: string): Promise<wire.Submitted>;
  /** How far the tasks of a batch are. */
  group(id: string): Promise<wire.GroupView>;
  /** Resolves when all tasks of a group have ended. */
  waitGroup(
    id: string,
    options?: {
      /** Stops the waiting. */
      readonly signal?: AbortSignal;
    },
  ): Promise<wire.GroupView>;
  /** Cancels what has not ended of a group. */
  cancelGroup(
    id: string,
    options?: {
      /** For people; it becomes the error of each task. */
      readonly reason?: string;
    },
  ): Promise<wire.GroupCancelled>;
  /** Runs the failed, cancelled and skipped tasks of a group again. */
  retryGroup(id: string): Promise<wire.GroupRetried>;
  /** Tasks that are put as one. */
  readonly plans: SharedPlans;
  /** What was used, summed up by project, agent, type, day or a label. */
  usage(query?: wire.UsageQuery): Promise<wire.UsageReport>;
  /** Queues, totals and the rules in force. */
  stats(): Promise<wire.Stats>;
  /** Who waits, by project and agent, with the head of each queue; bounded. */
  queue(): Promise<wire.QueueView>;
  /** What runs and what starts next, in order, with totals: of the tasks and of the calls; bounded. */
  line(query?: wire.LineQuery): Promise<wire.LineView>;
  /** Registers a project, or changes its settings; what is absent keeps its value. */
  putProject(id: string, settings: wire.ProjectBody): Promise<wire.ProjectView>;
  /** Lifts the block of a gate, and forgets its throttles: it begins with a probe. */
  resetGate(id: string): Promise<wire.GateStatus>;
  /** Removes a gate that the config does not name and that is not in use. */
  removeGate(id: string): Promise<wire.GateStatus>;
  /** Starts nothing more: of the fleet, a project or a task; what runs goes on. */
  pause(target?: wire.PauseBody): Promise<wire.PauseStatus>;
  /** Takes a pause back. */
  resume(target?: wire.PauseBody): Promise<wire.PauseStatus>;
};

/** What may be done with plans, inside a program and over HTTP. */
export type SharedPlans = {
  /** Runs a plan or goes on with it; the document is a plan file as JSON. All of it is taken, or nothing. */
  put(id: string, document: wire.PlanDocument, options?: wire.PutPlanQuery): Promise<wire.PlanPut>;
  /** A page of plans, the one that was put last first. */
  list(query?: wire.PlansQuery): Promise<wire.PlanPage>;
  /** How far a plan is, task by task. */
  get(id: string, options?: wire.PlanQuery): Promise<wire.PlanView>;
  /** The plan, once all of its tasks have ended. */
  wait(
    id: string,
    options?: {
      /** Stops the waiting. */
      readonly signal?: AbortSignal;
    },
  ): Promise<wire.PlanView>;
  /** Cancels what has not ended. */
  cancel(
    id: string,
    options?: {
      /** For people; it becomes the error of each task. */
      readonly reason?: string;
    },
  ): Promise<wire.PlanChanged>;
  /** Runs the failed, cancelled and skipped tasks again; a plan that a failure has paused goes on. */
  retry(id: string): Promise<wire.PlanChanged>;
  /** Starts nothing more of it; what runs may end. */
  pause(id: string): Promise<wire.PlanSummary>;
  /** Goes on with it. */
  resume(id: string): Promise<wire.PlanSummary>;
  /** Forgets a plan that has ended; its tasks are then kept as any others. */
  remove(id: string): Promise<wire.PlanStatus>;
};
