/**
 * The journal on PostgreSQL keeps the promises of a journal, and a log on it those of a log, on a real server.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { type PostgresServer, postgresMissing, startPostgres } from "../../../test/kits/postgres.ts";
import { realClock, ringAfter } from "../../std/index.ts";
import { journalContract } from "../contract/journal-contract.ts";
import { logContract } from "../contract/log-contract.ts";
import type { Journal } from "../journal/journal.ts";
import { openSharedLog, type SharedLog } from "../shared/shared-log.ts";
import { openPostgresJournal } from "./journal.ts";

const pass = (ms: number): Promise<void> => new Promise((resolve) => void ringAfter(realClock, ms, resolve));

if (postgresMissing !== false) test("PostgreSQL", { skip: postgresMissing });
else await claims(await startPostgres());

async function claims(server: PostgresServer): Promise<void> {
  after(() => server[Symbol.asyncDispose]());
  let schemas = 0;
  const newSchema = (): string => `t${++schemas}`;

  journalContract("the journal on PostgreSQL", async () => {
    const schema = newSchema();
    const opened: Journal[] = [];
    return {
      handle: async () => {
        opened.push(await openPostgresJournal({ url: server.url({ schema }) }));
        return opened.at(-1) as Journal;
      },
      pass,
      dispose: async () => {
        for (const journal of opened) await journal.close();
      },
    };
  });

  logContract("the shared log over PostgreSQL", async () => {
    const schema = newSchema();
    const directory = mkdtempSync(join(tmpdir(), "drover-postgres-log-"));
    const openOne = async () =>
      openSharedLog({ journal: await openPostgresJournal({ url: server.url({ schema }) }), directory });
    const opened = [await openOne()];
    return {
      log: opened[0] as SharedLog,
      reopen: async () => {
        await opened.at(-1)?.close();
        opened.push(await openOne());
        return opened.at(-1) as SharedLog;
      },
      damageSnapshot: async (at) => writeFileSync(join(directory, `snapshot-${at}.bin`), "damaged"),
      dispose: async () => {
        for (const log of opened) await log.close();
        rmSync(directory, { recursive: true });
      },
    };
  });
}
