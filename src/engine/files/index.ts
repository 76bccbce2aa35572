/** What other layers may use of this room. */

export { copyFiles, type FilesCopied } from "./copy-files.ts";
export { type FilesReport, readContent, verifyFiles } from "./files.ts";
