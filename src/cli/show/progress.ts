/**
 * How far a long command is, on the terminal of its call.
 */
import { createProgress, type Progress } from "../../std/index.ts";
import type { Terminal } from "../shell/terminal.ts";

export const progressOf = (what: string, unit: string, { err, isErrorTerminal, width, now }: Terminal): Progress =>
  createProgress(what, unit, { stream: { isTTY: isErrorTerminal, columns: width ?? undefined, write: err }, now });
