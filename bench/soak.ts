/**
 * `npm run soak -- --minutes 10`: does the service stay the same size while it works?
 *
 * A real server on a real disk, in a process of its own, under a mixed load that never ends: submits, batches,
 * dependencies, cancels, failures and retries, pull workers that come and go, permits, a schedule, readers of the
 * feed. Results expire after seconds, so that what is kept reaches its level early. Memory is sampled after a forced
 * collection; it is flat if the last quarter of the run is at most a tenth above the second quarter. A bar says how far
 * it is, and one line a minute how it goes; the exit code is 1 if it grew, or if anything was refused that should not
 * have been.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as rest } from "node:timers/promises";
import { parseArgs } from "node:util";
import { type Line, openLine, requestOf } from "./http-load.ts";
import { bar } from "./report.ts";

const SAMPLE_MS = 2000;
const GROWTH_MAX = 1.1;
const WORKERS = 20;
const IN_QUEUE_MAX = 2000;

type Sample = { readonly heapMiB: number; readonly rssMiB: number };
type Answer = Record<string, unknown> & { readonly assignments?: readonly { taskId: string; attempt: number }[] };

async function main(): Promise<number> {
  const { values } = parseArgs({ options: { minutes: { type: "string", default: "10" }, json: { type: "boolean" } } });
  const minutes = Number(values.minutes);
  if (!(minutes > 0 && minutes <= 1440)) {
    console.error(`--minutes is ${values.minutes}, and must be a number above 0 and at most 1440`);
    return 2;
  }
  const served = await serve();
  const samples = await soak(served, minutes * 60_000);
  await served.stop();
  return report(samples, minutes, values.json === true);
}

type Served = { readonly port: number; sample(): Promise<Sample>; stop(): Promise<void> };

async function serve(): Promise<Served> {
  const child: ChildProcess = fork(join(import.meta.dirname, "http-served.ts"), ["soak"], {
    execArgv: ["--expose-gc", "--disable-warning=ExperimentalWarning"],
  });
  child.once("exit", (code) => {
    if (code !== 0 && code !== null) throw new Error(`the server ended with ${code}`);
  });
  const nextMessage = async <Value>(): Promise<Value> => (await once(child, "message"))[0] as Value;
  const { port } = await nextMessage<{ port: number }>();
  return {
    port,
    async sample() {
      const answer = nextMessage<{ heapUsed: number; rss: number }>();
      child.send({ type: "collect" });
      const { heapUsed, rss } = await answer;
      return { heapMiB: heapUsed / 2 ** 20, rssMiB: rss / 2 ** 20 };
    },
    async stop() {
      const ended = once(child, "exit");
      child.send({ type: "stop" });
      await ended;
    },
  };
}

type Load = { readonly port: number; isOver(): boolean; done: number; submitted: number };

async function soak(served: Served, ms: number): Promise<Sample[]> {
  const end = performance.now() + ms;
  const shown = bar("soak", "samples");
  const load: Load = { port: served.port, isOver: () => performance.now() >= end, done: 0, submitted: 0 };
  const samples: Sample[] = [];
  const sampling = (async () => {
    while (!load.isOver()) {
      await rest(SAMPLE_MS);
      const sample = await served.sample();
      samples.push(sample);
      const left = Math.max(0, Math.round((end - performance.now()) / SAMPLE_MS));
      shown.at(samples.length, samples.length + left);
      if (samples.length % Math.round(60_000 / SAMPLE_MS) !== 0) continue;
      const { heapMiB, rssMiB } = sample;
      const size = `heap ${heapMiB.toFixed(1)} MiB, resident ${rssMiB.toFixed(0)} MiB`;
      shown.end();
      console.error(`${Math.round((samples.length * SAMPLE_MS) / 60_000)} min: ${load.done} tasks done, ${size}`);
    }
  })();
  await Promise.all([
    sampling,
    submitter(load),
    canceller(load),
    permitUser(load),
    scheduler(load),
    ...Array.from({ length: WORKERS }, (_, index) => worker(load, index)),
  ]);
  shown.end();
  return samples;
}

/** A connection that the server has ended is opened again; whatever was asked is asked once more. */
type Caller = { line: Line; readonly port: number };

async function ask(caller: Caller, method: string, path: string, body?: unknown): Promise<Answer & { status: number }> {
  const request = requestOf(method, path, body);
  const { status, body: text } = await caller.line.ask(request).catch(async () => {
    caller.line = await openLine(caller.port);
    return caller.line.ask(request);
  });
  return { ...(text === "" ? {} : (JSON.parse(text) as Answer)), status };
}

const callerOf = async ({ port }: Load): Promise<Caller> => ({ line: await openLine(port), port });

