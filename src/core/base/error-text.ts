/**
 * What was thrown, as the text that a task shows as its error.
 *
 * Errors are for people: what is longer than they read belongs in a result. A cut text is no longer than the limit with
 * the mark of its cut, so that a worker may cut it before it travels and the core finds nothing left to cut.
 */
import { shown } from "./refusal.ts";

export const ERROR_LENGTH_MAX = 4096;

/** Its message; what is no error is shown as it is. May throw, as what was thrown may when it is looked at. */
export function errorText(thrown: unknown): string {
  if (thrown instanceof Error) return `${thrown.message || thrown.name}`;
  return typeof thrown === "string" ? thrown : shown(thrown, ERROR_LENGTH_MAX);
}

export function cutError(text: string): string {
  if (text.length <= ERROR_LENGTH_MAX) return text.toWellFormed();
  const mark = `… (${text.length} characters)`;
  return `${text.slice(0, ERROR_LENGTH_MAX - mark.length).toWellFormed()}${mark}`;
}
