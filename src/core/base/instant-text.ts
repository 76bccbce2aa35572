/**
 * Instants as text, RFC 3339: whether one is written as it should be, and on a day that there is.
 *
 * Engines parse "2027-02-31" as the third of March. The writer meant something else, so it is refused, by the
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

const DAY_MS = 86_400_000;
/** Days of four centuries, after which the calendar repeats itself. */
const ERA_DAYS = 146_097;
/** From the first of March of year 0, where an era begins with its leap day last, to 1970. */
const DAYS_TO_1970 = 719_468;

/** An instant as people read it, such as 2026-01-31T12:00:00.000Z. For sentences: numbers stay milliseconds. */
export function instantText(at: number): string {
  const days = Math.floor(at / DAY_MS);
  const [year, month, day] = civilDay(days);
  const clock = at - days * DAY_MS;
  const parts = [clock / 3_600_000, (clock / 60_000) % 60, (clock / 1000) % 60];
  const time = parts.map((part) => padded(Math.floor(part), 2)).join(":");
  return `${padded(year, 4)}-${padded(month, 2)}-${padded(day, 2)}T${time}.${padded(clock % 1000, 3)}Z`;
}

const padded = (value: number, length: number): string => String(value).padStart(length, "0");

/** The day of the calendar, so many days after the first of January 1970. Years are counted from March in between. */
function civilDay(days: number): [year: number, month: number, day: number] {
  const shifted = days + DAYS_TO_1970;
  const era = Math.floor(shifted / ERA_DAYS);
  const ofEra = shifted - era * ERA_DAYS;
  const leaps = Math.floor(ofEra / 1460) - Math.floor(ofEra / 36_524) + Math.floor(ofEra / 146_096);
  const yearOfEra = Math.floor((ofEra - leaps) / 365);
  const ofYear = ofEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const fromMarch = Math.floor((5 * ofYear + 2) / 153);
  const day = ofYear - Math.floor((153 * fromMarch + 2) / 5) + 1;
  const month = fromMarch < 10 ? fromMarch + 3 : fromMarch - 9;
  return [yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day];
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
