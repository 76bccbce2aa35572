/**
 * The sessions agents open, remembered per task, so that a retry goes on where the last attempt stopped.
 *
 * A session is written down the moment it is seen, since what is retried is mostly what was killed. It is only offered
 * to the tool that opened it, and forgotten when the task is over. Old ones go by age and by number.
 */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { OWN_FILE_MODE } from "../../std/index.ts";
import { fileNameOf } from "../output/safe-name.ts";

export type Sessions = {
  of(taskId: string): string | undefined;
  note(taskId: string, sessionId: string): void;
  forget(taskId: string): void;
  prune(now: number): void;
};

const AGE_MS_MAX = 30 * 24 * 3_600_000;
const COUNT_MAX = 10_000;
const ID_LENGTH_MAX = 256;
/** It becomes a word of a command line: nothing that could be taken for an option. */
const ID = /^[A-Za-z0-9][\w.:-]*$/;

export function createSessions(directory: string, tool: string): Sessions {
  const pathOf = (taskId: string): string => join(directory, `${fileNameOf(taskId)}.json`);
  const known = new Map<string, string>();

  function of(taskId: string): string | undefined {
    try {
      const stored: unknown = JSON.parse(readFileSync(pathOf(taskId), "utf8"));
      const { sessionId, tool: opener } = stored as Record<string, unknown>;
      return typeof sessionId === "string" && opener === tool && isSession(sessionId) ? sessionId : undefined;
    } catch {
      // None yet, or one that was cut off while it was written: then the retry begins anew.
      return undefined;
    }
  }

  function note(taskId: string, sessionId: string): void {
    if (!isSession(sessionId) || known.get(taskId) === sessionId) return;
    known.set(taskId, sessionId);
    const path = pathOf(taskId);
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    writeFileSync(`${path}.new`, JSON.stringify({ taskId, sessionId, tool }), { mode: OWN_FILE_MODE });
    renameSync(`${path}.new`, path);
  }

  function forget(taskId: string): void {
    known.delete(taskId);
    rmSync(pathOf(taskId), { force: true });
  }

  function prune(now: number): void {
    const files = namesIn(directory).flatMap((name) => {
      const path = join(directory, name);
      const at = statSync(path, { throwIfNoEntry: false })?.mtimeMs;
      return at === undefined ? [] : [{ path, at }];
    });
    files.sort((a, b) => b.at - a.at);
    for (const [index, { path, at }] of files.entries())
      if (index >= COUNT_MAX || at < now - AGE_MS_MAX) rmSync(path, { force: true });
  }

  return { of, note, forget, prune };
}

const isSession = (id: string): boolean => id.length <= ID_LENGTH_MAX && ID.test(id);

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
