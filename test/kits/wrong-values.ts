/**
 * Wrong values for every field of a schema, made from the schema itself.
 *
 * A value is put in the place of each field in turn: another type, null, a number out of its range or no number at all,
 * text that is empty, endless or not a name. What the schema lets through all the same is no wrong value of that field;
 * whoever uses this checks that enough were left. At every object a field is added that nobody knows.
 */
import { isRecord } from "../../src/core/base/readers.ts";
import { checkOf, type Schema } from "../../src/protocol/index.ts";

export type WrongBody = {
  /** The field that is wrong, as a path. */
  readonly field: string;
  /** JSON, since not every wrong number can be said in JavaScript. */
  readonly text: string;
  readonly isUnknownField: boolean;
};
type Node = Schema & {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: unknown;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
};
type Path = readonly (string | number)[];

/** Kept as text: 1e400 is Infinity to whoever parses it. */
const VALUES: readonly string[] = [
  ...["null", "true", "0", "-1", "1.5", "1e400", "-1e400", "9007199254740993", "1e16", '""', '" "', '"NaN"', '"-1"'],
  ...['"Infinity"', '"None"', '"\\u0000"', '"\\ud800"', `"${"x".repeat(5000)}"`, "[]", "[null]", '["a","a",1]', "{}"],
  ...['{"zzz":1}', '{"__proto__":{"a":1}}'],
];

export function wrongBodies(schema: Schema, good: unknown): WrongBody[] {
  const check = checkOf(schema);
  const found: WrongBody[] = [];
  for (const { path, isObject } of placesOf(schema as Node, good, [])) {
    if (isObject) {
      const text = textWith(good, [...path, "zzz"], "1");
      if (!check(JSON.parse(text))) found.push({ field: shownPath([...path, "zzz"]), text, isUnknownField: true });
    }
    if (path.length === 0) continue;
    for (const value of VALUES) {
      const text = textWith(good, path, value);
      if (!check(JSON.parse(text))) found.push({ field: shownPath(path), text, isUnknownField: false });
    }
  }
  return found;
}

/** Every place a value may stand at, also where the good one leaves it out. */
function placesOf(schema: Node, good: unknown, path: Path): { path: Path; isObject: boolean }[] {
  const node = (schema.anyOf?.find((one) => "properties" in one) ?? schema) as Node;
  const isObject = node.properties !== undefined && node.additionalProperties === false;
  const here = [{ path, isObject: isObject && (path.length === 0 || isRecord(good)) }];
  if (node.items !== undefined && Array.isArray(good) && good.length > 0)
    return [...here, ...placesOf(node.items as Node, good[0], [...path, 0])];
  if (node.properties === undefined) return here;
  const inner = Object.entries(node.properties).flatMap(([key, field]) =>
    placesOf(field as Node, isRecord(good) ? good[key] : undefined, [...path, key]),
  );
  return [...here, ...(path.length === 0 || isRecord(good) ? inner : [])];
}

/** The good value as JSON, with a text of JSON in one place. */
function textWith(good: unknown, [first, ...rest]: Path, text: string): string {
  if (first === undefined) return text;
  const inner = textWith((good as Record<string | number, unknown> | undefined)?.[first], rest, text);
  if (typeof first === "number") {
    const list = (good as unknown[]).map((item, index) => (index === first ? inner : JSON.stringify(item)));
    return `[${list.join(",")}]`;
  }
  const others = Object.entries((good ?? {}) as object).filter(([key, value]) => key !== first && value !== undefined);
  const fields = others.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`);
  return `{${[...fields, `${JSON.stringify(first)}:${inner}`].join(",")}}`;
}

export const shownPath = (path: Path): string =>
  path.map((step, index) => (typeof step === "number" ? `[${step}]` : `${index === 0 ? "" : "."}${step}`)).join("");
