/** What other layers may use of this room. */

export * from "./knobs.ts";
export { type Published, published, withUnits } from "./published.ts";
export * from "./schema.ts";
export { Checked, checked, checkOf, readShape } from "./validate.ts";
