/**
 * The work of a task with its expressions filled in: what is run once all that it needs has ended.
 *
 * The texts were checked when the plan was read. What can still be wrong is a value that is not there, or one that no
 * word can hold: then another attempt would find the same.
 */
import { evaluate, isTrue, parseExpression, type Values } from "./expression.ts";
import {
  fillShell,
  fillText,
  fillWord,
  mayHaveExpressions,
  parseTemplate,
  roomForValues,
  type ShellLine,
} from "./template.ts";
import type { Command, Work } from "./work.ts";

/** How the reason begins of a task that was skipped by its own condition. */
export const IF_REASON = "if: ";

/** Whether the condition of a task holds. Throws a `MissingValue`. */
export const isWanted = ({ if: condition }: Work, inputs: Values): boolean =>
  condition === undefined || isTrue(evaluate(parseExpression(condition), inputs));

/** Throws a `MissingValue`. */
export function filledWork(work: Work, inputs: Values): Work {
  const room = roomForValues();
  const filledBy =
    (fill: typeof fillText) =>
    (given: string): string =>
      mayHaveExpressions(given) ? fill(parseTemplate(given), inputs, room) : given;
  const [text, word] = [filledBy(fillText), filledBy(fillWord)];
  const shell = (line: string, before?: number) => fillShell(parseTemplate(line), inputs, before, room);
  const { command, values } = filledCommand(work.command, { text, word, shell });
  const env = Object.entries(work.env).map(([name, value]) => [name, word(value)]);
  const filled = { ...work, command, env: { ...Object.fromEntries(env), ...values }, input: text(work.input) };
  if (work.until === undefined) return filled;
  // The check has the variables of the command too, so its own have other numbers.
  const check = shell(work.until, Object.keys(values).length);
  return { ...filled, until: check.line, env: { ...filled.env, ...check.env } };
}

type Fills = {
  readonly text: (given: string) => string;
  readonly word: (given: string) => string;
  readonly shell: (line: string) => ShellLine;
};

function filledCommand(
  command: Command,
  { text, word, shell }: Fills,
): { readonly command: Command; readonly values: Readonly<Record<string, string>> } {
  switch (command.kind) {
    case "line": {
      if (!mayHaveExpressions(command.line)) return { command, values: {} };
      const { line, env } = shell(command.line);
      return { command: { ...command, line }, values: env };
    }
    case "words":
      return { command: { ...command, words: command.words.map(word) }, values: {} };
    case "agent":
      return { command: { ...command, prompt: text(command.prompt), args: command.args.map(word) }, values: {} };
    // Filled in where it is handed to its worker.
    case "call":
    case "nothing":
      return { command, values: {} };
    default:
      return command satisfies never;
  }
}
