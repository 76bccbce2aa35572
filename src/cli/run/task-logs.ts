/**
 * What the attempts of a run have written, as it lies in the data directory of the run.
 */
import { join } from "node:path";
import { createOutputDirectory, readTail } from "../../worker/output/index.ts";

export type LogTail = { readonly attempt: number; readonly text: string; readonly truncated: boolean };
/** The end of what an attempt wrote; without a number, of the last one. Null if it wrote nothing. */
export type LogsOf = (
  id: string,
  attempt: number | undefined,
  size: { readonly tail: number },
) => Promise<LogTail | null>;

export function logsIn(data: string): LogsOf {
  const logs = createOutputDirectory(join(data, "logs"), Number.POSITIVE_INFINITY);
  return async (id, attempt, { tail: lines }) => {
    const number = attempt ?? (await logs.latestOf(id));
    const tail = number === null ? null : await readTail(logs.pathOf(id, number), { lines });
    return number === null || tail === null ? null : { attempt: number, text: tail.text, truncated: tail.isCut };
  };
}
