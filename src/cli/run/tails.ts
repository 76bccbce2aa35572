/**
 * What the tasks of a plan write on the machines of a server: read again and again while they run, line by line.
 *
 * The workers keep the logs, and only the end of one is ever asked for. A log that cannot be had now is no reason to
 * stop watching: what is missing comes with the next look, or is missing.
 */
import { ClientError } from "../../client/index.ts";
import { newPart, spokenBy } from "../shell/log-text.ts";
import { meantBy } from "../show/meant-line.ts";
import type { Link } from "./link.ts";
import type { Row } from "./state.ts";

export type Tails = {
  /** The last line a task wrote, as far as is known. */
  lastLine(id: string): string;
  /** Looks at once: it has ended. */
  flush(row: Row): Promise<void>;
  /** Looks every now and then, until the signal fires. */
  follow(rows: () => readonly Row[]): Promise<void>;
};

const LOOK_MS = 700;
/** So many logs are looked at in one round; the picture has no room for more. */
const LOGS_MAX = 16;
const TAIL_LINES = 10_000;
const LAST_LINES = 20;

export function createTails(given: {
  readonly link: Link;
  /** Gets every line; absent: only the last one is of interest. */
  readonly wrote: ((id: string, line: string) => void) | null;
  readonly rest: (ms: number) => Promise<void>;
  readonly signal: AbortSignal;
}): Tails {
  const { link, wrote, rest, signal } = given;
  const seen = new Map<string, { readonly attempt: number; readonly text: string }>();
  const last = new Map<string, string>();
  let reading: Promise<unknown> = Promise.resolve();

  async function look({ id, attempt }: Row): Promise<void> {
    try {
      const tail = wrote === null ? LAST_LINES : TAIL_LINES;
      const { text } = await link.client().logs(id, { attempt, tail, retries: 0, signal });
      const whole = text.slice(0, text.lastIndexOf("\n") + 1);
      const before = seen.get(id);
      const fresh = newPart(before?.attempt === attempt ? before.text : "", whole);
      seen.set(id, { attempt, text: whole });
      for (const line of fresh.split("\n").flatMap(spokenBy)) {
        const meant = meantBy(line);
        if (meant !== "") last.set(id, meant);
        wrote?.(id, line);
      }
    } catch (error) {
      if (!(error instanceof ClientError) && !signal.aborted) throw error;
    }
  }

  /** One look at a time: two would print the same lines. */
  function inTurn(rows: readonly Row[]): Promise<void> {
    const turn = reading.then(async () => {
      for (const row of rows) if (row.attempt > 0) await look(row);
    });
    reading = turn.catch(() => {});
    return turn;
  }

  return {
    lastLine: (id) => last.get(id) ?? "",
    async flush(row) {
      if (wrote !== null) await inTurn([row]);
      last.delete(row.id);
      seen.delete(row.id);
    },
    async follow(rows) {
      while (!signal.aborted) {
        await inTurn(
          rows()
            .filter(({ state }) => state === "running")
            .slice(0, LOGS_MAX),
        );
        await rest(LOOK_MS);
      }
    },
  };
}
