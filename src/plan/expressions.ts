/**
 * The expressions of a plan, checked before anything runs: `${{ needs.impl.result.path }}`.
 *
 * They may stand where a command gets its words from: `run`, `args`, `env`, `prompt`, `input`, `loop.until`; in the
 * `params` of an action; and `if` is one. Elsewhere a `${{` would go into a path or a name as it is, which nobody
 * means. Each is read, its names are held against the needs of its task, and in a line for a shell it must stand where
 * that reads a value as one word.
 */

import type { Note, Path } from "./problem.ts";
import type { PlanTask } from "./tasks.ts";
import {
  ExpressionError,
  expressionsIn,
  mayHaveExpressions,
  misplacedIn,
  parseExpression,
  parseTemplate,
  textsIn,
  wrongNameIn,
} from "./work/index.ts";

const PLACES = "run, args, env, prompt, input, params and loop.until";

type Place = { readonly text: string; readonly path: Path };

/** `fromDefaults` are the names of variables that stand in the defaults. */
export function checkExpressions(task: PlanTask, fromDefaults: ReadonlySet<string>, note: Note): void {
  const at: Path = ["tasks", task.definition];
  const { command, env, input, cwd, worktree } = task.work;
  if (command.kind === "line") check({ text: command.line, path: [...at, "run"] }, true);
  for (const place of placesOf(command, at)) check(place, false);
  for (const [name, text] of Object.entries(env))
    check({ text, path: fromDefaults.has(name) ? ["defaults", "env", name] : [...at, "env", name] }, false);
  check({ text: input, path: [...at, "input"] }, false);
  check({ text: task.work.until ?? "", path: [...at, "loop", "until"] }, true);
  if (task.work.if !== undefined) checkCondition(task.work.if, [...at, "if"]);
  const model = command.kind === "agent" ? (command.model ?? "") : "";
  for (const [key, text] of Object.entries({ cwd, model, worktree: worktree?.base ?? "" }))
    if (mayHaveExpressions(text))
      note(`${task.definition}.${key} holds an expression; those stand in ${PLACES}`, [...at, key]);

  for (const { text, path, isKey } of command.kind === "call" ? textsIn(command.params) : [])
    if (isKey && mayHaveExpressions(text))
      note(`${task.definition}.params has an expression in the name of a field; those stand in values`, [
        ...at,
        "params",
        ...path,
      ]);

  function checkCondition(text: string, path: Path): void {
    const read = attempted(() => parseExpression(text), path);
    const wrong = read === null ? null : wrongNameIn(read, task.needs);
    if (wrong !== null) note(`${task.definition}.if: ${wrong}`, path);
  }

  /** Null if it cannot be read; that is noted. */
  function attempted<Read>(read: () => Read, path: Path): Read | null {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof ExpressionError)) throw error;
      note(`${task.definition}: ${error.message}`, path);
      return null;
    }
  }

  function check({ text, path }: Place, isShell: boolean): void {
    if (!mayHaveExpressions(text)) return;
    const template = attempted(() => parseTemplate(text), path);
    if (template === null) return;
    for (const expression of expressionsIn(template)) {
      const wrong = wrongNameIn(expression, task.needs);
      if (wrong !== null) return note(`${task.definition}: ${wrong}`, path);
    }
    const misplaced = isShell ? misplacedIn(template) : null;
    if (misplaced !== null) note(`${task.definition}: an expression is no whole word here: ${misplaced}`, path);
  }
}

function placesOf(command: PlanTask["work"]["command"], at: Path): Place[] {
  if (command.kind === "words") return command.words.map((text, index) => ({ text, path: [...at, "run", index] }));
  if (command.kind === "call")
    return [...textsIn(command.params)]
      .filter(({ isKey }) => !isKey)
      .map(({ text, path }): Place => ({ text, path: [...at, "params", ...path] }));
  if (command.kind !== "agent") return [];
  const args = command.args.map((text, index): Place => ({ text, path: [...at, "args", index] }));
  return [{ text: command.prompt, path: [...at, "prompt"] }, ...args];
}
