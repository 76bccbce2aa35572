/**
 * The wire: a server, two worker processes and a submitter, as a team has them, next to the peers in the same
 * arrangement.
 *
 * Drover is used by its SDK: 128 calls are in flight, of one task or of fifty each; two workers have 100 slots each; a
 * task does nothing. BullMQ is given exactly that. pg-boss and graphile-worker are given as many calls in flight and
 * as large batches as they do best with (bench/peers/), and workers as they recommend. All servers make a job durable
 * before they answer. A round is over when the last job is completed on disk. Drover and a peer are up at once and
 * play in turn, round by round, and the other idles; rates and CPU times are medians over rounds, a ratio the median
 * over pairs of neighbouring rounds.
 *
 * CPU time is that of all threads of a process and, of PostgreSQL, of its children, as the kernel counts it in steps of
 * 10 ms. By the clock a machine with other work to do says little: read the CPU time then.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { ENDPOINTS } from "../src/protocol/wire/index.ts";
import { fleetRows } from "./fleet.ts";
import { openLine, requestOf } from "./http-load.ts";
import { installPeers, peerVersion } from "./load-peer.ts";
import { GRAPHILE_CALLS } from "./peers/graphile-worker.ts";
import { PG_BOSS_CALLS } from "./peers/pg-boss.ts";
import { Skipped, startPostgres, startRedis } from "./peers/server-process.ts";
import { jobsIn, type Mode, median, type Session, until, type Workload } from "./peers/workload.ts";
import { bar, type Options, progress, type Report, type Row, showNumber } from "./report.ts";
import { serve } from "./serve.ts";
import type { LoneSample, PartOrder, PartReport, Role, SystemName } from "./wire-part.ts";

/** The mood of a machine changes within a minute: more pairs of shorter rounds tell more of two that take turns. */
const FULL: Workload = { seconds: 1, rounds: 31 };
const WARM_UP_S = 3;
const QUICK: Workload = { seconds: 0.3, rounds: 1 };
const WORKERS = 2;
/** Long enough for several snapshots; its rate is looked at stretch by stretch. */
const SUSTAINED_S = 60;
const STRETCH_S = 5;
/** What somebody else waits for an answer under that load, and how long he rests before he asks again. */
const BYSTANDER_MS = 20;
const BYSTANDER_REST_MS = 5;
/** The kernel counts in steps of 10 ms, and a round begins and ends with work that is no task: fewer tell nothing. */
const CPU_JOBS_MIN = 5000;
const LONE = { full: 1000, quick: 50 };
const MODES: readonly Mode[] = ["singles", "batches"];

type Calls = Pick<Session, "perCall" | "inFlight">;
const CALLS: Readonly<Record<Mode, Calls>> = {
  singles: { perCall: 1, inFlight: 128 },
  batches: { perCall: 50, inFlight: 128 },
};

type Backend = AsyncDisposable & { readonly port: number; readonly pid: number; readonly about: string };
type System = {
  readonly name: SystemName;
  readonly start: () => Promise<Backend>;
  readonly calls: Readonly<Record<Mode, Calls>>;
};

export const DROVER: System = { name: "drover", start: startDrover, calls: CALLS };
const PEERS: readonly System[] = [
  { name: "bullmq", start: startRedis, calls: CALLS },
  { name: "pg-boss", start: startPostgres, calls: PG_BOSS_CALLS },
  { name: "graphile-worker", start: startPostgres, calls: GRAPHILE_CALLS },
];

async function startDrover(): Promise<Backend> {
  const { port, pid, stop } = await serve("wire");
  return { port, pid, about: "durable", [Symbol.asyncDispose]: stop };
}

// ------------------------------------------------------------- one arrangement of processes

/** What a job took, in microseconds of CPU time. */
type Micros = { readonly submitter: number; readonly server: number; readonly workers: number };
export type Round = { readonly jobs: number; readonly perSecond: number; readonly micros: Micros };
type Arrangement = AsyncDisposable & {
  readonly port: number;
  readonly calls: Calls;
  readonly about: string;
  play(jobs: number, isAwaited?: boolean): Promise<Round>;
  /** How many jobs have run. */
  ran(): number;
  lone(count: number): Promise<readonly LoneSample[]>;
};
type Part = { readonly child: ChildProcess; readonly pid: number; order(order: PartOrder): void };

