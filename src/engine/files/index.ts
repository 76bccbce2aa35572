/** What other layers may use of this room. */

export { type FilesReport, verifyFiles } from "./files.ts";
