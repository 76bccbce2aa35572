/**
 * The tables of the journal, made by whoever opens it first and changed by whoever is newer.
 *
 *     meta    whose tables these are, their version, the oldest version that may still use them, and a secret that
 *             all nodes share
 *     head    the one head record
 *     base    where the journal begins: the last event that was pruned
 *     lead    who leads, under which epoch, and until when by the database's own clock
 *     batch   the batches, each as one block (`journal/entry.ts`)
 *     node    what each node told of itself, and when
 *
 * A change of the tables is a step forward, made in one transaction under a lock, and one that leaves the version
 * before able to go on: it adds, with a default, and takes nothing away. So two versions may run at the same time.
 * Where that is impossible, the step raises `oldest`, and older versions refuse from then on. Whoever finds tables in
 * the schema that are not these refuses too, and has written nothing.
 */

import { refused } from "../journal/address.ts";
import { LogFailure } from "../log.ts";
import type { PostgresAddress } from "./address.ts";
import type { Lane, Query } from "./lanes.ts";
import { WAITED_FOR } from "./statements.ts";

const PRODUCT = "drover journal";
/** The version of the tables that this program makes, and the newest `oldest` that it may use. */
const VERSION = 1;
const SERVER_VERSION_MIN = 130_000;

/** Each step leads from the version before to its own; the first makes the tables. */
const STEPS: readonly ((schema: string) => string)[] = [
  (schema) => `
    CREATE TABLE ${schema}.meta (
      id integer PRIMARY KEY CHECK (id = 1), product text NOT NULL, version integer NOT NULL, oldest integer NOT NULL,
      secret text NOT NULL
    );
    CREATE TABLE ${schema}.head (
      id integer PRIMARY KEY CHECK (id = 1),
      seq bigint NOT NULL, hash bytea NOT NULL, epoch bigint NOT NULL, batch_id text NOT NULL
    ) WITH (fillfactor = 10);
    CREATE TABLE ${schema}.base (id integer PRIMARY KEY CHECK (id = 1), seq bigint NOT NULL, hash bytea NOT NULL);
    CREATE TABLE ${schema}.lead (
      id integer PRIMARY KEY CHECK (id = 1), node text NOT NULL, epoch bigint NOT NULL, until timestamptz NOT NULL
    ) WITH (fillfactor = 10);
    CREATE TABLE ${schema}.batch (
      last_seq bigint PRIMARY KEY, first_seq bigint NOT NULL, post_hash bytea NOT NULL, size integer NOT NULL,
      entry bytea NOT NULL
    );
    ALTER TABLE ${schema}.batch ALTER COLUMN entry SET STORAGE EXTERNAL;
    CREATE TABLE ${schema}.node (node text PRIMARY KEY, told jsonb NOT NULL, at timestamptz NOT NULL);
    INSERT INTO ${schema}.meta VALUES (
      1, '${PRODUCT}', 1, 1, replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', '')
    );
    INSERT INTO ${schema}.head VALUES (1, 0, decode(repeat('00', 32), 'hex'), 0, '');
    INSERT INTO ${schema}.base VALUES (1, 0, decode(repeat('00', 32), 'hex'));
    INSERT INTO ${schema}.lead VALUES (1, '', 0, '-infinity');`,
];

/** Makes or changes the tables if they need it. Refuses a server that is too old, and tables that are not these. */
export async function prepareSchema(lane: Lane, address: PostgresAddress): Promise<void> {
  const [server] = await lane.query<{ number: number; text: string }>(
    "SELECT current_setting('server_version_num')::int AS number, current_setting('server_version') AS text",
  );
  if ((server?.number ?? 0) < SERVER_VERSION_MIN)
    throw refused(`PostgreSQL at ${address.shown} is version ${server?.text}; Drover needs 13 or later`);
  if ((await versionOf(lane.query, address)) === VERSION) return;
  await lane.together(async (query) => {
    await query(
      `SELECT set_config('lock_timeout', '5s', true), set_config('statement_timeout', '60s', true), ${WAITED_FOR}`,
    );
    await query("SELECT pg_advisory_xact_lock(hashtext($1))", [`${PRODUCT} ${address.schema}`]);
    const found = await versionOf(query, address);
    if (found === 0 && !(await hasSchema(query, address.schema))) await query(`CREATE SCHEMA ${address.schema}`);
    for (let version = found; version < VERSION; version++) {
      await query(STEPS[version]?.(address.schema) ?? "");
      await query(`UPDATE ${address.schema}.meta SET version = $1`, [version + 1]);
    }
  });
}

/** The version of the tables; 0 if there are none. Throws if they are not for this program. */
async function versionOf(query: Query, address: PostgresAddress): Promise<number> {
  const { schema, shown } = address;
  const tables = await query<{ name: string }>(
    "SELECT relname AS name FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = $1 ORDER BY 1",
    [schema],
  );
  if (tables.length === 0) return 0;
  const foreign = `the schema ${schema} in PostgreSQL at ${shown} is another product's (it has ${tables[0]?.name})`;
  const advice = `Nothing was written. Name another: ?schema=NAME`;
  const columns = await query<{ name: string }>(
    `SELECT attname AS name FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0`,
    [`${schema}.meta`],
  );
  const isOurs = ["product", "version", "oldest"].every((name) => columns.some((column) => column.name === name));
  if (!isOurs) throw refused(`${foreign}. ${advice}`);
  const [meta] = await query<{ product: string; version: number; oldest: number }>(
    `SELECT product, version, oldest FROM ${schema}.meta`,
  );
  if (meta?.product !== PRODUCT) throw refused(`${foreign}. ${advice}`);
  if (meta.oldest <= VERSION) return Math.min(meta.version, VERSION);
  throw new LogFailure(
    "unsupported-version",
    `the journal in PostgreSQL at ${shown} has version ${meta.oldest}; this program knows up to ${VERSION}. ` +
      "Nothing was written. Use a newer version of Drover.",
  );
}

async function hasSchema(query: Query, schema: string): Promise<boolean> {
  const found = await query("SELECT 1 FROM pg_namespace WHERE nspname = $1", [schema]);
  return found.length > 0;
}

const BESIDE_MAX = 16;

/** Other schemas of the database that have such tables. */
export async function schemasBeside(query: Query, own: string): Promise<string[]> {
  const found = await query<{ schema: string }>(
    `SELECT nspname AS schema FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace
      WHERE nspname <> $1 AND relkind = 'r' AND relname IN ('meta', 'head', 'base', 'lead', 'batch', 'node')
      GROUP BY 1 HAVING count(*) = 6 ORDER BY 1 LIMIT ${BESIDE_MAX}`,
    [own],
  );
  return found.map(({ schema }) => schema);
}
