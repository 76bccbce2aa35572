/**
 * The directory a worker keeps its logs and worktrees in, made so that git does not see it.
 *
 * A worker is mostly started in the checkout it works on. What it writes there would be in the way of whoever looks at
 * `git status`, and one day in a commit. A server's directory is made likewise (log/own-directory.ts).
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { EXIT } from "./exit-code.ts";
import { CliProblem } from "./problem.ts";

export function makeWorkerData(data: string): void {
  try {
    const first = mkdirSync(data, { recursive: true, mode: 0o700 });
    if (first === undefined) return;
    const own = basename(first) === ".drover" ? first : data;
    writeFileSync(join(own, ".gitignore"), "# Drover's data: logs, sessions, worktrees.\n*\n");
  } catch (error) {
    const message = `cannot make the data directory ${data}: ${(error as Error).message}`;
    const hint = "another directory: --data DIR";
    throw new CliProblem({ message, code: "io", exit: EXIT.broken, hint });
  }
}
