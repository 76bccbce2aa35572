/**
 * The service over HTTP: what a submit costs next to a bare server, how soon an idle fleet starts a task, and what a
 * thousand connected pull workers get done.
 *
 * Servers run in a process of their own, the load in this one. The echo parses JSON and sends JSON and does nothing
 * else: no validation, no decision, no fsync. Both get the same bytes over as many connections, so many that neither
 * waits for the load: Drover answers when a task is on disk, and with few callers it would idle until the disk is done.
 *
 * A machine that others use too is not the same from one second to the next. So both servers are up at once and are
 * asked in turn, in slices of a fraction of a second, while the other one idles; the ratio is the median of what
 * neighbouring slices give, and the rates are medians as well, not the best of many. By CPU time the two are compared
 * too: that hangs less on who else runs, but leaves out the thread that writes the log.
 */
import { fleetRows, joinFleet } from "./fleet.ts";
import { type Crowd, gatherCrowd, openLine, requestOf } from "./http-load.ts";
import { median } from "./peers/workload.ts";
import { bar, type Options, progress, type Report, type Row } from "./report.ts";
import { type Served, serve } from "./serve.ts";

const CONNECTIONS = 256;
/** So that both are compiled: what is measured is a server that has been up for some seconds. */
const WARM_UP_SLICES = 8;
const SUBMIT = requestOf("POST", "/tasks", { agentId: "bench", action: "noop", params: { index: 1 } });

type Kind = "echo" | "drover";
/** One slice of the load: its rate, and the CPU time that a request took the server, in its main thread and in all. */
type Slice = { readonly perSecond: number; readonly mainMicros: number; readonly allMicros: number };

async function measureSlice(served: Served, crowd: Crowd, count: number): Promise<Slice> {
  const before = await served.usage();
  const perSecond = await crowd.ask(SUBMIT, count);
  const after = await served.usage();
  const each = (ms: number): number => (ms * 1000) / count;
  return { perSecond, mainMicros: each(after.mainMs - before.mainMs), allMicros: each(after.cpuMs - before.cpuMs) };
}

/** Both servers are up, and are asked in turn: two slices that are compared are a fraction of a second apart. */
async function measureSubmits(options: Options): Promise<Record<Kind, Slice[]>> {
  const [slices, count] = options.quick ? [4, 1250] : [15, 5000];
  const kinds: readonly Kind[] = ["echo", "drover"];
  const all = await Promise.all(
    kinds.map(async (kind) => {
      const served = await serve(kind);
      return { kind, served, crowd: await gatherCrowd(served.port, CONNECTIONS) };
    }),
  );
  const measured: Record<Kind, Slice[]> = { echo: [], drover: [] };
  for (const { crowd } of all) await crowd.ask(SUBMIT, count * WARM_UP_SLICES);
  progress("submits, in turn");
  const submits = bar("submits", "slices");
  for (let slice = 1; slice <= slices; slice++) {
    for (const { kind, served, crowd } of all) measured[kind].push(await measureSlice(served, crowd, count));
    submits.at(slice, slices);
  }
  submits.end();
  for (const { served, crowd } of all) {
    crowd.leave();
    await served.stop();
  }
  return measured;
}

async function submitRows(options: Options): Promise<Row[]> {
  const { echo, drover } = await measureSubmits(options);
  const pairs = drover.map((slice, index) => [slice, echo[index] as Slice] as const);
  const ratio = median(pairs.map(([own, bare]) => (own.perSecond * 100) / bare.perSecond));
  const byCpu = median(pairs.map(([own, bare]) => (bare.mainMicros * 100) / own.mainMicros));
  const row = (what: string, slices: readonly Slice[], unit: string): Row => ({
    what: `${what}, ${CONNECTIONS} connections`,
    value: median(slices.map(({ perSecond }) => perSecond)),
    unit,
    note: cpuNote(slices),
  });
  return [
    row("bare node:http JSON echo", echo, "requests/s"),
    row("Drover: single submits, durable", drover, "tasks/s"),
    { what: "Drover ÷ echo", value: ratio, unit: "%", target: "≥ 60", met: ratio >= 60 },
    { what: "Drover ÷ echo, by CPU time of the main thread", value: byCpu, unit: "%" },
  ];
}

function cpuNote(slices: readonly Slice[]): string {
  const main = median(slices.map(({ mainMicros }) => mainMicros));
  const all = median(slices.map(({ allMicros }) => allMicros));
  return `${main.toFixed(1)} µs of CPU each in the main thread, ${all.toFixed(1)} in all`;
}

/** One idle worker that waits; how long from sending a submit until the worker holds the task. */
async function startRows(options: Options): Promise<Row[]> {
  progress("submit → start, idle");
  const served = await serve("drover");
  const [worker, caller] = [await openLine(served.port), await openLine(served.port)];
  const { sync } = await joinFleet(worker);
  const samples: number[] = [];
  let results: object[] = [];
  for (let count = 0; count < (options.quick ? 100 : 1000); count++) {
    if (results.length > 0) await sync({ results });
    const poll = sync({ waitMs: 30_000 });
    const startedAt = performance.now();
    const submitted = caller.ask(SUBMIT);
    const { assignments } = await poll;
    samples.push(performance.now() - startedAt);
    await submitted;
    results = assignments.map(({ taskId, attempt }) => ({ taskId, attempt, outcome: "done" }));
  }
  worker.close();
  caller.close();
  await served.stop();
  samples.sort((left, right) => left - right);
  const at = (share: number): number => samples[Math.floor(share * samples.length)] ?? 0;
  return [
    { what: "submit → start, idle, p50", value: at(0.5), unit: "ms", target: "≤ 5", met: at(0.5) <= 5 },
    { what: "submit → start, idle, p99", value: at(0.99), unit: "ms", target: "≤ 20", met: at(0.99) <= 20 },
  ];
}

export async function run(options: Options): Promise<Report> {
  return {
    name: "http",
    rows: [...(await submitRows(options)), ...(await startRows(options)), ...(await fleetRows(options))],
  };
}
