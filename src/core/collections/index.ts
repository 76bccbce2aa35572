/** What other layers may use of this room. */

export { type Fifo, fifo, peek, push, retain, shift } from "./fifo.ts";
export { NumberTable } from "./number-table.ts";
export { PassingMap } from "./passing-map.ts";
export { front, items } from "./sorted-list.ts";
export { numberIn, ownId, TaskTable } from "./task-table.ts";
