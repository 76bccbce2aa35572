/**
 * Knobs of the config as schemas: a value, its default, and what it is for.
 *
 * The defaults and the limits of the core's knobs are the core's; a test compares each with the reader. Spans and sizes
 * are shown the way people write them.
 */
import { NAMED_IN_WORDS, sectionInWords } from "../../core/base/index.ts";
import * as s from "./schema.ts";

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

export const knob = (schema: s.Schema, value: unknown, description: string): s.Schema =>
  s.described(schema, description, { default: value });
export const spanKnob = (minMs: number, ms: number, description: string): s.Schema =>
  knob(s.span(minMs), spanText(ms), description);

const optionalOf = (knobs: Knobs): Knobs =>
  Object.fromEntries(Object.entries(knobs).map(([key, one]) => [key, s.optional(one)]));

/** An object of knobs, each of which may be left out. */
export function section(knobs: Knobs, notes: s.Notes = {}): Section {
  const expected = sectionInWords(Object.keys(knobs));
  return s.objectOf({ properties: optionalOf(knobs), additionalProperties: false }, { expected, ...notes });
}

/** A section whose other keys are names, each with an item of the same kind. */
export function namedSection(own: Knobs, item: Section, description: string): Section {
  const keywords = { properties: optionalOf(own), additionalProperties: item, propertyNames: s.name() };
  return s.objectOf(keywords, { expected: NAMED_IN_WORDS, description });
}

/** A patch of a section: every field optional, and null where it is to be taken back. */
export function patchOf(schema: s.Schema): Section {
  const { properties } = schema as { properties?: Knobs };
  if (properties === undefined) return s.nullable(schema) as Section;
  const fields = Object.entries(properties).map(([key, field]) => {
    const inner = "properties" in field ? s.nullable(patchOf(field)) : patchOf(field);
    return [key, s.noted(inner, { description: s.notesOf(field).description ?? key })] as const;
  });
  return section(Object.fromEntries(fields));
}
