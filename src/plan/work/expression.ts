/**
 * The language of `${{ … }}` and of `if`: values of the tasks that a task needs, and what can be said of them.
 *
 *     needs.impl.result.path        needs["build-docs"].state == "done"       !needs.review.result.ok && true
 *
 * It is small on purpose: paths into inputs, JSON's plain values, `!`, `==`, `!=`, `&&`, `||`, parentheses, and `<`,
 * `<=`, `>`, `>=` between numbers. There are no functions, so whatever a value holds is data. An expression is read
 * once, where a plan is, with what is wrong and where; and evaluated where the command runs. A value that is not there
 * is a mistake, not nothing: only a comparison with null may ask for it. Nothing here does I/O.
 */
import { isRecord, nearest } from "../../core/base/index.ts";

export type Expression =
  | { readonly kind: "literal"; readonly value: string | number | boolean | null }
  | { readonly kind: "need"; readonly need: string; readonly steps: readonly (string | number)[] }
  | { readonly kind: "not"; readonly of: Expression }
  | { readonly kind: Operator; readonly left: Expression; readonly right: Expression };
type Comparison = "<" | "<=" | ">" | ">=";
type Operator = "==" | "!=" | "&&" | "||" | Comparison;

/** What is wrong with an expression, for the person who wrote it. */
export class ExpressionError extends Error {
  override readonly name: string = "ExpressionError";
}
/** A value that an expression names and that is not there, or is no number where one is compared. */
export class MissingValue extends Error {
  override readonly name: string = "MissingValue";
}

/** What may follow the name of a need. */
export const INPUT_FIELDS: readonly string[] = ["result", "state", "error", "branch", "usage", "files", "taskId"];
const LENGTH_MAX = 4096;
const DEPTH_MAX = 50;

type Token = { readonly kind: "name" | "text" | "number" | "sign" | "end"; readonly text: string; readonly at: number };
const NAME = /[A-Za-z_][A-Za-z0-9_]*/;
const TEXT = /"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'/;
const NUMBER = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/;
const SIGN = /&&|\|\||==|!=|<=|>=|[<>!()[\].]/;
const TOKEN = new RegExp(`\\s*(?:${[NAME, TEXT, NUMBER, SIGN].map(({ source }) => `(${source})`).join("|")}|$)`, "suy");
const KINDS = ["name", "text", "number", "sign"] as const;

function* tokensOf(source: string): Generator<Token> {
  const pattern = new RegExp(TOKEN);
  while (pattern.lastIndex < source.length) {
    const at = pattern.lastIndex;
    const found = pattern.exec(source);
    if (found === null) throw strayed(source, at);
    const index = found.slice(1).findIndex((part) => part !== undefined);
    const text = index < 0 ? undefined : found[index + 1];
    if (text !== undefined) yield { kind: KINDS[index] ?? "sign", text, at: found.index };
  }
  yield { kind: "end", text: "its end", at: source.length };
}

function strayed(source: string, at: number): ExpressionError {
  const rest = source.slice(at).trimStart();
  const [char = ""] = rest;
  const help =
    char === '"' || char === "'"
      ? "a text that is never closed"
      : char === "-"
        ? 'a name with - in it stands in brackets: needs["a-b"]'
        : char === "="
          ? "== compares"
          : char === "&" || char === "|"
            ? `${char}${char} joins two conditions`
            : "it may hold needs.NAME.…, texts in quotes, numbers, true, false, null, ! == != < <= > >= && || and ( )";
  return new ExpressionError(`${shown(source)} cannot be read at ${shown(rest.slice(0, 20))}: ${help}`);
}

const shown = (text: string): string => JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);

