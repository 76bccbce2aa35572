/**
 * A log of one's own to open Drover with, or to read beside it: its options are read at the edge, like any others.
 */

import { badField, type Fields, fail, flag, ok, type Reader, readSection, whole } from "../core/base/index.ts";
import type { Log } from "../log/index.ts";
import { openSqliteLog as open, type SqliteLogOptions } from "../log/sqlite/index.ts";
import { badInput, refused } from "./writer/drover-error.ts";

export const directoryPath: Reader<string> = (value, field) =>
  typeof value === "string" && !/^$|\0/.test(value)
    ? ok(value)
    : fail(badField(field, value, "the path of a directory, without NUL characters"));

const FIELDS: Fields<Required<SqliteLogOptions>> = { directory: directoryPath, readOnly: flag, maxBytes: whole(1) };

/** Opens the log in a directory, also for reading only. */
export async function openSqliteLog(options: SqliteLogOptions): Promise<Log> {
  const known = FIELDS as unknown as Fields<Partial<SqliteLogOptions>>;
  const read = readSection<Partial<SqliteLogOptions>>(known, {}, options, "options");
  if (!read.ok) throw refused(read.failure);
  const { directory, ...rest } = read.value;
  if (directory === undefined) throw badInput("options.directory", directory, "the path of a directory");
  return open({ directory, ...rest });
}
