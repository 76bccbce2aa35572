/**
 * A directory with a plan in it, for tests: run it as a person would, and see what its commands did.
 *
 * Commands leave a line in the file `ran` when they begin, so a test counts how often each was run. One that must be
 * held waits at a named pipe until the test lets it go; that is also how a test knows that it has come that far.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommandLine } from "../../../src/cli/command-line.ts";
import { VERBS } from "../../../src/cli/verbs.ts";
import { type TestTerminal, type TestTerminalOptions, testTerminal } from "./test-terminal.ts";

export type Ran = { readonly code: number; readonly out: string; readonly err: string };
export type PlanOptions = TestTerminalOptions & {
  /** Called as soon as the run would hear a signal. */
  readonly onListening?: (terminal: TestTerminal) => void;
};
export type Running = { readonly terminal: TestTerminal; readonly ended: Promise<Ran> };
export type PlanDirectory = Disposable & {
  readonly directory: string;
  /** Writes a file into it. */
  write(name: string, text: string): void;
  read(name: string): string;
  has(name: string): boolean;
  /** What ran, in order. */
  ran(): string[];
  /** A pipe at which a command waits: `read line < NAME`. */
  pipe(name: string): void;
  /** Lets one command go that waits, or will wait, at the pipe. */
  letGo(name: string): Promise<void>;
  /** What a command writes to the pipe, once it does. */
  hear(name: string): Promise<string>;
  run(args?: readonly string[], options?: PlanOptions): Promise<Ran>;
  /** Another verb, in this directory. */
  drover(args: readonly string[], options?: PlanOptions): Promise<Ran>;
  startDrover(args: readonly string[], options?: PlanOptions): Running;
  /** The same, without waiting for its end. */
  start(args?: readonly string[], options?: PlanOptions): Running;
};

/** Every place begins with the plan `plan.yml`. */
export function planDirectory(plan: string): PlanDirectory {
  const directory = mkdtempSync(join(tmpdir(), "drover-plan-"));
  const at = (name: string): string => join(directory, name);
  writeFileSync(at("plan.yml"), plan);

  function start(args: readonly string[] = [], options: PlanOptions = {}): Running {
    return startDrover(
      ["run", ...(args.some((one) => /^(-|.*\.yml)$/.test(one)) ? [] : ["plan.yml"]), ...args],
      options,
    );
  }

  function startDrover(args: readonly string[], { onListening, ...options }: PlanOptions = {}): Running {
    const env = { PATH: process.env.PATH, HOME: directory, ...options.env };
    const terminal = testTerminal({ cwd: directory, home: directory, ...options, env });
    const listening: TestTerminal = {
      ...terminal,
      onSignal: (signals, hear) => {
        const end = terminal.onSignal(signals, hear);
        onListening?.(terminal);
        return end;
      },
    };
    const ended = runCommandLine(args, listening, VERBS).then((code) => ({
      code,
      out: terminal.shown(),
      err: terminal.complained(),
    }));
    return { terminal, ended };
  }

  return {
    directory,
    start,
    startDrover,
    drover: (args, options) => startDrover(args, options).ended,
    write: (name, text) => writeFileSync(at(name), text),
    read: (name) => readFileSync(at(name), "utf8"),
    has: (name) => existsSync(at(name)),
    ran: () => (existsSync(at("ran")) ? readFileSync(at("ran"), "utf8").split("\n").filter(Boolean) : []),
    pipe: (name) => void spawnSync("mkfifo", [at(name)]),
    letGo: (name) => writeFile(at(name), "go\n"),
    hear: (name) => readFile(at(name), "utf8"),
    run: (args, options) => start(args, options).ended,
    [Symbol.dispose]: () => rmSync(directory, { recursive: true, force: true }),
  };
}

/** The text without what differs from run to run: spans, hashes, the width of columns, the place itself. */
export function steady(text: string, place: PlanDirectory): string[] {
  return text
    .replaceAll(place.directory, "HERE")
    .replaceAll(/\b\d+(\.\d+)?(ms|s)\b/g, "T")
    .replaceAll(/\.[0-9a-f]{12}\.[0-9a-f]{8}\b/g, "")
    .split("\n")
    .map((line) => line.replaceAll(/ {2,}/g, "  ").trimEnd())
    .filter((line) => line !== "");
}
