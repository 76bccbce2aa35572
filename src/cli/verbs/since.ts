/**
 * `--since`: a span before now, a date, or an instant.
 */
import { usageProblem } from "../shell/problem.ts";
import { type FlagSpec, milliseconds } from "../shell/verb.ts";

export type SinceFlags = { readonly since?: string };

export const sinceFlag = (what: string): FlagSpec => ({
  flags: "--since <when>",
  about: `only what ${what} since: a span before now (8h), a date (2026-01-31, UTC) or an instant`,
});

/** As an instant; undefined where it is not given. */
export function sinceFrom({ since: text }: SinceFlags, now: number): string | undefined {
  if (text === undefined || /^\d{4}-\d\d-\d\dT/i.test(text)) return text;
  if (/^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text))) return `${text}T00:00:00Z`;
  if (/^\d+(ms|s|m|h|d)$/.test(text)) return new Date(now - milliseconds(text)).toISOString();
  throw usageProblem(
    `--since is "${text}"`,
    "give a span before now, such as 8h, a date such as 2026-01-31, or an instant such as 2026-01-31T12:00:00Z",
  );
}
