/**
 * What it costs to be looked at: twenty viewers beside a server under full load, in turn with nobody; what one
 * `drover top` costs the machine it runs on, with tasks moving as fast as they can; and how soon the page is there.
 *
 * Half of the viewers look as `drover top` does on a wide screen: once a second what runs and what is next, every three
 * seconds projects, gates and workers; under load it follows no events: each look says that more has happened. The
 * other half are pages that show the Overview: they follow the pulse, and make its calls. The server's own CPU time for
 * a task is what is judged: on a machine that the load fills, the clock says more about who else wants it.
 */
import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as elapse } from "node:timers/promises";
import { firstPaintRows } from "./first-paint.ts";
import { bar, type Options, progress, type Report, type Row } from "./report.ts";
import { arrange, cpuMicrosOf, DROVER, type Round, warmUp } from "./wire.ts";

const VIEWERS = 20;
/** A round is as long as what a page asks for most seldom. */
const FULL = { seconds: 5, rounds: 7 };
const QUICK = { seconds: 1, rounds: 1 };
/** Until everybody has had the first look. */
const SETTLED_MS = 2000;
const TOP_S = { full: 10, quick: 4 };
const VISITS = { full: 9, quick: 3 };
const MAIN = join(import.meta.dirname, "../src/cli/main.ts");

const median = (values: readonly number[]): number =>
  values.toSorted((left, right) => left - right)[values.length >> 1] ?? 0;

type Viewers = AsyncDisposable & { tell(order: "begin" | "rest"): Promise<number> };

async function startViewers(url: string): Promise<Viewers> {
  const child: ChildProcess = fork(join(import.meta.dirname, "viewers-part.ts"), [url, String(VIEWERS)]);
  await once(child, "message");
  return {
    async tell(order) {
      const said = once(child, "message");
      child.send(order);
      return ((await said)[0] as { looks: number }).looks;
    },
    async [Symbol.asyncDispose]() {
      const ended = once(child, "exit");
      child.kill();
      await ended;
    },
  };
}

type Pair = { readonly seen: Round; readonly alone: Round; readonly looks: number };

async function viewerRows({ seconds, rounds }: typeof FULL): Promise<Row[]> {
  progress(`${VIEWERS} viewers, in turn with none`);
  await using ours = await arrange(DROVER, "singles");
  await using viewers = await startViewers(`http://127.0.0.1:${ours.port}`);
  const jobs = await warmUp(ours, seconds);
  const pairs: Pair[] = [];
  const played = bar("in turn", "rounds");
  for (let round = 0; round < rounds; round++) {
    const alone = round % 2 === 0 ? await ours.play(jobs) : null;
    await viewers.tell("begin");
    await elapse(SETTLED_MS);
    const seen = await ours.play(jobs);
    const looks = await viewers.tell("rest");
    pairs.push({ alone: alone ?? (await ours.play(jobs)), seen, looks });
    played.at(round + 1, rounds);
  }
  played.end();
  const cost = (of: (round: Round) => number): number =>
    median(pairs.map(({ seen, alone }) => (of(seen) / of(alone) - 1) * 100));
  const server = cost(({ micros }) => micros.server);
  return [
    {
      what: "Drover, singles, nobody looks",
      value: median(pairs.map(({ alone }) => alone.perSecond)),
      unit: "tasks/s",
    },
    {
      what: `the same, ${VIEWERS} viewers, half of them pages`,
      value: median(pairs.map(({ seen }) => seen.perSecond)),
      unit: "tasks/s",
    },
    { what: "looks in a round", value: median(pairs.map(({ looks }) => looks)), unit: "" },
    { what: "more of the server's CPU time for a task", value: server, unit: "%", target: "< 2", met: server < 2 },
    { what: "more time by the clock", value: cost(({ perSecond }) => 1 / perSecond), unit: "%" },
  ];
}

/** In a terminal of its own, which `script` gives it. */
async function topRow(seconds: number): Promise<Row> {
  progress("drover top, while tasks move");
  await using ours = await arrange(DROVER, "singles");
  const jobs = await warmUp(ours, 1);
  const stop = new AbortController();
  const moving = (async () => {
    while (!stop.signal.aborted) await ours.play(jobs);
  })();
  const words = [process.execPath, MAIN, "top", "--url", `http://127.0.0.1:${ours.port}`];
  const top = spawn("script", ["-qfec", `stty rows 50 cols 160; exec ${words.join(" ")}`, "/dev/null"], {
    stdio: ["pipe", "ignore", "inherit"],
  });
  try {
    await elapse(3000);
    const before = cpuMicrosOf(top.pid as number);
    const [ran, at] = [ours.ran(), performance.now()];
    await elapse(seconds * 1000);
    const spent = performance.now() - at;
    const share = (cpuMicrosOf(top.pid as number) - before) / (spent * 10);
    const note = `${Math.round(((ours.ran() - ran) * 1000) / spent)} tasks/s move`;
    return { what: "drover top, 160×50", value: share, unit: "% of a core", target: "≤ 5", met: share <= 5, note };
  } finally {
    top.stdin?.write("q");
    const ended = once(top, "exit");
    stop.abort();
    await ended;
    await moving;
  }
}

export async function run({ quick }: Options): Promise<Report> {
  const size = quick ? "quick" : "full";
  // The page first: it needs a machine that does nothing else.
  const painted = await firstPaintRows(VISITS[size]);
  const rows = await viewerRows(quick ? QUICK : FULL);
  return { name: "viewers", rows: [...painted, ...rows, await topRow(TOP_S[size])] };
}
