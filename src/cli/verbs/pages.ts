/**
 * Lists: the flags they share, and how several pages become one answer.
 */
import { PAGE_MAX } from "../../protocol/wire/index.ts";
import { usageProblem } from "../shell/problem.ts";
import { type FlagSpec, given, milliseconds, wholeNumber } from "../shell/verb.ts";

export type PageFlags = { readonly limit?: number; readonly cursor?: string; readonly all?: boolean };
type PageQuery = { readonly limit: number; readonly cursor?: string };

/** What --all reads at most: more does not belong on a terminal, and a script has the API. */
const ALL_MAX = 100_000;
const SHOWN_DEFAULT = 50;

export const PAGE_FLAGS: readonly FlagSpec[] = [
  { flags: "-n, --limit <n>", about: `how many at once (default: ${SHOWN_DEFAULT})`, read: wholeNumber(1, PAGE_MAX) },
  { flags: "--cursor <cursor>", about: "go on where a former page ended" },
  { flags: "--all", about: "all of them, however many pages that takes" },
];

/** A page of large items ends before its limit: whether there are more is what its cursor says. */
export async function readPages<Page extends { readonly nextCursor?: string }, Item>(
  flags: PageFlags,
  read: (query: PageQuery) => Promise<Page>,
  itemsOf: (page: Page) => readonly Item[],
): Promise<{ readonly items: readonly Item[]; readonly nextCursor?: string }> {
  const wanted = flags.all === true ? ALL_MAX : (flags.limit ?? SHOWN_DEFAULT);
  const atOnce = flags.limit ?? PAGE_MAX;
  const items: Item[] = [];
  let { cursor } = flags;
  do {
    const limit = Math.min(atOnce, wanted - items.length);
    const page = await read({ limit, ...given({ cursor }) });
    items.push(...itemsOf(page));
    cursor = page.nextCursor;
  } while (cursor !== undefined && items.length < wanted);
  return { items, ...given({ nextCursor: cursor }) };
}

/** `--since`: a span before now, a date, or an instant. */
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
