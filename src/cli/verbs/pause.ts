/**
 * `drover pause` and `drover resume`: start nothing more, of the fleet, a project or a task. What runs goes on.
 */
import type { PauseBody, PauseStatus } from "../../protocol/index.ts";
import { answering } from "../shell/connection.ts";
import { usageProblem } from "../shell/problem.ts";
import { plain } from "../shell/text.ts";
import { type FlagSpec, given, type VerbBody } from "../shell/verb.ts";

type Flags = { readonly project?: string; readonly task?: string };

const FLAGS: readonly FlagSpec[] = [
  { flags: "-p, --project <name>", about: "only this project" },
  { flags: "--task <id>", about: "only this task" },
];

function targetOf({ project, task }: Flags): PauseBody {
  if (project !== undefined && task !== undefined) throw usageProblem("--project or --task, not both");
  return given({ project, task });
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
  run: answering((client, { flags }) => client.pause(targetOf(flags)), shown),
};

export const resumeVerb: VerbBody<Flags> = {
  flags: FLAGS,
  examples: [["drover resume", "the whole fleet again"]],
  run: answering((client, { flags }) => client.resume(targetOf(flags)), shown),
};
