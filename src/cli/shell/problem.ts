/**
 * How a command says what went wrong: the thing itself, then what to do about it, then an exit code.
 *
 * Whatever a verb throws ends here. A refusal of the server is passed on in its own words, which name the field and
 * what would be right; this file adds the next step and the number a script needs. With --json the same is one JSON
 * object of the shape the API uses, also on standard error, so that standard output stays what was asked for.
 */
import { dirname, join, relative, resolve, sep } from "node:path";
import { EXIT, type ExitCode } from "./exit-code.ts";
import type { Terminal } from "./terminal.ts";
import { painter, plainLines } from "./text.ts";

export type Problem = {
  readonly message: string;
  readonly code: string;
  readonly exit: ExitCode;
  /** What to do next, as a sentence or a command. */
  readonly hint?: string | undefined;
  readonly retryable?: boolean | undefined;
  readonly details?: Readonly<Record<string, unknown>> | undefined;
};

/** A problem a verb has found by itself. */
export class CliProblem extends Error {
  override readonly name: string = "CliProblem";
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.message);
    this.problem = problem;
  }
}

export const usageProblem = (message: string, hint?: string): CliProblem =>
  new CliProblem({ message, code: "usage", exit: EXIT.usage, hint });

/** The program as it is reached from here. */
export const ownName = (): string => nameIn(process.cwd(), import.meta.filename);

/** Installed, by its name; in a clone, by npx; elsewhere npx would fetch a stranger's package, so by its path. */
export function nameIn(cwd: string, thisFile: string): string {
  if (!thisFile.endsWith(".ts")) return "drover";
  const clone = resolve(dirname(thisFile), "../../..");
  if (cwd === clone || cwd.startsWith(`${clone}${sep}`)) return "npx drover";
  const whole = join(clone, "bin/drover.js");
  const short = relative(cwd, whole);
  const path = short.length < whole.length ? short : whole;
  return `node ${/^[\w./+@-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`}`;
}

/** Commands in a text, as they are typed here. */
export const asTyped = (text: string): string =>
  text.replaceAll(/(?<![\w./-]|npx )drover (?=[a-z])/g, () => `${ownName()} `);

export function reportProblem(given: Problem, terminal: Terminal, isJson: boolean): void {
  const problem = { ...given, hint: given.hint === undefined ? undefined : asTyped(given.hint) };
  if (isJson) {
    const { message, code, retryable, details, hint } = problem;
    terminal.err(`${JSON.stringify({ error: message, code, retryable, details, hint })}\n`);
    return;
  }
  const paint = painter(terminal.errorsHaveColours);
  const [first = "", ...rest] = plainLines(problem.message).split("\n");
  terminal.err(`${paint("red", "error:")} ${first}\n`);
  for (const line of rest) terminal.err(`${line}\n`);
  if (problem.hint !== undefined) terminal.err(`${paint("dim", "hint:")}  ${plainLines(problem.hint)}\n`);
}
