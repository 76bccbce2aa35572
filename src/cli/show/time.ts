/**
 * Spans and ages for people: `350ms`, `4.2s`, `3m 20s`, `2h 5m`, `3d 4h`.
 *
 * Two units at most: the seconds of a three-day wait say nothing. Machines get milliseconds and RFC 3339 from --json.
 */

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export function span(ms: number): string {
  if (ms < 0) return `-${span(-ms)}`;
  if (ms < SECOND) return `${Math.round(ms)}ms`;
  if (ms < 10 * SECOND) return `${trimmed(ms / SECOND)}s`;
  // Rounded once, to the smallest unit that is shown: so 59.9 s is 1m, never 60s.
  const whole = Math.round(ms / SECOND) * SECOND;
  if (whole < MINUTE) return `${whole / SECOND}s`;
  if (whole < HOUR) return two(whole, [MINUTE, "m"], [SECOND, "s"]);
  const minutes = Math.round(ms / MINUTE) * MINUTE;
  if (minutes < DAY) return two(minutes, [HOUR, "h"], [MINUTE, "m"]);
  return two(Math.round(ms / HOUR) * HOUR, [DAY, "d"], [HOUR, "h"]);
}

type Unit = readonly [size: number, sign: string];

function two(ms: number, [large, largeSign]: Unit, [small, smallSign]: Unit): string {
  const rest = Math.floor((ms % large) / small);
  return `${Math.floor(ms / large)}${largeSign}${rest === 0 ? "" : ` ${rest}${smallSign}`}`;
}

const trimmed = (seconds: number): string => (Math.floor(seconds * 10) / 10).toString();

/** `3m ago`, `in 5s`, `now`; empty where there is no instant. */
export function age(instant: string | number | undefined | null, now: number): string {
  if (instant === undefined || instant === null) return "";
  const ms = now - (typeof instant === "number" ? instant : Date.parse(instant));
  if (Number.isNaN(ms)) return "";
  if (Math.abs(ms) < SECOND) return "now";
  return ms > 0 ? `${span(ms)} ago` : `in ${span(-ms)}`;
}

/** From one instant to another, or to now if there is none yet; empty if it has not begun. */
export function lasted(from: string | undefined, to: string | undefined, now: number): string {
  if (from === undefined) return "";
  return span(Math.max(0, (to === undefined ? now : Date.parse(to)) - Date.parse(from)));
}

/** `12 345 678`, readable at a glance and the same in every locale. */
export function count(value: number): string {
  const [whole = "", fraction] = String(value).split(".");
  const grouped = whole.replaceAll(/\B(?=(\d{3})+(?!\d))/g, " ");
  return fraction === undefined ? grouped : `${grouped}.${fraction.slice(0, 2)}`;
}

/** Four digits behind the point at most: sums of small costs are not exact. */
export const cost = (value: number | undefined): string =>
  value === undefined ? "" : String(Math.round(value * 10_000) / 10_000);

/** `512 MiB`: resources and logs. */
export function bytes(value: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let [size, at] = [value, 0];
  while (size >= 1024 && at < units.length - 1) [size, at] = [size / 1024, at + 1];
  return `${Number.isInteger(size) ? size : size.toFixed(1)} ${units[at]}`;
}
