/**
 * Where the output of attempts lies, and how much of it stays.
 *
 * `<directory>/<task>/<attempt>.log`. All logs together have a limit; when it is passed, the oldest go, never those of
 * attempts that still run. A small file costs a whole block of the disk, so it counts as one: a million empty logs
 * are not free. The sum is kept in memory and taken anew from the disk now and then, since other workers may share it.
 */
import { readdir, rm, rmdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileNameOf } from "./safe-name.ts";

export type OutputDirectory = {
  pathOf(taskId: string, attempt: number): string;
  /** The highest attempt of a task that has a log, or null. */
  latestOf(taskId: string): Promise<number | null>;
  /** A log is being written: it is not removed until it is let go. */
  hold(path: string): void;
  /** It is written; now there may be too much. */
  letGo(path: string): Promise<void>;
  /** Removes the oldest until the rest fits; answers how many went. */
  trim(): Promise<number>;
};

const BLOCK = 4096;
/** A trim goes somewhat below the limit, so that the next log does not cause the next one. */
const TRIM_TO = 0.9;
const RECOUNT_AFTER = 500;

type LogFile = { readonly path: string; readonly bytes: number; readonly at: number };

export function createOutputDirectory(directory: string, bytesMax: number): OutputDirectory {
  const held = new Set<string>();
  let bytes = 0;
  let untilRecount = 0;
  let trimming: Promise<number> | null = null;

  async function sweepOldest(): Promise<number> {
    const files = await listLogs(directory);
    bytes = files.reduce((sum, file) => sum + file.bytes, 0);
    untilRecount = RECOUNT_AFTER;
    if (bytes <= bytesMax) return 0;
    let count = 0;
    for (const file of files.sort((a, b) => a.at - b.at || (a.path < b.path ? -1 : 1))) {
      if (bytes <= bytesMax * TRIM_TO) break;
      if ([...held].some((path) => file.path.startsWith(path))) continue;
      await rm(file.path, { force: true });
      await rmdir(dirname(file.path)).catch(() => {}); // Other attempts of the task are still in there.
      bytes -= file.bytes;
      count += 1;
    }
    return count;
  }

  function trim(): Promise<number> {
    trimming ??= sweepOldest().finally(() => {
      trimming = null;
    });
    return trimming;
  }

  return {
    pathOf: (taskId, attempt) => join(directory, fileNameOf(taskId), `${attempt}.log`),
    async latestOf(taskId) {
      const names = await readdir(join(directory, fileNameOf(taskId))).catch(() => []);
      const attempts = names.flatMap((name) => /^(\d+)\.log$/.exec(name)?.[1] ?? []).map(Number);
      return attempts.length === 0 ? null : Math.max(...attempts);
    },
    hold: (path) => void held.add(path),
    async letGo(path) {
      held.delete(path);
      bytes += blocks((await stat(path).catch(() => null))?.size ?? 0);
      untilRecount -= 1;
      if (bytes > bytesMax || untilRecount <= 0) await trim();
    },
    trim,
  };
}

async function listLogs(directory: string): Promise<LogFile[]> {
  const names = await readdir(directory).catch(() => []);
  const files: LogFile[] = [];
  for (const name of names) {
    for (const log of await readdir(join(directory, name)).catch(() => [])) {
      const path = join(directory, name, log);
      const found = await stat(path).catch(() => null);
      if (found?.isFile()) files.push({ path, bytes: blocks(found.size), at: found.mtimeMs });
    }
  }
  return files;
}

const blocks = (bytes: number): number => Math.max(1, Math.ceil(bytes / BLOCK)) * BLOCK;
