/**
 * What a handler gives back, as JSON text.
 *
 * What JSON cannot hold (a function, NaN, a date, a cycle) is refused by its path instead of being dropped or
 * changed in silence, by the same rules as for a worker inside the engine's process. Another try would not
 * mend that, so the error is permanent.
 */
import { jsonFault } from "../../std/index.ts";

/** Undefined for undefined: there is no result then. */
export function jsonText(value: unknown, path: string): string | undefined {
  if (value === undefined) return undefined;
  const fault = jsonFault(value, path);
  if (fault === null) return JSON.stringify(value);
  const said = `${fault.field} must be ${fault.expected}, not ${fault.value}`;
  throw Object.assign(new TypeError(said), { permanent: true });
}
