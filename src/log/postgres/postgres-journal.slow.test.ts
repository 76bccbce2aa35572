/**
 * The journal on PostgreSQL keeps the promises of a journal, and a log on it those of a log, on a real server.
 */
import { after, test } from "node:test";
import { type PostgresServer, postgresMissing, startPostgres } from "../../../test/kits/postgres.ts";
import { realClock, restFor } from "../../std/index.ts";
import { journalContract } from "../contract/journal-contract.ts";
import { logContract } from "../contract/log-contract.ts";
import { inDirectory } from "../contract/stories.ts";
import type { Journal } from "../journal/journal.ts";
import { openSharedLog } from "../shared/shared-log.ts";
import { openPostgresJournal } from "./journal.ts";

const pass = (ms: number): Promise<void> => restFor(realClock, ms);

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

  logContract(
    "the shared log over PostgreSQL",
    inDirectory(async (directory) => {
      const url = server.url({ schema: newSchema() });
      return async () => openSharedLog({ journal: await openPostgresJournal({ url }), directory });
    }),
  );
}
