/**
 * Every statement of the journal. Each is a transaction of its own, so that one answer costs one round trip, and none
 * is named, so that a pooler may give each to another connection.
 *
 * An append moves the head if it is where the batch is linked to; only if it moved is the batch put. A lead is taken
 * under a lock on its row; two that try at once are let in one after the other, and the second finds it taken.
 */
import { NODES_MAX, WORD_BYTES_MAX } from "../journal/announcement.ts";

export type Statements = ReturnType<typeof batches> & ReturnType<typeof leads> & ReturnType<typeof nodes>;

/** Where a node hears that the head or the lead has changed. */
export const channelOf = (schema: string): string => `drover_${schema}`;

/**
 * The commit of this transaction is waited for, whatever the server's setting says by now; one that waits for more is
 * left as it is. It is asked each time: a setting may be changed, and a standby that is promoted may have another.
 */
export const WAITED_FOR = `set_config('synchronous_commit', CASE WHEN current_setting('synchronous_commit')
      IN ('off', 'local') THEN 'on' ELSE current_setting('synchronous_commit') END, true)`;

export const statementsFor = (schema: string): Statements => ({
  ...batches(schema),
  ...leads(schema),
  ...nodes(schema),
});

const UNTIL = "clock_timestamp() + $2::float8 * interval '1 millisecond'";

const batches = (schema: string) => ({
  /** prior seq, prior hash, epoch, seq, hash, batch id, first seq, size, entry */
  append: `
    WITH moved AS (
      UPDATE ${schema}.head SET seq = $4, hash = $5, epoch = $3, batch_id = $6
      WHERE id = 1 AND seq = $1 AND hash = $2 AND epoch <= $3 RETURNING seq
    ), put AS (
      INSERT INTO ${schema}.batch (last_seq, first_seq, post_hash, size, entry)
      SELECT seq, $7::bigint, $5, $8::integer, $9::bytea FROM moved RETURNING last_seq
    )
    SELECT last_seq, ${WAITED_FOR}, pg_notify('${channelOf(schema)}', last_seq::text) FROM put`,
  head: `SELECT seq, encode(hash, 'hex') AS hash, epoch, batch_id FROM ${schema}.head WHERE id = 1`,
  base: `SELECT seq, encode(hash, 'hex') AS hash FROM ${schema}.base WHERE id = 1`,
  /** after, until, bytes, rows: as many batches as make up the bytes, one at least; with each, where all begins */
  page: `
    SELECT base.seq AS base, page.entry FROM ${schema}.base LEFT JOIN (
      SELECT last_seq, entry FROM (
        SELECT last_seq, entry, sum(size) OVER (ORDER BY last_seq) - size AS before
        FROM (
          SELECT last_seq, entry, size FROM ${schema}.batch
          WHERE last_seq > $1 AND last_seq <= $2 ORDER BY last_seq LIMIT $4
        ) next
      ) sized WHERE before < $3
    ) page ON true ORDER BY page.last_seq`,
  /** seq, hash: only where nothing was ever appended */
  begin: `
    WITH begun AS (UPDATE ${schema}.head SET seq = $1, hash = $2 WHERE id = 1 AND seq = 0 RETURNING seq, hash)
    UPDATE ${schema}.base SET seq = begun.seq, hash = begun.hash FROM begun WHERE id = 1`,
  /** before, rows: drops the first few batches that end there, and moves the base behind them */
  prune: `
    WITH old AS (
      SELECT last_seq, post_hash FROM ${schema}.batch WHERE last_seq <= $1 ORDER BY last_seq LIMIT $2
    ), gone AS (
      DELETE FROM ${schema}.batch WHERE last_seq IN (SELECT last_seq FROM old) RETURNING last_seq
    ), moved AS (
      UPDATE ${schema}.base SET seq = last_seq, hash = post_hash
      FROM (SELECT last_seq, post_hash FROM old ORDER BY last_seq DESC LIMIT 1) newest
      WHERE id = 1 AND seq < last_seq RETURNING seq
    )
    SELECT count(*)::int AS dropped FROM gone`,
  bytes: `SELECT pg_total_relation_size('${schema}.batch')::float8 AS bytes`,
});

const leads = (schema: string) => ({
  /** node, ms */
  takeLead: `
    WITH free AS (
      SELECT id FROM ${schema}.lead WHERE id = 1 AND (node = $1 OR until <= clock_timestamp()) FOR UPDATE
    ), raised AS (
      UPDATE ${schema}.head SET epoch = epoch + 1 WHERE id IN (SELECT id FROM free) RETURNING epoch
    ), taken AS (
      UPDATE ${schema}.lead SET node = $1, epoch = raised.epoch, until = ${UNTIL} FROM raised WHERE id = 1
      RETURNING lead.epoch
    )
    SELECT epoch, ${WAITED_FOR} FROM taken`,
  /** node, ms, epoch */
  renewLead: `UPDATE ${schema}.lead SET until = ${UNTIL} WHERE id = 1 AND node = $1 AND epoch = $3 RETURNING epoch`,
  /** epoch */
  freeLead: `
    WITH freed AS (UPDATE ${schema}.lead SET until = '-infinity' WHERE id = 1 AND epoch = $1 RETURNING epoch)
    SELECT (SELECT pg_notify('${channelOf(schema)}', 'lead') FROM freed)`,
});

const nodes = (schema: string) => ({
  secret: `SELECT secret FROM ${schema}.meta`,
  /** node, what it told */
  announce: `
    INSERT INTO ${schema}.node (node, told, at) VALUES ($1, $2, clock_timestamp())
    ON CONFLICT (node) DO UPDATE SET told = excluded.told, at = excluded.at`,
  /** ms */
  forgetNodes: `DELETE FROM ${schema}.node WHERE at < clock_timestamp() - $1::float8 * interval '1 millisecond'`,
  /** ms; transactions are counted by the server, and every word of a node is one */
  nodes: `
    SELECT lead.node AS lead, lead.epoch, lead.until > clock_timestamp() AS leads, node.node,
      CASE WHEN octet_length(node.told::text) <= ${WORD_BYTES_MAX} THEN node.told END AS told,
      pg_snapshot_xmax(pg_current_snapshot())::text AS count,
      (extract(epoch FROM clock_timestamp() - node.at) * 1000)::float8 AS age
    FROM ${schema}.lead LEFT JOIN ${schema}.node
      ON node.at BETWEEN clock_timestamp() - $1::float8 * interval '1 millisecond'
        AND clock_timestamp() + $1::float8 * interval '1 millisecond'
    ORDER BY node.node LIMIT ${NODES_MAX}`,
});
