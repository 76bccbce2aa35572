/**
 * Other histories of Drover in the same etcd: what somebody may have meant who has mistyped a prefix.
 *
 * Keys are many, so they are not listed: the first key is looked at, and whether a head lies under one of its folders;
 * then the search goes on behind that folder. Whoever may read the keys of one prefix alone is told of no other.
 */
import type { EtcdAddress } from "./address.ts";
import type { EtcdClient } from "./client.ts";
import { EtcdFault } from "./fault.ts";
import { createKeys, isHead } from "./records.ts";

/** All that a prefix may begin with: a slash, up to the sign behind it. */
const [FIRST, END] = ["/", "0"];
const FOLDERS_MAX = 32;
const DEPTH_MAX = 4;

/** Their addresses, by prefix. */
export async function historiesBeside(client: EtcdClient, address: EtcdAddress): Promise<string[]> {
  const own = address.prefix.slice(0, -1);
  const found: string[] = [];
  try {
    let from = FIRST;
    for (let looked = 0; looked < FOLDERS_MAX; looked++) {
      const [first] = (await client.range({ key: from, end: END, limit: 1, keysOnly: true })).found;
      if (first === undefined) break;
      const folders = foldersOf(first.key);
      const prefix = await withHead(client, folders);
      if (prefix !== null && prefix !== own) found.push(`${address.shown.slice(0, -own.length)}${prefix}`);
      const folder = prefix ?? folders[1] ?? folders[0];
      from = folder === undefined ? `${first.key}\0` : createKeys(`${folder}/`).all.end;
    }
  } catch (error) {
    // It is a help for people, and no more: what may not be read, or not just now, is left out.
    if (!(error instanceof EtcdFault)) throw error;
  }
  return found;
}

/** `/a/b/c` lies in `/a` and in `/a/b`. */
function foldersOf(key: string): string[] {
  const names = key.split("/").slice(1, -1).slice(0, DEPTH_MAX);
  return names.map((_, index) => `/${names.slice(0, index + 1).join("/")}`);
}

async function withHead(client: EtcdClient, folders: readonly string[]): Promise<string | null> {
  for (const folder of folders) {
    const record = await client.get(createKeys(`${folder}/`).head);
    if (record !== null && isHead(record.value)) return folder;
  }
  return null;
}
