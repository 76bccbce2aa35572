/** What other layers may use of this room. */

export { bringsCall, calledParams, textsIn, withTexts } from "./call.ts";
export { argvOf, CommandError, splitCommand } from "./command-words.ts";
export {
  ExpressionError,
  evaluate,
  isTrue,
  MissingValue,
  parseExpression,
  type Values,
  wrongNameIn,
} from "./expression.ts";
export { filledWork, IF_REASON, isWanted } from "./fill.ts";
export { readWork } from "./read-work.ts";
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
export { type EnvironmentAddition, readAddition } from "./variable.ts";
export { type Command, type PlanWorktree, PRESET_NAMES, type PresetName, type Work } from "./work.ts";
