/**
 * Knobs of the config as schemas: a value, its default, and what it is for.
 *
 * The defaults and the limits of the core's knobs are the core's; a test compares each with the reader. Spans and sizes
 * are shown the way people write them.
 */

import { type TSchema, Type } from "typebox";
import { NAMED_IN_WORDS, SIZE_PATTERN, sectionInWords, size } from "../../core/base/index.ts";

import * as s from "../schema/schema.ts";

export type Section = s.Schema<Readonly<Record<string, unknown>>>;
export type Knobs = Readonly<Record<string, s.Schema>>;

const DAY_MS = 86_400_000;
const SPAN_UNITS: readonly (readonly [unit: string, ms: number])[] = [
  ["d", DAY_MS],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1000],
];

/** A span as people write it: in the largest unit that divides it. One day is 24h, since budgets are thought of so. */
export function spanText(ms: number): string {
  const fits = ([, size]: readonly [string, number]): boolean =>
    ms > 0 && ms % size === 0 && !(ms === DAY_MS && size === DAY_MS);
  const [unit, size] = SPAN_UNITS.find(fits) ?? ["ms", 1];
  return `${ms / size}${unit}`;
}

export function sizeSchema(min: number, max: number): s.Schema<number | string> {
  const reader = size(min, max);
  const forms = [Type.Integer({ minimum: min, maximum: max }), Type.String({ pattern: SIZE_PATTERN })];
  const union = Type.Union(forms, { expected: s.expectedBy(reader) });
  return Type.Refine(union, (value) => reader(value, "").ok) as unknown as s.Schema<number | string>;
}

export const knob = (schema: s.Schema, value: unknown, description: string): s.Schema =>
  s.described(schema, description, { default: value });
export const spanKnob = (minMs: number, ms: number, description: string): s.Schema =>
  knob(s.span(minMs), spanText(ms), description);

const optionalOf = (knobs: Knobs): Record<string, TSchema> =>
  Object.fromEntries(Object.entries(knobs).map(([key, one]) => [key, Type.Optional(one)]));

/** An object of knobs, each of which may be left out. */
export function section(knobs: Knobs, notes: s.Notes = {}): Section {
  const options = { additionalProperties: false, expected: sectionInWords(Object.keys(knobs)), ...notes };
  return Type.Object(optionalOf(knobs), options) as unknown as Section;
}

/** A section whose other keys are names, each with an item of the same kind. */
export function namedSection(own: Knobs, item: Section, description: string): Section {
  const options = { additionalProperties: item, propertyNames: s.name(), expected: NAMED_IN_WORDS, description };
  return Type.Object(optionalOf(own), options) as unknown as Section;
}

/** A patch of a section: every field optional, and null where it is to be taken back. */
export function patchOf(schema: TSchema): Section {
  const { properties } = schema as { properties?: Readonly<Record<string, TSchema>> };
  if (properties === undefined) return s.nullable(schema as s.Schema) as Section;
  const fields = Object.entries(properties).map(([key, field]): [string, TSchema] => {
    const inner = "properties" in field ? s.nullable(patchOf(field) as s.Schema) : patchOf(field);
    return [key, Type.Optional(withoutDefault(inner))];
  });
  return Type.Object(Object.fromEntries(fields), {
    additionalProperties: false,
    expected: sectionInWords(Object.keys(properties)),
  }) as unknown as Section;
}

function withoutDefault(schema: TSchema): TSchema {
  const copy = s.noted(schema, {}) as TSchema & { default?: unknown };
  delete copy.default;
  return copy;
}
