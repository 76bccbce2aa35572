/**
 * What the tasks of a run have left: the ends of their logs, where the whole ones are, and the branches with their
 * work. On this machine they are files; on a server they are asked for.
 */
import { ClientError } from "../../client/index.ts";
import { spokenBy } from "../shell/log-text.ts";
import { asTyped } from "../shell/problem.ts";
import { asWord, shortPath } from "../shell/text.ts";
import type { Attempts } from "./attempts.ts";
import type { Link } from "./link.ts";
import type { Row } from "./state.ts";

export type Kept = { readonly branch: string; readonly path?: string };
export type Leavings = {
  /** The last lines that the last attempt wrote; null if nobody keeps what it wrote. */
  tail(row: Row, lines: number): Promise<string[] | null>;
  /** Where the whole log is, for people. */
  wholeLog(row: Row): string;
  /** The file it is in; null if it is on another machine. */
  logFile(row: Row): string | null;
  kept(rows: readonly Row[]): Promise<ReadonlyMap<string, Kept>>;
};

export const leavingsHere = (attempts: Attempts, cwd: string): Leavings => ({
  tail: ({ id, attempt }, lines) => attempts.tail(id, attempt, lines),
  wholeLog: ({ id, attempt }) => shortPath(attempts.logPath(id, attempt), cwd),
  logFile: ({ id, attempt }) => attempts.logPath(id, attempt),
  kept: async (rows) =>
    new Map(
      rows.flatMap(({ id }) => {
        const kept = attempts.kept(id);
        return kept === null ? [] : [[id, kept] as const];
      }),
    ),
});

/** So many tasks are asked for their branches at most. */
const ASKED_MAX = 50;

export const leavingsOnServer = (link: Link, plan: string): Leavings => ({
  async tail({ id, attempt }, lines) {
    const asked = link.call((client) => client.logs(id, { attempt, tail: lines * 4 + 20 }));
    const log = await asked.catch((error: unknown) => {
      if (!(error instanceof ClientError)) throw error;
      return error.code === "not_found" ? null : { text: "" };
    });
    return log === null ? null : log.text.split("\n").flatMap(spokenBy).slice(-lines);
  },
  wholeLog: ({ name }) => asTyped(`drover task ${asWord(`${plan}/${name}`)} --logs`),
  logFile: () => null,
  async kept(rows) {
    const kept = new Map<string, Kept>();
    const asked = rows.filter(({ hasWorktree, attempts }) => hasWorktree && attempts > 0).slice(0, ASKED_MAX);
    for (const { id } of asked) {
      const task = await ifKnown(link.call((client) => client.task(id)));
      if (task?.branch !== undefined) kept.set(id, { branch: task.branch });
    }
    return kept;
  },
});

/** A task may be forgotten: then there is nothing to show. */
async function ifKnown<Answer>(asked: Promise<Answer>): Promise<Answer | null> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof ClientError) return null;
    throw error;
  }
}
