/**
 * Opening a log by its URL: a directory of one process, or a journal that several nodes share.
 *
 *     sqlite:PATH            the data directory, or the database file in it
 *     memory:                nothing is kept
 *     postgres://…           the journal on PostgreSQL, and the node's own data directory
 *     etcd://…               the journal on etcd, and the node's own data directory
 *
 * Only what is used is loaded. A journal that is out of reach is waited for; what is refused is said in one sentence
 * that has no URL in it, since a URL may have a password.
 */
import { dirname, resolve } from "node:path";
import { type Clock, realClock } from "../../std/index.ts";
import type { Journal } from "../journal/journal.ts";
import { untilAnswered } from "../journal/patience.ts";
import { type Log, LogFailure } from "../log.ts";
import type { SharedLog } from "./shared-log.ts";

export type LogPlace =
  | { readonly kind: "memory" }
  | { readonly kind: "sqlite"; readonly directory: string }
  | { readonly kind: "postgres" | "etcd" };

export type OpenJournalOptions = {
  readonly clock?: Clock;
  /** Gets a line when the journal has to be waited for, again every few seconds, and when it is back. */
  readonly onNotice?: (line: string) => void;
  /** Ends a wait for it. */
  readonly signal?: AbortSignal;
};
export type OpenLogOptions = OpenJournalOptions & {
  /** The node's own data directory; a journal needs one. */
  readonly data?: string;
  /** The most the data directory may grow to. */
  readonly maxBytes?: number;
};

const SCHEMES =
  "sqlite:PATH, memory:, postgres://USER:PASSWORD@HOST:5432/DATABASE or etcd://HOST:2379,HOST:2379/PREFIX";

/** What a URL names. Throws a `LogFailure` if it names no log. */
export function placeOf(url: string): LogPlace {
  const [, scheme = "", rest = ""] = /^([a-z]+):(.*)$/s.exec(url) ?? [];
  if (scheme === "memory" && rest === "") return { kind: "memory" };
  if (scheme === "etcd") return { kind: "etcd" };
  if (scheme === "postgres" || scheme === "postgresql") return { kind: "postgres" };
  if (scheme !== "sqlite" || rest === "") throw new LogFailure("refused", `a log is named by a URL: ${SCHEMES}`);
  const path = rest.replace(/^\/\//, "");
  return { kind: "sqlite", directory: resolve(path.endsWith(".db") ? dirname(path) : path) };
}

/** Opens a journal; waits for one that is out of reach. */
export async function openJournal(url: string, options: OpenJournalOptions = {}): Promise<Journal> {
  const { clock = realClock, onNotice = () => {}, signal = new AbortController().signal } = options;
  const { kind } = placeOf(url);
  const common = { url, clock, onNotice };
  const open = async (): Promise<Journal> => {
    if (kind === "etcd") return (await import("../etcd/index.ts")).openEtcdJournal(common);
    if (kind === "postgres") return (await import("../postgres/index.ts")).openPostgresJournal(common);
    throw new LogFailure("refused", `a log of kind ${kind} is not shared by nodes; ${SCHEMES}`);
  };
  return untilAnswered(open, { clock, onNotice }, signal, (journal) => journal.close());
}

/** Opens whatever a URL names, for one writer; `follow` is there where nodes share it. */
export async function openLogByUrl(url: string, options: OpenLogOptions = {}): Promise<Log | SharedLog> {
  const place = placeOf(url);
  const { data, maxBytes, ...waiting } = options;
  const limit = maxBytes === undefined ? {} : { maxBytes };
  if (place.kind === "memory") return (await import("../memory/index.ts")).createMemoryLog();
  if (place.kind === "sqlite") {
    const { openSqliteLog } = await import("../sqlite/index.ts");
    return openSqliteLog({ directory: place.directory, ...limit });
  }
  if (data === undefined) throw new LogFailure("refused", "a node of a cluster needs a data directory of its own");
  const { openSharedLog } = await import("./shared-log.ts");
  const journal = await openJournal(url, waiting);
  try {
    return await openSharedLog({ journal, directory: data, ...limit, ...waiting });
  } catch (error) {
    await journal.close();
    throw error;
  }
}
