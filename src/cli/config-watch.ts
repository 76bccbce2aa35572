/**
 * Notices that a config file was changed, however the editor goes about it.
 *
 * Editors write in place, or write another file and rename it; deployments swap a symbolic link two directories away. A
 * watch on the file itself would follow the old one into the grave. So the directories are watched, the one of the name
 * and the one it leads to, and after a short quiet the whole config is read again. Whether anything in it has changed
 * is for the reader to find out; a hint too many costs a read of a small file.
 */
import { type FSWatcher, realpathSync, watch } from "node:fs";
import { basename, dirname } from "node:path";

/** An editor's save is a burst of several events; this is longer than a burst and shorter than patience. */
export const QUIET_MS = 150;

export type WatchWorld = {
  /** Calls back with the name of whatever changes in a directory, null if that is unknown; throws if it cannot. */
  readonly watchDirectory: (
    directory: string,
    onChange: (name: string | null) => void,
    onError: (error: Error) => void,
  ) => () => void;
  readonly setTimer: (run: () => void, ms: number) => () => void;
  readonly realPath: (file: string) => string;
};

export const realWorld: WatchWorld = {
  watchDirectory: (directory, onChange, onError) => {
    const watcher: FSWatcher = watch(directory, { persistent: false }, (_, name) => onChange(name));
    watcher.on("error", onError);
    return () => watcher.close();
  },
  setTimer: (run, ms) => {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
  realPath: (file) => {
    try {
      return realpathSync(file);
    } catch {
      return file;
    }
  },
};

export type ConfigWatch = { readonly stop: () => void };

/** Calls `onChange` after each burst of changes to any of the files. */
export function watchFiles(
  files: readonly string[],
  { onChange, onWarning }: { readonly onChange: () => void; readonly onWarning: (message: string) => void },
  world: WatchWorld = realWorld,
): ConfigWatch {
  const open = new Map<string, () => void>();
  let cancelTimer: (() => void) | null = null;
  let isStopped = false;

  function directories(): Map<string, Set<string>> {
    const wanted = new Map<string, Set<string>>();
    for (const file of files.flatMap((name) => [name, world.realPath(name)])) {
      const names = wanted.get(dirname(file)) ?? new Set();
      wanted.set(dirname(file), names.add(basename(file)));
    }
    return wanted;
  }

  /** A link may lead elsewhere after a change, and a directory that was missing may be there now. */
  function watchAll(): void {
    for (const [directory, names] of directories()) if (!open.has(directory)) watchOne(directory, names);
  }

  function watchOne(directory: string, names: ReadonlySet<string>): void {
    const forget = (error: Error): void => {
      open.get(directory)?.();
      open.delete(directory);
      if (!isMissing(error))
        onWarning(`changes in ${directory} are not noticed: ${error.message}; send SIGHUP instead`);
    };
    try {
      const close = world.watchDirectory(directory, (name) => (concerns(name, names) ? later() : undefined), forget);
      open.set(directory, close);
    } catch (error) {
      forget(error as Error);
    }
  }

  function later(): void {
    cancelTimer?.();
    if (!isStopped) cancelTimer = world.setTimer(settle, QUIET_MS);
  }

  function settle(): void {
    cancelTimer = null;
    watchAll();
    onChange();
  }

  watchAll();
  return {
    stop: () => {
      isStopped = true;
      cancelTimer?.();
      for (const close of open.values()) close();
      open.clear();
    },
  };
}

/** Kubernetes swaps `..data`, and no event names the file that changed with it. */
const concerns = (name: string | null, names: ReadonlySet<string>): boolean =>
  name === null || names.has(name) || name.startsWith("..");

const isMissing = (error: Error): boolean => (error as NodeJS.ErrnoException).code === "ENOENT";
