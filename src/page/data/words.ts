/**
 * Numbers, spans and instants as people read them, the same everywhere.
 */

/** Thousands apart by a narrow space that does not break. */
export const count = (value: number): string => String(Math.round(value)).replaceAll(/\B(?=(\d{3})+(?!\d))/g, "\u202f");

/** How much of a limit is used. Where that sank, what was begun before is no part of it. */
export const outOf = (used: number, most: number, shown: (value: number) => string = count): string =>
  used <= most ? `${shown(used)} of ${shown(most)}` : `${shown(used)}, limit ${shown(most)}`;

/** Three digits and a unit: 1.2k, 34M. */
export function brief(value: number): string {
  const size = Math.abs(value);
  for (const [unit, at] of [
    ["G", 1e9],
    ["M", 1e6],
    ["k", 1e3],
  ] as const)
    if (size >= at) return `${(value / at).toFixed(size < 10 * at ? 1 : 0)}${unit}`;
  if (size < 1) return String(Number(value.toPrecision(2)));
  return size < 10 && !Number.isInteger(value) ? value.toFixed(1) : String(Math.round(value));
}

export const percent = (part: number): string => `${(100 * part).toFixed(part < 0.1 && part > 0 ? 1 : 0)} %`;

const UNITS: readonly (readonly [string, number])[] = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1000],
];

/** Two units at most: 3 m 20 s; under ten seconds with a part: 4.2 s. */
export function span(ms: number): string {
  const size = Math.max(0, ms);
  if (size < 1000) return `${Math.round(size)} ms`;
  if (size < 10_000) return `${(size / 1000).toFixed(1)} s`;
  const at = UNITS.findIndex(([, unit]) => size >= unit);
  const [name, unit] = UNITS[at] as readonly [string, number];
  const next = UNITS[at + 1];
  const rest = next === undefined ? 0 : Math.floor((size % unit) / next[1]);
  const main = `${Math.floor(size / unit)} ${name}`;
  return next === undefined || rest === 0 ? main : `${main} ${rest} ${next[0]}`;
}

/** What is left, as a clock that counts down: its width stays, so nothing jumps, and it is 0:00 only at its end. */
export function clock(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  const two = (value: number): string => String(value).padStart(2, "0");
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
}

/** How long it is since then, in whole seconds: a list does not flicker. */
export const since = (instant: string, now: number): string => {
  const ms = Math.max(0, now - Date.parse(instant));
  return ms < 1000 ? "0 s" : span(Math.floor(ms / 1000) * 1000).replace(".0", "");
};
/** How long it took, to the millisecond where it was short; what goes on still is told in whole seconds. */
export const took = (from: string, until: string | undefined, now: number): string =>
  until === undefined ? since(from, now) : span(Date.parse(until) - Date.parse(from));
/** How long ago. */
export const ago = (instant: string, now: number): string =>
  now - Date.parse(instant) < 1000 ? "just now" : `${since(instant, now)} ago`;

const CLOCK = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" } as const;
const TIME = new Intl.DateTimeFormat(undefined, CLOCK);
const DATE = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric", ...CLOCK });
export const timeOf = (instant: string | number): string => TIME.format(new Date(instant));
export const dateOf = (instant: string | number): string => DATE.format(new Date(instant));

/** A sentence with names in it, none of which can turn the letters behind it around. */
export const steady = (text: string): string => text.replaceAll(/[\u202a-\u202e\u2066-\u2069]/g, "");

/** A sentence of the server with its instants as people here read them. */
export const withTimes = (text: string): string =>
  steady(text).replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, (instant) => dateOf(instant));

/** A value as JSON whose lines may break behind a comma; what is in quotes is as it is. */
export const wideJson = (value: unknown): string =>
  JSON.stringify(value).replaceAll(/"(?:[^"\\]|\\.)*"|[,:]/g, (part) => (part.length === 1 ? `${part} ` : part));

export function bytes(size: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const at = size < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(size) / 10));
  const value = size / 1024 ** at;
  return `${value >= 100 || Number.isInteger(value) ? Math.round(value) : value.toFixed(1)} ${units[at]}`;
}

export const cores = (millicores: number): string =>
  `${Number((millicores / 1000).toFixed(2))} ${millicores === 1000 ? "core" : "cores"}`;

export const money = (cost: number): string => (cost === 0 ? "0" : cost < 0.01 ? cost.toFixed(4) : cost.toFixed(2));

type Tokens = { readonly inputTokens: number; readonly outputTokens: number };
export const tokensOf = (usage: Tokens | undefined): number =>
  usage === undefined ? 0 : usage.inputTokens + usage.outputTokens;

export const plural = (value: number, one: string, many = `${one}s`): string =>
  `${count(value)} ${value === 1 ? one : many}`;
