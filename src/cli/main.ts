/**
 * `drover`: where the command line meets the process.
 *
 * Nothing is decided here. Arguments go in, an exit code comes out; a reader that has gone (`drover tasks | head`) ends
 * the command in silence, as it does for every other tool, except where it works rather than shows: what a plan, a
 * worker or a server does goes on, and its exit code stays true. Any other error is a bug and says so.
 */
import { runCommandLine } from "./command-line.ts";
import { EXIT } from "./shell/problem.ts";
import { processTerminal } from "./shell/terminal.ts";
import { VERBS } from "./verbs.ts";

/** Verbs that work, whether or not their output is read. */
const WORKING: ReadonlySet<string> = new Set(["run", "serve", "worker"]);
const isWorking = process.argv.slice(2).some((word) => WORKING.has(word));

// Node calls its SQLite experimental, and would say so on every terminal. All other warnings are shown.
const emitWarning = process.emitWarning.bind(process) as (warning: string | Error, ...rest: unknown[]) => void;
process.emitWarning = (warning: string | Error, ...rest: unknown[]): void => {
  const [options] = rest;
  const type = typeof options === "string" ? options : (options as { type?: string } | undefined)?.type;
  if ((warning instanceof Error ? warning.name : type) !== "ExperimentalWarning") emitWarning(warning, ...rest);
};

for (const stream of [process.stdout, process.stderr])
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
    if (!isWorking) process.exit(EXIT.ok);
  });

const written = (stream: NodeJS.WriteStream): Promise<void> =>
  new Promise((resolve) => void stream.write("", () => resolve()));

try {
  const code = await runCommandLine(process.argv.slice(2), processTerminal(), VERBS);
  process.exitCode = code;
  // Who was interrupted does not wait for what may still be under way; leaving kills the commands that run.
  if (code === EXIT.interrupted || code === EXIT.terminated) process.exit();
  // What has worked has ended: a connection that is still being closed keeps nobody. All that it said is written first.
  if (isWorking) {
    await Promise.all([process.stdout, process.stderr].map(written));
    process.exit();
  }
} catch (error) {
  console.error("error: this is a bug of Drover; please report it with what follows\n", error);
  process.exitCode = EXIT.broken;
}
