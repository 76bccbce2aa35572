/**
 * A request's body, from bytes to a value.
 *
 * JSON is UTF-8 and nothing else; bytes that are not would be replaced silently, and two different bodies would become
 * one. A key that is named twice counts as its last, and `__proto__` is a key like any other: it becomes a property of
 * its own, is unknown to every shape, and changes no prototype. What is wrong with a text is said in the parser's own
 * words, without the part of them that quotes the text.
 */
import { isUtf8 } from "node:buffer";
import { ServerRefusal } from "./problem.ts";

/** Undefined where nothing was sent. */
export function readJsonBody(bytes: Buffer): unknown {
  if (bytes.length === 0) return undefined;
  if (!isUtf8(bytes)) throw unreadable("the body is not UTF-8, and JSON must be");
  const text = bytes.toString("utf8");
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw unreadable(`the body is not JSON: ${(error as Error).message.replace(QUOTE, "")}`);
  }
}

/** As in: Unexpected token 's', ..."token": sk-secret} is not valid JSON. */
const QUOTE = /, (?:\.{3})?".*is not valid JSON$/s;
const unreadable = (message: string): ServerRefusal =>
  new ServerRefusal("bad_request", message, { details: { field: "(body)" } });
