/** What other layers may use of this room. */

export { type Published, published, withUnits } from "./published.ts";
export { name, notesOf, type Schema } from "./schema.ts";
