/**
 * Notices that a config file was changed, however that was done.
 *
 * Editors write in place, or write another file and rename it; a mounted config map swaps a symbolic link that the file
 * is reached by; a deployment replaces one directory by another. A watch on the file itself would follow the
 * old one into the grave. So everything on the way to the file is watched by its name, in the directory that holds it,
 * and after each change the way is looked up anew. After a short quiet the whole config is read again. Whether anything
 * in it has changed is for the reader to find out; a hint too many costs a read of a small file.
 */
import { type FSWatcher, lstatSync, readlinkSync, watch } from "node:fs";
import { isAbsolute, join, parse, resolve, sep } from "node:path";
import { realClock, ringAfter } from "../../std/index.ts";

/** An editor's save is a burst of several events; this is longer than a burst and shorter than patience. */
const QUIET_MS = 150;

export type WatchWorld = {
  /** Calls back with the name of whatever changes in a directory, null if that is unknown; throws if it cannot. */
  readonly watchDirectory: (
    directory: string,
    onChange: (name: string | null) => void,
    onError: (error: Error) => void,
  ) => () => void;
  readonly setTimer: (run: () => void, ms: number) => () => void;
  readonly wayTo: (file: string) => readonly Station[];
};

/** A name in a directory. If that comes, goes or changes, the file may be another one. */
export type Station = { readonly directory: string; readonly name: string };

export const realWorld: WatchWorld = {
  watchDirectory: (directory, onChange, onError) => {
    const watcher: FSWatcher = watch(directory, { persistent: false }, (_, name) => onChange(name));
    watcher.on("error", onError);
    return () => watcher.close();
  },
  setTimer: (run, ms) => ringAfter(realClock, ms, run),
  wayTo,
};

/** As many as Linux follows before it calls them a loop. */
const LINKS_MAX = 40;

/**
 * The file, the directory it lies in, and every symbolic link on the way there. If the way ends early: the first name
 * that is missing, and the directory it is missing from. Other directories are left out: a program that removes one
 * removes the file first.
 */
export function wayTo(file: string): readonly Station[] {
  const whole = resolve(file);
  const { root } = parse(whole);
  const way = new Set<Station>();
  let directory = root;
  let around: Station | null = null;
  let names = whole.slice(root.length).split(sep);
  for (let links = 0; names.length > 0 && links <= LINKS_MAX; ) {
    const [name = "", ...rest] = names;
    const path = join(directory, name);
    const isStep = name === "" || name === "." || name === "..";
    const found = isStep ? "plain" : lookAt(path);
    const station = { directory, name };
    if (found === null && around !== null) way.add(around);
    if (found !== "plain" || (rest.length <= 1 && !isStep)) way.add(station);
    if (found === null) break;
    names = found === "plain" ? rest : [...found.target.split(sep), ...rest];
    if (found === "plain") {
      directory = path;
      around = isStep ? around : station;
    } else {
      links += 1;
      if (isAbsolute(found.target)) directory = root;
    }
  }
  return [...way];
}

/** A link, anything else, or null for nothing that we could get at. */
function lookAt(path: string): { readonly target: string } | "plain" | null {
  try {
    return lstatSync(path).isSymbolicLink() ? { target: readlinkSync(path) } : "plain";
  } catch {
    return null;
  }
}

export type ConfigWatch = { readonly stop: () => void };

/** The path may change while its watches are set up. One that changes this often will change once more. */
const LOOKS_MAX = 5;

/** Calls `onChange` after each burst of changes to any of the files. */
export function watchFiles(
  files: readonly string[],
  { onChange, onWarning }: { readonly onChange: () => void; readonly onWarning: (message: string) => void },
  world: WatchWorld = realWorld,
): ConfigWatch {
  const open = new Map<string, () => void>();
  const warned = new Set<string>();
  let cancelTimer: (() => void) | null = null;
  let isStopped = false;

  const stations = (): Station[] => files.flatMap((file) => world.wayTo(file));

  /** Every watch is made anew: the directory of a name may be another one than before. The old ones go last. */
  function watchAll(): void {
    let way = stations();
    for (let look = 0; look < LOOKS_MAX; look++) {
      const old = [...open.values()];
      open.clear();
      for (const [directory, names] of Map.groupBy(way, (station) => station.directory))
        watchOne(directory, new Set(names.map(({ name }) => name)));
      for (const close of old) close();
      const seen = JSON.stringify(way);
      way = stations();
      if (JSON.stringify(way) === seen) return;
    }
  }

  function watchOne(directory: string, names: ReadonlySet<string>): void {
    const forget = (error: Error): void => {
      open.get(directory)?.();
      open.delete(directory);
      if (isMissing(error) || warned.has(directory)) return;
      warned.add(directory);
      onWarning(`changes in ${directory} are not noticed: ${error.message}; send SIGHUP instead`);
    };
    const hear = (name: string | null): void => (name === null || names.has(name) ? later() : undefined);
    try {
      open.set(directory, world.watchDirectory(directory, hear, forget));
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

const isMissing = (error: Error): boolean => (error as NodeJS.ErrnoException).code === "ENOENT";