async function startPart(system: SystemName, role: Role, port: number, mode: Mode): Promise<Part> {
  const child = fork(join(import.meta.dirname, "wire-part.ts"), [system, role, String(port), mode], {
    execArgv: ["--disable-warning=ExperimentalWarning"],
  });
  await reportOf(child, "ready");
  return { child, pid: child.pid as number, order: (order) => void child.send(order) };
}

/** The next report of this kind; a part that ends first is an error. */
function reportOf<Type extends PartReport["type"]>(
  child: ChildProcess,
  type: Type,
): Promise<Extract<PartReport, { readonly type: Type }>> {
  return new Promise((resolve, reject) => {
    const onReport = (report: PartReport): void => {
      if (report.type !== type) return;
      over();
      resolve(report as Extract<PartReport, { readonly type: Type }>);
    };
    const onExit = (code: number | null): void => {
      over();
      reject(new Error(`a process of the arrangement ended with ${code} before it was ${type}`));
    };
    const over = (): void => void child.off("message", onReport).off("exit", onExit);
    child.on("message", onReport).on("exit", onExit);
  });
}

export async function arrange({ name, start, calls }: System, mode: Mode): Promise<Arrangement> {
  const parts = new AsyncDisposableStack();
  try {
    const backend = parts.use(await start());
    const { port } = backend;
    const keep = async (role: Role): Promise<Part> => {
      const part = await startPart(name, role, port, mode);
      parts.defer(async () => {
        const ended = once(part.child, "exit");
        part.order({ type: "stop" });
        await ended;
      });
      return part;
    };
    // The submitter comes first: it makes the tables where a peer has some.
    const submitter = await keep("submitter");
    const workers: Part[] = [];
    for (let count = 0; count < WORKERS; count++) workers.push(await keep("worker"));
    return arrangementOf({ backend, submitter, workers }, calls[mode], parts);
  } catch (error) {
    await parts.disposeAsync();
    throw error;
  }
}

type Parts = { readonly backend: Backend; readonly submitter: Part; readonly workers: readonly Part[] };

