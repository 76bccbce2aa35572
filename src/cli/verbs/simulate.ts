/**
 * `drover simulate`: random histories with everything that can go wrong, played against the real engine.
 *
 * The simulator is a program of its own in the sources, for people who change Drover; the installed package has
 * neither it nor this verb, which starts it with the same arguments.
 */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { EXIT, type ExitCode } from "../shell/problem.ts";
import { exitOf, type StopSignal, type Terminal } from "../shell/terminal.ts";
import type { VerbBody } from "../shell/verb.ts";

const SIMULATOR = join(import.meta.dirname, "../../sim/main.ts");

export const simulateVerb: VerbBody<Record<never, never>> = {
  about:
    "Play random histories with faults against the real engine, and audit every event. In a clone only.\n" +
    "Flags: --seed N, --steps M, --runs K, --faults LIST, --every-crash. The seed is printed first.",
  takes: [{ name: "[flags...]", about: "those of the simulator" }],
  passesOn: true,
  examples: [
    ["drover simulate --runs 100", "a hundred histories"],
    ["drover simulate --seed 42 --steps 500 --runs 1", "one of them again"],
  ],
  run: ({ args, terminal }) => play(args, terminal),
};

async function play(args: readonly string[], terminal: Terminal): Promise<ExitCode> {
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", SIMULATOR, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    cwd: terminal.cwd,
    env: { ...process.env, ...(terminal.width === null ? {} : { DROVER_BAR_COLUMNS: String(terminal.width) }) },
  });
  child.stdout.setEncoding("utf8").on("data", terminal.out);
  child.stderr.setEncoding("utf8").on("data", terminal.err);
  let heard: StopSignal | null = null;
  const silence = terminal.onSignal(["SIGINT", "SIGTERM"], (signal) => {
    heard = signal;
    child.kill(signal);
  });
  const { promise, resolve, reject } = Promise.withResolvers<number | null>();
  child.on("error", reject).on("close", (code) => resolve(code));
  try {
    const code = await promise;
    if (heard !== null) return exitOf(heard);
    return code === 0 ? EXIT.ok : code === 2 ? EXIT.usage : EXIT.failed;
  } finally {
    silence();
  }
}
