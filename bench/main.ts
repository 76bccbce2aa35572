/**
 * `npm run bench -- NAME… [--json] [--quick]`: one file per claim we publish. `wire` and `cluster` are in parts:
 * `--only PART,…` runs some of them; `--seconds N` says how long the one of `wire` lasts that goes on without a rest,
 * and `--rounds N` how many rounds its others have, in the place of 31.
 *
 * A benchmark is a module of this folder that exports `run(options)`. Without a name the command lists what there
 * is. The exit code is 1 when a target was not met, so that a claim cannot rot unseen.
 */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Options, progress, type Report, toJson, toText } from "./report.ts";

const BENCHMARKS: Record<string, string> = {
  core: "decisions per second, growth, memory per queued task",
  engine: "submit → assign → finish, durable, embedded, next to the peers",
  http: "the service: submits next to a bare server, submit → start, a thousand pull workers",
  wire: "server, workers and submitter in processes of their own, next to the peers in the same arrangement",
  cluster: "durable tasks on etcd and PostgreSQL next to SQLite and the peers; lag, and leaders that are lost",
  viewers: "what twenty viewers cost the server, and drover top the machine it runs on",
  "cli-start": "short commands next to a Node that does nothing",
  gate: "acquire + release in process, next to Bottleneck and p-queue",
  peers: "BullMQ, pg-boss and graphile-worker alone: no-op jobs, durable",
};

const FLAGS = {
  json: { type: "boolean" },
  quick: { type: "boolean" },
  help: { type: "boolean", short: "h" },
  only: { type: "string" },
  seconds: { type: "string" },
  rounds: { type: "string" },
} as const;

type Benchmark = { readonly run: (options: Options) => Promise<Report> };

process.exitCode = await main(process.argv.slice(2));

async function main(args: string[]): Promise<number> {
  const given = read(args);
  if (given === null) {
    console.log(usage());
    return 2;
  }
  const { names, isHelp, ...options } = given;
  if (isHelp || names.length === 0) {
    console.log(usage());
    return 0;
  }
  const reports: Report[] = [];
  for (const name of names) reports.push(await (await load(name)).run(options));
  console.log(options.json ? toJson(reports) : toText(reports));
  return reports.some(({ rows }) => rows.some(({ met }) => met === false)) ? 1 : 0;
}

type Given = Options & { readonly names: readonly string[]; readonly isHelp: boolean };

/** Null for what is not understood, which is said. */
function read(args: string[]): Given | null {
  try {
    const { values, positionals: names } = parseArgs({ args, options: FLAGS, allowPositionals: true });
    const { json = false, quick = false, help: isHelp = false, only, seconds, rounds } = values;
    const unknown = names.find((name) => BENCHMARKS[name] === undefined);
    if (unknown !== undefined) throw new Error(`unknown: ${unknown}`);
    if (only !== undefined && names.some((name) => name !== "wire" && name !== "cluster"))
      throw new Error("--only is of wire and cluster alone");
    if (seconds !== undefined && names.some((name) => name !== "wire")) throw new Error("--seconds is of wire alone");
    if (rounds !== undefined && names.some((name) => name !== "wire")) throw new Error("--rounds is of wire alone");
    if (rounds !== undefined && !(Number.isSafeInteger(Number(rounds)) && Number(rounds) > 0))
      throw new Error(`--rounds is ${rounds}, and must be a whole number above 0`);
    if (seconds !== undefined && !(Number(seconds) > 0))
      throw new Error(`--seconds is ${seconds}, and must be a number above 0`);
    return {
      ...{ json, quick, names, isHelp },
      ...(only === undefined ? {} : { only: only.split(",") }),
      ...(seconds === undefined ? {} : { seconds: Number(seconds) }),
      ...(rounds === undefined ? {} : { rounds: Number(rounds) }),
    };
  } catch (error) {
    progress(`${(error as Error).message}\n`);
    return null;
  }
}

async function load(name: string): Promise<Benchmark> {
  const path = join(import.meta.dirname, `${name}.ts`);
  if (!existsSync(path)) throw new Error(`bench/${name}.ts does not exist yet`);
  return (await import(path)) as Benchmark;
}

function usage(): string {
  const width = Math.max(...Object.keys(BENCHMARKS).map((name) => name.length));
  const lines = Object.entries(BENCHMARKS).map(([name, about]) => `  ${name.padEnd(width)}  ${about}`);
  return [
    "npm run bench -- NAME… [--json] [--quick]; wire and cluster take --only PART,…, wire --seconds N, --rounds N",
    "",
    ...lines,
  ].join("\n");
}
