/** What other layers may use of this room. */

export { type Attempt, type AttemptTools, startAttempt } from "./attempt.ts";
export { argvOf, CommandError, splitCommand } from "./command-words.ts";
export { type ExecContext, type ExecOutcome, type ExecTask, type SweepReport, taskDocument } from "./contract.ts";
export {
  ExpressionError,
  evaluate,
  isTrue,
  MissingValue,
  parseExpression,
  type Values,
  wrongNameIn,
} from "./expression.ts";
export { createFileCache } from "./file-cache.ts";
export { createExecHandler } from "./handler.ts";
export { type ReadFile, wholeInputs } from "./inputs.ts";
export { type ExecOptions, type ExecSetup, readExecOptions } from "./options.ts";
export type { Preset, PresetName } from "./presets.ts";
export { createSessions } from "./sessions.ts";
export {
  expressionsIn,
  fillShell,
  fillText,
  fillWord,
  mayHaveExpressions,
  misplacedIn,
  parseTemplate,
  type Template,
} from "./template.ts";
export { watchRoom } from "./worktree-room.ts";
