/**
 * A request's body, from bytes to a value.
 *
 * JSON is UTF-8 and nothing else; bytes that are not would be replaced silently, and two different bodies would become
 * one. A key that is named twice counts as its last, and `__proto__` is a key like any other: it becomes a property of
 * its own, is unknown to every shape, and changes nobody's prototype. Where a text stops being JSON is said by line and
 * column, without repeating what stands there.
 */
import { isUtf8 } from "node:buffer";
import { placeOfFault } from "./json-fault.ts";
import { ServerRefusal } from "./problem.ts";

/** Undefined where nothing was sent. */
export function readJsonBody(bytes: Buffer): unknown {
  if (bytes.length === 0) return undefined;
  if (!isUtf8(bytes)) throw unreadable("the body is not UTF-8, and JSON must be");
  const text = bytes.toString("utf8");
  try {
    return JSON.parse(text) as unknown;
  } catch {
    const { line, column, expected } = placeOfFault(text);
    const details = { field: "(body)", line, column };
    throw unreadable(`the body is not JSON: line ${line}, column ${column} should have ${expected}`, details);
  }
}

const unreadable = (message: string, details: Readonly<Record<string, unknown>> = { field: "(body)" }): ServerRefusal =>
  new ServerRefusal("bad_request", message, { details });