/** Throws an `ExpressionError` that says what is wrong. */
export function parseExpression(source: string): Expression {
  if (source.length > LENGTH_MAX)
    throw new ExpressionError(`an expression has ${source.length} characters; at most ${LENGTH_MAX} are read`);
  if (source.trim() === "")
    throw new ExpressionError("an expression is empty; name a value, such as needs.impl.result");
  const tokens = [...tokensOf(source)];
  let next = 0;
  let depth = 0;

  const peek = (): Token => tokens[next] as Token;
  const isSign = (text: string): boolean => peek().kind === "sign" && peek().text === text;
  const take = (): Token => tokens[Math.min(next++, tokens.length - 1)] as Token;
  const fail = (wanted: string): never => {
    const rest = source.slice(peek().at).trim();
    throw new ExpressionError(`${shown(source)} wants ${wanted} at ${rest === "" ? "its end" : shown(rest)}`);
  };
  function expect(sign: string): void {
    if (!isSign(sign)) fail(sign);
    next++;
  }

  function binary(operators: readonly Operator[], operand: () => Expression): Expression {
    let left = operand();
    for (let found = operatorIn(operators); found !== null; found = operatorIn(operators)) {
      next++;
      left = { kind: found, left, right: operand() };
      if (isComparison(found)) checkNumbers(left, found);
    }
    return left;
  }
  /** What is no number whatever comes is refused at once. */
  function checkNumbers({ left, right }: Extract<Expression, { kind: Operator }>, sign: Comparison): void {
    for (const side of [left, right])
      if (side.kind !== "need" && !(side.kind === "literal" && typeof side.value === "number"))
        throw new ExpressionError(`${shown(source)} compares by ${sign} what is no number`);
  }
  const operatorIn = (operators: readonly Operator[]): Operator | null =>
    peek().kind === "sign" ? (operators.find((one) => one === peek().text) ?? null) : null;

  const whole = (): Expression => binary(["||"], () => binary(["&&"], () => binary(["==", "!="], ordered)));
  const ordered = (): Expression => binary(COMPARISONS, unary);

  function unary(): Expression {
    if (++depth > DEPTH_MAX) throw new ExpressionError(`${shown(source)} is nested more than ${DEPTH_MAX} deep`);
    try {
      if (!isSign("!")) return primary();
      next++;
      return { kind: "not", of: unary() };
    } finally {
      depth--;
    }
  }

  function primary(): Expression {
    if (isSign("(")) {
      next++;
      const inner = whole();
      expect(")");
      return inner;
    }
    const { kind, text } = peek();
    if (kind === "text") return { kind: "literal", value: textOf(take().text) };
    if (kind === "number") return { kind: "literal", value: Number(take().text) };
    if (kind !== "name") return fail("a value");
    next++;
    if (Object.hasOwn(WORDS, text)) return { kind: "literal", value: WORDS[text] as boolean | null };
    if (text !== "needs")
      throw new ExpressionError(`${shown(source)} names ${text}; only needs, true, false and null are known here`);
    return path();
  }

  function path(): Expression {
    const steps: (string | number)[] = [];
    while (isSign(".") || isSign("[")) {
      const isDot = take().text === ".";
      const { kind, text } = take();
      if (isDot ? kind !== "name" : kind !== "text" && kind !== "number") {
        next--;
        fail(isDot ? 'a name behind the dot, or ["a name"] for both' : 'a text or a number, such as ["a-b"] or [0]');
      }
      steps.push(isDot ? text : kind === "text" ? textOf(text) : Number(text));
      if (!isDot) expect("]");
    }
    const [need, ...more] = steps;
    if (typeof need !== "string") fail("the name of a need, such as needs.impl");
    return { kind: "need", need: need as string, steps: more };
  }

  function textOf(text: string): string {
    if (text.startsWith("'")) return text.slice(1, -1).replaceAll("''", "'");
    try {
      return JSON.parse(text) as string;
    } catch {
      throw new ExpressionError(`${shown(source)} has a text that is not JSON: ${text}`);
    }
  }

  const read = whole();
  if (peek().kind !== "end") fail("nothing more, or && || == != < <= > >=");
  return read;
}

const COMPARISONS: readonly Comparison[] = ["<", "<=", ">", ">="];
const isComparison = (kind: string): kind is Comparison => COMPARISONS.some((one) => one === kind);

const WORDS: Readonly<Record<string, boolean | null>> = { true: true, false: false, null: null };

/** Every value that an expression names. */
export function* needsIn(expression: Expression): Generator<Extract<Expression, { kind: "need" }>> {
  if (expression.kind === "need") yield expression;
  else if (expression.kind === "not") yield* needsIn(expression.of);
  else if (expression.kind !== "literal") {
    yield* needsIn(expression.left);
    yield* needsIn(expression.right);
  }
}

