/**
 * Where a setting came from, and what is wrong with it.
 *
 * A config comes in layers, so "maxInFlight must be at least 1" is only half an answer: a person must know which file
 * and line, which variable or which flag said otherwise. Every problem carries that, and is shown the way compilers
 * show theirs, because editors and people know how to follow it.
 */
import { CliProblem, EXIT, type Problem } from "../shell/problem.ts";
import { plain } from "../shell/text.ts";

export type Origin =
  | { readonly kind: "default" }
  | { readonly kind: "file"; readonly file: string; readonly line: number; readonly column: number }
  | { readonly kind: "variable"; readonly name: string }
  | { readonly kind: "flag"; readonly flag: string };
export type FileOrigin = Extract<Origin, { kind: "file" }>;

/** What is wrong, who said it, and the line of the file where it stands. */
export type ConfigProblem = {
  readonly message: string;
  readonly origin: Origin | null;
  readonly source?: string | undefined;
};

/** Everything that is wrong with what a person wrote down. */
export class BadFile extends CliProblem {
  override readonly message: string;
  readonly problems: readonly ConfigProblem[];

  constructor(what: string, problems: readonly ConfigProblem[], said: Pick<Problem, "code" | "hint">) {
    const shown = problems.map(shownProblem).join("\n");
    const message = problems.length === 1 ? shown : `${what} has ${problems.length} problems\n${shown}`;
    super({ ...said, message, exit: EXIT.usage, details: { problems } });
    this.message = shown;
    this.problems = problems;
  }
}

export class BadConfig extends BadFile {
  override readonly name: string = "BadConfig";

  constructor(problems: readonly ConfigProblem[]) {
    const hint = "drover help config says where settings come from; drover config check tries a file without a server";
    super("the config", problems, { code: "bad_config", hint });
  }
}

export function shownOrigin(origin: Origin): string {
  if (origin.kind === "file") return `${origin.file}:${origin.line}:${origin.column}`;
  return origin.kind === "variable" ? origin.name : origin.kind === "flag" ? origin.flag : origin.kind;
}

const SOURCE_SHOWN_MAX = 100;

export function shownProblem({ message, origin, source }: ConfigProblem): string {
  const head = `${origin === null ? "" : `${shownOrigin(origin)}: `}${message}`;
  if (source === undefined || origin?.kind !== "file") return plain(head);
  const number = String(origin.line);
  // A line may be long, and what is wrong with it may stand at its end.
  const from = origin.column > SOURCE_SHOWN_MAX ? origin.column - 20 : 0;
  const shown = plain(source.replaceAll("\t", " ").slice(from, from + SOURCE_SHOWN_MAX));
  const caret = `${" ".repeat(number.length)} | ${" ".repeat(Math.max(0, origin.column - 1 - from))}^`;
  return `${plain(head)}\n  ${number} | ${shown}\n  ${caret}`;
}
