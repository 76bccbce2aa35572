/**
 * Whether this PostgreSQL keeps what it says it has stored, and what it runs on.
 *
 * An fsync that is off loses what was acknowledged when its machine fails, and nothing that a client does helps. A
 * commit that is not waited for is another matter: Drover waits for its own, whatever the setting. Without a
 * synchronous standby a failover may lose the last moments; that is a choice, and is told.
 */
import type { JournalMember } from "../journal/journal.ts";
import type { PostgresAddress } from "./address.ts";
import type { Query } from "./lanes.ts";

type Settings = {
  readonly version: string;
  readonly fsync: string;
  readonly commit: string;
  readonly pages: string;
  readonly standbys: string;
};
type Standby = {
  readonly name: string;
  readonly address: string | null;
  readonly state: string;
  readonly sync: string;
};

export type ServerHealth = {
  readonly version: string;
  readonly warnings: readonly string[];
  readonly members: readonly JournalMember[];
};

const NOT_WAITED_FOR: readonly string[] = ["off", "local"];

export async function healthOf(query: Query, { shown }: PostgresAddress): Promise<ServerHealth> {
  const [settings] = await query<Settings>(`SELECT current_setting('server_version') AS version,
    current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS commit,
    current_setting('full_page_writes') AS pages, current_setting('synchronous_standby_names') AS standbys`);
  const standbys = await query<Standby>(`SELECT application_name AS name, client_addr::text AS address,
    coalesce(state, '') AS state, coalesce(sync_state, '') AS sync FROM pg_stat_replication ORDER BY 1`);
  const { version = "", fsync, commit = "on", pages, standbys: names = "" } = settings ?? {};
  const warnings: string[] = [];
  const warn = (sentence: string): unknown => warnings.push(`PostgreSQL at ${shown}: ${sentence}`);
  if (fsync === "off")
    warn("fsync is off: WHAT WAS ACKNOWLEDGED IS LOST when its machine fails. Set fsync = on and restart it.");
  if (pages === "off") warn("full_page_writes is off: a torn page after a power cut is not repaired. Set it to on.");
  if (NOT_WAITED_FOR.includes(commit))
    warn(`synchronous_commit is ${commit}; Drover waits for its own commits all the same. Set it to on for the rest.`);
  if (standbys.length > 0 && names === "")
    warn("its standbys are asynchronous: a failover may lose what was acknowledged. Set synchronous_standby_names.");
  if (names !== "" && !standbys.some(({ sync }) => sync === "sync" || sync === "quorum"))
    warn(`no synchronous standby is there (${names}): commits wait until one is.`);
  const members = standbys.map(({ name, address, state }) => ({
    name,
    address: address ?? "local",
    isUp: state === "streaming",
  }));
  return { version, warnings, members };
}
