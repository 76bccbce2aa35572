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
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { type Crowd, gatherCrowd, type Line, openLine, requestOf } from "./http-load.ts";
import { median } from "./peers/workload.ts";
import { bar, type Options, progress, type Report, type Row } from "./report.ts";

const CONNECTIONS = 256;
/** So that both are compiled: what is measured is a server that has been up for some seconds. */
const WARM_UP_SLICES = 8;
const SUBMIT = requestOf("POST", "/tasks", { agentId: "bench", action: "noop", params: { index: 1 } });

type Served = { readonly port: number; readonly pid: number; usage(): Promise<Usage>; stop(): Promise<void> };
/** CPU time of all threads and of the main one, and memory. */
type Usage = { readonly cpuMs: number; readonly mainMs: number; readonly rss: number };

export async function serve(kind: Kind | "wire"): Promise<Served> {
  const child: ChildProcess = fork(join(import.meta.dirname, "http-served.ts"), [kind], {
    execArgv: ["--disable-warning=ExperimentalWarning"],
  });
  const nextMessage = async <Value>(): Promise<Value> => (await once(child, "message"))[0] as Value;
  const { port } = await nextMessage<{ port: number }>();
  return {
    port,
    pid: child.pid as number,
    usage() {
      const answer = nextMessage<Usage>();
      child.send({ type: "usage" });
      return answer;
    },
    async stop() {
      const ended = once(child, "exit");
      child.send({ type: "stop" });
      await ended;
    },
  };
}

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

type Sync = { readonly assignments: readonly { readonly taskId: string; readonly attempt: number }[] };

function parse<Value>({ status, body }: { status: number; body: string }): Value {
  if (status >= 300) throw new Error(`${status} ${body}`);
  return JSON.parse(body) as Value;
}

async function joinFleet(line: Line, slots: number): Promise<(report: object) => Promise<Sync>> {
  const body = { slots };
  const { workerId, session } = parse<{ workerId: string; session: string }>(
    await line.ask(requestOf("POST", "/workers", body)),
  );
  let n = 0;
  return async (report) =>
    parse<Sync>(await line.ask(requestOf("POST", `/workers/${workerId}/sync`, { session, n: ++n, ...report })));
}

/** One idle worker that waits; how long from sending a submit until the worker holds the task. */
async function startRows(options: Options): Promise<Row[]> {
  progress("submit → start, idle");
  const served = await serve("drover");
  const [worker, caller] = [await openLine(served.port), await openLine(served.port)];
  const sync = await joinFleet(worker, 1);
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

/** Each worker has one slot and one connection; it says what it has done and waits for what is next in one call. */
export async function fleetRows(options: Options): Promise<Row[]> {
  const workers = options.quick ? 100 : 1000;
  const count = options.quick ? 5000 : 50_000;
  progress(`${workers} pull workers, ${count} tasks`);
  const served = await serve("drover");
  const lines = await Promise.all(Array.from({ length: workers + 4 }, () => openLine(served.port)));
  const [callers, joining] = [lines.slice(0, 4), lines.slice(4)];
  const syncs = await Promise.all(joining.map((line) => joinFleet(line, 1)));
  let ended = 0;
  const isOver = (): boolean => ended >= count;
  const startedAt = performance.now();
  const work = syncs.map(async (sync) => {
    let results: { taskId: string; attempt: number; outcome: string }[] = [];
    while (!isOver()) {
      const { assignments } = await sync({ brief: true, waitMs: 500, ...(results.length > 0 ? { results } : {}) });
      ended += results.length;
      results = assignments.map(({ taskId, attempt }) => ({ taskId, attempt, outcome: "done" }));
    }
  });
  const batch = requestOf("POST", "/tasks/batch", {
    agentId: "bench",
    tasks: Array.from({ length: 100 }, () => ({ action: "noop" })),
  });
  let left = count / 100;
  await Promise.all(
    callers.map(async (line) => {
      while (left-- > 0) parse(await line.ask(batch));
    }),
  );
  await Promise.all(work);
  const seconds = (performance.now() - startedAt) / 1000;
  const { rss } = await served.usage();
  for (const line of lines) line.close();
  await served.stop();
  return [
    {
      what: `${workers} pull workers, ${count} tasks: submit → assign → finish`,
      value: count / seconds,
      unit: "tasks/s",
    },
    { what: "memory of the server at its end", value: rss / 2 ** 20, unit: "MiB" },
  ];
}

export async function run(options: Options): Promise<Report> {
  return {
    name: "http",
    rows: [...(await submitRows(options)), ...(await startRows(options)), ...(await fleetRows(options))],
  };
}