function arrangementOf(parts: Parts, calls: Calls, owned: AsyncDisposableStack): Arrangement {
  const { backend, submitter, workers } = parts;
  let ran = 0;
  for (const { child } of workers)
    child.on("message", (report: PartReport) => {
      if (report.type === "ran") ran += report.count;
    });
  const used = (): Micros => ({
    submitter: cpuMicrosOf(submitter.pid),
    server: cpuMicrosOf(backend.pid),
    workers: workers.reduce((sum, { pid }) => sum + cpuMicrosOf(pid), 0),
  });
  async function isDone(): Promise<boolean> {
    const looked = reportOf(submitter.child, "looked");
    submitter.order({ type: "look" });
    return (await looked).isDone;
  }
  return {
    port: backend.port,
    calls,
    about: backend.about,
    ran: () => ran,
    async play(jobs, isAwaited = false) {
      const [ranBefore, before, startedAt] = [ran, used(), performance.now()];
      const played = reportOf(submitter.child, "played");
      submitter.order({ type: "play", jobs, isAwaited, ...calls });
      await played;
      await until(() => ran - ranBefore >= jobs);
      await until(isDone);
      const seconds = (performance.now() - startedAt) / 1000;
      if (ran - ranBefore !== jobs) throw new Error(`${ran - ranBefore} jobs ran where ${jobs} were submitted`);
      return { jobs, perSecond: jobs / seconds, micros: eachOf(jobs, before, used()) };
    },
    async lone(count) {
      const report = reportOf(submitter.child, "lone");
      submitter.order({ type: "lone", count });
      return (await report).samples;
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

const eachOf = (jobs: number, before: Micros, after: Micros): Micros => ({
  submitter: (after.submitter - before.submitter) / jobs,
  server: (after.server - before.server) / jobs,
  workers: (after.workers - before.workers) / jobs,
});
const allOf = ({ submitter, server, workers }: Micros): number => submitter + server + workers;

const TICK_MICROS = 10_000;

/** Of all its threads, and of its children, those that have ended too. */
export function cpuMicrosOf(pid: number): number {
  const own = statOf(`/proc/${pid}/stat`);
  const children = globSync("/proc/[0-9]*/stat")
    .map(statOf)
    .filter((stat) => stat?.parent === pid);
  return [own, ...children].reduce((sum, stat) => sum + (stat?.ticks ?? 0), 0) * TICK_MICROS;
}

/** Null where it has ended meanwhile. See proc(5); a name may hold blanks, and ends with the last parenthesis. */
function statOf(path: string): { readonly parent: number; readonly ticks: number } | null {
  try {
    const text = readFileSync(path, "utf8");
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
    return { parent: Number(fields[1]), ticks };
  } catch {
    return null;
  }
}

// ------------------------------------------------------------- rounds

/** A cold process is slow: it takes some rounds until one is known to last as long as it should. */
const WARM_UP_ROUNDS = 4;

export async function warmUp({ play, calls }: Pick<Arrangement, "play" | "calls">, seconds: number): Promise<number> {
  const few = calls.perCall * calls.inFlight;
  let { perSecond } = await play(few);
  for (let round = 0; round < WARM_UP_ROUNDS; round++)
    ({ perSecond } = await play(jobsIn(Math.min(seconds, WARM_UP_S) / 2, perSecond, few)));
  return jobsIn(seconds, perSecond, few);
}

type Pair = { readonly ours: Round; readonly theirs: Round };

async function playInTurn(ours: Arrangement, theirs: Arrangement, { seconds, rounds }: Workload): Promise<Pair[]> {
  const ourJobs = await warmUp(ours, seconds);
  const theirJobs = await warmUp(theirs, seconds);
  const pairs: Pair[] = [];
  const played = bar("in turn", "rounds");
  for (let round = 0; round < rounds; round++) {
    // Who goes first may find the machine in another mood: so it is one, then the other.
    if (round % 2 === 0) pairs.push({ ours: await ours.play(ourJobs), theirs: await theirs.play(theirJobs) });
    else {
      const first = await theirs.play(theirJobs);
      pairs.push({ ours: await ours.play(ourJobs), theirs: first });
    }
    played.at(round + 1, rounds);
  }
  played.end();
  return pairs;
}

async function besidePeer(peer: System, mode: Mode, workload: Workload): Promise<Row[]> {
  const name = `${peer.name} ${peerVersion(peer.name)}`;
  progress(`Drover next to ${name}, ${mode}`);
  try {
    await using theirs = await arrange(peer, mode);
    await using ours = await arrange(DROVER, mode);
    const pairs = await playInTurn(ours, theirs, workload);
    const rows = [
      rateRow(
        `Drover by its SDK, ${mode}, next to ${peer.name}`,
        "tasks/s",
        pairs.map(({ ours: round }) => round),
      ),
      rateRow(
        `${name}, ${mode}`,
        "jobs/s",
        pairs.map(({ theirs: round }) => round),
      ),
      ...comparedRows(peer.name, mode, pairs),
    ];
    for (const { what, value, unit, note = "" } of rows) progress(`  ${what}: ${showNumber(value)} ${unit} ${note}`);
    return rows;
  } catch (error) {
    if (!(error instanceof Skipped)) throw error;
    return [{ what: `${name}, ${mode}`, value: 0, unit: "jobs/s", note: `skipped: ${error.message}` }];
  }
}

/** Whether there were enough tasks in these rounds to tell what one took. */
const tellsCpu = (rounds: readonly Round[]): boolean => rounds.reduce((sum, { jobs }) => sum + jobs, 0) >= CPU_JOBS_MIN;

function rateRow(what: string, unit: string, rounds: readonly Round[]): Row {
  const value = median(rounds.map(({ perSecond }) => perSecond));
  const tasks = `${rounds.length} × ${rounds[0]?.jobs ?? 0} tasks`;
  if (!tellsCpu(rounds)) return { what, value, unit, note: `${tasks}: too few to tell their CPU time` };
  const middle = (part: keyof Micros): string => showNumber(median(rounds.map(({ micros }) => micros[part])));
  const all = showNumber(median(rounds.map(({ micros }) => allOf(micros))));
  const parts = `submitter ${middle("submitter")}, server ${middle("server")}, workers ${middle("workers")}`;
  return { what, value, unit, note: `${tasks}, CPU µs each: ${all} = ${parts}` };
}

/** What is promised is promised next to BullMQ, which is arranged exactly alike. */
function comparedRows(peer: SystemName, mode: Mode, pairs: readonly Pair[]): Row[] {
  const ratio = median(pairs.map(({ ours, theirs }) => ours.perSecond / theirs.perSecond));
  const hasCpu = tellsCpu(pairs.map(({ ours }) => ours)) && tellsCpu(pairs.map(({ theirs }) => theirs));
  const byCpu = median(pairs.map(({ ours, theirs }) => allOf(theirs.micros) / allOf(ours.micros)));
  const micros = median(pairs.map(({ ours }) => allOf(ours.micros)));
  const isJudged = peer === "bullmq";
  return [
    {
      what: `Drover ÷ ${peer}, ${mode}`,
      value: ratio,
      unit: "× by the clock",
      ...(isJudged ? { target: "≥ 3 (aim 5)", met: ratio >= 3 } : {}),
    },
    ...(hasCpu ? [{ what: `Drover ÷ ${peer}, ${mode}`, value: byCpu, unit: "× by CPU time" }] : []),
    ...(hasCpu && isJudged
      ? [
          {
            what: `Drover, ${mode}: CPU time of all processes`,
            value: micros,
            unit: "µs a task",
            target: "≤ 70 (aim 60)",
            met: micros <= 70,
          },
        ]
      : []),
  ];
}

/** Drover without a peer, to compare one version with another. */
async function aloneRow(mode: Mode, { seconds, rounds }: Workload): Promise<Row> {
  progress(`Drover alone, ${mode}`);
  await using ours = await arrange(DROVER, mode);
  const jobs = await warmUp(ours, seconds);
  const played: Round[] = [];
  for (let round = 0; round < rounds; round++) played.push(await ours.play(jobs));
  return rateRow(`Drover by its SDK, ${mode}, alone`, "tasks/s", played);
}

/** Each of the callers waits for the end of its task before it submits the next. */
async function awaitedRow({ seconds, rounds }: Workload): Promise<Row> {
  progress("Drover alone, each task awaited");
  await using ours = await arrange(DROVER, "singles");
  const play = (jobs: number): Promise<Round> => ours.play(jobs, true);
  const jobs = await warmUp({ play, calls: ours.calls }, seconds);
  const played: Round[] = [];
  for (let round = 0; round < rounds; round++) played.push(await play(jobs));
  return rateRow("Drover by its SDK, submit and wait, alone", "tasks/s", played);
}

/** Without a rest, so that snapshots are made meanwhile. */
async function sustainedRows(mode: Mode, seconds: number): Promise<Row[]> {
  progress(`Drover alone, ${mode}, for ${seconds} s`);
  await using ours = await arrange(DROVER, mode);
  const jobs = await warmUp(ours, seconds);
  const stretchS = Math.min(STRETCH_S, seconds / 4);
  const rates: number[] = [];
  let [ran, at] = [ours.ran(), performance.now()];
  const watch = setInterval(() => {
    const [ranNow, now] = [ours.ran(), performance.now()];
    rates.push(((ranNow - ran) * 1000) / (now - at));
    [ran, at] = [ranNow, now];
  }, stretchS * 1000);
  const bystander = await startBystander(ours.port);
  const round = await ours.play(jobs).finally(() => clearInterval(watch));
  const otherP99Ms = await bystander.stop();
  const what = `Drover, ${mode}, sustained for ${seconds} s, with snapshots`;
  return [
    rateRow(what, "tasks/s", [round]),
    { what: `${what}: the slowest of ${rates.length} stretches`, value: Math.min(...rates), unit: "tasks/s" },
    {
      ...{ what: `p99 of an unrelated request meanwhile, ${mode}`, value: otherP99Ms, unit: "ms" },
      ...{ target: `≤ ${BYSTANDER_MS}`, met: otherP99Ms <= BYSTANDER_MS },
    },
  ];
}

/** Asks for the stats again and again, with a short rest, until it is stopped; answers the 99th percentile. */
async function startBystander(port: number): Promise<{ stop(): Promise<number> }> {
  const line = await openLine(port);
  const { method, path } = ENDPOINTS.stats;
  const request = requestOf(method, path);
  const waits: number[] = [];
  let isOver = false;
  const watching = (async (): Promise<void> => {
    while (!isOver) {
      const askedAt = performance.now();
      const { status, body } = await line.ask(request);
      if (status !== 200) throw new Error(`${path} answered ${status} ${body}`);
      waits.push(performance.now() - askedAt);
      await setTimeout(BYSTANDER_REST_MS);
    }
  })();
  return {
    async stop() {
      isOver = true;
      await watching;
      line.close();
      return waits.sort((left, right) => left - right)[Math.floor(waits.length * 0.99)] ?? Number.NaN;
    },
  };
}

/** In processes that have run for a while, as for all other rows: in new ones a lone task takes up to twice as long. */
async function loneRows(count: number, { seconds }: Workload): Promise<Row[]> {
  progress("a lone submit → start → finish");
  await using ours = await arrange(DROVER, "singles");
  await warmUp(ours, seconds);
  await ours.lone(Math.ceil(count / 4));
  const samples = await ours.lone(count);
  const at = (key: keyof LoneSample, share: number): number =>
    samples.map((sample) => sample[key]).sort((left, right) => left - right)[Math.floor(share * samples.length)] ?? 0;
  const [p50, p99] = [at("endMs", 0.5), at("endMs", 0.99)];
  return [
    { what: "a lone submit → start, p50", value: at("startMs", 0.5), unit: "ms" },
    { what: "a lone submit → start, p99", value: at("startMs", 0.99), unit: "ms" },
    { what: "a lone submit → start → finish, p50", value: p50, unit: "ms", target: "≤ 2", met: p50 <= 2 },
    { what: "a lone submit → start → finish, p99", value: p99, unit: "ms", target: "≤ 10", met: p99 <= 10 },
  ];
}

type Plays = Readonly<Record<string, (options: Options) => Promise<readonly Row[]>>>;

const inBothModes = async (play: (mode: Mode) => Promise<Row[]>): Promise<Row[]> => {
  const rows: Row[] = [];
  for (const mode of MODES) rows.push(...(await play(mode)));
  return rows;
};
const workloadOf = ({ quick, rounds }: Options): Workload =>
  quick ? QUICK : { ...FULL, ...(rounds === undefined ? {} : { rounds }) };

/** By their names; `alone` is left out unless it is asked for. */
const PLAYS: Plays = {
  ...Object.fromEntries(
    PEERS.map((peer) => [
      peer.name,
      (options: Options) => inBothModes((mode) => besidePeer(peer, mode, workloadOf(options))),
    ]),
  ),
  alone: (options) => inBothModes(async (mode) => [await aloneRow(mode, workloadOf(options))]),
  sustained: ({ quick, seconds = quick ? 1 : SUSTAINED_S }) => inBothModes((mode) => sustainedRows(mode, seconds)),
  awaited: async (options) => [await awaitedRow(workloadOf(options))],
  lone: (options) => loneRows(options.quick ? LONE.quick : LONE.full, workloadOf(options)),
  fleet: fleetRows,
};
const USUAL = Object.keys(PLAYS).filter((name) => name !== "alone");

export async function run(options: Options): Promise<Report> {
  const { only = USUAL } = options;
  const unknown = only.find((name) => PLAYS[name] === undefined);
  if (unknown !== undefined) throw new Error(`--only is ${unknown}, and must be of ${Object.keys(PLAYS).join(", ")}`);
  if (only.some((name) => PEERS.some((peer) => peer.name === name))) installPeers();
  const rows: Row[] = [];
  for (const name of only) rows.push(...((await PLAYS[name]?.(options)) ?? []));
  return { name: "wire: no-op tasks from submit to durably completed, in processes of their own", rows };
}
