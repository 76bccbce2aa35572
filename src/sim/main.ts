/**
 * `npm run simulate`: run the simulator from the command line. With `cells` first it plays many cells (cells/).
 *
 * The seed is printed first, so that whatever happens can be repeated. A run that breaks a rule prints the rule, the
 * seed and a history shrunk to what is needed, and ends with exit code 1; a bad flag says what is right, with 2.
 */
import { parseArgs, styleText } from "node:util";
import { createProgress, type Progress } from "../std/index.ts";
import { cellsUsage, runCells } from "./cells/main.ts";
import { FAULTS, type Fault, linesOf } from "./history.ts";
import { everyCrash, type Figures, type RunReport, shrink, simulate } from "./simulate.ts";

/** npm says under which name it started a script; one who came by the command line is shown that. */
const CALLED = process.env.npm_lifecycle_event === "simulate" ? "npm run simulate --" : "drover simulate";

const USAGE = `Simulates fleets with everything that can go wrong, and audits every event.

  ${CALLED} [--seed N] [--steps M] [--runs K] [--faults LIST] [--every-crash]
  ${CALLED} cells         many cells, by figures; cells --help has its flags

  --seed N        the first seed, from 0 (default: taken from the clock)
  --steps M       how many things happen in a run, 1 to 100000 (default 200)
  --runs K        how many runs, seeds N, N+1, …; 1 to 1000000 (default 10)
  --faults LIST   all (default), none, or some of: ${FAULTS.join(", ")}
  --every-crash   play each history once for every append, with a crash at that append
  --help          this text

Examples:
  ${CALLED} --runs 100
  ${CALLED} --seed 42 --steps 500 --faults crash,unknown
  ${CALLED} --seed 7 --steps 40 --runs 1 --every-crash
`;

class BadFlag extends Error {}

type Options = {
  readonly seed: number;
  readonly steps: number;
  readonly runs: number;
  readonly faults: ReadonlySet<Fault>;
  readonly everyCrash: boolean;
};

process.exitCode = await main(process.argv.slice(2));

async function main(given: readonly string[]): Promise<number> {
  const [first, ...rest] = given;
  const usage = first === "cells" ? cellsUsage(CALLED) : USAGE;
  try {
    if (first === "cells" && rest.includes("--help")) console.log(usage);
    if (first === "cells") return rest.includes("--help") ? 0 : runCells(rest, readCount);
    const options = readFlags(given);
    if (options === null) {
      console.log(USAGE);
      return 0;
    }
    return await runAll(options);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (!(error instanceof BadFlag) && !code?.startsWith("ERR_PARSE_ARGS")) throw error;
    console.error(`error: ${message}\n\n${usage}`);
    return 2;
  }
}

function readFlags(given: readonly string[]): Options | null {
  const text = { type: "string" } as const;
  const flag = { type: "boolean" } as const;
  const options = { seed: text, steps: text, runs: text, faults: text, "every-crash": flag, help: flag };
  const { values } = parseArgs({ args: [...given], options });
  if (values.help) return null;
  return {
    seed: readCount("--seed", values.seed ?? String(Date.now() % 1_000_000_000), 0, Number.MAX_SAFE_INTEGER - 1e9),
    steps: readCount("--steps", values.steps ?? "200", 1, 100_000),
    runs: readCount("--runs", values.runs ?? "10", 1, 1_000_000),
    faults: readFaults(values.faults ?? "all"),
    everyCrash: values["every-crash"] ?? false,
  };
}

function readCount(flag: string, text: string, low: number, high: number): number {
  const count = Number(text);
  if (/^\d+$/.test(text) && count >= low && count <= high) return count;
  throw new BadFlag(`${flag} is a whole number from ${low} to ${high}, not "${text}".`);
}

function readFaults(text: string): ReadonlySet<Fault> {
  if (text === "all") return new Set(FAULTS);
  if (text === "none") return new Set();
  const names = text.split(",").map((name) => name.trim());
  const stranger = names.find((name) => !FAULTS.includes(name as Fault));
  if (stranger === undefined) return new Set(names as Fault[]);
  throw new BadFlag(`--faults is all, none, or some of ${FAULTS.join(", ")} joined by commas, not "${stranger}".`);
}

async function runAll({ seed, steps, runs, faults, everyCrash: atEachAppend }: Options): Promise<number> {
  console.log(`seed ${seed}, ${runs} ${runs === 1 ? "run" : "runs"} of ${steps} steps`);
  console.log(`faults: ${faults.size === 0 ? "none" : [...faults].join(", ")}`);
  const began = performance.now();
  const total: Record<string, number> = {};
  let played = 0;
  const bar = liveBar();
  for (let run = 0; run < runs; run++) {
    const reports = atEachAppend
      ? everyCrash({ seed: seed + run, steps })
      : [await simulate({ seed: seed + run, steps, faults })];
    for await (const report of reports) {
      played++;
      if (report.complaints.length > 0) {
        bar?.end();
        return await explain(report, { steps, atEachAppend });
      }
      for (const [name, count] of Object.entries(report.figures)) total[name] = (total[name] ?? 0) + count;
    }
    bar?.at(run + 1, runs);
    const isTold = bar === null ? (run + 1) % 10 === 0 || run + 1 === runs : run + 1 === runs;
    if (run + 1 === runs) bar?.end();
    if (isTold) console.log(`  ${run + 1} of ${runs} seeds fine`);
  }
  conclude(total, played, steps, (performance.now() - began) / 1000);
  return 0;
}

/** A bar where a person looks on; `drover simulate` says how wide its terminal is. Elsewhere lines are printed. */
function liveBar(): Progress | null {
  const { stderr, env } = process;
  const columns = stderr.isTTY ? stderr.columns : Number(env.DROVER_BAR_COLUMNS ?? 0);
  if (!(columns > 0)) return null;
  const write = (text: string): unknown => stderr.write(text);
  return createProgress("simulate", "seeds", { stream: { isTTY: true, columns, write }, now: () => performance.now() });
}

function conclude(total: Readonly<Record<string, number>>, played: number, steps: number, seconds: number): void {
  const of = (name: keyof Figures): string => (total[name] ?? 0).toLocaleString("en");
  console.log(
    `${styleText("green", "every rule held")} in ${played.toLocaleString("en")} runs, ${seconds.toFixed(1)} s`,
  );
  console.log(`  ${of("tasks")} tasks, ${of("attempts")} attempts, ${of("losses")} lost, ${of("permits")} permits`);
  console.log(`  ${of("crashes")} crashes, ${of("reopenings")} reopenings, ${of("rateLimits")} answers of 429`);
  const hours = ((total.simulatedMs ?? 0) / 3_600_000).toFixed(0);
  console.log(`  ${of("events")} events in ${of("appends")} appends, ${hours} hours of simulated time`);
  console.log(`  ${Math.round((played * steps) / seconds)} steps a second`);
}

async function explain(failed: RunReport, how: { steps: number; atEachAppend: boolean }): Promise<number> {
  console.error(
    styleText("red", `seed ${failed.seed} breaks a rule; shrinking its ${failed.history.steps.length} steps …`),
  );
  const { complaints, history } = await shrink(failed);
  for (const { rule, detail, seq } of complaints) console.error(`  [${rule}] at event ${seq}: ${detail}`);
  console.error(`\nThe history, ${history.steps.length} steps long:`);
  for (const line of linesOf(history)) console.error(`  ${line}`);
  const again = `${CALLED} --seed ${failed.seed} --steps ${how.steps} --runs 1`;
  console.error(`\nAgain: ${again}${how.atEachAppend ? " --every-crash" : ""}`);
  return 1;
}
