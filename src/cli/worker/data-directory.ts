/**
 * The directory a worker keeps its logs and worktrees in, made so that git does not see it.
 *
 * A worker is mostly started in the checkout it works on. What it writes there would be in the way of whoever looks at
 * `git status`, and one day in a commit. It is made as a server's is; only what is said when it cannot be is its own.
 */
import { makeOwnDirectory } from "../../std/index.ts";
import { CliProblem, EXIT } from "../shell/problem.ts";

export function makeWorkerData(data: string): void {
  try {
    makeOwnDirectory(data);
  } catch (error) {
    const message = `cannot make the data directory ${data}: ${inWords(error as NodeJS.ErrnoException)}`;
    const hint = "another directory: --data DIR";
    throw new CliProblem({ message, code: "io", exit: EXIT.broken, hint });
  }
}

const WORDS: ReadonlyMap<string | undefined, string> = new Map([
  ["EEXIST", "a file of that name is there"],
  ["ENOTDIR", "a part of its path is a file"],
  ["EACCES", "no permission"],
  ["EROFS", "the file system is read-only"],
]);

const inWords = ({ code, message }: NodeJS.ErrnoException): string => WORDS.get(code) ?? message;
