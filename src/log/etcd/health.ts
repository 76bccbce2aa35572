/**
 * How etcd is: its version, its size, which of the members answer, and what is wrong with it, in sentences.
 */
import type { JournalMember } from "../journal/journal.ts";
import type { Alarm, EtcdClient, Status } from "./client.ts";
import { EtcdFault } from "./fault.ts";

/** Who asks waits two seconds for all of it: a member that hangs must not look like an etcd that is away. */
const STATUS_MS = 1000;

export type EtcdHealth = {
  readonly version: string | null;
  readonly bytes: number | null;
  readonly warnings: readonly string[];
  readonly members: readonly JournalMember[];
};

export async function healthOf(client: EtcdClient): Promise<EtcdHealth> {
  const [statuses, alarms] = await Promise.all([
    Promise.all(client.endpoints.map((endpoint) => client.status(endpoint, { limitMs: STATUS_MS }).catch(asFault))),
    client.alarms().catch(asFault),
  ]);
  const members = client.endpoints.map(({ name }, index) => ({
    name,
    address: name,
    isUp: !(statuses[index] instanceof EtcdFault),
  }));
  const up = statuses.filter((status): status is Status => !(status instanceof EtcdFault));
  const warnings = statuses.flatMap((status, index) => warningsOf(status, members[index]?.name ?? ""));
  return {
    version: up[0]?.version ?? null,
    bytes: up.length === 0 ? null : Math.max(...up.map(({ dbBytes }) => dbBytes)),
    warnings: [...warnings, ...(alarms instanceof EtcdFault ? [] : alarms.map(alarmText))],
    members,
  };
}

function warningsOf(status: Status | EtcdFault, name: string): string[] {
  if (status instanceof EtcdFault) return [`the member ${name} of etcd does not answer: ${status.message}`];
  return status.leader !== "0" ? [] : [`the member ${name} of etcd knows of no leader`];
}

const ALARMS: Readonly<Record<string, string>> = {
  NOSPACE: "has no room left and takes nothing more: etcdctl defrag, then etcdctl alarm disarm",
  CORRUPT: "found its data damaged: replace that member",
};

const alarmText = ({ member, name }: Alarm): string =>
  `the member ${BigInt(member).toString(16)} of etcd ${ALARMS[name] ?? `has raised the alarm ${name}`}`;

function asFault(error: unknown): EtcdFault {
  if (error instanceof EtcdFault) return error;
  throw error;
}
