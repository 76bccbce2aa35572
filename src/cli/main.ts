/**
 * `drover`: where the command line meets the process.
 *
 * Nothing is decided here. Arguments go in, an exit code comes out; a reader that has gone (`drover tasks | head`) ends
 * the command in silence, as it does for every other tool; whatever nobody expected is a bug and says so.
 */
import "./quiet-warnings.ts";
import { runCommandLine } from "./command-line.ts";
import { EXIT } from "./exit-code.ts";
import { processTerminal } from "./terminal.ts";
import { VERBS } from "./verbs.ts";

for (const stream of [process.stdout, process.stderr])
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(EXIT.ok);
    throw error;
  });

try {
  const code = await runCommandLine(process.argv.slice(2), processTerminal(), VERBS);
  process.exitCode = code;
  // Who was interrupted does not wait for what may still be under way; leaving kills the commands that run.
  if (code === EXIT.interrupted || code === EXIT.terminated) process.exit();
} catch (error) {
  console.error("error: this is a bug of Drover; please report it with what follows\n", error);
  process.exitCode = EXIT.broken;
}
