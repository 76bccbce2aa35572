/**
 * How much may be stored: what a project or an agent stores in a minute, and how far the log may grow.
 *
 * Bodies, results and events of a project are added up as they are stored. A project that has stored
 * `bytesPerMinute` in the last minute may add no more work until part of it has passed: so no project fills a disk
 * by submitting and cancelling. Names of projects are free, so what an agent stores in projects without settings of
 * their own is added up too, and may be twice what one such project may store. Twice, because names of agents are free
 * as well: what one project stores under the name of another's agent leaves that agent as much again. When the log has
 * reached `log.maxBytes` no project adds work until old events are pruned, and its last tenth is kept for projects that
 * have stored less than a hundredth of it. Reports and ends are booked and never refused: a result that was turned away
 * would be lost for good.
 *
 * It is judged here and not in the core, between deciding and applying: what is refused was never stored, so a replay
 * needs no knowledge of it. What this process has booked is forgotten when it ends; how large the log is, is asked of
 * the log itself from time to time.
 */
import type { AgentId, ProjectId, Refusal, TaskId } from "../../core/base/index.ts";
import { isKeptForOthers, keptOf } from "../../core/base/index.ts";
import { settingsFor } from "../../core/config/index.ts";
import { RollingSum } from "../../core/gate/index.ts";
import type { Command, CommandOf, Project, State } from "../../core/model/index.ts";
import type { Log } from "../../log/index.ts";
import { remember } from "../../std/index.ts";

const MINUTE_MS = 60_000;
/** A second of the minute is one bucket; a thirtieth of `log.retain` another. */
const [SECONDS, DAYS] = [60, 30];
/** What the events of a task, a call or a change take, besides bodies and results: about so much. */
const TASK_BYTES = 192;
const CALL_BYTES = 384;
export const CHANGE_BYTES = 96;
/** The log is asked for its size again when so much was added, and not more often than this while it is full. */
const LOOK_AGAIN_PART = 1000;
const LOOK_AGAIN_MS = 1000;

/** What an agent may store, as a multiple of what one project may. */
const AGENTS_PART = 2;
/** Names are free: of more than so many, the oldest are forgotten. */
const KEEPERS_MAX = 20_000;

/** For whom something is stored; a call outside of tasks has no agent. */
type Keeper = { readonly project: ProjectId; readonly agent: AgentId | null };
export type StorageGuard = {
  /** Books what a command stores. Where it adds work and there is no room: why not, and nothing is booked. */
  weigh(command: Command, at: number): Refusal | null;
  /** Why there is no room for what is stored by another way; the caller that has stored it then books it. */
  room(keeper: Keeper, bytes: number, at: number): Refusal | null;
  book(keeper: Keeper, bytes: number, at: number): void;
  /** Asks the log for its size. */
  measure(): Promise<void>;
};

