/**
 * A world to tell small stories in: one state, one log, a clock that is turned by hand.
 *
 * Every command goes through `decide`, its events through `evolve`, exactly as a host does it; `pump` asks
 * until nothing is left. A story says what is asked and reads what has become of it. A command that is refused
 * throws its refusal as a sentence, unless the story asks by `tryTo`.
 */
import {
  agentId,
  type Command,
  type Config,
  type Decided,
  type Decision,
  decide,
  type Event,
  emptyState,
  evolve,
  gateId,
  instant,
  type Phase,
  permitId,
  projectId,
  type Reason,
  readConfig,
  type State,
  type Submission,
  sentence,
  type TaskId,
  taskId,
  type WorkerSettings,
  workerId,
} from "../../../src/core/index.ts";

export const MINUTE = 60_000;
const PUMPS_MAX = 100_000;

export type TaskFields = Partial<Omit<Submission, "id" | "project" | "agent" | "parent" | "needs">> & {
  readonly project?: string;
  readonly agent?: string;
  readonly parent?: string | null;
  readonly needs?: readonly string[];
};
export type Start = {
  readonly task: string;
  readonly worker: string;
  readonly attempt: number;
  readonly reason: Reason;
};
export type Report = Partial<Extract<Command, { type: "finish-attempt" }>["report"]>;

export const submission = (id: string | null, fields: TaskFields = {}): Submission => ({
  bodyHash: "body",
  bodySize: 1,
  type: "other",
  action: "",
  capabilities: [],
  cpu: 0,
  memory: 0,
  provider: null,
  locks: [],
  zone: null,
  tab: null,
  priority: null,
  artifact: null,
  artifactReady: false,
  notBefore: null,
  deadline: null,
  estimatedTokens: null,
  iteration: 1,
  maxAttempts: null,
  timeoutMs: null,
  onDependencyFailure: "skip",
  ...fields,
  id: id === null ? null : taskId(id),
  project: projectId(fields.project ?? "p"),
  agent: agentId(fields.agent ?? "a"),
  parent: fields.parent === undefined || fields.parent === null ? null : taskId(fields.parent),
  needs: (fields.needs ?? []).map(taskId),
});

export type PutPlan = Extract<Command, { type: "put-plan" }>;
export const putPlan = (id: string, tasks: readonly string[], fields: Partial<PutPlan> = {}): PutPlan => ({
  type: "put-plan",
  plan: id,
  project: projectId("p"),
  directory: null,
  run: 1,
  failsFast: false,
  tasks: tasks.map((name) => ({ name, id: taskId(name) })),
  adopted: 0,
  documentHash: "document",
  documentSize: 1,
  agent: agentId("a"),
  others: [],
  cancels: [],
  retries: [],
  submissions: [],
  ...fields,
});

export const workerSettings = (fields: Partial<WorkerSettings> = {}): WorkerSettings => ({
  slots: 1,
  capabilities: [],
  cpu: null,
  memory: null,
  zone: null,
  status: "ready",
  ...fields,
});

export function configOf(value: unknown): Config {
  const read = readConfig(value);
  if (!read.ok) throw new Error(sentence(read.failure));
  return read.value;
}

export type World = ReturnType<typeof createWorld>;

