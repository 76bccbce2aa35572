/**
 * The engine under test, in two forms.
 *
 * The first is `openDrover` itself, as a program embeds it: its workers are functions in the process. The second is
 * the same recovery and the same writer, spoken to in commands: workers on other machines do so, and `openDrover`
 * keeps its writer to itself: through `command` a simulated remote worker joins, reports, goes silent, and comes
 * back with stale reports.
 */

import { CORE_VERSION, gateId, type Instant, milliseconds, taskId } from "../core/base/index.ts";
import { readConfig } from "../core/config/index.ts";
import { type Command, type Decided, type Event, hasEnded } from "../core/model/index.ts";
import { type DroverError, refused } from "../engine/base/index.ts";
import { type Drover, type OpenOptions, openDrover, type PauseBody, type TaskInput } from "../engine/index.ts";
import { createPlans, type PlanVerbs } from "../engine/plans/index.ts";
import { createBodyStore, readTaskBody } from "../engine/tasks/index.ts";
import { type Applied, recover, startWriter, type Writer } from "../engine/writer/index.ts";

type Shared = "reload" | "snapshot" | "lookForArtifacts" | "close" | "failed" | "state" | "logTime";
export type SimEngine = Pick<Drover, Shared> & {
  readonly plans: PlanVerbs;
  cancel(task: string): Promise<unknown>;
  pause(target?: PauseBody): Promise<unknown>;
  resume(target?: PauseBody): Promise<unknown>;
  resetGate(gate: string): Promise<unknown>;
  submit(body: TaskInput): Promise<{ readonly taskId: string }>;
  retry(task: string): Promise<unknown>;
  approve(task: string, answer?: { note?: string; deny?: boolean }): Promise<unknown>;
  patch(task: string, change: { priority?: number; deadline?: number }): Promise<unknown>;
  /** The state a task is said to be in. */
  stateOf(task: string): Promise<string>;
  putProject(id: string, settings: unknown): Promise<unknown>;
  /** The embedded engine, where there is one. */
  readonly drover: Drover | null;
  /** A command from another machine; null where nothing remote can be reached. */
  readonly command: ((command: Command) => Decided) | null;
};
type EngineOptions = Required<
  Pick<OpenOptions, "log" | "config" | "clock" | "newId" | "artifactExists" | "fileMedium">
> & {
  readonly remote: boolean;
  /** How many events a batch takes, where workers are remote; null: as many as ever. */
  readonly batchMax: number | null;
  /** Nothing may go wrong on the side either. */
  readonly onWarning: (message: string) => void;
  /** What is applied, and what is durable: for those who stand outside. */
  readonly onApplied: (event: Event) => void;
  readonly onCommitted: (batch: readonly Applied[]) => void;
};

export async function openEngine(options: EngineOptions): Promise<SimEngine> {
  if (options.remote) return openByCommands(options);
  const { log, config, clock, newId, artifactExists, fileMedium, onWarning } = options;
  const drover = await openDrover({ log, config, clock, newId, artifactExists, fileMedium, onWarning });
  const stateOf = async (task: string): Promise<string> => (await drover.task(task)).state;
  return { ...drover, stateOf, drover, command: null };
}

async function openByCommands(options: EngineOptions): Promise<SimEngine> {
  const { log, clock, newId, batchMax, onApplied, onCommitted } = options;
  const { state } = await recover(log);
  const lead = await log.acquireLead(newId(), milliseconds(10_000));
  const failed = Promise.withResolvers<DroverError>();
  const onStopped = (error: DroverError): void => {
    if (error.code !== "closed") failed.resolve(error);
  };
  const hooks = { onApplied, isAwaited: () => true, onCommitted, onStopped };
  const limits = batchMax === null ? {} : { batchMax };
  const writer = startWriter({ state, log, epoch: lead.epoch, clock, newId, hooks, ...limits });
  writer.execute({ type: "start-engine", coreVersion: CORE_VERSION, policyHash: "" });
  await setConfig(writer, options.config);
  return {
    ...taskVerbs(writer),
    ...worldVerbs(writer),
    plans: createPlans({ writer, bodies: createBodyStore(log), clock }),
    state,
    failed: failed.promise,
    logTime: () => ({ at: writer.now(), aheadMs: writer.aheadMs() }),
    drover: null,
    command: (command) => writer.execute(command),
    snapshot: async () => 0,
    lookForArtifacts: async () => {
      for (const artifact of [...state.artifacts.keys()]) {
        if (await options.artifactExists(artifact)) writer.execute({ type: "artifact-ready", artifact });
      }
    },
    close: async () => {
      await writer.close();
      await log.close();
    },
  };
}

async function setConfig(writer: Writer, given: unknown): Promise<never> {
  const config = readConfig(given);
  if (!config.ok) throw refused(config.failure);
  await writer.run({ type: "set-config", config: config.value });
  return config.value as never;
}

function taskVerbs(writer: Writer): Pick<SimEngine, "submit" | "cancel" | "retry" | "approve" | "patch" | "stateOf"> {
  const { state } = writer;
  return {
    submit: async (body) => {
      const { submission, text } = readTaskBody(body);
      return { taskId: (await writer.run({ type: "submit-task", submission }, text)).id ?? "" };
    },
    cancel: (task) => writer.run({ type: "cancel-task", task: taskId(task), reason: null }),
    retry: (task) => writer.run({ type: "retry-task", task: taskId(task) }),
    approve: async (task, { note = null, deny = false }: { note?: string | null; deny?: boolean } = {}) =>
      writer.run({ type: "approve-task", task: taskId(task), note, deny }),
    patch: (task, { priority = null, deadline }) =>
      writer.run({ type: "patch-task", task: taskId(task), priority, deadline: deadline as Instant | undefined }),
    stateOf: async (id) => {
      const task = state.tasks.get(taskId(id)) ?? state.tombstones.get(taskId(id));
      const said = task === undefined ? "unknown" : hasEnded(task) ? task.phase : "live";
      await writer.settled();
      return said;
    },
  };
}

function worldVerbs(writer: Writer): Pick<SimEngine, "putProject" | "reload" | "resetGate" | "pause" | "resume"> {
  const setPaused = async (target: PauseBody = {}, paused: boolean): Promise<void> => {
    const scope = target.project !== undefined ? "project" : target.task !== undefined ? "task" : "fleet";
    await writer.run({ type: "set-paused", scope, id: target.project ?? target.task ?? "", paused });
  };
  return {
    putProject: (id, settings) =>
      writer.run({ type: "put-project", project: id as never, settings: settings as never }),
    reload: (config) => setConfig(writer, config),
    resetGate: (gate) => writer.run({ type: "reset-gate", gate: gateId(gate) }),
    pause: (target) => setPaused(target, true),
    resume: (target) => setPaused(target, false),
  };
}
