/**
 * What callers do with a group: look how far it is, wait for its end, cancel what lives of it, run again what did not
 * go well.
 *
 * A caller that names an agent or projects means that part of the group alone, as if it were all of it.
 */
import { name, text } from "../../core/base/index.ts";
import { front } from "../../core/collections/index.ts";
import { summed } from "../../core/lifecycle/index.ts";
import { hasEnded, type State, type Task, type TaskGroup, type UsageTotals } from "../../core/model/index.ts";
import type { GroupCancelled, GroupRetried, GroupView, SharedCalls } from "../../protocol/index.ts";
import { isoTime, nextTurn } from "../../std/index.ts";
import { abortSignal, readOptions } from "../base/call-options.ts";
import { usageView } from "../base/charged-tokens.ts";
import { accepted, refused } from "../base/drover-error.ts";
import type { Writer } from "../writer/writer.ts";
import type { EndWatch } from "./await-end.ts";
import { namesOf } from "./read-tasks.ts";

/** Which tasks of a group. */
type GroupFilter = {
  /** Only of this agent. */
  readonly agentId?: string;
  /** Only of this project, or these. */
  readonly project?: string | readonly string[];
};
export type GroupApi = {
  /** How far the tasks of a group are. */
  group(id: string, only?: GroupFilter): ReturnType<SharedCalls["group"]>;
  /** Resolves when all tasks of a group have ended. */
  waitGroup(
    id: string,
    options?: GroupFilter & {
      /** Stops the waiting. */
      readonly signal?: AbortSignal;
    },
  ): ReturnType<SharedCalls["waitGroup"]>;
  /** Cancels what has not ended of a group. */
  cancelGroup(
    id: string,
    options?: GroupFilter & {
      /** For people; it becomes the error of each task. */
      readonly reason?: string;
    },
  ): ReturnType<SharedCalls["cancelGroup"]>;
  /** Runs the failed, cancelled and skipped tasks of a group again. */
  retryGroup(id: string, only?: GroupFilter): ReturnType<SharedCalls["retryGroup"]>;
};

const ONLY = { agentId: name(), project: namesOf };
const readName = name();
/** Commands given in one turn of the event loop. */
const AT_ONCE = 1000;

type Part = TaskGroup["parts"] extends ReadonlyMap<string, infer One> ? One : never;
/** The part of a group that is meant. */
type Meant = { readonly group: TaskGroup; readonly parts: readonly Part[] };

export function createGroupApi({ writer, ends }: { readonly writer: Writer; readonly ends: EndWatch }): GroupApi {
  const { state } = writer;

  async function waitGroup(id: string, options?: GroupFilter & { signal?: AbortSignal }): Promise<GroupView> {
    const { signal, ...only } = readOptions<GroupFilter & { signal?: AbortSignal }>(
      { ...ONLY, signal: abortSignal },
      options,
    );
    const { group } = find(state, id, only);
    // Others may join meanwhile, or run again. One that has gone since is still known here.
    for (let meant = partOf(group, only); ; meant = partOf(group, only)) {
      if (meant.parts.every(({ live }) => live === 0)) break;
      for (const task of tasksOf(meant)) if (!hasEnded(task)) await ends.wait(task.id, signal);
    }
    await writer.settled();
    return viewOf(partOf(group, only));
  }

  /** Gives a command for each of these, and counts those that were taken. */
  async function each(tasks: readonly Task[], command: (task: Task) => Parameters<Writer["execute"]>[0]) {
    let count = 0;
    for (const [index, task] of tasks.entries()) {
      if (index % AT_ONCE === AT_ONCE - 1) await nextTurn();
      if (writer.execute(command(task)).ok) count++;
    }
    await writer.settled();
    return count;
  }

  async function cancelGroup(id: string, options?: GroupFilter & { reason?: string }): Promise<GroupCancelled> {
    const fields = { ...ONLY, reason: text(0, 1024) };
    const { reason = null, ...only } = readOptions<GroupFilter & { reason?: string }>(fields, options);
    const live = tasksOf(find(state, id, only)).filter((task) => !hasEnded(task));
    const count = await each(live, (task) => ({ type: "cancel-task", task: task.id, reason }));
    return { status: "cancelled", groupId: id, count };
  }

  async function retryGroup(id: string, options?: GroupFilter): Promise<GroupRetried> {
    const tasks = tasksOf(find(state, id, readOptions<GroupFilter>(ONLY, options)));
    // In the order of submission: what others need runs again before them.
    const bad = tasks.filter((task) => hasEnded(task) && task.phase !== "done");
    const count = await each(bad, (task) => ({ type: "retry-task", task: task.id }));
    return { status: "submitted", groupId: id, count, refused: bad.length - count };
  }

  return {
    async group(id, only) {
      const view = viewOf(find(state, id, readOptions<GroupFilter>(ONLY, only)));
      await writer.settled();
      return view;
    },
    waitGroup,
    cancelGroup,
    retryGroup,
  };
}

function find({ groups }: State, id: unknown, only: GroupFilter): Meant {
  const known = accepted(readName(id, "groupId"));
  const group = groups.get(known);
  const meant = group === undefined ? null : partOf(group, only);
  if (meant === null || meant.parts.length === 0) throw refused({ type: "group-unknown", group: known });
  return meant;
}

function partOf(group: TaskGroup, { agentId, project }: GroupFilter): Meant {
  const projects = project === undefined ? null : new Set<string>([project].flat());
  const parts = [...group.parts.values()].filter(
    (part) => (agentId === undefined || part.agent === agentId) && (projects === null || projects.has(part.project)),
  );
  return { group, parts };
}

function tasksOf({ group, parts }: Meant): Task[] {
  const all = front(group.tasks, group.tasks.size);
  if (parts.length === group.parts.size) return all;
  const meant = new Set(parts);
  return all.filter(({ extra }) => meant.has(extra?.group as Part));
}

function viewOf({ group, parts }: Meant): GroupView {
  const sumOf = (phase: keyof Part["counts"]): number => parts.reduce((sum, part) => sum + part.counts[phase], 0);
  const phases = Object.keys(parts[0]?.counts ?? {}) as (keyof Part["counts"])[];
  const counts = Object.fromEntries(phases.map((phase) => [phase, sumOf(phase)])) as GroupView["counts"];
  const usage = parts.reduce<UsageTotals | null>(
    (sum, part) => (part.usage === null ? sum : summed(sum, part.usage)),
    null,
  );
  const hasEndedWhole = parts.every(({ live }) => live === 0);
  return {
    id: group.id,
    projects: [...new Set(parts.map(({ project }) => project))].sort(),
    counts,
    total: Object.values(counts).reduce((sum, count) => sum + count, 0),
    ...(usage === null ? {} : { usage: usageView(usage) }),
    createdAt: isoTime(group.createdAt),
    ...(hasEndedWhole ? { endedAt: isoTime(Math.max(...parts.map(({ endedAt }) => endedAt))) } : {}),
  };
}
