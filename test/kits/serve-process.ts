/**
 * `drover serve` in a process of its own, on a free port, for tests that stand where a user stands.
 *
 * The server is asked for JSON, so the first thing it says is where it is. `commandsIn` puts `drover` and `npx drover`
 * on a PATH as they are in a clone, so that a line of a document is run as it is written there.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { within } from "./waits.ts";

const root = join(import.meta.dirname, "../..");
export const MAIN: string = join(root, "src/cli/main.ts");
const START_LIMIT_MS = 60_000;

export type Served = AsyncDisposable & {
  readonly url: string;
  readonly isRunning: () => boolean;
  /** Nothing if it has ended. */
  readonly signal: (signal: NodeJS.Signals) => void;
  /** What it has written to standard error so far. */
  readonly said: () => string;
  /** The exit code, when it has ended by itself or by others. */
  readonly ended: Promise<number | null>;
  /** Ends in good order; answers the exit code. May be called twice. */
  readonly stop: () => Promise<number | null>;
};

export async function startServe(options: {
  readonly cwd: string;
  readonly flags?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  /** What the shell does before, such as a limit it sets. */
  readonly before?: string;
}): Promise<Served> {
  const { cwd, flags = [], env = process.env, before = ":" } = options;
  const args = [process.execPath, MAIN, "serve", "--json", "--port", "0", ...flags];
  const script = `${before}; exec "$0" "$@"`;
  const child = spawn("sh", ["-c", script, ...args], { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
  const ended = once(child, "close").then(([code]) => code as number | null);
  let errors = "";
  child.stderr.on("data", (chunk: Buffer) => {
    errors += chunk.toString();
  });
  const url = await firstUrl(child, () => errors);
  const stop = (): Promise<number | null> => stopped(child);
  const isRunning = (): boolean => child.exitCode === null && child.signalCode === null;
  const signal = (name: NodeJS.Signals): void => void child.kill(name);
  const dispose = async (): Promise<void> => void (await stop());
  return { url, isRunning, signal, ended, stop, said: () => errors, [Symbol.asyncDispose]: dispose };
}

async function firstUrl(child: ChildProcess, errors: () => string): Promise<string> {
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
  const late = setTimeout(() => child.kill("SIGKILL"), START_LIMIT_MS);
  try {
    let text = "";
    for await (const line of lines) {
      text += `${line}\n`;
      if (line === "}" || line.endsWith('"}')) return (JSON.parse(text) as { url: string }).url;
    }
    throw new Error(`drover serve did not start: ${errors()}`);
  } catch (error) {
    child.kill("SIGKILL");
    throw error;
  } finally {
    clearTimeout(late);
  }
}

async function stopped(child: ChildProcess): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
  child.kill("SIGTERM");
  await within("the end of drover serve", once(child, "exit"));
  return child.exitCode;
}

/** A directory with `drover` and `npx`, to stand first on a PATH. */
export function commandsIn(directory: string): string {
  mkdirSync(directory, { recursive: true });
  const drover = `exec "${process.execPath}" "${MAIN}" "$@"`;
  write(join(directory, "drover"), drover);
  write(
    join(directory, "npx"),
    `[ "$1" = drover ] || { echo "only npx drover is here" >&2; exit 1; }\nshift\n${drover}`,
  );
  return directory;
}

function write(path: string, script: string): void {
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
}
