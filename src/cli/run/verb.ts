/**
 * `drover run FILE`: a plan, on a server or alone, until it is done.
 *
 * Here is only what the command line needs to know of it. What it does is loaded when it is asked for: it brings the
 * engine with it, and other verbs need not wait for that.
 */
import { BadValue, type FlagSpec, type VerbBody, wholeNumber } from "../shell/verb.ts";
import type { RunFlags } from "./join.ts";

/** Names with commas between them; a name may have commas of its own in brackets, `test[24,linux]`. */
export function taskNames(text: string, before: unknown): string[] {
  const more = (text.match(/[^,[]+(?:\[[^\]]*\])?/g) ?? []).map((name) => name.trim());
  if (more.length === 0 || more.some((name) => name === ""))
    throw new BadValue("It must be the name of a task, or several with commas.");
  return [...(Array.isArray(before) ? (before as string[]) : []), ...more];
}

/** Of verbs that watch a plan on a server. */
export const ON_INTERRUPT: FlagSpec = {
  flags: "--on-interrupt <what>",
  about: "on a server: what Ctrl-C does without a question (default without a terminal: detach)",
  choices: ["detach", "cancel"],
};

export const runVerb: VerbBody<RunFlags> = {
  about:
    "Run the tasks of a plan file, each when what it needs is done, until all are done. Run it again after Ctrl-C, " +
    "a crash, a failure or an edit: what is done and unchanged is not run again, everything else is. It joins the " +
    "server of --url or DROVER_URL, else the one that owns .drover beside the file; else, or with --alone, it runs " +
    "on this machine and needs no server. On a server the plan goes on after Ctrl-C (detach) unless it is " +
    "cancelled; drover plan NAME attaches again.\n\nExit code 0: all done; 1: something failed or was skipped; 2: " +
    "the file is wrong, and nothing has run; 6: the log cannot be used; 130: interrupted.",
  takes: [{ name: "[file]", about: "the plan, such as plan.yml; - reads it from standard input" }],
  flags: [
    { flags: "-n, --dry-run", about: "show what would run in which order, and run nothing" },
    { flags: "--only <tasks>", about: "only these tasks and what they need; several with commas", read: taskNames },
    { flags: "-j, --slots <n>", about: "alone: how many commands at once", read: wholeNumber(1, 10_000) },
    { flags: "--fail-fast", about: "start nothing more once a task has failed; what runs may end" },
    { flags: "--keep-going", about: "go on with what does not need the failed task; this is the default" },
    { flags: "--no-retry-failed", about: "leave what failed or was skipped in an earlier run as it is" },
    { flags: "--approve <tasks>", about: "approve these tasks when they ask; several with commas", read: taskNames },
    { flags: "--fresh", about: "run everything anew; the old log is moved aside" },
    { flags: "-o, --output", about: "print every line the commands write, behind the name of the task" },
    { flags: "--alone", about: "on this machine, in this process, also where a server is" },
    ON_INTERRUPT,
    { flags: "-d, --data <directory>", about: "alone: where the log is (default: .drover/runs/NAME beside the file)" },
    { flags: "--print-schema", about: "print the JSON Schema of plan files, for editors" },
  ],
  examples: [
    ["drover run plan.yml", "run it; the same again goes on where it stopped"],
    ["drover run plan.yml --dry-run", "which tasks in which order, and what is done already"],
    ["drover run plan.yml --only test,lint --output", "two tasks and what they need, with all they write"],
    ["drover run plan.yml --fresh --fail-fast -j 2", "all anew, two at a time, and stop at the first failure"],
    ["drover run plan.yml --url http://fleet:4747", "on a server, by its workers"],
  ],
  run: async (call) => (await import("./run-plan.ts")).runPlan(call),
};
