/** What other layers may use of this room. */

export * from "./knobs.ts";
export { type Published, published, withUnits } from "./published.ts";
export * from "./schema.ts";
export { findUnitless, forPeople, isSpan, unitMissing, writtenAs } from "./span-unit.ts";
export { Checked, checked, readShape } from "./validate.ts";
export {
  alternatives,
  holdsFields,
  type JsonSchema,
  kindOf,
  kindsOf,
  knobs,
  knownKeys,
  listForm,
  mapAdvice,
  openSchema,
  type Path,
  parsePath,
  schemaAt,
  schemaUnder,
  shownPath,
  takesNull,
  takesText,
} from "./walk.ts";
