/**
 * What a handler gives back, as JSON text.
 *
 * What JSON cannot hold (a function, NaN, a date, a circle) is refused by its path instead of being dropped or
 * changed in silence, by the same rules as for a worker inside the engine's process. Nobody could mend that by trying
 * again, so the error is permanent.
 */

const DEPTH_MAX = 64;
const HALF = "holds half of a character (a lone surrogate)";

/** Undefined for undefined: there is no result then. */
export function jsonText(value: unknown, path: string): string | undefined {
  if (value === undefined) return undefined;
  check(value, path, 0);
  return JSON.stringify(value);
}

function check(value: unknown, path: string, depth: number): void {
  if (depth > DEPTH_MAX) throw notJson(path, `at most ${DEPTH_MAX} levels deep, and no circle`);
  switch (typeof value) {
    case "string":
      if (!value.isWellFormed()) throw notJson(path, `well-formed text, and ${HALF}`);
      return;
    case "number":
      if (!Number.isFinite(value)) throw notJson(path, `a finite number, not ${value}`);
      return;
    case "boolean":
      return;
    case "object":
      if (value === null) return;
      return Array.isArray(value) ? checkList(value, path, depth) : checkObject(value, path, depth);
    default:
      throw notJson(path, `JSON, not ${typeof value === "undefined" ? "undefined" : `a ${typeof value}`}`);
  }
}

function checkList(list: readonly unknown[], path: string, depth: number): void {
  // By number, since the holes of a sparse list must be seen too.
  for (let index = 0; index < list.length; index++) check(list[index], `${path}[${index}]`, depth + 1);
}

function checkObject(value: object, path: string, depth: number): void {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null)
    throw notJson(path, "plain JSON (text for dates, base64 for bytes)");
  for (const [key, item] of Object.entries(value)) {
    if (!key.isWellFormed()) throw notJson(path, `an object whose keys are well-formed text, and one ${HALF}`);
    if (item !== undefined) check(item, `${path}.${key}`, depth + 1);
  }
}

const notJson = (path: string, expected: string): Error =>
  Object.assign(new TypeError(`${path} must be ${expected}`), { permanent: true });
