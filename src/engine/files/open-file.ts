/**
 * A file for a caller: the content, if a task that the caller may read lists it.
 *
 * With a task, what that one and those it needs have left, and also their results: one that was too large to be handed
 * along with the inputs of a task is named by its hash, and read here. Asking for anything else tells nothing about it.
 */
import { join } from "node:path";
import type { Seq, TaskId } from "../../core/base/index.ts";
import { awaitedParent } from "../../core/fleet/index.ts";
import type { State, Task } from "../../core/model/index.ts";
import { withSteadyDate } from "../../std/index.ts";
import { type BodyStore, DamagedBody } from "../tasks/body-store.ts";
import { damagedResult } from "../tasks/read-tasks.ts";
import type { OfLife, Parts } from "./contents.ts";
import {
  createFiles,
  FILES_DIRECTORY,
  type FileRoom,
  type Files,
  type OpenFile,
  type OpenFileOptions,
  unknownFile,
} from "./files.ts";
import { directoryMedium, type FileMedium, memoryMedium } from "./medium.ts";

/** The files of a Drover: in its data directory, or in memory where there is none. */
export function openFiles(
  options: Pick<Parts, "clock" | "onWarning"> & { readonly data?: string; readonly fileMedium?: FileMedium },
): FileRoom {
  const { data, fileMedium, clock, onWarning } = options;
  const inMemory = data === undefined ? memoryMedium : null;
  const medium = fileMedium ?? inMemory?.() ?? directoryMedium(join(data ?? "", FILES_DIRECTORY));
  return createFiles({ medium, clock: withSteadyDate(clock), onWarning });
}

/** The same files as a life of it has them. */
export type LifeFiles = Omit<FileRoom, "open"> & Pick<Files, "open">;
export function filesOf(files: FileRoom, life: OfLife & { readonly bodies: BodyStore }): LifeFiles {
  files.serve(life);
  return { ...files, open: createOpenFile({ ...life, files }) };
}

function createOpenFile(parts: {
  readonly state: State;
  readonly bodies: BodyStore;
  readonly files: FileRoom;
}): Files["open"] {
  const { state, bodies, files } = parts;

  return async (hash, options) => {
    if (options === undefined) return files.open(hash);
    const { mayRead = () => true } = options;
    const isReadable = ({ agent, project }: Task): boolean => mayRead({ agentId: agent.id, project: project.id });
    for (const task of tasksFor(state, hash, options)) {
      if (!isReadable(task)) continue;
      if (state.files.get(hash)?.has(task) === true) return files.open(hash);
      if (options.task !== undefined && task.end?.resultHash === hash) return resultOf(task);
    }
    throw unknownFile(hash);
  };

  async function resultOf({ id, end }: Task): Promise<OpenFile> {
    try {
      const text = await bodies.read(end?.resultSeq as Seq, end?.resultHash);
      const content = Buffer.from(text ?? "");
      return { size: content.length, bytes: one(content) };
    } catch (error) {
      throw error instanceof DamagedBody ? damagedResult(id, error) : error;
    }
  }
}

async function* one(content: Uint8Array): AsyncGenerator<Uint8Array> {
  yield content;
}

function tasksFor(state: State, hash: string, { task: id }: OpenFileOptions): Iterable<Task> {
  if (id === undefined) return state.files.get(hash) ?? [];
  const task = state.tasks.get(id as TaskId);
  if (task === undefined) return [];
  const { links } = task;
  // A child of a task that runs does not need it.
  const parent = links === null ? null : awaitedParent(links);
  const ids = [...(parent === null ? [] : [parent]), ...(links?.needs ?? [])];
  const named = ids.flatMap((one) => state.tasks.get(one) ?? []);
  // A later task may have taken the id of one that was forgotten.
  return [task, ...named.filter(({ seq }) => seq < task.seq)];
}
