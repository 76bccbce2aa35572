/** What other layers may use of this room. */

export { verifyFiles } from "./files.ts";
