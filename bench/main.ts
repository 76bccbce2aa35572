/**
 * `npm run bench -- NAME… [--json] [--quick]`: one file per claim we publish.
 *
 * A benchmark is a module of this folder that exports `run(options)`. Without a name the command lists what there
 * is. The exit code is 1 when a target was not met, so that a claim cannot rot unseen.
 */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Options, progress, type Report, toJson, toText } from "./report.ts";

const BENCHMARKS: Record<string, string> = {
  core: "decisions per second, growth, memory per queued task",
  engine: "submit → assign → finish, durable, embedded, next to the peers",
  http: "the service: submits next to a bare server, submit → start, a thousand pull workers",
  wire: "server, workers and submitter in processes of their own, next to the peers in the same arrangement",
  "cli-start": "short commands next to a Node that does nothing",
  gate: "acquire + release in process, next to Bottleneck and p-queue",
  peers: "BullMQ, pg-boss and graphile-worker alone: no-op jobs, durable",
};

type Benchmark = { readonly run: (options: Options) => Promise<Report> };

process.exitCode = await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<number> {
  if (args.includes("--help") || args.includes("-h")) {
    console.log(usage());
    return 0;
  }
  const names = args.filter((arg) => !arg.startsWith("-"));
  const options = { json: args.includes("--json"), quick: args.includes("--quick") };
  const unknown = args.find((arg) => (arg.startsWith("-") ? !["--json", "--quick"].includes(arg) : !BENCHMARKS[arg]));
  if (unknown !== undefined) progress(`unknown: ${unknown}\n`);
  if (unknown !== undefined || names.length === 0) {
    console.log(usage());
    return unknown === undefined ? 0 : 2;
  }
  const reports: Report[] = [];
  for (const name of names) reports.push(await (await load(name)).run(options));
  console.log(options.json ? toJson(reports) : toText(reports));
  return reports.some(({ rows }) => rows.some(({ met }) => met === false)) ? 1 : 0;
}

async function load(name: string): Promise<Benchmark> {
  const path = join(import.meta.dirname, `${name}.ts`);
  if (!existsSync(path)) throw new Error(`bench/${name}.ts does not exist yet`);
  return (await import(path)) as Benchmark;
}

function usage(): string {
  const width = Math.max(...Object.keys(BENCHMARKS).map((name) => name.length));
  const lines = Object.entries(BENCHMARKS).map(([name, about]) => `  ${name.padEnd(width)}  ${about}`);
  return ["npm run bench -- NAME… [--json] [--quick]", "", ...lines].join("\n");
}
