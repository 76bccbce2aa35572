/**
 * Sizes in bytes, as people write them: whole bytes, or text such as `512KiB`, `1MiB`, `2MB`.
 */

import type { Reader } from "./readers.ts";
import { badField } from "./refusal.ts";
import { fail, ok } from "./result.ts";

export const SIZE_PATTERN = "^([0-9]{1,15})(B|kB|KiB|MB|MiB|GB|GiB)$";
const SIZE = new RegExp(SIZE_PATTERN);
const UNITS: ReadonlyMap<string, number> = new Map([
  ["B", 1],
  ["kB", 1000],
  ["KiB", 1024],
  ["MB", 1_000_000],
  ["MiB", 1_048_576],
  ["GB", 1_000_000_000],
  ["GiB", 1_073_741_824],
]);

export function size(min: number, max: number): Reader<number> {
  const expected = `a size from ${min} to ${max} bytes: whole bytes, or text such as 512KiB, 1MiB, 2MB`;
  return (value, field) => {
    let bytes: unknown = value;
    if (typeof value === "string") {
      const [, count = "", unit = ""] = SIZE.exec(value) ?? [];
      bytes = count === "" ? Number.NaN : Number(count) * (UNITS.get(unit) ?? Number.NaN);
    }
    return typeof bytes === "number" && Number.isSafeInteger(bytes) && bytes >= min && bytes <= max
      ? ok(bytes)
      : fail(badField(field, value, expected));
  };
}

/** In the largest binary unit that divides it. */
export function sizeText(bytes: number): string {
  const [unit, step] = [...UNITS].reverse().find(([name, step]) => name.endsWith("iB") && bytes % step === 0) ?? [
    "B",
    1,
  ];
  return `${bytes / step}${unit}`;
}
