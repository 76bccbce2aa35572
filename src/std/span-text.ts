/**
 * A span as a person writes it, with its unit: `10` is ten seconds to one person and ten milliseconds to another.
 */

export const SPAN_UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

const AMOUNT = /^(\d{0,15}(?:\.\d{1,15})?)(ms|s|m|h|d)?$/;

/** What a written span lacks, and what to write instead; null if nothing. */
export function unitAdvice(given: string): string | null {
  const [, digits = "", unit] = AMOUNT.exec(given) ?? [];
  const value = Number(digits);
  if (digits === "" || value === 0) return null;
  if (Number.isInteger(value)) return unit === undefined ? `has no unit: say ${value}s or ${value}ms` : null;
  // Without a unit a fraction is most likely one of seconds.
  const ms = Math.round(value * (SPAN_UNITS[unit ?? "s"] ?? 1));
  return ms < 1 ? null : `has ${unit === undefined ? "no unit" : "a fraction"}: say ${ms}ms`;
}
