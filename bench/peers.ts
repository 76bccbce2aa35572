/**
 * The peers, alone: how many no-op jobs per second BullMQ, pg-boss and graphile-worker carry from submit to
 * durably completed on this machine. `bench/engine.ts` calls `measurePeers` to set Drover beside them in the same run.
 */

import { peerVersion } from "./load-peer.ts";
import { openBullMq } from "./peers/bullmq.ts";
import { openGraphileWorker } from "./peers/graphile-worker.ts";
import { openPgBoss } from "./peers/pg-boss.ts";
import { type Server, Skipped, startPostgres, startRedis } from "./peers/server-process.ts";
import { bestRound, type Mode, type Session, type Workload } from "./peers/workload.ts";
import { type Options, progress, type Report, type Row } from "./report.ts";

const FULL: Workload = { jobs: 20_000, rounds: 4 };
const QUICK: Workload = { jobs: 4_000, rounds: 1 };

export type PeerFigures = {
  readonly peer: string;
  readonly server: string;
  /** Jobs per second, one job per call, many calls in flight. */
  readonly singles: number;
  /** Jobs per second, submitted in batches. */
  readonly batches: number;
};
export type SkippedPeer = { readonly peer: string; readonly skipped: string };

type Peer = {
  readonly name: string;
  readonly start: () => Promise<Server>;
  readonly open: (server: Server, mode: Mode) => Promise<Session>;
};

const PEERS: readonly Peer[] = [
  { name: "bullmq", start: startRedis, open: openBullMq },
  { name: "pg-boss", start: startPostgres, open: openPgBoss },
  { name: "graphile-worker", start: startPostgres, open: openGraphileWorker },
];

export async function run(options: Options): Promise<Report> {
  const rows = (await measurePeers(options)).flatMap((figures): Row[] => {
    if ("skipped" in figures)
      return [{ what: figures.peer, value: 0, unit: "jobs/s", note: `skipped: ${figures.skipped}` }];
    const { peer, server: note, singles, batches } = figures;
    return [
      { what: `${peer}, single submits`, value: Math.round(singles), unit: "jobs/s", note },
      { what: `${peer}, batched submits`, value: Math.round(batches), unit: "jobs/s", note },
    ];
  });
  return { name: "peers: no-op jobs from submit to durably completed", rows };
}

/** One after the other, so that none disturbs another. A peer that cannot run here is skipped, with the reason. */
export async function measurePeers({ quick }: Pick<Options, "quick">): Promise<(PeerFigures | SkippedPeer)[]> {
  const found: (PeerFigures | SkippedPeer)[] = [];
  for (const peer of PEERS) found.push(await measurePeer(peer, quick ? QUICK : FULL));
  return found;
}

async function measurePeer(peer: Peer, workload: Workload): Promise<PeerFigures | SkippedPeer> {
  const name = `${peer.name} ${peerVersion(peer.name)}`;
  try {
    const { about, rate: singles } = await measureMode(peer, "singles", workload);
    const { rate: batches } = await measureMode(peer, "batches", workload);
    progress(`${name}: ${Math.round(singles)} jobs/s by single submits, ${Math.round(batches)} by batches`);
    return { peer: name, server: about, singles, batches };
  } catch (error) {
    if (!(error instanceof Skipped)) throw error;
    progress(`${name} is skipped: ${error.message}`);
    return { peer: name, skipped: error.message };
  }
}

/** Each figure gets a fresh server: what the round before left in its tables must not slow this one. */
async function measureMode(peer: Peer, mode: Mode, workload: Workload): Promise<{ about: string; rate: number }> {
  await using server = await peer.start();
  await using session = await peer.open(server, mode);
  return { about: server.about, rate: await bestRound(session, workload) };
}
