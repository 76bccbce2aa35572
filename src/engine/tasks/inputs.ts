/**
 * What a task sees of those it needs: how each ended, and what it answered.
 *
 * The keys are the names that the task gave its needs, their ids where it gave none, and `parent`. Nothing but what the
 * task names is read, and all of it comes from the log, so two workers that are given the same attempt see the same.
 * Records of needs are kept for this (core/lifecycle/transitions.ts). Of a need whose record was gone before the task
 * came the log may still have the end, and one that is forgotten altogether is left out.
 *
 * Results have a bound in all, in the order of needs. One that does not fit is named by its hash and size; so is one
 * that looks like such a name itself, since a need may answer anything, and a name is followed by who reads it. The
 * branch on which a worker kept the work of a command travels in the result (`workspace`), and is shown beside it also
 * where that does not fit.
 */
import type { Seq, TaskId } from "../../core/base/index.ts";
import { awaitedParent } from "../../core/fleet/index.ts";
import type { State, Task } from "../../core/model/index.ts";
import type { Log } from "../../log/index.ts";
import { calledParams } from "../../plan/index.ts";
import type { Input, Inputs, TaskBody } from "../../protocol/index.ts";
import { nextTurn, RESULT_BYTES_MAX, referenceIn, remember } from "../../std/index.ts";
import { usageView } from "../base/charged-tokens.ts";
import { DroverError } from "../base/drover-error.ts";
import type { Writer } from "../writer/writer.ts";
import { type BodyStore, DamagedBody } from "./body-store.ts";
import { branchOf, damagedResult, endOf } from "./read-tasks.ts";

/** For the results that one task sees, together. */
const INPUT_BYTES_MAX = RESULT_BYTES_MAX;
/** Of an error that does not fit any more. */
const ERROR_START = 200;
/** How many results that did not fit are remembered. */
const PASSED_MAX = 10_000;

export type ReadInputs = (task: Task, needs: TaskBody["needs"]) => Promise<Inputs>;

export const hasInputs = ({ links }: Task): boolean =>
  links !== null && (awaitedParent(links) !== null || links.needs.length > 0);

/** Of a plan's action: the params that its worker sees. Throws what ends its attempt. */
export function called(
  params: unknown,
  inputs: Inputs | null,
): { readonly params?: Readonly<Record<string, unknown>> } {
  const filled = calledParams(params, inputs ?? {});
  return filled === null ? {} : { params: filled };
}

/** How a need stands, and where more of it is. */
type Seen = Pick<Input, "taskId" | "state" | "error" | "usage" | "files"> & {
  readonly result: { readonly seq: Seq; readonly hash: string | null; readonly size: number } | null;
  /** The event that ended one whose record is gone. */
  readonly endSeq: Seq | null;
};

type Passed = { readonly size: number; readonly branch: Pick<Input, "branch"> };
type FoundResult = Pick<Input, "result" | "branch" | "error">;

