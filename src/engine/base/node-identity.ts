/**
 * Which node a data directory belongs to, and of which cluster: a small file beside the replica.
 *
 * A node that begins under another name, or over the journal of another cluster, would mix two histories, or two nodes
 * would be taken for one. So the directory remembers, and what does not fit is refused before anything is written.
 */
import { hash, randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { isRecord } from "../../core/base/index.ts";
import { LogFailure } from "../../log/index.ts";
import { OWN_FILE_MODE } from "../../std/index.ts";

const FILE = "node.json";
const CLUSTER_DIGITS = 16;
const NAME_MAX = 48;

/** The name of a node, and of its cluster once it has been part of one. */
export type Identity = { readonly id: string; readonly cluster: string | null };

/** What the directory says, if it is one of a node. Refuses what is not as it was written. */
export function identityIn(directory: string): Identity | null {
  const path = join(directory, FILE);
  if (!existsSync(path)) return null;
  const { id, cluster, check, ...unknown } = recordIn(readFileSync(path, "utf8"));
  const isWhole = typeof id === "string" && typeof cluster === "string" && Object.keys(unknown).length === 0;
  // Without a check it is of an older version.
  if (isWhole && (check === undefined || check === checkOf(id, cluster))) return { id, cluster };
  throw new LogFailure("corrupt", `${path} makes no sense. Put it back from a backup, or move it away.`);
}

/** Who the node is: the name it has, the one it is given, or a new one. Nothing is written. */
export function identityFor(directory: string, wanted: string | null): Identity {
  const known = identityIn(directory);
  if (known === null) return { id: wanted ?? newName(), cluster: null };
  if (wanted === null || wanted === known.id) return known;
  throw new LogFailure(
    "refused",
    `the data directory ${directory} is that of node ${known.id}, not of ${wanted}. ` +
      `Leave out --node, or give ${wanted} a directory of its own with --data.`,
  );
}

/** Refuses the directory of a node of another cluster: before it is opened, since opening may replace what it has. */
export function checkCluster(directory: string, { id, cluster: before }: Identity, cluster: string): void {
  if (before === null || before === cluster) return;
  throw new LogFailure(
    "refused",
    `the data directory ${directory} is that of node ${id} in another cluster. ` +
      "Name the log of that one with --log, or another directory with --data. A copy of it begins a node of a log " +
      "that was copied from it once node.json is removed from the copy.",
  );
}

/** Takes down whose directory this is, once it is known that the node may be part of the cluster. */
export function keepIdentity(directory: string, { id, cluster: before }: Identity, cluster: string): void {
  if (before === cluster) return;
  mkdirSync(directory, { recursive: true });
  const path = join(directory, FILE);
  writeFileSync(`${path}.new`, `${JSON.stringify({ id, cluster, check: checkOf(id, cluster) })}\n`, {
    mode: OWN_FILE_MODE,
  });
  renameSync(`${path}.new`, path);
}

/** A name with one letter changed is a name too: by this it is found. */
const checkOf = (id: string, cluster: string): string =>
  hash("sha256", `${cluster} ${id}`, "hex").slice(0, CLUSTER_DIGITS);

/** The name of a cluster. It follows from the secret of its nodes, and says nothing about it. */
export const clusterOf = (secret: string): string =>
  hash("sha256", `the cluster of ${secret}`, "hex").slice(0, CLUSTER_DIGITS);

/** That of the machine, and a few digits: several nodes may run on one. */
function newName(): string {
  const machine = hostname()
    .replace(/[^A-Za-z0-9-].*$/s, "")
    .replace(/^-+/, "")
    .slice(0, NAME_MAX);
  return `${machine === "" ? "node" : machine}-${randomBytes(2).toString("hex")}`;
}

function recordIn(text: string): Readonly<Record<string, unknown>> {
  try {
    const record: unknown = JSON.parse(text);
    return isRecord(record) ? record : {};
  } catch {
    return {};
  }
}