export function createStorageGuard({ state, log }: { readonly state: State; readonly log: Log }): StorageGuard {
  const minutes = { ofProjects: new Map<ProjectId, RollingSum>(), ofAgents: new Map<AgentId, RollingSum>() };
  /** What each has stored while the log keeps it, as far as this process knows. Only if the log is bounded. */
  const held = new Map<ProjectId, RollingSum>();
  const size = { known: 0, since: 0, lookedAt: Number.NEGATIVE_INFINITY, isLooking: false };

  async function measure(): Promise<void> {
    if (size.isLooking || state.config.log.maxBytes === null) return;
    size.isLooking = true;
    const { since } = size;
    try {
      size.known = await log.bytes();
      size.since -= since;
    } catch {
      // A log that cannot be read says so to every other caller.
    } finally {
      size.isLooking = false;
    }
  }

  function lookAgain(at: number, max: number): void {
    if (size.since <= max / LOOK_AGAIN_PART && at - size.lookedAt < LOOK_AGAIN_MS) return;
    size.lookedAt = at;
    void measure();
  }

  /** The sums of the last minute that bind this keeper, each with its limit. */
  function minutesOf({ project, agent }: Keeper): readonly Minute[] {
    const { settings, source } = settingsOf(state, project);
    const { bytesPerMinute: max } = settings;
    if (max === null) return NO_MINUTES;
    const ofProject = { sum: sumOf(minutes.ofProjects, project, MINUTE_MS, SECONDS), max };
    if (agent === null || source !== "default") return [ofProject];
    return [ofProject, { sum: sumOf(minutes.ofAgents, agent, MINUTE_MS, SECONDS), max: max * AGENTS_PART, agent }];
  }

  function refusalOfMinute(project: ProjectId, { sum, max, agent }: Minute, bytes: number, at: number): Refusal | null {
    const stored = sum.total(at);
    // A project that has stored nothing may store one body, however large.
    if (stored === 0 || stored + bytes <= max) return null;
    const freeAt = sum.belowAt(Math.max(1, max - bytes + 1), at) ?? at + MINUTE_MS;
    const whose = agent === undefined ? { project } : { project, agent };
    return { type: "bytes-per-minute", ...whose, stored, max, retryAfterMs: freeAt - at };
  }

  function refusalOfLog({ project }: Keeper, bytes: number, at: number): Refusal | null {
    const max = state.config.log.maxBytes;
    if (max === null) return null;
    lookAgain(at, max);
    const used = size.known + size.since;
    if (used + bytes > max) return { type: "log-full", bytes: used, max };
    const mine = held.get(project)?.total(at) ?? 0;
    return isKeptForOthers(max, used, mine) ? { type: "log-full", bytes: used, max, project, kept: keptOf(max) } : null;
  }

  function book(keeper: Keeper, sums: readonly Minute[], bytes: number, at: number): void {
    for (const { sum } of sums) sum.add(bytes, at);
    const { maxBytes, retain } = state.config.log;
    if (maxBytes === null) return;
    size.since += bytes;
    sumOf(held, keeper.project, retain, DAYS).add(bytes, at);
  }

  function refusalFor(keeper: Keeper, sums: readonly Minute[], bytes: number, at: number): Refusal | null {
    for (const minute of sums) {
      const full = refusalOfMinute(keeper.project, minute, bytes, at);
      if (full !== null) return full;
    }
    return refusalOfLog(keeper, bytes, at);
  }

  function add(keeper: Keeper, bytes: number, at: number): Refusal | null {
    const sums = minutesOf(keeper);
    const full = refusalFor(keeper, sums, bytes, at);
    if (full === null) book(keeper, sums, bytes, at);
    return full;
  }

  function ofTask(id: TaskId, bytes: number, at: number, isRefusable: boolean): Refusal | null {
    const task = state.tasks.get(id);
    if (task === undefined) return null;
    const keeper = { project: task.project.id, agent: task.agent.id };
    if (isRefusable) return add(keeper, bytes, at);
    book(keeper, minutesOf(keeper), bytes, at);
    return null;
  }

  /** What comes with a plan, all of it or nothing: booked with the plan, and free when its own command is given. */
  const paid = new Set<TaskId | null>();

  function ofPlan(command: CommandOf<"put-plan">, at: number): Refusal | null {
    const sums = bytesOfPlan(state, command);
    const { keepers, ofProjects, ofAgents, total } = addedUp(sums, (id) => settingsOf(state, id).source === "default");
    for (const keeper of keepers.values()) {
      for (const minute of minutesOf(keeper)) {
        const bytes = minute.agent === undefined ? ofProjects.get(keeper.project) : ofAgents.get(minute.agent);
        const full = refusalOfMinute(keeper.project, minute, bytes ?? 0, at);
        if (full !== null) return full;
      }
      const full = refusalOfLog(keeper, total, at);
      if (full !== null) return full;
    }
    for (const { keeper, bytes } of sums) book(keeper, minutesOf(keeper), bytes, at);
    paid.clear();
    for (const id of [...command.retries, ...command.submissions.map((task) => task.id)]) paid.add(id);
    return null;
  }

  function weigh(command: Command, at: number): Refusal | null {
    switch (command.type) {
      case "put-plan":
        return ofPlan(command, at);
      case "renew-plan":
      case "cut-plan": {
        const keeper = state.plans.get(command.plan);
        if (keeper !== undefined) book(keeper, minutesOf(keeper), CHANGE_BYTES, at);
        return null;
      }
      case "submit-task":
        if (paid.size > 0 && paid.delete(command.submission.id)) return null;
        return add(command.submission, command.submission.bodySize + TASK_BYTES, at);
      case "finish-attempt": {
        const { task, resultSize, error } = command.report;
        return ofTask(task, resultSize + (error === null ? 0 : Buffer.byteLength(error)), at, false);
      }
      case "cancel-task":
        return ofTask(command.task, CHANGE_BYTES + Buffer.byteLength(command.reason ?? ""), at, false);
      case "retry-task":
        if (paid.size > 0 && paid.delete(command.task)) return null;
        return ofTask(command.task, CHANGE_BYTES, at, true);
      case "patch-task":
        return ofTask(command.task, CHANGE_BYTES, at, true);
      case "ask-permit":
        // A call of a task that runs is part of what was let in already.
        return command.task === null
          ? add({ project: command.project, agent: null }, CALL_BYTES, at)
          : ofTask(command.task, CALL_BYTES, at, false);
      default:
        return null;
    }
  }

  return {
    weigh,
    measure,
    room: (keeper, bytes, at) => refusalFor(keeper, minutesOf(keeper), bytes, at),
    book: (keeper, bytes, at) => book(keeper, minutesOf(keeper), bytes, at),
  };
}