/** What is wrong with the names in an expression of a task with these needs; null if nothing is. */
export function wrongNameIn(expression: Expression, needs: readonly string[]): string | null {
  for (const { need, steps } of needsIn(expression)) {
    if (!needs.includes(need)) {
      const meant = nearest(need, needs);
      const list = needs.length === 0 ? "it has no needs" : `its needs are ${needs.slice(0, 20).join(", ")}`;
      return `${need} is not among its needs; ${meant === null ? list : `did you mean ${meant}?`}`;
    }
    const [field] = steps;
    if (field === undefined) return `needs.${need} is no value; name a field: ${INPUT_FIELDS.join(", ")}`;
    if (typeof field === "string" && INPUT_FIELDS.includes(field)) continue;
    const meant = nearest(String(field), INPUT_FIELDS);
    const help = meant === null ? `it has ${INPUT_FIELDS.join(", ")}` : `did you mean ${meant}?`;
    return `needs.${need} has no ${JSON.stringify(field)}; ${help}`;
  }
  return null;
}

/** As a person would write it. */
export function pathText(need: string, steps: readonly (string | number)[]): string {
  const step = (one: string | number): string =>
    typeof one === "string" && /^[A-Za-z_]\w*$/.test(one) ? `.${one}` : `[${JSON.stringify(one)}]`;
  return `needs${[need, ...steps].map(step).join("")}`;
}

export type Values = Readonly<Record<string, unknown>>;
const ABSENT = Symbol("absent");

/** Throws a `MissingValue` that names what is not there. `inputs` are by the names of needs. */
export function evaluate(expression: Expression, inputs: Values): unknown {
  switch (expression.kind) {
    case "literal":
      return expression.value;
    case "need": {
      const value = valueAt(expression, inputs);
      if (value !== ABSENT) return value;
      throw new MissingValue(`${pathText(expression.need, expression.steps)} is not there`);
    }
    case "not":
      return !isTrue(evaluate(expression.of, inputs));
    case "&&":
      return isTrue(evaluate(expression.left, inputs)) && isTrue(evaluate(expression.right, inputs));
    case "||":
      return isTrue(evaluate(expression.left, inputs)) || isTrue(evaluate(expression.right, inputs));
    case "<":
    case "<=":
    case ">":
    case ">=": {
      const { kind } = expression;
      const [left, right] = [numberOf(expression.left, kind, inputs), numberOf(expression.right, kind, inputs)];
      if (kind === "<") return left < right;
      if (kind === "<=") return left <= right;
      return kind === ">" ? left > right : left >= right;
    }
    default: {
      const { left, right } = expression;
      const isSame = isEqual(sideOf(left, right, inputs), sideOf(right, left, inputs));
      return expression.kind === "==" ? isSame : !isSame;
    }
  }
}

function numberOf(side: Expression, sign: Comparison, inputs: Values): number {
  const value = evaluate(side, inputs);
  if (typeof value === "number") return value;
  const name = side.kind === "need" ? pathText(side.need, side.steps) : "one side";
  throw new MissingValue(`${name} is ${JSON.stringify(value).slice(0, 80)}, and ${sign} compares numbers`);
}

/** JSON's truth: false, null, 0 and the empty text are not. */
export const isTrue = (value: unknown): boolean => Boolean(value);

/** Beside a null a value that is not there is null. */
function sideOf(side: Expression, other: Expression, inputs: Values): unknown {
  const mayBeAbsent = side.kind === "need" && other.kind === "literal" && other.value === null;
  const value = mayBeAbsent ? valueAt(side, inputs) : evaluate(side, inputs);
  return value === ABSENT ? null : value;
}

function valueAt({ need, steps }: Extract<Expression, { kind: "need" }>, inputs: Values): unknown {
  let value: unknown = inputs;
  for (const step of [need, ...steps]) {
    const isThere =
      typeof step === "number" ? Array.isArray(value) && step in value : isRecord(value) && Object.hasOwn(value, step);
    if (!isThere) return ABSENT;
    value = (value as Record<string | number, unknown>)[step];
    if (value === undefined) return ABSENT;
  }
  return value;
}

function isEqual(left: unknown, right: unknown): boolean {
  if (left === right) return true;
  if (Array.isArray(left) && Array.isArray(right))
    return left.length === right.length && left.every((item, index) => isEqual(item, right[index]));
  if (!isRecord(left) || !isRecord(right)) return false;
  const keys = Object.keys(left);
  return (
    keys.length === Object.keys(right).length &&
    keys.every((key) => Object.hasOwn(right, key) && isEqual(left[key], right[key]))
  );
}
