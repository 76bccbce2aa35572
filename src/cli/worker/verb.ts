/**
 * `drover worker` as the command line knows it. What it does is in `worker.ts`, which is loaded only when it is wanted.
 */
import { byteCount, cpuMillicores, several, type VerbBody, wholeNumber } from "../shell/verb.ts";
import { EXEC_FLAGS } from "./flags.ts";
import type { WorkerFlags } from "./worker.ts";

const SLOTS_MAX = 1000;

export const workerVerb: VerbBody<WorkerFlags> = {
  flags: [
    ...EXEC_FLAGS,
    { flags: "--slots <n>", about: "how many tasks at once (default: 1)", read: wholeNumber(1, SLOTS_MAX) },
    { flags: "--capability <names>", about: "what this worker offers; with commas, or given again", read: several },
    { flags: "--action <names>", about: "take only tasks with these actions: names, or build-*", read: several },
    { flags: "--type <names>", about: "take only tasks of these types", read: several },
    { flags: "--project <names>", about: "take only tasks of these projects", read: several },
    { flags: "--cpu <cores>", about: "cores it offers: 8, 0.5 or 500m (default: not counted)", read: cpuMillicores },
    { flags: "--memory <size>", about: "memory it offers: 16GiB (default: not counted)", read: byteCount },
    { flags: "--zone <name>", about: "where it is" },
    { flags: "--id <name>", about: "keep it over restarts, so that the worker keeps its name (default: a new one)" },
    { flags: "-d, --data <directory>", about: "where logs, sessions and worktrees lie (default: .drover/worker)" },
  ],
  examples: [
    ["drover worker --exec './agent.sh' --slots 4 --capability git", "four commands at once, for tasks that need git"],
    ["drover worker --preset claude --worktree --base main", "Claude Code, each task in a branch of its own"],
    ["drover worker --exec 'jq .payload | ./build' --shell --id mac-1", "a line for the shell, under a lasting name"],
  ],
  run: async (call) => (await import("./worker.ts")).work(call),
};
