/**
 * What a value is, in words for whoever handed over the wrong one: its kind, never what it holds. That may be a secret.
 */
import { isPlainObject, THROWS } from "../core/base/index.ts";

export function kindInWords(value: unknown): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (typeof value === "string") return "text";
  if (typeof value === "bigint") return "a BigInt";
  if (typeof value === "number") return Number.isFinite(value) ? "a number" : String(value);
  if (typeof value !== "object") return `a ${typeof value}`;
  try {
    if (Array.isArray(value)) return "a list";
    return isPlainObject(value) ? "an object" : classInWords(value);
  } catch {
    return THROWS;
  }
}

const NAME_LENGTH_MAX = 80;

function classInWords(value: object): string {
  const name: unknown = value.constructor?.name;
  if (typeof name !== "string" || name === "" || name === "Object") return "an object of a class";
  return `${/^[AEIO]/.test(name) ? "an" : "a"} ${name.slice(0, NAME_LENGTH_MAX)}`;
}