/** Batches with a parent and its children; it waits while enough is queued. */
async function submitter(load: Load): Promise<void> {
  const caller = await callerOf(load);
  for (let round = 0; !load.isOver(); round++) {
    if (load.submitted - load.done > IN_QUEUE_MAX) {
      await rest(20);
      continue;
    }
    const root = `r${process.pid}-${round}`;
    const children = Array.from({ length: 18 }, (_, index) => ({ action: `act-${index}`, needs: [root] }));
    const failing = { action: "fail", maxAttempts: 2, params: { why: "on purpose" } };
    const tasks = [{ id: root, action: "root", params: { text: "x".repeat(200) } }, ...children, failing];
    const { status } = await ask(caller, "POST", "/tasks/batch", {
      agentId: `agent-${round % 50}`,
      project: `project-${round % 7}`,
      tasks,
    });
    if (status === 202) load.submitted += tasks.length;
    else await rest(100);
  }
  caller.line.close();
}

async function worker(load: Load, index: number): Promise<void> {
  let life = 0;
  while (!load.isOver()) {
    const caller = await callerOf(load);
    const id = `worker-${index}`;
    const { session } = await ask(caller, "POST", "/workers", { id, slots: 4 });
    life++;
    let results: object[] = [];
    // Some lives end without a word, some in good order.
    for (let n = 1; n < 2000 + 100 * (index + life) && !load.isOver(); n++) {
      const report = results.length > 0 ? { results } : { waitMs: 200 };
      const { assignments = [], status } = await ask(caller, "POST", `/workers/${id}/sync`, { session, n, ...report });
      if (status !== 200) break;
      load.done += results.length;
      results = assignments.map(({ taskId, attempt, ...more }) => ({
        taskId,
        attempt,
        ...outcomeOf(more as { task?: { action?: string } }),
      }));
    }
    if (life % 2 === 0) await ask(caller, "DELETE", `/workers/${id}`);
    caller.line.close();
  }
}

const outcomeOf = ({ task }: { task?: { action?: string } }): object =>
  task?.action === "fail"
    ? { outcome: "failed", error: "on purpose" }
    : { outcome: "done", result: { text: "y".repeat(100) }, usage: { inputTokens: 10, outputTokens: 5 } };

async function canceller(load: Load): Promise<void> {
  const caller = await callerOf(load);
  while (!load.isOver()) {
    const { tasks = [] } = (await ask(caller, "GET", "/tasks?state=queued&limit=5")) as {
      tasks?: { taskId: string }[];
    };
    for (const { taskId } of tasks) {
      const { status } = await ask(caller, "POST", `/tasks/${encodeURIComponent(taskId)}/cancel`, {});
      if (status === 200) load.done++;
      await ask(caller, "GET", `/tasks/${encodeURIComponent(taskId)}/why`);
    }
    await ask(caller, "GET", "/scheduler/stats");
    await rest(250);
  }
  caller.line.close();
}

async function permitUser(load: Load): Promise<void> {
  const caller = await callerOf(load);
  while (!load.isOver()) {
    const { permitId, status } = await ask(caller, "POST", "/permits", {
      gate: "soak/default",
      waitMs: 1000,
      tokens: 10,
    });
    if (status < 300 && typeof permitId === "string")
      await ask(caller, "POST", `/permits/${permitId}/settle`, { usage: { inputTokens: 7 } });
    await rest(50);
  }
  caller.line.close();
}

async function scheduler(load: Load): Promise<void> {
  const caller = await callerOf(load);
  const body = { cron: "* * * * * *", overlap: "queue", task: { agentId: "clock", action: "tick" } };
  await ask(caller, "PUT", "/schedules/soak", body);
  while (!load.isOver()) await rest(1000);
  await ask(caller, "DELETE", "/schedules/soak");
  caller.line.close();
}

const medianOf = (numbers: readonly number[]): number =>
  [...numbers].sort((left, right) => left - right)[numbers.length >> 1] ?? 0;

function report(samples: readonly Sample[], minutes: number, json: boolean): number {
  const quarter = Math.floor(samples.length / 4);
  const parts = { early: samples.slice(quarter, 2 * quarter), late: samples.slice(3 * quarter) };
  const early = medianOf(parts.early.map(({ heapMiB }) => heapMiB));
  const late = medianOf(parts.late.map(({ heapMiB }) => heapMiB));
  const growth = late / early;
  const isFlat = growth <= GROWTH_MAX;
  const resident = medianOf(parts.late.map(({ rssMiB }) => rssMiB));
  if (json) console.log(JSON.stringify({ minutes, samples: samples.length, early, late, growth, resident, isFlat }));
  else {
    console.log(
      `heap after collection: ${early.toFixed(1)} MiB in the second quarter, ${late.toFixed(1)} MiB in the last`,
    );
    console.log(`growth ${growth.toFixed(3)} × (at most ${GROWTH_MAX}): ${isFlat ? "flat" : "IT GROWS"}`);
    console.log(`resident ${resident.toFixed(0)} MiB; ${samples.length} samples in ${minutes} minutes`);
  }
  return isFlat ? 0 : 1;
}

process.exitCode = await main();
