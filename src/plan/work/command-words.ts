/**
 * A command line becomes a list of words, as a shell would split it, without running a shell.
 *
 * Quotes and backslashes mean what they mean in `sh`. What only a shell can do (pipes, redirections, variables,
 * substitutions) is refused rather than passed on as plain words: a command that silently does something else is
 * worse than one that does not start. A caller that wants a shell says so.
 */

export class CommandError extends Error {
  override readonly name: string = "CommandError";
}

const BLANK = /[ \t\r\n]/;
const NEEDS_SHELL = /[|&;<>()`$]/;
const SHELL_ADVICE = "quote it with single quotes if it is plain text, or ask for a shell (--shell)";

export function splitCommand(line: string): string[] {
  const words: string[] = [];
  let word: string | null = null;
  for (let at = 0; at < line.length; at++) {
    const char = line[at] as string;
    if (BLANK.test(char)) {
      if (word !== null) words.push(word);
      word = null;
    } else if (char === "#" && word === null) throw refused(line, "#", "begins a comment");
    else if (char === "'" || char === '"') {
      const { text, end } = quoted(line, at);
      word = (word ?? "") + text;
      at = end;
    } else if (char === "\\") {
      at += 1;
      if (at === line.length) throw new CommandError(`the command ends in a backslash: ${line}`);
      // A line that goes on in the next one has nothing between the two.
      if (line[at] !== "\n") word = (word ?? "") + line[at];
    } else if (NEEDS_SHELL.test(char)) throw refused(line, char, "needs a shell");
    else word = (word ?? "") + char;
  }
  if (word !== null) words.push(word);
  return notEmpty(words);
}

function quoted(line: string, start: number): { text: string; end: number } {
  const quote = line[start] as string;
  let text = "";
  for (let at = start + 1; at < line.length; at++) {
    const char = line[at] as string;
    if (char === quote) return { text, end: at };
    if (quote === '"' && char === "\\") {
      at += 1;
      const next = line[at] ?? "";
      text += '"\\$`'.includes(next) ? next : next === "\n" ? "" : `\\${next}`;
    } else if (quote === '"' && (char === "$" || char === "`")) throw refused(line, char, "needs a shell");
    else text += char;
  }
  throw new CommandError(`the command has a ${quote} that is never closed: ${line}`);
}

const refused = (line: string, char: string, why: string): CommandError =>
  new CommandError(`the command holds ${char}, which ${why}; ${SHELL_ADVICE}: ${line}`);

/** The words to run: as they are, as a line is split, or by a shell. */
export function argvOf(command: string | readonly string[], shell: boolean = false): readonly string[] {
  if (typeof command === "string") {
    if (command.trim() === "") return notEmpty([]);
    return shell ? ["/bin/sh", "-c", command] : splitCommand(command);
  }
  if (shell) throw new CommandError("a shell takes a command line, not a list of words");
  return notEmpty(command);
}

function notEmpty<Words extends readonly string[]>(words: Words): Words {
  if (words.length === 0 || words[0] === "") throw new CommandError("the command is empty; give a program to run");
  return words;
}