export function createInputs({
  writer,
  log,
  bodies,
}: {
  readonly writer: Writer;
  readonly log: Log;
  readonly bodies: BodyStore;
}): ReadInputs {
  /** Results that did not fit, by their events. A task may have a thousand names for one of them. */
  const passed = new Map<Seq, Passed>();

  return async (task, needs) => {
    // One look at the state; then, when all that was seen is durable, what the log holds of it.
    const seen = keysOf(task, needs).map(([key, id]) => [key, lookAt(writer.state, task, id)] as const);
    await writer.settled();
    const room = { left: INPUT_BYTES_MAX };
    const inputs: [string, Input][] = [];
    for (const [key, found] of seen) if (found !== null) inputs.push([key, await inputOf(found, room)]);
    return Object.fromEntries(inputs);
  };

  async function inputOf(seen: Seen, room: { left: number }): Promise<Input> {
    const { taskId, state, error, usage } = seen;
    const used = usage === undefined ? {} : { usage };
    const left = seen.files === undefined ? {} : { files: seen.files };
    try {
      const buried = seen.endSeq === null ? {} : await buriedOf(taskId as TaskId, seen.endSeq, room);
      const failure = buried.error ?? error;
      const said = failure === undefined ? {} : { error: fitting(failure, room) };
      const { error: _, ...result } = seen.result === null ? buried : await resultOf(seen.result, taskId, room);
      return { taskId, state, ...result, ...left, ...said, ...used };
    } catch (thrown) {
      if (!(thrown instanceof DroverError) || thrown.code !== "damaged") throw thrown;
      return { taskId, state, ...left, error: thrown.message, ...used };
    }
  }

  async function resultOf(
    { seq, hash, size }: NonNullable<Seen["result"]>,
    id: string,
    room: { left: number },
  ): Promise<FoundResult> {
    const known = passed.get(seq);
    if (size > room.left && known !== undefined) return { result: { file: { hash, size } }, ...known.branch };
    try {
      const text = await bodies.read(seq, hash);
      if (text === null) return {};
      if (size <= room.left) {
        room.left -= size;
        const result = JSON.parse(text) as unknown;
        // One that looks like what stands for a result is named itself, so that it is read as what it is.
        const isClear = hash === null || referenceIn(result) === null;
        return isClear ? { result, ...branchOf(result) } : { result: { file: { hash, size } } };
      }
      const branch = text.includes('"workspace"') ? branchOf(JSON.parse(text)) : {};
      await pass(seq, { size, branch });
      return { result: { file: { hash, size } }, ...branch };
    } catch (thrown) {
      throw thrown instanceof DamagedBody ? damagedResult(id as TaskId, thrown) : thrown;
    }
  }

  /** Of a task whose record is gone nothing but the value is known. */
  async function buriedOf(id: TaskId, seq: Seq, room: { left: number }): Promise<FoundResult> {
    const known = passed.get(seq);
    if (known !== undefined && known.size > room.left) return known.branch;
    const { result, error } = await endOf(log, id, seq);
    if (result === undefined) return error === undefined ? {} : { error };
    const size = Buffer.byteLength(JSON.stringify(result));
    const branch = branchOf(result);
    if (size <= room.left) {
      room.left -= size;
      return referenceIn(result) === null ? { result, ...branch } : {};
    }
    await pass(seq, { size, branch });
    return branch;
  }

  /** A large result was looked through for nothing but its branch: others have their turn before the next. */
  async function pass(seq: Seq, found: Passed): Promise<void> {
    remember(passed, seq, found, PASSED_MAX);
    await nextTurn();
  }
}

function fitting(error: string, room: { left: number }): string {
  const kept = error.length <= room.left ? error : error.slice(0, ERROR_START);
  room.left = Math.max(0, room.left - kept.length);
  return kept;
}

/** What a task calls those it needs, in their order; the body has the names, and its text may have them in another. */
function keysOf({ links }: Task, needs: TaskBody["needs"] = []): [key: string, id: TaskId][] {
  const { needs: ids } = links ?? { needs: [] };
  const parent = links === null ? null : awaitedParent(links);
  const named = Map.groupBy(Object.entries(Array.isArray(needs) ? {} : needs), ([, id]) => id);
  const keyed = ids.flatMap((id) => (named.get(id) ?? [[id]]).map(([key = id]): [string, TaskId] => [key, id]));
  return parent === null ? keyed : [["parent", parent], ...keyed];
}

/** Null if it is not known any more: a later task may have taken its id. */
function lookAt(state: State, task: Task, id: TaskId): Seen | null {
  const found = state.tasks.get(id);
  if (found !== undefined && found.seq < task.seq) {
    const { end } = found;
    const result =
      end === null || end.resultSeq === null
        ? null
        : { seq: end.resultSeq as Seq, hash: end.resultHash, size: end.resultSize };
    const error = end === null || end.error === null ? {} : { error: end.error };
    const used = found.extra?.usage ? { usage: usageView(found.extra.usage) } : {};
    const files = found.extra?.files ?? null;
    const left = files === null ? {} : { files };
    return { taskId: id, state: found.phase, ...error, ...used, ...left, result, endSeq: null };
  }
  const stone = state.tombstones.get(id);
  if (stone === undefined || stone.seq > task.seq) return null;
  return { taskId: id, state: stone.phase, result: null, endSeq: stone.endSeq as Seq };
}
