/**
 * The cluster: durable tasks on three members of etcd and on PostgreSQL, and what a lost leader costs.
 *
 * Rates: the leader is in this process with a worker, as the peers are; a task counts when its end is committed by the
 * journal. Drover over a journal plays in turn with Drover over SQLite alone, and on one PostgreSQL with pg-boss and
 * graphile-worker, round by round (bench/peers/workload.ts). Lag: how much later than its leader a follower in a
 * process of its own has applied a commit. Loss: nodes in processes of their own; the one that leads is killed, or told
 * to hand over, and another decides. Everything runs on one machine, so that all wait for the same cores: read the
 * ratios, and the CPU time a task takes in all processes.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { type EtcdCluster, etcdMissing, startEtcd } from "../test/kits/etcd.ts";
import { leads, newDirectory, openBenchNode } from "./cluster-node.ts";
import { type AppliedAt, type NodeOrder, type NodeReport, sharedClockMs } from "./cluster-part.ts";
import { BESIDE_PEERS, openSession, WITHOUT_SNAPSHOTS, withDrover } from "./embedded.ts";
import { peerVersion } from "./load-peer.ts";
import { openGraphileWorker } from "./peers/graphile-worker.ts";
import { openPgBoss } from "./peers/pg-boss.ts";
import { type Server, Skipped, startPostgres } from "./peers/server-process.ts";
import { type Duel, type Mode, median, playInTurn, type Session } from "./peers/workload.ts";
import { FULL, QUICK } from "./peers.ts";
import { bar, type Options, progress, type Report, type Row } from "./report.ts";
import { cpuMicrosOf } from "./wire.ts";

const PARTS = ["rates", "peers", "lag", "loss"] as const;
const MODES: readonly Mode[] = ["singles", "batches"];
const WORDS: Readonly<Record<Mode, string>> = { singles: "single submits", batches: "batches" };
const PEER_FLOOR = 2;
/** Calls of a thousand tasks that are under way: a journal takes longer to answer than a disk. */
const BATCHES = 8;
/** The load under which a follower is watched: tasks a second, and for how long. */
const [LAG_RATE, LAG_SECONDS] = [2000, 10];
const LAG_STEP_MS = 10;
const [LAG_MS_MAX, LOSS_MS_MAX, HAND_OVER_MS_MAX] = [100, 5000, 1000];
const LOSSES = 20;
/** Between two losses everybody comes to rest. */
const REST_MS = 1000;

type Engine = AsyncDisposable & {
  readonly name: string;
  readonly url: string;
  /** How many nodes share it, where one is lost. */
  readonly nodes: number;
  /** CPU time of its processes so far. */
  micros(): number;
};
type StartEngine = () => Promise<Engine>;

const postgresUrl = ({ port }: Server): string => `postgres://bench@127.0.0.1:${port}/postgres`;

