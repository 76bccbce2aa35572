/**
 * The log of a plan that runs alone: what an earlier run has left in it, whether it is in use, what is wrong with it.
 *
 * Like session.ts, this file knows the engine, because a plan's log is opened without a server.
 */

import { existsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { type Drover, DroverError, LogFailure, openSqliteLog } from "../../engine/index.ts";
import { recover } from "../../engine/writer/index.ts";
import type { Known } from "../../plan/index.ts";

import { CliProblem, EXIT } from "../shell/problem.ts";

export { isInUse } from "../../engine/reader.ts";

export function* knownIn({ state }: Pick<Drover, "state">): Generator<Known> {
  for (const { id, phase } of state.tombstones.values()) yield { id, phase };
  for (const { id, phase, end } of state.tasks.values()) yield { id, phase, error: end?.error ?? null };
}

/** What the log of an earlier run has, without touching it. */
export async function knownBefore(data: string): Promise<Known[]> {
  if (!existsSync(data)) return [];
  const log = await openSqliteLog({ directory: data, readOnly: true });
  try {
    const { state } = await recover(log);
    return [...knownIn({ state })];
  } finally {
    await log.close();
  }
}

/** Whether a log could be there: the nearest thing above it, or it itself, is a directory. */
function isPlaceForLog(data: string): boolean {
  let at = data;
  while (!existsSync(at) && at !== dirname(at)) at = dirname(at);
  return statSync(at, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** What went wrong with the log, for people; null if it was something else. */
export function logProblem(error: unknown, data: string): CliProblem | null {
  if (error === null || (error instanceof LogFailure && error.code === "locked")) {
    const message = `this plan is running already: its log ${data} is in use by another process`;
    const hint = "wait for it, or stop it; another plan needs another name: (or --data)";
    return new CliProblem({ message, code: "locked", exit: EXIT.broken, hint, retryable: true });
  }
  if (!(error instanceof LogFailure) && !(error instanceof DroverError)) return null;
  const hint = isPlaceForLog(data)
    ? "what was done is in the log; see that it can be written, then run the same command again"
    : "nothing has run; --data names the directory of the log, and it is made if it is missing";
  return new CliProblem({ message: `${data}: ${error.message}`, code: error.code, exit: EXIT.broken, hint });
}

export const rethrown =
  (data: string) =>
  (error: unknown): never => {
    throw logProblem(error, data) ?? error;
  };
