/**
 * What stands in the inputs of a task for a result that is not handed along: `{ file: { hash, size } }` and nothing
 * else.
 */
import { isRecord } from "../core/base/index.ts";

export function referenceIn(result: unknown): { readonly hash: string; readonly size: number } | null {
  if (!isRecord(result) || Object.keys(result).join() !== "file" || !isRecord(result.file)) return null;
  const { hash, size, ...more } = result.file;
  const isOne = typeof hash === "string" && typeof size === "number" && Object.keys(more).length === 0;
  return isOne ? { hash, size } : null;
}
