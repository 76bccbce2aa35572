/**
 * A thousand pull workers on one server: what they get done, and what they cost while they wait.
 *
 * A worker has one slot, one connection, and speaks the wire as those of the SDK do: its sync is brief, says what has
 * ended, and waits for what is next. All of them live in this process, which has one of the two cores: what they cost
 * is told beside the rate. A round is over when the last of its tasks has ended on disk. As in all of `bench/wire.ts`
 * the processes have run for a while before anything counts, and what is told is the median over the rounds.
 *
 * Then nothing is submitted, and all of them wait. Each renews its lease every few seconds; what the server takes for
 * that, and for whatever else stirs it, is the cost of a fleet that has nothing to do.
 */
import { setTimeout as elapse } from "node:timers/promises";
import { type Answer, type Line, openLine, requestOf } from "./http-load.ts";
import { median, until } from "./peers/workload.ts";
import { bar, type Options, progress, type Row, showNumber } from "./report.ts";
import { type Served, serve } from "./serve.ts";

const FULL = { workers: 1000, tasks: 20_000, warmUp: 2, rounds: 5, waitS: 20 };
const QUICK = { workers: 100, tasks: 3000, warmUp: 1, rounds: 1, waitS: 2 };
type Size = typeof FULL;

const CALLERS = 4;
const PER_CALL = 100;
/** As long as a worker of the SDK lets the server hold a sync while it has nothing to do: this part of its lease. */
const POLL_PART = 4;
const PER_SECOND_MIN = 10_000;

type Joined = { readonly workerId: string; readonly session: string; readonly leaseMs: number };
type Assigned = { readonly assignments: readonly { readonly taskId: string; readonly attempt: number }[] };

export function parse<Value>({ status, body }: Answer): Value {
  if (status >= 300) throw new Error(`${status} ${body}`);
  return JSON.parse(body) as Value;
}

/** One more worker; what it says is `report`, beside its session and the number of the sync. */
export async function joinFleet(line: Line): Promise<{
  readonly leaseMs: number;
  sync(report: object): Promise<Assigned>;
}> {
  const { workerId, session, leaseMs } = parse<Joined>(await line.ask(requestOf("POST", "/workers", { slots: 1 })));
  const path = `/workers/${workerId}/sync`;
  let n = 0;
  return {
    leaseMs,
    sync: async (report) => parse<Assigned>(await line.ask(requestOf("POST", path, { session, n: ++n, ...report }))),
  };
}

/** The workers, and whoever submits to them. */
type Fleet = { play(tasks: number): Promise<void>; leave(): void };

async function gatherFleet(port: number, workers: number): Promise<Fleet> {
  const lines = await Promise.all(Array.from({ length: workers + CALLERS }, () => openLine(port)));
  const [callers, joining] = [lines.slice(0, CALLERS), lines.slice(CALLERS)];
  let ran = 0;
  let isOver = false;
  async function work(line: Line): Promise<void> {
    const { leaseMs, sync } = await joinFleet(line);
    const poll = { want: 1, waitMs: leaseMs / POLL_PART, brief: true };
    const renewing = { ...poll, running: [] };
    let report: object = renewing;
    while (!isOver) {
      const { assignments } = await sync(report);
      ran += assignments.length;
      const results = assignments.map(({ taskId, attempt }) => ({ taskId, attempt, outcome: "done" }));
      report = results.length === 0 ? renewing : { ...poll, results };
    }
  }
  const working = Promise.all(joining.map(work));
  working.catch((error: unknown) => {
    if (!isOver) throw error;
  });
  const batch = requestOf("POST", "/tasks/batch", {
    agentId: "bench",
    tasks: Array.from({ length: PER_CALL }, () => ({ action: "noop" })),
  });
  const stats = requestOf("GET", "/scheduler/stats");
  async function isDone(): Promise<boolean> {
    type Stats = { readonly queue: { readonly totalQueued: number; readonly totalInflight: number } };
    const { queue } = parse<Stats>(await (callers[0] as Line).ask(stats));
    return queue.totalQueued === 0 && queue.totalInflight === 0;
  }
  return {
    async play(tasks) {
      const ranBefore = ran;
      let left = tasks / PER_CALL;
      await Promise.all(
        callers.map(async (line) => {
          while (left-- > 0) parse(await line.ask(batch));
        }),
      );
      await until(() => ran - ranBefore >= tasks);
      await until(isDone);
      if (ran - ranBefore !== tasks) throw new Error(`${ran - ranBefore} tasks ran where ${tasks} were submitted`);
    },
    leave() {
      isOver = true;
      for (const line of lines) line.close();
    },
  };
}

type Round = { readonly perSecond: number; readonly server: number; readonly main: number; readonly load: number };

async function measureRound({ usage }: Served, { play }: Fleet, tasks: number): Promise<Round> {
  const [before, loadBefore, startedAt] = [await usage(), process.cpuUsage(), performance.now()];
  await play(tasks);
  const seconds = (performance.now() - startedAt) / 1000;
  const [after, load] = [await usage(), process.cpuUsage(loadBefore)];
  return {
    perSecond: tasks / seconds,
    server: ((after.cpuMs - before.cpuMs) * 1000) / tasks,
    main: ((after.mainMs - before.mainMs) * 1000) / tasks,
    load: (load.user + load.system) / tasks,
  };
}

async function measureIdle({ usage }: Served, seconds: number): Promise<number> {
  // What the last round has left to be collected and written is not the fleet's.
  await elapse(seconds * 100);
  const [before, startedAt] = [await usage(), performance.now()];
  await elapse(seconds * 1000);
  return ((await usage()).cpuMs - before.cpuMs) / (performance.now() - startedAt);
}

export async function fleetRows({ quick }: Options): Promise<Row[]> {
  const { workers, tasks, warmUp, rounds, waitS }: Size = quick ? QUICK : FULL;
  progress(`${workers} pull workers, ${rounds} × ${tasks} tasks`);
  const served = await serve("drover");
  const fleet = await gatherFleet(served.port, workers);
  const played: Round[] = [];
  const shown = bar("fleet", "rounds");
  for (let round = 0; round < warmUp; round++) await fleet.play(tasks);
  for (let round = 1; round <= rounds; round++) {
    played.push(await measureRound(served, fleet, tasks));
    shown.at(round, rounds);
  }
  shown.end();
  const { rss } = await served.usage();
  const idle = (await measureIdle(served, waitS)) * 100;
  fleet.leave();
  await served.stop();
  const middle = (of: keyof Round): number => median(played.map((round) => round[of]));
  const perSecond = middle("perSecond");
  const [server, main, load] = [middle("server"), middle("main"), middle("load")].map((us) => us.toFixed(1));
  return [
    {
      what: `${workers} pull workers: submit → assign → finish`,
      value: perSecond,
      unit: "tasks/s",
      target: `≥ ${showNumber(PER_SECOND_MIN)}`,
      met: perSecond >= PER_SECOND_MIN,
      note: `${rounds} × ${tasks} tasks, CPU µs each: server ${server} (main thread ${main}), workers ${load}`,
    },
    {
      what: `${workers} pull workers that wait: CPU time of the server`,
      value: idle,
      unit: "% of a core",
      note: `over ${waitS} s`,
    },
    { what: "memory of the server at its end", value: rss / 2 ** 20, unit: "MiB" },
  ];
}