async function onPostgres(): Promise<Engine> {
  const server = await startPostgres();
  return {
    ...{ name: "PostgreSQL", url: postgresUrl(server), nodes: 2, micros: () => cpuMicrosOf(server.pid) },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

async function onEtcd(): Promise<Engine> {
  if (etcdMissing !== false) throw new Skipped(etcdMissing);
  const cluster: EtcdCluster = await startEtcd({ members: 3 });
  return {
    ...{ name: "three etcd", url: cluster.url("bench"), nodes: 3 },
    micros: () => cluster.members.reduce((sum, { pid }) => sum + cpuMicrosOf(pid()), 0),
    [Symbol.asyncDispose]: () => cluster[Symbol.asyncDispose](),
  };
}

const ENGINES: readonly StartEngine[] = [onEtcd, onPostgres];

// ------------------------------------------------------------- rates

/** A node that leads, as the workload sees it. */
async function openLeader({ url, micros }: Pick<Engine, "url" | "micros">, mode: Mode): Promise<Session> {
  const node = await openBenchNode({ id: "leader", url, config: BESIDE_PEERS });
  await leads(node);
  return {
    ...(await openSession(node.drover, mode, BATCHES)),
    elsewhereMicros: micros,
    [Symbol.asyncDispose]: node.close,
  };
}

async function besideSqlite(start: StartEngine, mode: Mode, quick: boolean): Promise<Row[]> {
  await using engine = await start();
  await using ours = await openLeader(engine, mode);
  const duel = await withDrover(BESIDE_PEERS, async (drover) =>
    playInTurn(ours, await openSession(drover, mode, BATCHES), quick ? QUICK : FULL),
  );
  return duelRows(duel, { ours: `Drover on ${engine.name}`, theirs: "Drover on SQLite alone", mode });
}

const PEERS = [
  { name: "pg-boss", open: openPgBoss },
  { name: "graphile-worker", open: openGraphileWorker },
] as const;

async function besidePeers(mode: Mode, quick: boolean): Promise<Row[]> {
  const rows: Row[] = [];
  const ratios: number[] = [];
  for (const { name, open } of PEERS) {
    await using server = await startPostgres();
    await using theirs = await open(server, mode);
    const micros = (): number => cpuMicrosOf(server.pid);
    await using ours = await openLeader({ url: postgresUrl(server), micros }, mode);
    const duel = await playInTurn(ours, { ...theirs, elsewhereMicros: micros }, quick ? QUICK : FULL);
    ratios.push(duel.ratio);
    const words = { ours: `Drover beside ${name}`, theirs: `${name} ${peerVersion(name)}`, mode };
    rows.push(...duelRows(duel, words));
  }
  const least = Math.min(...ratios);
  // The claim is of batches: one job a call is bound by the round trips of the peers.
  const target = mode === "batches" ? { target: "≥ 2 (aim 3)", met: least >= PEER_FLOOR } : {};
  return [...rows, { what: `Drover ÷ the faster peer, ${WORDS[mode]}`, value: least, unit: "×", ...target }];
}

function duelRows(duel: Duel, words: { readonly ours: string; readonly theirs: string; readonly mode: Mode }): Row[] {
  const how = WORDS[words.mode];
  const cpu = (micros: number): { readonly note: string } => ({ note: `CPU ${micros.toFixed(0)} µs a task` });
  progress(`${words.ours} ÷ ${words.theirs}, ${how}: ${duel.ratio.toFixed(2)}, CPU ${duel.micros.ratio.toFixed(2)}`);
  return [
    { what: `${words.ours}, ${how}`, value: duel.ours, unit: "tasks/s", ...cpu(duel.micros.ours) },
    { what: `${words.theirs}, ${how}`, value: duel.theirs, unit: "tasks/s", ...cpu(duel.micros.theirs) },
    {
      ...{ what: `${words.ours} ÷ ${words.theirs}, ${how}`, value: duel.ratio, unit: "×" },
      note: `CPU time ${duel.micros.ratio.toFixed(2)} ×`,
    },
  ];
}

// ------------------------------------------------------------- nodes in processes of their own

type Part = { readonly id: string; readonly child: ChildProcess; order(order: NodeOrder): void };

async function startPart(id: string, url: string, how: "busy" | "watching", data = newDirectory()): Promise<Part> {
  const child = fork(join(import.meta.dirname, "cluster-part.ts"), [id, url, how, data], {
    execArgv: ["--disable-warning=ExperimentalWarning"],
  });
  await reportOf(child, "ready");
  return { id, child, order: (order) => void child.send(order) };
}

function reportOf<Type extends NodeReport["type"]>(
  child: ChildProcess,
  type: Type,
): Promise<Extract<NodeReport, { readonly type: Type }>> {
  return new Promise((resolve, reject) => {
    const onReport = (report: NodeReport): void => {
      if (report.type !== type) return;
      over();
      resolve(report as Extract<NodeReport, { readonly type: Type }>);
    };
    const onExit = (): void => {
      over();
      reject(new Error(`a node ended before it was ${type}`));
    };
    const over = (): void => void child.off("message", onReport).off("exit", onExit);
    child.on("message", onReport).on("exit", onExit);
  });
}

async function endPart({ child, order }: Part): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  order({ type: "stop" });
  await ended;
}

// ------------------------------------------------------------- lag

async function lagRow(start: StartEngine, quick: boolean): Promise<Row> {
  await using engine = await start();
  const leader = await openBenchNode({ id: "leader", url: engine.url, config: WITHOUT_SNAPSHOTS });
  await using _closed = { [Symbol.asyncDispose]: leader.close };
  await leads(leader);
  const follower = await startPart("follower", engine.url, "watching");
  const commits: AppliedAt[] = [];
  const stop = leader.drover.watch((_, { head }) => commits.push({ seq: head.seq, atMs: sharedClockMs() }));
  try {
    await leader.drover.worker({ slots: 1000 }, () => {});
    const steps = ((quick ? 1 : LAG_SECONDS) * 1000) / LAG_STEP_MS;
    for (let step = 0; step < steps; step++) {
      const many = Array.from({ length: (LAG_RATE * LAG_STEP_MS) / 1000 }, (_, task) => task);
      await Promise.all([
        pause(LAG_STEP_MS),
        ...many.map((task) => leader.drover.submit({ agentId: `agent-${task}`, action: "noop" })),
      ]);
    }
    await pause(REST_MS);
    const told = reportOf(follower.child, "applied");
    follower.order({ type: "tell" });
    const lags = lagsOf(commits, (await told).applied);
    const [p50, p99] = [percentile(lags, 50), percentile(lags, 99)];
    return {
      ...{ what: `lag of a follower, ${engine.name}, p99`, value: p99, unit: "ms", target: `≤ ${LAG_MS_MAX}` },
      ...{ met: p99 <= LAG_MS_MAX, note: `p50 ${p50.toFixed(1)} ms, ${lags.length} commits` },
    };
  } finally {
    stop();
    await endPart(follower);
  }
}

/** For each commit, how much later the follower had it. What it had before it was watched does not count. */
function lagsOf(commits: readonly AppliedAt[], applied: readonly AppliedAt[]): number[] {
  const first = applied[0]?.seq ?? 0;
  let at = 0;
  return commits
    .filter(({ seq }) => seq >= first)
    .map(({ seq, atMs }) => {
      while (at < applied.length && (applied[at]?.seq ?? 0) < seq) at++;
      return Math.max(0, (applied[at]?.atMs ?? Number.POSITIVE_INFINITY) - atMs);
    });
}

function percentile(values: readonly number[], percent: number): number {
  const sorted = [...values].sort((left, right) => left - right);
  return sorted[Math.min(sorted.length - 1, Math.ceil((sorted.length * percent) / 100) - 1)] ?? Number.NaN;
}

// ------------------------------------------------------------- loss

type Decision = { readonly id: string; readonly atMs: number };

async function lossRows(start: StartEngine, quick: boolean): Promise<Row[]> {
  await using engine = await start();
  const parts = new Map<string, Part>();
  let last: Decision = { id: "", atMs: 0 };
  const root = newDirectory();
  const joins = async (id: string): Promise<void> => {
    const part = await startPart(id, engine.url, "busy", join(root, id));
    parts.set(id, part);
    part.child.on("message", (report: NodeReport) => {
      if (report.type === "decided") last = { id, atMs: report.atMs };
    });
  };
  /** From now until another node has decided something. */
  const lostFor = async (lose: (leader: Part) => void): Promise<number> => {
    await pause(REST_MS);
    const { id } = last;
    const at = sharedClockMs();
    lose(parts.get(id) as Part);
    while (last.id === id) await pause(1);
    return last.atMs - at;
  };
  const losses = quick ? 2 : LOSSES;
  const shown = bar(`leaders lost, ${engine.name}`, "leaders");
  const [killed, handed]: [number[], number[]] = [[], []];
  try {
    for (let node = 0; node < engine.nodes; node++) await joins(`n${node}`);
    while (last.id === "") await pause(1);
    for (let loss = 0; loss < losses; loss++) {
      handed.push(await lostFor((leader) => leader.order({ type: "hand-over" })));
      const { id } = last;
      killed.push(await lostFor(({ child }) => void child.kill("SIGKILL")));
      await joins(id);
      shown.at(loss + 1, losses);
    }
  } finally {
    shown.end();
    for (const part of parts.values()) await endPart(part);
    rmSync(root, { recursive: true, force: true });
  }
  const row = (what: string, times: readonly number[], limit: number): Row => {
    const p99 = percentile(times, 99);
    return {
      ...{ what: `${what}, ${engine.name}, p99 of ${times.length}`, value: p99, unit: "ms", target: `≤ ${limit}` },
      ...{ met: p99 <= limit, note: `median ${median(times).toFixed(0)} ms` },
    };
  };
  return [
    row("leader killed → next decision", killed, LOSS_MS_MAX),
    row("lead handed over → next decision", handed, HAND_OVER_MS_MAX),
  ];
}

// ------------------------------------------------------------- all of it

export async function run({ quick, only = PARTS }: Options): Promise<Report> {
  const stranger = only.find((part) => !PARTS.includes(part as (typeof PARTS)[number]));
  if (stranger !== undefined) throw new Error(`--only ${stranger}: the parts of cluster are ${PARTS.join(", ")}`);
  const rows: Row[] = [];
  for (const mode of MODES) {
    if (only.includes("rates"))
      for (const start of ENGINES) rows.push(...(await tried(besideSqlite(start, mode, quick))));
    if (only.includes("peers")) rows.push(...(await tried(besidePeers(mode, quick))));
  }
  for (const start of ENGINES) {
    if (only.includes("lag")) rows.push(...(await tried(lagRow(start, quick))));
    if (only.includes("loss")) rows.push(...(await tried(lossRows(start, quick))));
  }
  return { name: "cluster", rows };
}

/** What cannot run here is left out, with the reason. */
async function tried(rows: Promise<Row | Row[]>): Promise<Row[]> {
  try {
    return [await rows].flat();
  } catch (error) {
    if (!(error instanceof Skipped)) throw error;
    progress(`skipped: ${error.message}`);
    return [];
  }
}
