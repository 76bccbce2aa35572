/**
 * A real server in the test's own process, started the way a person starts it: by `drover serve`.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommandLine } from "../../../src/cli/command-line.ts";
import type { Environment } from "../../../src/cli/shell/terminal.ts";
import { VERBS } from "../../../src/cli/verbs.ts";
import { type TestTerminal, testTerminal } from "./test-terminal.ts";

export type Ran = { readonly code: number; readonly out: string; readonly err: string };
export type Served = AsyncDisposable & {
  readonly url: string;
  readonly directory: string;
  readonly terminal: TestTerminal;
  /** The exit code of serve. */
  readonly ended: Promise<number>;
  /** Another verb, with the address of this server. */
  readonly drover: (args: readonly string[], more?: { readonly terminal?: TestTerminal }) => Promise<Ran>;
  /** The terminal such a verb would have. */
  readonly terminalFor: () => TestTerminal;
  readonly stop: () => Promise<number>;
};

/** A test that failed may have left something running that would be waited for. */
const DISPOSE_MS = 15_000;

/** Our own PATH and home, and nothing that could change what a test sees. */
const cleanEnv = (): Environment => ({ PATH: process.env.PATH, HOME: process.env.HOME, USER: "ann" });

const directories = new Set<string>();
process.on("exit", () => {
  for (const directory of directories) rmSync(directory, { recursive: true, force: true });
});

/** Removed when the process ends. */
export function emptyDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "drover-served-"));
  directories.add(directory);
  return directory;
}

export async function served(
  args: readonly string[] = [],
  given: { readonly directory?: string; readonly env?: Environment } = {},
): Promise<Served> {
  const directory = given.directory ?? emptyDirectory();
  const env = { ...cleanEnv(), ...given.env };
  const terminal = testTerminal({ cwd: directory, home: directory, env });
  const ended = runCommandLine(["serve", "--port", "0", "--log-level", "silent", ...args], terminal, VERBS);
  const failed = ended.then((code) => {
    throw new Error(`serve ended with ${code}: ${terminal.complained()}`);
  });
  failed.catch(() => {});
  await Promise.race([terminal.saw("Ctrl-C stops it."), failed]);
  const [url = ""] = /http:\/\/\S+/.exec(terminal.shown()) ?? [];
  const terminalFor = (): TestTerminal =>
    testTerminal({ cwd: directory, home: directory, env: { ...env, DROVER_URL: url } });

  async function drover(verb: readonly string[], more: { readonly terminal?: TestTerminal } = {}): Promise<Ran> {
    const own = more.terminal ?? terminalFor();
    const code = await runCommandLine(verb, own, VERBS);
    return { code, out: own.shown(), err: own.complained() };
  }

  let stopping = false;
  function stop(): Promise<number> {
    // A second signal would not wait for anything.
    if (!stopping) terminal.signal("SIGTERM");
    stopping = true;
    return ended;
  }

  async function dispose(): Promise<void> {
    const impatient = setTimeout(() => terminal.signal("SIGTERM"), DISPOSE_MS);
    await stop();
    clearTimeout(impatient);
  }

  return { ...{ url, directory, terminal, ended, drover, terminalFor, stop }, [Symbol.asyncDispose]: dispose };
}
