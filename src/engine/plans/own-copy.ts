/**
 * A copy of what a caller gave, for work that gives way: whatever the caller does with his own meanwhile, what was
 * checked is what is carried out.
 *
 * Only plain objects and lists are copied. Anything else is no JSON and stays as it is, which is found when the copy is
 * spelled.
 */
import { isRecord } from "../../core/base/index.ts";

/** So deep are the parts that are a step each. */
const STEPS_DEPTH_MAX = 2;
/** More levels than JSON may have; what lies below is refused, as is a cycle. */
const DEPTH_MAX = 80;

export function* copySteps(value: unknown, depth: number = 0): Generator<unknown, unknown> {
  if (depth === STEPS_DEPTH_MAX || !isRecord(value)) return copyOf(value, depth);
  const entries: [string, unknown][] = [];
  for (const [key, item] of Object.entries(value)) {
    entries.push([key, yield* copySteps(item, depth + 1)]);
    yield;
  }
  return Object.fromEntries(entries);
}

function copyOf(value: unknown, depth: number): unknown {
  if (depth > DEPTH_MAX) return value;
  if (Array.isArray(value)) return Array.from(value, (item) => copyOf(item, depth + 1));
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, copyOf(item, depth + 1)]));
}
