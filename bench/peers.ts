/**
 * The peers, alone: how many no-op jobs per second BullMQ, pg-boss and graphile-worker carry from submit to
 * durably completed on this machine. `bench/engine.ts` sets Drover beside each of them, in turn.
 */

import { peerVersion } from "./load-peer.ts";
import { openBullMq } from "./peers/bullmq.ts";
import { openGraphileWorker } from "./peers/graphile-worker.ts";
import { openPgBoss } from "./peers/pg-boss.ts";
import { type Server, Skipped, startPostgres, startRedis } from "./peers/server-process.ts";
import { type Mode, playAlone, type Session, type Workload } from "./peers/workload.ts";
import { bar, type Options, progress, type Report, type Row } from "./report.ts";

export const FULL: Workload = { seconds: 2, rounds: 7 };
export const QUICK: Workload = { seconds: 0.2, rounds: 1 };

export type PeerFigures = {
  readonly peer: string;
  readonly server: string;
  /** Jobs per second, one job per call, many calls in flight. */
  readonly singles: number;
  /** Jobs per second, submitted in batches. */
  readonly batches: number;
};
export type SkippedPeer = { readonly peer: string; readonly skipped: string };

export type Peer = {
  readonly name: string;
  readonly start: () => Promise<Server>;
  readonly open: (server: Server, mode: Mode) => Promise<Session>;
};

export const PEERS: readonly Peer[] = [
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
  const shown = bar("peers", "peers");
  for (const peer of PEERS) {
    found.push(await measurePeer(peer, quick ? QUICK : FULL));
    shown.at(found.length, PEERS.length);
  }
  shown.end();
  return found;
}

async function measurePeer(peer: Peer, workload: Workload): Promise<PeerFigures | SkippedPeer> {
  const alone = (session: Session): Promise<number> => playAlone(session, workload);
  const singles = await withPeer(peer, "singles", alone);
  if ("skipped" in singles) return singles;
  const batches = await withPeer(peer, "batches", alone);
  if ("skipped" in batches) return batches;
  const { peer: name, server } = singles;
  progress(`${name}: ${Math.round(singles.found)} jobs/s by single submits, ${Math.round(batches.found)} by batches`);
  return { peer: name, server, singles: singles.found, batches: batches.found };
}

/**
 * Does something with a peer that is up and connected. Each time it gets a fresh server: what was left in the tables
 * before must not slow it down.
 */
export async function withPeer<Found>(
  peer: Peer,
  mode: Mode,
  work: (session: Session) => Promise<Found>,
): Promise<{ readonly peer: string; readonly server: string; readonly found: Found } | SkippedPeer> {
  const name = `${peer.name} ${peerVersion(peer.name)}`;
  try {
    await using server = await peer.start();
    await using session = await peer.open(server, mode);
    return { peer: name, server: server.about, found: await work(session) };
  } catch (error) {
    if (!(error instanceof Skipped)) throw error;
    progress(`${name} is skipped: ${error.message}`);
    return { peer: name, skipped: error.message };
  }
}
