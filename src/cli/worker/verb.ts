/**
 * `drover worker` as the command line knows it, and the flags that it shares with `drover serve --exec`. What it does
 * is in `worker.ts`, which is loaded only when it is wanted.
 */
import type { FlagSpec, VerbBody } from "../shell/verb.ts";
import { byteCount, cpuMillicores, each, milliseconds, several, wholeNumber } from "../shell/verb.ts";
import type { WorkerFlags } from "./worker.ts";

/** The action of a task whose params bring their own command. */
export const COMMAND_ACTION = "exec";

export const EXEC_FLAGS: readonly FlagSpec[] = [
  {
    flags: "--exec <command>",
    about: "run this for each task: its JSON on stdin, the result from a file or the last JSON line",
  },
  { flags: "--shell", about: "hand the command to /bin/sh, for pipes, variables and the like" },
  { flags: "--preset <agent>", about: "run a coding agent instead of --exec", choices: ["claude", "codex", "aider"] },
  {
    flags: "--commands",
    about:
      "run what tasks with the action exec bring, those of plans too; a caller who may submit runs anything as you",
  },
  { flags: "--arg <word>", about: "a further word behind the command or preset; may be given again", read: each },
  {
    flags: "--env <name>",
    about: "let a variable through (NAME) or set one (NAME=value); may be given again",
    read: each,
  },
  { flags: "--worktree", about: "each attempt in a git worktree and branch of its own" },
  { flags: "--base <ref>", about: "the branch, tag or commit worktrees begin from (default: HEAD)" },
  { flags: "--setup <line>", about: "run in the workspace before each task, by a shell" },
  { flags: "--cleanup <line>", about: "run in the workspace after each task, by a shell" },
  {
    flags: "--allow-until",
    about: "trust tasks: run their loop.until by a shell, and keep any file of the workspace as an output",
  },
  { flags: "--idle-timeout <span>", about: "stop a command that has written nothing for so long", read: milliseconds },
  { flags: "--kill-grace <span>", about: "from the first signal to SIGKILL (default: 10s)", read: milliseconds },
  {
    flags: "--max-worktrees <n>",
    about: "keep at most this many worktrees (default: workers.maxWorktrees of the server)",
    read: wholeNumber(1),
  },
];

export const QUIET: FlagSpec = { flags: "-q, --quiet", about: "no line for each task on the terminal" };
const SLOTS_MAX = 1000;

export const workerVerb: VerbBody<WorkerFlags> = {
  flags: [
    ...EXEC_FLAGS,
    { flags: "--slots <n>", about: "how many tasks at once (default: 1)", read: wholeNumber(1, SLOTS_MAX) },
    { flags: "--capability <names>", about: "what this worker offers; with commas, or given again", read: several },
    { flags: "--action <names>", about: "take only tasks with these actions: names, or build-*", read: several },
    { flags: "--type <names>", about: "take only tasks of these types: names, or code-*", read: several },
    { flags: "--project <names>", about: "take only tasks of these projects: names, or web-*", read: several },
    { flags: "--cpu <cores>", about: "cores it offers: 8, 0.5 or 500m (default: not counted)", read: cpuMillicores },
    { flags: "--memory <size>", about: "memory it offers: 16GiB (default: not counted)", read: byteCount },
    { flags: "--zone <name>", about: "where it is" },
    { flags: "--id <name>", about: "keep it over restarts, so that the worker keeps its name (default: a new one)" },
    QUIET,
    { flags: "-d, --data <directory>", about: "where logs, sessions and worktrees lie (default: .drover/worker)" },
  ],
  examples: [
    ["drover worker --commands --slots 4", "four at once of what plans and tasks bring, here and as you"],
    ["drover worker --exec './agent.sh' --slots 4 --capability git", "four commands at once, for tasks that need git"],
    ["drover worker --preset claude --worktree --base main", "Claude Code, each task in a branch of its own"],
    ["drover worker --exec 'jq .payload | ./build' --shell --id mac-1", "a line for the shell, under a lasting name"],
  ],
  run: async (call) => (await import("./worker.ts")).work(call),
};
