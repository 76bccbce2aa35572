/**
 * What was changed by hand over the config the host gave.
 *
 * A patch is the topmost layer: only the fields somebody named, in the `scheduler` section. It is kept apart from the
 * config below it, so that a new file changes everything but what was changed by hand, and taking a patched field
 * back (null) shows what lies below again. It is judged as a whole, together with what it lies on: all or nothing.
 */

import { isRecord, join } from "../base/readers.ts";
import { badField, type Refusal } from "../base/refusal.ts";
import { fail, ok, type Result } from "../base/result.ts";
import { unlessUnreadable } from "../base/unreadable.ts";
import { type Config, readConfig, type SchedulerRules } from "./config.ts";

/** Deeper than any section goes: what is given at a door is not followed further, and refused there. */
const DEPTH_MAX = 8;

/** Fields of the scheduler section, as deep as they go. */
export type ConfigPatch = { readonly [field: string]: number | string | boolean | ConfigPatch };

/** The patch there is with what is given over it; null takes a field away, or, instead of an object, all of them. */
export function amendPatch(
  base: Config,
  former: ConfigPatch | null,
  given: unknown,
): Result<ConfigPatch | null, Refusal> {
  if (given === null) return ok(null);
  if (!isRecord(given)) return fail(badField("(body)", given, "an object of scheduler fields, or null"));
  const merged = unlessUnreadable(given, "", () => ok(overlay(former ?? {}, given)));
  if (!merged.ok) return merged;
  const read = readConfig({ scheduler: merged.value });
  if (!read.ok) return fail(withoutSection(read.failure));
  const patch = pick(read.value.scheduler, merged.value);
  // What lies below may not go together with it, though each is fine by itself.
  const whole = readConfig(withPatch(base, patch));
  if (!whole.ok) return fail(withoutSection(whole.failure));
  return ok(Object.keys(patch).length === 0 ? null : patch);
}

/** The config in force: what the host gave, with the patch over it. */
export function withPatch(base: Config, patch: ConfigPatch | null): Config {
  if (patch === null) return base;
  return { ...base, scheduler: overlay(base.scheduler, patch) as SchedulerRules };
}

/** The upper object over the lower one, field by field; null in the upper one takes the field away. */
function overlay(lower: object, upper: object, depth: number = 0): Record<string, unknown> {
  const result = new Map<string, unknown>(Object.entries(lower));
  for (const [key, value] of Object.entries(upper)) {
    const below = result.get(key);
    if (value === null) result.delete(key);
    else if (isRecord(value) && depth < DEPTH_MAX)
      result.set(key, overlay(isRecord(below) ? below : {}, value, depth + 1));
    else if (value !== undefined) result.set(key, value);
  }
  return Object.fromEntries(result);
}

/** The values as they were read, of just the fields that were given. */
function pick(read: object, given: object): ConfigPatch {
  const values = new Map(Object.entries(read));
  const picked = Object.entries(given).flatMap(([key, value]): [string, ConfigPatch[string]][] => {
    if (!isRecord(value)) return [[key, values.get(key) as number]];
    const inner = pick(values.get(key) as object, value);
    return Object.keys(inner).length === 0 ? [] : [[key, inner]];
  });
  return Object.fromEntries(picked);
}

const SECTION = "scheduler.";

/** The caller patches one section and does not name it. */
function withoutSection(refusal: Refusal): Refusal {
  if (refusal.type !== "bad-field" && refusal.type !== "unknown-field") return refusal;
  const { field } = refusal;
  return { ...refusal, field: field.startsWith(SECTION) ? field.slice(SECTION.length) : join("", field) };
}
