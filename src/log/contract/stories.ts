/**
 * How the claims of a contract are told: each story has a subject of its own, which is gone after it.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { Log } from "../log.ts";
import type { OpenSubject } from "./vocabulary.ts";

/** What each claims, and how a subject shows it. */
type StoriesOf<Subject> = Readonly<Record<string, (subject: Subject) => Promise<void>>>;

type Telling<Subject> = {
  readonly title: string;
  readonly stories: StoriesOf<Subject>;
  readonly open: () => Promise<Subject>;
  readonly atOnce?: number;
};

export function tellStories<Subject extends { dispose(): Promise<void> }>(telling: Telling<Subject>): void {
  const { title, stories, open, atOnce = 1 } = telling;
  describe(title, { concurrency: atOnce }, () => {
    for (const [claim, story] of Object.entries(stories))
      test(claim, async () => {
        const subject = await open();
        try {
          await story(subject);
        } finally {
          await subject.dispose();
        }
      });
  });
}

/** The subject of a log that has a directory: `place` says how the log of one story is opened there, each time. */
export const inDirectory =
  (place: (directory: string) => Promise<() => Promise<Log>>): OpenSubject =>
  async () => {
    const directory = mkdtempSync(join(tmpdir(), "drover-log-"));
    const openOne = await place(directory);
    const opened = [await openOne()];
    return {
      log: opened[0] as Log,
      reopen: async () => {
        await opened.at(-1)?.close();
        opened.push(await openOne());
        return opened.at(-1) as Log;
      },
      damageSnapshot: async (at) => writeFileSync(join(directory, `snapshot-${at}.bin`), "damaged"),
      dispose: async () => {
        for (const log of opened) await log.close();
        rmSync(directory, { recursive: true });
      },
    };
  };
