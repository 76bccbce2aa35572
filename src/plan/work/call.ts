/**
 * A task of a plan that is no command: an action that any worker may take, with params of its own.
 *
 * Its worker must not need to know of plans, and may be written in any language. So its expressions are filled in
 * where the task is handed to it, from what the task sees of its needs. A text that is one expression becomes the
 * value itself, whatever it is; an expression inside a longer text becomes a part of that text.
 */
import { isRecord } from "../../core/base/index.ts";
import { referenceIn, TaskSkip } from "../../std/index.ts";
import { type Expression, MissingValue, needsIn, parseExpression, pathText, type Values } from "./expression.ts";
import { IF_REASON, isWanted } from "./fill.ts";
import { readWork } from "./read-work.ts";
import {
  expressionsIn,
  fillText,
  mayHaveExpressions,
  parseTemplate,
  type Room,
  roomForValues,
  taken,
} from "./template.ts";

/** As much as the body of a task may have. */
const PARAMS_BYTES_MAX = 1024 * 1024;

type Params = Readonly<Record<string, unknown>>;
type TextAt = { readonly text: string; readonly path: readonly (string | number)[]; readonly isKey: boolean };

/** Every text in a value, with where it stands; a key is one too, for which nothing is filled in. */
export function* textsIn(value: unknown, path: TextAt["path"] = []): Generator<TextAt> {
  if (typeof value === "string") yield { text: value, path, isKey: false };
  else if (Array.isArray(value)) for (const [index, item] of value.entries()) yield* textsIn(item, [...path, index]);
  else if (isRecord(value))
    for (const [key, item] of Object.entries(value)) {
      yield { text: key, path: [...path, key], isKey: true };
      yield* textsIn(item, [...path, key]);
    }
}

/** The value with each text in it changed. */
export function withTexts(value: unknown, change: (text: string) => unknown): unknown {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) return value.map((item) => withTexts(item, change));
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withTexts(item, change)]));
}

/** Whether a task brings such work. */
export const bringsCall = (params: unknown): params is { readonly work: Params } =>
  isRecord(params) && isRecord(params.work) && isRecord(params.work.command) && params.work.command.kind === "call";

/**
 * The params that the worker of such a task sees; null if the task brings no such work.
 *
 * Throws a `TaskSkip` if its condition does not hold, and a permanent error if a value is not there.
 */
export function calledParams(params: unknown, inputs: Values): Params | null {
  if (!bringsCall(params)) return null;
  const read = readWork(params.work, "params.work");
  if (!read.ok || read.value.command.kind !== "call") return null;
  const { command, if: condition } = read.value;
  try {
    if (condition !== undefined) refuseLarge(parseExpression(condition), inputs);
    if (!isWanted(read.value, inputs)) throw new TaskSkip(`${IF_REASON}${condition}`);
    const room = roomForValues(PARAMS_BYTES_MAX);
    return withTexts(command.params, (text) => filled(text, inputs, room)) as Params;
  } catch (error) {
    throw error instanceof MissingValue ? Object.assign(error, { permanent: true }) : error;
  }
}

function filled(text: string, inputs: Values, room: Room): unknown {
  if (!mayHaveExpressions(text)) return text;
  const template = parseTemplate(text);
  for (const expression of expressionsIn(template)) refuseLarge(expression, inputs);
  const [only, ...others] = template;
  return typeof only === "object" && others.length === 0
    ? taken(only.expression, inputs, room).value
    : fillText(template, inputs, room);
}

/** Results that do not fit into what a task sees are named there, and the name is not what is meant. */
function refuseLarge(expression: Expression, inputs: Values): void {
  for (const { need, steps } of needsIn(expression)) {
    const { result } = (inputs[need] ?? {}) as { readonly result?: unknown };
    const large = steps[0] === "result" ? referenceIn(result) : null;
    if (large === null) continue;
    const advice = "too large to be filled in here; its worker can read it by task.inputs";
    throw new MissingValue(`${pathText(need, steps)} is part of a result of ${large.size} bytes, ${advice}`);
  }
}
