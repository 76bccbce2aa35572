/**
 * The command line as a whole: all verbs, the overview, and how each error becomes an exit code.
 *
 * It is a function from arguments and a terminal to a number, so that tests run it as a person would without starting a
 * process. `main.ts` is the only caller that has a real terminal.
 */
import { ClientError } from "../client/client-error.ts";
import { createOutput, reportProblem } from "./shell/output.ts";
import { parseCall } from "./shell/parse.ts";
import { CliProblem, EXIT, type Problem } from "./shell/problem.ts";
import type { Terminal } from "./shell/terminal.ts";
import type { ListedVerb } from "./shell/verb.ts";

const HELP: ListedVerb = {
  name: "help",
  summary: "help with a verb, or with exit-codes or config",
  load: async () => (await import("./help.ts")).helpVerb,
};

export async function runCommandLine(
  words: readonly string[],
  terminal: Terminal,
  listed: readonly ListedVerb[],
): Promise<number> {
  const verbs = [...listed, HELP];
  const program = async () => (await import("./program.ts")).createProgram(terminal, verbs);
  try {
    if (words.length === 0) {
      terminal.out((await import("./help.ts")).overview(listed, terminal.hasColours));
      return EXIT.ok;
    }
    const call = (await parseCall(words, verbs)) ?? (await (await program()).read(words));
    if (call === null) return EXIT.ok;
    const { run, args, flags } = call;
    return await run({ args, flags, terminal, output: createOutput(terminal, flags), program });
  } catch (error) {
    const problem = await problemOf(error);
    reportProblem(problem, terminal, wantsJson(words));
    return problem.exit;
  }
}

/** What stands behind `--` is no flag of Drover. */
const wantsJson = (words: readonly string[]): boolean => {
  const end = words.indexOf("--");
  return (end < 0 ? words : words.slice(0, end)).includes("--json");
};

/** What went wrong, for whatever was thrown. A bug is not caught here. */
async function problemOf(error: unknown): Promise<Problem> {
  if (error instanceof CliProblem) return error.problem;
  if (error instanceof ClientError) return (await import("./shell/connection.ts")).clientProblem(error);
  throw error;
}
