/**
 * `drover pause` and `drover resume`: start nothing more, of the fleet, a project or a task. What runs goes on.
 */
import type { PauseStatus } from "../../protocol/index.ts";
import { clientFor } from "../shell/connection.ts";
import { EXIT, type ExitCode, usageProblem } from "../shell/problem.ts";
import { plain } from "../shell/text.ts";
import { type Call, type FlagSpec, given, type VerbBody } from "../shell/verb.ts";
import { namedLive } from "./named.ts";

type Flags = { readonly project?: string; readonly task?: string };

const FLAGS: readonly FlagSpec[] = [
  { flags: "-p, --project <name>", about: "only this project" },
  { flags: "--task <id>", about: "only this task: its id, or PLAN/TASK" },
];

async function tell(call: Call<Flags>, what: "pause" | "resume"): Promise<ExitCode> {
  const { project, task } = call.flags;
  if (project !== undefined && task !== undefined) throw usageProblem("--project or --task, not both");
  const { calls, id } = task === undefined ? { calls: clientFor(call) } : await namedLive(call, task);
  const status = await calls[what](given({ project, task: id }));
  call.output.answer(status, () => shown(task === undefined ? status : { ...status, task }));
  return EXIT.ok;
}

function shown({ status, project, task }: PauseStatus): string {
  const what = project === undefined ? (task === undefined ? "the whole fleet" : `task ${task}`) : `project ${project}`;
  return status === "paused" ? `${plain(what)} is paused: what runs goes on\n` : `${plain(what)} goes on\n`;
}

export const pauseVerb: VerbBody<Flags> = {
  flags: FLAGS,
  examples: [
    ["drover pause", "the whole fleet; what runs goes on"],
    ["drover pause --project web", "one project"],
  ],
  run: (call) => tell(call, "pause"),
};

export const resumeVerb: VerbBody<Flags> = {
  flags: FLAGS,
  examples: [["drover resume", "the whole fleet again"]],
  run: (call) => tell(call, "resume"),
};
