/**
 * Lists that come in pages: the flags they share, and how several pages become one answer.
 */
import { PAGE_MAX } from "../../protocol/wire/index.ts";
import { type FlagSpec, given, wholeNumber } from "../shell/verb.ts";

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
