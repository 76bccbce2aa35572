/**
 * Answers that are given to more than one caller.
 *
 * Twenty people look at the same lists, each every second. Whoever sends `Cache-Control: max-age=1` says that the
 * answer may be a second old, and is told what another caller was told who asked for the same with the same rights.
 * Nobody else is: without the header an answer is made anew, and so it is where `X-Drover-After` names an event that
 * may not be in it. How old a follower says that its answer is at most grows while that is kept.
 */
import type { IncomingMessage } from "node:http";
import type { Caller } from "../http/index.ts";
import { AFTER_HEADER, AGE_HEADER, LOOK_MS } from "../protocol/wire/index.ts";

/** Bytes that many are sent are there once. */
type Known = { readonly body: Buffer; readonly headers: readonly string[] };
/** What one caller asks for, where its answer may be somebody else's too. */
export type Place = {
  /** The answer that is there; null: one has to be made. */
  readonly known: Known | null;
  keep(body: string | Buffer, headers: readonly string[]): void;
};
export type KeptAnswers = {
  /** Null where the caller wants its own. Its answer is to be made right after this. */
  place(request: IncomingMessage, caller: Caller): Place | null;
};
type Kept = Known & { readonly madeAt: number; readonly seq: number };

const MAX_AGE = /(?:^|[\s,])max-age=(\d{1,9})(?:$|[\s,])/i;
const ANEW = /(?:^|[\s,])no-cache(?:$|[\s,])/i;
const KEPT_MAX = 32;
const BYTES_MAX = 512 * 1024;

export function createKeptAnswers(parts: {
  readonly elapsed: () => number;
  /** All up to this event is in an answer that is made now. */
  readonly committedSeq: () => number;
}): KeptAnswers {
  const { elapsed, committedSeq } = parts;
  const kept = new Map<string, Kept>();
  const names = new WeakMap<Caller, string>();

  function nameOf(caller: Caller): string {
    const name = names.get(caller) ?? JSON.stringify(caller);
    names.set(caller, name);
    return name;
  }
  function find(key: string, maxAgeMs: number, after: number): Known | null {
    const found = kept.get(key);
    if (found === undefined || found.seq < after) return null;
    const keptMs = elapsed() - found.madeAt;
    return keptMs > maxAgeMs ? null : { body: found.body, headers: aged(found.headers, keptMs) };
  }
  function keep(key: string, answer: Kept): void {
    kept.delete(key);
    if (kept.size >= KEPT_MAX) kept.delete(kept.keys().next().value as string);
    kept.set(key, answer);
  }
  return {
    place({ url = "", headers }, caller) {
      const wanted = headers["cache-control"] ?? "";
      const maxAgeMs = Math.min(LOOK_MS, 1000 * Number(MAX_AGE.exec(wanted)?.[1] ?? 0));
      if (maxAgeMs === 0 || ANEW.test(wanted)) return null;
      const key = `${nameOf(caller)} ${url}`;
      const [madeAt, seq] = [elapsed(), committedSeq()];
      const known = find(key, maxAgeMs, Number(headers[AFTER_HEADER] ?? 0));
      return {
        known,
        keep(body, headers) {
          if (body.length > BYTES_MAX) kept.delete(key);
          else keep(key, { body: Buffer.from(body), headers, madeAt, seq });
        },
      };
    },
  };
}

/** Names and values in turn; a leader says no age, nor does a server alone. */
function aged(headers: readonly string[], keptMs: number): readonly string[] {
  const at = headers.indexOf(AGE_HEADER);
  return at === -1 ? headers : headers.with(at + 1, String(Math.ceil(Number(headers[at + 1]) + keptMs)));
}
