/**
 * The flags that say what an exec worker runs and where: the same for `drover worker` and `drover serve --exec`.
 */
import type { ExecOptions, PresetName } from "../../worker/index.ts";
import { usageProblem } from "../shell/problem.ts";
import { each, type FlagSpec, given, milliseconds, wholeNumber } from "../shell/verb.ts";

/** The action of a task whose params bring their own command. */
export const COMMAND_ACTION = "exec";

export type ExecFlags = {
  readonly exec?: string;
  readonly shell?: boolean;
  readonly preset?: PresetName;
  readonly arg?: readonly string[];
  readonly env?: readonly string[];
  readonly worktree?: boolean;
  readonly base?: string;
  readonly setup?: string;
  readonly cleanup?: string;
  readonly idleTimeout?: number;
  readonly killGrace?: number;
  readonly maxWorktrees?: number;
};

export const EXEC_FLAGS: readonly FlagSpec[] = [
  {
    flags: "--exec <command>",
    about: "run this for each task: its JSON on stdin, the result from a file or the last JSON line",
  },
  { flags: "--shell", about: "hand the command to /bin/sh, for pipes, variables and the like" },
  { flags: "--preset <agent>", about: "run a coding agent instead of --exec", choices: ["claude", "codex", "aider"] },
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
  { flags: "--idle-timeout <span>", about: "stop a command that has written nothing for so long", read: milliseconds },
  { flags: "--kill-grace <span>", about: "from the first signal to SIGKILL (default: 10s)", read: milliseconds },
  {
    flags: "--max-worktrees <n>",
    about: "keep at most this many worktrees (default: workers.maxWorktrees of the server)",
    read: wholeNumber(1),
  },
];

/** The options of the exec worker, without its data directory. */
export function execOptionsFrom(flags: ExecFlags): Omit<ExecOptions, "data"> {
  const { exec, preset, arg, env, base, setup, cleanup, idleTimeout, killGrace, maxWorktrees } = flags;
  if ((exec === undefined) === (preset === undefined))
    throw usageProblem(
      "say what to run: --exec COMMAND or --preset AGENT, and not both",
      "drover help worker has examples",
    );
  if (base !== undefined && flags.worktree !== true)
    throw usageProblem("--base is for --worktree", "add --worktree, or leave --base out");
  const limits = { idleTimeoutMs: idleTimeout, killGraceMs: killGrace, maxWorktrees };
  return {
    ...(exec === undefined ? {} : { command: exec, shell: flags.shell === true }),
    ...(flags.worktree === true ? { isolation: "worktree" } : {}),
    ...given({ preset, args: arg, env, base, setup, cleanup, ...limits }),
  };
}
