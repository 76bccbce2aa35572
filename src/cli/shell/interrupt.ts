/**
 * A command that lasts until it is told to stop: Ctrl-C and SIGTERM become an abort, and the abort an exit code.
 */
import { EXIT, type ExitCode } from "./exit-code.ts";
import type { StopSignal, Terminal } from "./terminal.ts";

export const exitOf = (signal: StopSignal): ExitCode => (signal === "SIGINT" ? EXIT.interrupted : EXIT.terminated);

/** What `run` answers; or, once a signal has come, the exit code of the signal, after `onInterrupt` has had its say. */
export async function interruptible(
  terminal: Terminal,
  run: (signal: AbortSignal) => Promise<ExitCode>,
  onInterrupt: () => void = () => {},
): Promise<ExitCode> {
  const stop = new AbortController();
  let heard: StopSignal | null = null;
  const silence = terminal.onSignal(["SIGINT", "SIGTERM"], (signal) => {
    heard ??= signal;
    stop.abort();
  });
  try {
    const code = await run(stop.signal);
    return heard === null ? code : exitOf(heard);
  } catch (error) {
    if (heard === null) throw error;
    onInterrupt();
    return exitOf(heard);
  } finally {
    silence();
  }
}
