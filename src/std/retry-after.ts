/**
 * When somebody who answered "not now" wants to be asked again.
 *
 * The `Retry-After` header holds whole seconds, or a date. Servers also send fractions, negative numbers, dates long
 * past and nonsense; what cannot be read is as if it were absent, and what is past means at once. The caller bounds the
 * answer: a header must not be able to put something off for a year.
 */

/** The one form of date that servers may send; `Date.parse` alone would take "-5" for a year. */
const HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/** In milliseconds from now; null where there is nothing to be read. */
export function readRetryAfter(header: string | undefined, now: number): number | null {
  const text = header?.trim() ?? "";
  if (/^\d{1,12}(\.\d{1,12})?$/.test(text)) return Math.ceil(Number(text) * 1000);
  const at = HTTP_DATE.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isFinite(at) ? Math.max(0, at - now) : null;
}
