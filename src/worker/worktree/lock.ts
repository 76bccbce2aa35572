/**
 * One at a time adds or removes a worktree of a repository.
 *
 * Git's own locks fail at once instead of waiting, and two additions at the same moment can lose one. Inside this
 * process the callers stand in a line. Between processes there is a lock of the operating system, taken through an open
 * exclusive transaction on an empty SQLite file in the repository's git directory: it vanishes with its holder however
 * that ends, so no lock is ever left behind, and none has to be judged stale.
 */
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

const LOCK_FILE = "drover-worktrees.lock";
const WAIT_MS_MAX = 120_000;
const PAUSE_MS_MIN = 5;
const PAUSE_MS_MAX = 100;

const lines = new Map<string, Promise<unknown>>();

/** The directory is the repository's common git directory. */
export function withRepositoryLock<Value>(gitDirectory: string, action: () => Promise<Value>): Promise<Value> {
  const before = lines.get(gitDirectory) ?? Promise.resolve();
  const turn = before.then(() => holdingLock(gitDirectory, action));
  const settled = turn
    .catch(() => {})
    .then(() => {
      if (lines.get(gitDirectory) === settled) lines.delete(gitDirectory);
    });
  lines.set(gitDirectory, settled);
  return turn;
}

async function holdingLock<Value>(gitDirectory: string, action: () => Promise<Value>): Promise<Value> {
  const release = await takeLock(join(gitDirectory, LOCK_FILE));
  try {
    return await action();
  } finally {
    release();
  }
}

async function takeLock(path: string): Promise<() => void> {
  // Loaded only by those who use worktrees.
  const { DatabaseSync } = await import("node:sqlite");
  for (let waitedMs = 0, pauseMs = PAUSE_MS_MIN; ; pauseMs = Math.min(PAUSE_MS_MAX, pauseMs * 2)) {
    const database = new DatabaseSync(path, { timeout: 0 });
    try {
      database.exec("BEGIN EXCLUSIVE");
      return () => database.close();
    } catch (error) {
      database.close();
      if (!isBusy(error)) throw error;
      if (waitedMs >= WAIT_MS_MAX)
        throw new Error(`another process has held ${path} for ${WAIT_MS_MAX / 1000} s; is a worker stuck in git?`);
    }
    await pause(pauseMs);
    waitedMs += pauseMs;
  }
}

const isBusy = (error: unknown): boolean => (error as { errcode?: unknown }).errcode === 5;
