/**
 * How a command says what went wrong: the thing itself, then what to do about it, then an exit code.
 *
 * Whatever a verb throws ends here. A refusal of the server is passed on in its own words, which name the field and
 * what would be right; this file adds the next step and the number a script needs. With --json the same is one JSON
 * object of the shape the API uses, also on standard error, so that standard output stays what was asked for.
 */
import { dirname, join, relative, resolve, sep } from "node:path";
import { asWord } from "./text.ts";

/**
 * What the exit code of `drover` means. Scripts rely on these numbers: a meaning may be added, never moved.
 *
 * The codes answer the question a script asks next: did the work fail (look at it), was the call wrong (mend the
 * script), is no server there (start one), does the state not allow it (read it first), or is there only no room now
 * (try again)?
 */
export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 2,
  unreachable: 3,
  refused: 4,
  noRoom: 5,
  broken: 6,
  interrupted: 130,
  terminated: 143,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

export const EXIT_MEANINGS: readonly (readonly [code: ExitCode, name: string, meaning: string])[] = [
  [EXIT.ok, "ok", "it is done"],
  [EXIT.failed, "failed", "the work failed: a task did not end as done, a log is damaged, a law is broken"],
  [EXIT.usage, "usage", "the call is wrong: a flag, a field, a file, the config; the message names it"],
  [EXIT.unreachable, "unreachable", "no server answers there, or it is starting or stopping"],
  [EXIT.refused, "refused", "the server says no: no such thing, its state does not allow this, or no right to it"],
  [EXIT.noRoom, "no room", "the queue is full or a limit is reached: the same call may succeed later"],
  [EXIT.broken, "broken", "the server or this machine failed: a full disk, a directory in use, a bug"],
  [EXIT.interrupted, "interrupted", "Ctrl-C (SIGINT)"],
  [EXIT.terminated, "terminated", "SIGTERM"],
];

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
  return `node ${asWord(path)}`;
}

/** Commands in a text, as they are typed here. */
export const asTyped = (text: string): string =>
  text.replaceAll(/(?<![\w./-]|npx )drover (?=-{0,2}[a-z])/g, () => `${ownName()} `);
