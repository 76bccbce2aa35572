/**
 * What somebody with the data directory in hand, and without its key, can do to a log: edit, delete, hash everything
 * anew. Also a log as an older version left it.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type Seq, seq } from "../../src/core/base/brand.ts";
import { spansOf } from "../../src/log/format/batch-row.ts";
import { batchLink, chainBatch, fromHex, HASH_BYTES, hashOf, toHex } from "../../src/log/format/chain.ts";

export const databaseIn = (directory: string): string => join(directory, "drover.db");

export function edit(directory: string, sql: string): void {
  const database = new DatabaseSync(databaseIn(directory));
  database.exec(sql);
  database.close();
}

type Row = { first_seq: number; last_seq: number; epoch: number; batch_id: string; bytes: Uint8Array };

/** Changes the bytes of stored batches and links all of them anew, up to the head. */
export function rewrite(
  directory: string,
  change: (bytes: Uint8Array, first: number) => Uint8Array,
  framed = true,
): void {
  const database = new DatabaseSync(databaseIn(directory));
  let prior = fromHex(String(database.prepare("SELECT hash FROM base").get()?.hash));
  const put = database.prepare(
    "UPDATE batch SET bytes = ?, prior_hash = ?, post_hash = ?, hashes = ? WHERE first_seq = ?",
  );
  const rows = database.prepare("SELECT * FROM batch ORDER BY first_seq").all() as unknown as Row[];
  for (const { first_seq: first, last_seq: last, epoch, batch_id: batchId, ...row } of rows) {
    const bytes = change(row.bytes, first);
    const count = last - first + 1;
    const start = framed ? batchLink(prior, { epoch, batchId }) : prior;
    const hashes = chainBatch(start, bytes, spansOf(seq(first) as Seq, bytes, count));
    const post = Uint8Array.from(hashOf(hashes, hashes.length / HASH_BYTES - 1));
    put.run(bytes, prior, post, hashes, first);
    prior = post;
  }
  database.prepare("UPDATE head SET hash = ?").run(toHex(prior));
  database.close();
}

/** The log as version 2 of its format had it: batches without a link of their own, no head signed. */
export function makeOlder(directory: string): void {
  rewrite(directory, (bytes) => bytes, false);
  edit(directory, "DROP TABLE signed; DROP TABLE kept; DROP TABLE kept_list; UPDATE meta SET value = 2");
  const key = join(directory, "signing-key.pem");
  writeFileSync(key, readFileSync(key, "utf8").replace(/^.*\n/, ""));
}