export function createWorld(config?: unknown) {
  const state: State = emptyState();
  const log: Event[] = [];
  let now = 0;
  let pumpsUntilQuiet = true;

  function tryTo(command: Command): Decided {
    const decided = decide(state, command, instant(now));
    if (decided.ok) for (const event of decided.value.events) apply(event);
    return decided;
  }
  function apply(event: Event): void {
    evolve(state, event);
    log.push(event);
  }
  function must(command: Command): Decision {
    const decided = tryTo(command);
    if (!decided.ok) throw new Error(sentence(decided.failure));
    if (pumpsUntilQuiet) pump();
    return decided.value;
  }
  /** Applies what the clock and the queues bring about, until nothing is left; answers what was started. */
  function pump(): Start[] {
    const from = log.length;
    for (let turns = 0; ; turns++) {
      if (turns > PUMPS_MAX) throw new Error("the pump never comes to rest");
      const decided = tryTo({ type: "pump" });
      if (!decided.ok || decided.value.events.length === 0) return startsSince(from);
    }
  }
  function startsSince(from: number): Start[] {
    return log.slice(from).flatMap((event) => {
      if (event.kind !== "task-assigned") return [];
      const { task, worker, attempt, reason } = event;
      return [{ task, worker, attempt, reason }];
    });
  }
  function reportOf(task: string, fields: Report): Command {
    const attempt = state.tasks.get(taskId(task))?.attempts ?? 0;
    const outcome = { outcome: "done" as const, error: null, tokens: null, retryAfterMs: null };
    const report = { ...outcome, resultHash: null, resultSize: 0, permanent: false, attempt, ...fields };
    return { type: "finish-attempt", report: { ...report, task: taskId(task) } };
  }
  const phaseOf = (task: string): Phase | undefined =>
    state.tasks.get(taskId(task))?.phase ?? state.tombstones.get(taskId(task))?.phase;

  if (config !== undefined) must({ type: "set-config", config: configOf(config) });
  return {
    ...{ state, log, tryTo, must, pump, phaseOf },
    now: (): number => now,
    /** Turns the clock and lets everything due happen. */
    wait(ms: number): Start[] {
      now += ms;
      return pump();
    },
    /** Turns the clock and nothing else. */
    turn(ms: number): void {
      now += ms;
    },
    /** Gathers commands without pumping between them, then pumps; answers what was started, in order. */
    atOnce(story: () => void): Start[] {
      pumpsUntilQuiet = false;
      story();
      pumpsUntilQuiet = true;
      return pump();
    },
    starts: (): Start[] => startsSince(0),
    submit: (id: string | null, fields: TaskFields = {}, group: string | null = null): Decision =>
      must({ type: "submit-task", submission: submission(id, fields), group }),
    /** A plan with these tasks, which are then submitted with its group. */
    putPlan: (id: string, tasks: readonly string[], fields: Partial<PutPlan> = {}): Decision =>
      must(putPlan(id, tasks, fields)),
    trySubmit: (id: string | null, fields: TaskFields = {}): Decided =>
      tryTo({ type: "submit-task", submission: submission(id, fields) }),
    join: (id: string, fields: Partial<WorkerSettings> = {}): Decision =>
      must({
        type: "join-worker",
        worker: workerId(id),
        kind: "pull",
        session: "s",
        settings: workerSettings(fields),
      }),
    change: (id: string, fields: Partial<WorkerSettings>): Decision =>
      must({ type: "change-worker", worker: workerId(id), settings: workerSettings(fields) }),
    leave: (id: string, lost = false): Decision => must({ type: "leave-worker", worker: workerId(id), lost }),
    start: (task: string): Decision =>
      must({ type: "start-attempt", task: taskId(task), attempt: state.tasks.get(taskId(task))?.attempts ?? 0 }),
    finish: (task: string, fields: Report = {}): Decision => must(reportOf(task, fields)),
    tryFinish: (task: string, fields: Report = {}): Decided => tryTo(reportOf(task, fields)),
    cancel: (task: string): Decision => must({ type: "cancel-task", task: taskId(task), reason: null }),
    configure: (value: unknown): Decision => must({ type: "set-config", config: configOf(value) }),
    project: (id: string, fields: Partial<Config["projects"]["default"]> = {}): Decision =>
      must({
        type: "put-project",
        project: projectId(id),
        settings: { ...state.config.projects.default, ...fields },
      }),
    throttle: (gate: string, retryAfterMs = 0): Decision =>
      must({ type: "throttle-gate", gate: gateId(gate), permit: null, retryAfterMs }),
    askPermit: (id: string, gate: string, task: string, tokens: number): Decision =>
      must({
        ...{ type: "ask-permit", permit: permitId(id), gate: gateId(gate), task: taskId(task), class: null, tokens },
        ...{ attempt: state.tasks.get(taskId(task))?.attempts ?? 0, project: projectId("p"), askedAt: null },
      }),
    /** The events of one kind, in order. */
    told: <Kind extends Event["kind"]>(kind: Kind): Extract<Event, { kind: Kind }>[] =>
      log.filter((event): event is Extract<Event, { kind: Kind }> => event.kind === kind),
    taskOf: (id: string) => {
      const task = state.tasks.get(taskId(id) as TaskId);
      if (task === undefined) throw new Error(`no task ${id} is readable`);
      return task;
    },
  };
}

/** Why the last attempt of a task went where it went, and where. */
export const reasonOf = (world: World, task: string): unknown =>
  world.starts().findLast((start) => start.task === task)?.reason;
export const workerOf = (world: World, task: string): unknown =>
  world.starts().findLast((start) => start.task === task)?.worker;
export const submitAll = (world: World, ids: string): void => {
  for (const id of ids) world.submit(id);
};
export const placedBy = (strategy: string, more: object = {}): unknown => ({
  scheduler: { placement: { strategy, ...more } },
});
