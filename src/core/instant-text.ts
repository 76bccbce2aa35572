/**
 * Instants as text, RFC 3339: whether one is written as it should be, and on a day that there is.
 *
 * Engines parse "2027-02-31" as the third of March. Whoever wrote that meant something else, so it is refused, by the
 * engine and on the wire alike.
 */
const RFC_3339 = /^(\d{4})-(\d\d)-(\d\d)[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/;
const DAYS_OF_MONTH = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] as const;
const FEBRUARY = 2;
/** The last instant of the year 9999, in milliseconds since 1970. */
export const INSTANT_MAX = 253_402_300_799_999;

/** `malformed` is no text of this form; `no-such-day` has the form, and its month lacks the day. */
export function instantTextFault(value: string): "malformed" | "no-such-day" | null {
  const [, year, month, day] = RFC_3339.exec(value) ?? [];
  if (day === undefined) return "malformed";
  return Number(day) >= 1 && Number(day) <= daysOf(Number(year), Number(month)) ? null : "no-such-day";
}

/** What an instant must be, said to someone who gave this. */
export const instantInWords = (expected: string, given: unknown): string =>
  typeof given === "string" && instantTextFault(given) === "no-such-day"
    ? `${expected}, on a day that its month has`
    : expected;

/** None for a month that there is not. */
function daysOf(year: number, month: number): number {
  const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  return (DAYS_OF_MONTH[month - 1] ?? 0) + (month === FEBRUARY && isLeap ? 1 : 0);
}