function settingsOf({ projects, config }: State, project: ProjectId): Pick<Project, "settings" | "source"> {
  const known = projects.get(project);
  if (known !== undefined) return known;
  const [settings, source] = settingsFor(config, project);
  return { settings, source };
}

type Sum = { readonly keeper: Keeper; readonly bytes: number };

/** By project and by agent; of an agent only what lies in projects without settings of their own. */
function addedUp(sums: readonly Sum[], isFree: (project: ProjectId) => boolean) {
  const keepers = new Map<string, Keeper>();
  const ofProjects = new Map<ProjectId, number>();
  const ofAgents = new Map<AgentId | null, number>();
  let total = 0;
  for (const { keeper, bytes } of sums) {
    const { project, agent } = keeper;
    keepers.set(`${project}\n${agent}`, keeper);
    ofProjects.set(project, (ofProjects.get(project) ?? 0) + bytes);
    if (isFree(project)) ofAgents.set(agent, (ofAgents.get(agent) ?? 0) + bytes);
    total += bytes;
  }
  return { keepers, ofProjects, ofAgents, total };
}

/** A plan's document and the names of its tasks, which are of who puts it, and what comes with it. */
function bytesOfPlan(
  { tasks }: State,
  { project, agent, documentSize, tasks: entries, others, retries, submissions }: CommandOf<"put-plan">,
): Sum[] {
  const left = others.reduce((sum, id) => sum + id.length, 0);
  const names = entries.reduce((sum, { name, id }) => sum + name.length + id.length, left);
  return [
    { keeper: { project, agent }, bytes: CHANGE_BYTES + documentSize + names },
    ...submissions.map((keeper) => ({ keeper, bytes: keeper.bodySize + TASK_BYTES })),
    ...retries.flatMap((id) => {
      const task = tasks.get(id);
      return task === undefined
        ? []
        : [{ keeper: { project: task.project.id, agent: task.agent.id }, bytes: CHANGE_BYTES }];
    }),
  ];
}

type Minute = { readonly sum: RollingSum; readonly max: number; readonly agent?: AgentId };
const NO_MINUTES: readonly Minute[] = [];

function sumOf<Id>(sums: Map<Id, RollingSum>, id: Id, spanMs: number, buckets: number): RollingSum {
  const known = sums.get(id);
  if (known !== undefined) return known;
  const sum = new RollingSum(spanMs, buckets);
  remember(sums, id, sum, KEEPERS_MAX);
  return sum;
}
