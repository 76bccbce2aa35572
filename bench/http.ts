/**
 * The service over HTTP: what a submit costs next to a bare server, how soon an idle fleet starts a task, and what a
 * thousand connected pull workers get done.
 *
 * Servers run in a process of their own, the load in this one; on two cores each has one. The echo parses JSON and
 * sends JSON and does nothing else: no validation, no decision, no fsync.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { flood, type Line, openLine, requestOf } from "./http-load.ts";
import { type Options, progress, type Report, type Row } from "./report.ts";

const CONNECTIONS = 256;
const SUBMIT = requestOf("POST", "/tasks", { agentId: "bench", action: "noop", params: { index: 1 } });

type Served = { readonly port: number; usage(): Promise<Usage>; stop(): Promise<void> };
type Usage = { readonly cpuMs: number; readonly rss: number };

export async function serve(kind: "echo" | "drover"): Promise<Served> {
  const child: ChildProcess = fork(join(import.meta.dirname, "http-served.ts"), [kind], {
    execArgv: ["--disable-warning=ExperimentalWarning"],
  });
  const told = async <Value>(): Promise<Value> => (await once(child, "message"))[0] as Value;
  const { port } = await told<{ port: number }>();
  return {
    port,
    usage() {
      const answer = told<Usage>();
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

type Rate = { readonly perSecond: number; readonly cpuMicros: number };

async function measureSubmits(served: Served, count: number): Promise<Rate> {
  await flood(served.port, SUBMIT, { connections: CONNECTIONS, count: Math.ceil(count / 5) });
  const before = await served.usage();
  const perSecond = await flood(served.port, SUBMIT, { connections: CONNECTIONS, count });
  const after = await served.usage();
  return { perSecond, cpuMicros: ((after.cpuMs - before.cpuMs) * 1000) / count };
}

/** Turn by turn, so that both meet the same machine; the best of each. */
async function submitRows(options: Options): Promise<Row[]> {
  const count = options.quick ? 5000 : 40_000;
  const best = { echo: 0, drover: 0 };
  const cpu = { echo: Number.POSITIVE_INFINITY, drover: Number.POSITIVE_INFINITY };
  for (let round = 1; round <= 3; round++)
    for (const kind of ["echo", "drover"] as const) {
      progress(`submits, round ${round}: ${kind}`);
      const served = await serve(kind);
      const { perSecond, cpuMicros } = await measureSubmits(served, count);
      best[kind] = Math.max(best[kind], perSecond);
      cpu[kind] = Math.min(cpu[kind], cpuMicros);
      await served.stop();
    }
  const ratio = (best.drover / best.echo) * 100;
  const what = `${CONNECTIONS} connections`;
  return [
    { what: `bare node:http JSON echo, ${what}`, value: best.echo, unit: "requests/s", note: cpuNote(cpu.echo) },
    {
      what: `Drover: single submits, durable, ${what}`,
      value: best.drover,
      unit: "tasks/s",
      note: cpuNote(cpu.drover),
    },
    { what: "Drover ÷ echo", value: ratio, unit: "%", target: "≥ 60", met: ratio >= 60 },
  ];
}

const cpuNote = (micros: number): string => `${micros.toFixed(1)} µs of CPU each, all threads`;

type Sync = { readonly assignments: readonly { readonly taskId: string; readonly attempt: number }[] };

function parse<Value>({ status, body }: { status: number; body: string }): Value {
  if (status >= 300) throw new Error(`${status} ${body}`);
  return JSON.parse(body) as Value;
}

async function joinFleet(line: Line, slots: number): Promise<(told: object) => Promise<Sync>> {
  const body = { slots };
  const { workerId, session } = parse<{ workerId: string; session: string }>(
    await line.ask(requestOf("POST", "/workers", body)),
  );
  let n = 0;
  return async (told) =>
    parse<Sync>(await line.ask(requestOf("POST", `/workers/${workerId}/sync`, { session, n: ++n, ...told })));
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

/** Each worker has one slot and one connection; it says what it has done and hears what is next in one call. */
async function fleetRows(options: Options): Promise<Row[]> {
  const workers = options.quick ? 100 : 1000;
  const count = options.quick ? 5000 : 50_000;
  progress(`${workers} pull workers, ${count} tasks`);
  const served = await serve("drover");
  const lines = await Promise.all(Array.from({ length: workers + 4 }, () => openLine(served.port)));
  const [callers, crew] = [lines.slice(0, 4), lines.slice(4)];
  const syncs = await Promise.all(crew.map((line) => joinFleet(line, 1)));
  let ended = 0;
  const isOver = (): boolean => ended >= count;
  const startedAt = performance.now();
  const work = syncs.map(async (sync) => {
    let results: { taskId: string; attempt: number; outcome: string }[] = [];
    while (!isOver()) {
      const { assignments } = await sync(results.length > 0 ? { results } : { waitMs: 500 });
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
