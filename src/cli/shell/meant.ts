/**
 * A task that is not there, and which one a person may have meant: those that `for` made of the name, or the nearest.
 */
import { nearest } from "../../core/base/index.ts";
import { CliProblem, EXIT } from "./problem.ts";
import { asWord } from "./text.ts";

const NAMES_SHOWN_MAX = 10;

/** `typed` is how a name is written on the command line. */
export function noSuchTask(given: {
  readonly message: string;
  readonly name: string;
  readonly names: readonly string[];
  readonly typed: (name: string) => string;
  /** Where nothing is near. */
  readonly otherwise: string;
}): CliProblem {
  const { message, name, names, typed, otherwise } = given;
  // A task may have left several trees.
  const made = [...new Set(names)].filter((one) => one.startsWith(`${name}[`));
  const near = made.length > 0 ? null : nearest(name, names);
  const hint =
    made.length > 0
      ? `it stands for ${made.length} tasks: ${listOf(made.map((one) => asWord(typed(one))))}`
      : near === null
        ? otherwise
        : `did you mean ${asWord(typed(near))}?`;
  return new CliProblem({ message, code: "not_found", exit: EXIT.refused, hint });
}

/** The first of them, and how many more there are. */
export function listOf(names: readonly string[]): string {
  const more = names.length > NAMES_SHOWN_MAX ? ` and ${names.length - NAMES_SHOWN_MAX} more` : "";
  return `${names.slice(0, NAMES_SHOWN_MAX).join(", ")}${more}`;
}
