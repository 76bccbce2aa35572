/**
 * Git, run and read.
 *
 * Only plumbing with output that is made for programs (`-z`), a fixed language, no prompts, and none of the variables
 * by which git can be pointed at another repository. A failure is an error with git's own last line in it.
 */
import { execFile } from "node:child_process";
import { letThrough } from "../process/environment.ts";

export class GitError extends Error {
  override readonly name: string = "GitError";
  /** Null if git could not be run at all. */
  readonly exitCode: number | null;
  constructor(message: string, exitCode: number | null) {
    super(message);
    this.exitCode = exitCode;
  }
}

type GitOptions = {
  readonly input?: string;
  /** An exit code that is an answer too: empty text. */
  readonly quietExit?: number;
  /** An exit code with which it still says what was asked. */
  readonly answerExit?: number;
  readonly env?: Readonly<Record<string, string>>;
};

const OUTPUT_BYTES_MAX = 256 * 1024 * 1024;
const GIT_MS_MAX = 600_000;

/** What git prints. */
export function git(directory: string, args: readonly string[], options: GitOptions = {}): Promise<string> {
  const own = { LC_ALL: "C", GIT_TERMINAL_PROMPT: "0", GIT_OPTIONAL_LOCKS: "0" };
  const env = { ...letThrough(process.env), ...own, ...options.env };
  const settings = { env, maxBuffer: OUTPUT_BYTES_MAX, timeout: GIT_MS_MAX, encoding: "utf8" as const };
  return new Promise((resolve, reject) => {
    const child = execFile("git", ["-C", directory, ...args], settings, (error, stdout, stderr) => {
      if (error === null) return resolve(stdout);
      const exitCode = typeof error.code === "number" ? error.code : null;
      if (exitCode !== null && exitCode === options.quietExit) return resolve("");
      if (exitCode !== null && exitCode === options.answerExit) return resolve(stdout);
      reject(new GitError(messageOf(error, args, stderr), exitCode));
    });
    child.stdin?.on("error", () => {});
    child.stdin?.end(options.input ?? "");
  });
}

function messageOf(error: Error & { code?: unknown }, args: readonly string[], stderr: string): string {
  if (error.code === "ENOENT") return "git was not found; install it, or add it to the PATH of the worker";
  const said = stderr.trim().split("\n").at(-1)?.trim() || error.message;
  return `git ${args.slice(0, 2).join(" ")} failed: ${said}`;
}

/** A list ended or separated by zero bytes. */
export const fromZeros = (text: string): string[] => text.split("\0").filter((item) => item !== "");
