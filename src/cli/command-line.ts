/**
 * The command line as a whole: all verbs, the overview, and the one place where whatever went wrong becomes an exit
 * code.
 *
 * It is a function from arguments and a terminal to a number, so that tests run it as a person would without starting a
 * process. `main.ts` is the only caller that has a real terminal.
 */

import { Command, CommanderError } from "commander";
import { ClientError } from "../client/client-error.ts";

import { BadConfig } from "./config/problem.ts";
import { flagHelp, helpVerb, overview } from "./help.ts";
import { EXIT, type ExitCode } from "./shell/exit-code.ts";
import { CliProblem, configProblem, type Problem, reportProblem } from "./shell/problem.ts";
import { InputTooLong, type Terminal } from "./shell/terminal.ts";
import { BadCall, fillVerb, type ListedVerb, nameVerb, type Stage } from "./shell/verb.ts";
import { versionText } from "./shell/version.ts";
import { painter } from "./show/text.ts";

export async function runCommandLine(
  args: readonly string[],
  terminal: Terminal,
  verbs: readonly ListedVerb[],
): Promise<number> {
  let code: ExitCode = EXIT.ok;
  const program = createProgram(terminal, verbs, (finished) => {
    code = finished;
  });
  const isJson = wantsJson(args);
  if (args.length === 0) {
    terminal.out(overview(program, painter(terminal.hasColours)));
    return EXIT.ok;
  }
  try {
    await program.parseAsync(args, { from: "user" });
    return code;
  } catch (error) {
    const problem = await problemOf(error);
    if (problem === null) return EXIT.ok;
    reportProblem(problem, terminal, isJson);
    return problem.exit;
  }
}

/** Flags behind `--` belong to somebody else. */
const wantsJson = (args: readonly string[]): boolean => {
  const end = args.indexOf("--");
  return (end < 0 ? args : args.slice(0, end)).includes("--json");
};

function createProgram(terminal: Terminal, verbs: readonly ListedVerb[], finish: (code: ExitCode) => void): Command {
  const program = new Command("drover");
  program
    .description("Which task runs next, on which worker, and which LLM call may go out now. It always says why.")
    .version(versionText(), "-V, --version", "print the version")
    .option("--json", "answer in JSON, for programs")
    .option("--url <url>", "the server (default: $DROVER_URL, or http://127.0.0.1:4747)")
    .option("--no-color", "no colours, also on a terminal")
    .helpOption("-h, --help", "show help")
    .helpCommand(false)
    .exitOverride()
    .showSuggestionAfterError(true)
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({
      writeOut: terminal.out,
      writeErr: terminal.err,
      // What is wrong is reported by us, in the same way as everything else that is.
      outputError: () => {},
      getOutHelpWidth: () => Math.min(terminal.width ?? 100, 120),
      getErrHelpWidth: () => Math.min(terminal.width ?? 100, 120),
      getOutHasColors: () => terminal.hasColours,
      getErrHasColors: () => terminal.errorsHaveColours,
    });
  const unloaded = new Map<Command, ListedVerb>();
  for (const verb of [...verbs, helpVerb]) {
    const command = nameVerb(program, verb);
    if (verb.group !== undefined) command.helpGroup(verb.group);
    unloaded.set(command, verb);
  }
  const stage: Stage = { terminal, program, finish, load };
  return program.hook("preSubcommand", (_, command) => load(command));

  async function load(command: Command): Promise<void> {
    const verb = unloaded.get(command);
    unloaded.delete(command);
    if (verb !== undefined) fillVerb(command, await verb.load(), stage, [verb.name]);
  }
}

/** What went wrong, for whatever was thrown; null where nothing did (help was shown). A bug is not caught here. */
async function problemOf(error: unknown): Promise<Problem | null> {
  if (error instanceof CliProblem) return error.problem;
  if (error instanceof BadConfig) return configProblem(error);
  if (error instanceof ClientError) return (await import("./shell/connection.ts")).clientProblem(error);
  if (error instanceof InputTooLong) return { message: error.message, code: "usage", exit: EXIT.usage };
  if (error instanceof BadCall) return usageOf(error.reason, error.verb);
  if (error instanceof CommanderError) return usageOf(error);
  throw error;
}

function usageOf({ code, exitCode, message }: CommanderError, verb?: string): Problem | null {
  if (exitCode === 0) return null;
  const hint = code === "commander.help" ? undefined : whereHelpIs(verb);
  // Commander speaks first of "error:"; what it suggests comes in a line of its own.
  const [first = "", ...rest] = message.replace(/^error: /, "").split("\n");
  return { message: [first, ...rest].join(" "), code: "usage", exit: EXIT.usage, hint };
}

const whereHelpIs = (verb: string | undefined): string =>
  verb === undefined
    ? "drover help shows the verbs, drover help VERB one of them"
    : `its flags, with examples: ${flagHelp(verb)}`;
