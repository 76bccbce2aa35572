/**
 * How long a short command takes, next to a Node that does nothing.
 *
 * Both forms are measured: the package as it is published, compiled, and the sources of a clone. The commands take
 * turns, so that what else the machine does falls on all of them alike; a ratio is that of two medians. CPU time is
 * the firmer figure where the machine is not idle. A verb makes one call to a server that runs beside it.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bar, type Options, progress, type Report, type Row } from "./report.ts";

const ROOT = join(import.meta.dirname, "..");
const ROUNDS = 21;
const TARGET = 2.5;
const VERBS = [["--version"], ["--help"], ["tasks"], ["task", "t1"], ["why", "t1"], ["workers"], ["gates"]];

type Took = { readonly wall: number; readonly cpu: number };

export async function run({ quick }: Options): Promise<Report> {
  const folder = mkdtempSync(join(tmpdir(), "drover-bench-cli-"));
  const published = publishedIn(folder);
  const server = spawn(process.execPath, [published, "serve", "--port", "0", "--data", join(folder, "data")]);
  try {
    const url = await addressOf(server);
    took([published, "submit", "build", "--id", "t1"], url);
    const forms = [
      ["published", published],
      ["clone", join(ROOT, "bin/drover.js")],
    ] as const;
    const rows: Row[] = [];
    for (const [form, bin] of forms) {
      progress(`cli-start: ${form}`);
      rows.push(...ratios(form, bin, url, quick ? 5 : ROUNDS));
    }
    return { name: "cli-start", rows };
  } finally {
    server.kill();
    await once(server, "exit");
    rmSync(folder, { recursive: true });
  }
}

/** The package as npm would unpack it. */
function publishedIn(folder: string): string {
  const tsc = join(ROOT, "node_modules/.bin/tsc");
  execFileSync(tsc, ["-p", join(ROOT, "tsconfig.build.json"), "--outDir", join(folder, "dist")]);
  for (const part of ["bin", "package.json", "schema"])
    cpSync(join(ROOT, part), join(folder, part), { recursive: true });
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  return join(folder, "bin/drover.js");
}

async function addressOf(server: ChildProcess): Promise<string> {
  let said = "";
  for await (const chunk of server.stdout ?? []) {
    said += String(chunk);
    const [, url] = /is ready at (http:\S+)/.exec(said) ?? [];
    if (url !== undefined) break;
  }
  server.stdout?.resume();
  server.stderr?.resume();
  return /http:\S+/.exec(said)?.[0] ?? "";
}

function ratios(form: string, bin: string, url: string, rounds: number): Row[] {
  const commands = [["-e", "0"], ...VERBS.map((args) => [bin, ...args])];
  // The first time fills the cache of compiled modules.
  for (const command of commands) took(command, url);
  const all = commands.map((): Took[] => []);
  const shown = bar(`cli-start, ${form}`, "commands");
  for (let round = 0; round < rounds; round++)
    for (const [at, command] of commands.entries()) {
      all[at]?.push(took(command, url));
      shown.at(round * commands.length + at + 1, rounds * commands.length);
    }
  shown.end();
  const [bare = [], ...others] = all;
  return others.flatMap((own, at) => {
    const what = `${form}: drover ${VERBS[at]?.join(" ")}`;
    const cpu = medianOf(own, "cpu") / medianOf(bare, "cpu");
    const note = `${shownMs(medianOf(own, "cpu"))} against ${shownMs(medianOf(bare, "cpu"))}`;
    return [
      { what, value: cpu, unit: "× by CPU time", target: `≤ ${TARGET}`, met: cpu <= TARGET, note },
      { what, value: medianOf(own, "wall") / medianOf(bare, "wall"), unit: "× by the clock" },
    ];
  });
}

/** Bash knows what a process cost; Node does not know it of its children. */
function took(args: readonly string[], url: string): Took {
  const line = 'TIMEFORMAT="%R %U %S"; { time "$@" >/dev/null 2>&1; } 2>&1';
  const text = execFileSync("bash", ["-c", line, "bash", process.execPath, ...args], {
    encoding: "utf8",
    env: { ...process.env, DROVER_URL: url },
  });
  const [wall = 0, user = 0, system = 0] = text.trim().split(" ").map(Number);
  return { wall, cpu: user + system };
}

const medianOf = (all: readonly Took[], key: keyof Took): number =>
  all.map((one) => one[key]).sort((a, b) => a - b)[all.length >> 1] ?? 0;

const shownMs = (seconds: number): string => `${Math.round(seconds * 1000)} ms`;
