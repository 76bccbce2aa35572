/** What other layers may use of this room. */

export { type Fifo, fifo, peek, push, retain, shift } from "./fifo.ts";
export { IdTable, numberIn, ownId } from "./id-table.ts";
export { NumberTable } from "./number-table.ts";
export { front, items } from "./sorted-list.ts";
