/** What other layers may use of this room. */

export { priority } from "./tasks.ts";
