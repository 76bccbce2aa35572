/**
 * Everything that is wrong with a value by its schema, not only the first thing.
 *
 * A person mends a file once, not once per mistake. So objects and lists are gone through to their leaves; each unknown
 * name is one complaint, with the name that was probably meant, and each value of the wrong kind is one, in
 * the words of its schema.
 */

import { isRecord, nearest, sentence } from "../core/base/index.ts";
import { checkOf, readShape } from "../protocol/index.ts";
import {
  alternatives,
  forPeople,
  isSpan,
  type JsonSchema,
  kindOf,
  mapAdvice,
  notesOf,
  type Schema,
  unitMissing,
} from "../protocol/schema/index.ts";
import type { Found, Path } from "./problem.ts";

export function* problemsIn(schema: JsonSchema, value: unknown, path: Path): Generator<Found> {
  for (const found of problemSteps(schema, value, path)) if (found !== null) yield found;
}

/** Null after each part of the value: there may be many. */
export function* problemSteps(schema: JsonSchema, value: unknown, path: Path): Generator<Found | null> {
  // Of several possible kinds, the one this value is meant to be.
  const walked = alternatives(schema).find(({ type }) => type === kindOf(value)) ?? schema;
  if (walked.type === "object" && isRecord(value)) yield* problemsInObject(walked, value, path);
  else if (walked.type === "array" && Array.isArray(value) && isCount(walked, value.length))
    for (const [index, item] of value.entries()) {
      yield* problemSteps(walked.items ?? {}, item, [...path, index]);
      yield null;
    }
  else {
    const unitless = isSpan(schema) ? unitMissing(shownPath(path), value) : null;
    const read = readShape(schema as Schema, value, shownPath(path));
    const advice = mapAdvice(String(path.at(-1) ?? ""), value, schema);
    const message = unitless ?? (read.ok ? null : forPeople(sentence(read.failure)) + advice);
    if (message !== null) yield { message, path, spot: "value" };
  }
}

const isCount = ({ minItems = 0, maxItems = Number.POSITIVE_INFINITY }: JsonSchema, count: number): boolean =>
  count >= minItems && count <= maxItems;

function* problemsInObject(walked: JsonSchema, value: Record<string, unknown>, path: Path): Generator<Found | null> {
  const { properties = {}, additionalProperties = true, propertyNames } = walked;
  for (const [key, inner] of Object.entries(value)) {
    const at = [...path, key];
    const fixed = Object.hasOwn(properties, key) ? properties[key] : undefined;
    const schema = fixed ?? additionalProperties;
    if (schema === false) yield { message: unknownKey(path, key, Object.keys(properties)), path: at, spot: "key" };
    else if (fixed === undefined && propertyNames !== undefined && !checkOf(propertyNames as Schema)(key))
      yield { message: badName(key, propertyNames as Schema), path: at, spot: "key" };
    // A section in which every line is a comment is as good as none.
    else if (typeof schema === "object" && !(inner === null && schema.properties !== undefined))
      yield* problemSteps(schema, inner, at);
    yield null;
  }
}

/** What other tools call it. */
const OTHER_WORDS: Readonly<Record<string, string>> = {
  command: "run",
  cmd: "run",
  script: "run",
  exec: "run",
  shell_command: "run",
  steps: "tasks",
  jobs: "tasks",
  depends: "needs",
  depends_on: "needs",
  dependsOn: "needs",
  after: "needs",
  requires: "needs",
  deps: "needs",
  environment: "env",
  retries: "attempts",
  stdin: "input",
  when: "if",
  condition: "if",
  matrix: "for",
  workdir: "cwd",
  dir: "cwd",
};

function unknownKey(path: Path, key: string, keys: readonly string[]): string {
  const known = keys.filter((one) => !one.startsWith("$"));
  const meant = known.find((one) => one === OTHER_WORDS[key]) ?? nearest(key, known);
  const where = path.length === 0 ? "a plan" : shownPath(path);
  const help = meant === null ? `it may have ${known.join(", ")}` : `did you mean ${meant}?`;
  return `${where} has no ${JSON.stringify(key)}; ${help}`;
}

const badName = (key: string, schema: Schema): string =>
  `${JSON.stringify(key)} cannot be a name here: it must be ${notesOf(schema).expected ?? "another name"}`;

/** As a person would write it: `tasks.code.needs[1]`. */
export const shownPath = (path: Path): string =>
  path.map((key, at) => (typeof key === "number" ? `[${key}]` : at === 0 ? key : `.${key}`)).join("");
