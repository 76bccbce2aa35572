/** What other layers may use of this room: types alone, which load nothing. */

export type * from "./config-input.ts";
