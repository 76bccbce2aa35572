/**
 * `drover schedules`: recurring tasks. A schedule's task is given with the same flags as `drover submit`.
 */
import type { ScheduleBody, SchedulePage, ScheduleTask } from "../../protocol/index.ts";
import { answering, idOf } from "../shell/connection.ts";
import { usageProblem } from "../shell/problem.ts";
import { plain } from "../shell/text.ts";
import { type Call, type FlagSpec, given, type Verb, type VerbBody, wholeNumber } from "../shell/verb.ts";
import { scheduleTable } from "../show/fleet-view.ts";
import { PAGE_FLAGS, type PageFlags, readPages } from "./pages.ts";
import { asOwnAgent, instantFrom, TASK_FLAGS, type TaskFlags, taskBodyFrom } from "./task-flags.ts";

type SetFlags = TaskFlags & {
  readonly cron?: string;
  readonly timeZone?: string;
  readonly overlap?: "skip" | "queue" | "cancel";
  readonly catchUp?: number;
  readonly paused?: boolean;
  readonly start?: string;
  readonly end?: string;
};

const TIME_FLAGS: readonly FlagSpec[] = [
  { flags: "--cron <expression>", about: "when: minute hour day month weekday, such as '0 9 * * 1-5'" },
  { flags: "--time-zone <zone>", about: "whose clock, such as Europe/Berlin (default: UTC)" },
  {
    flags: "--overlap <what>",
    about: "while a former one has not ended: leave this one out, run both, or cancel the former (default: skip)",
    choices: ["skip", "queue", "cancel"],
  },
  {
    flags: "--catch-up <n>",
    about: "missed instants that run after a restart (default: 1)",
    read: wholeNumber(0, 100),
  },
  { flags: "--paused", about: "keep it, but do not run it" },
  { flags: "--start <when>", about: "not before: an instant, or a span from now" },
  { flags: "--end <when>", about: "not after: an instant, or a span from now" },
];

const HOW = "drover schedules set ID ACTION --cron …, or add --command 'echo hello'";

const set: Verb<SetFlags> = {
  name: "set",
  summary: "create or replace a recurring task",
  takes: [
    { name: "<id>", about: "the schedule" },
    { name: "[action]", about: "what is to be done (with --command: exec)" },
  ],
  flags: [...TIME_FLAGS, ...TASK_FLAGS],
  examples: [
    ["drover schedules set nightly --cron '0 2 * * *' --command './backup.sh'", "every night at two, UTC"],
    ["drover schedules set standup report --cron '0 9 * * 1-5' --time-zone Europe/Berlin", "on weekdays, local time"],
  ],
  run: answering(
    async (client, call) => {
      const body = await bodyFrom(call);
      return asOwnAgent(call, body.task.agentId, (agentId) =>
        client.putSchedule(idOf(call), { ...body, task: { ...body.task, agentId } }),
      );
    },
    (schedule, output) => scheduleTable([schedule], output),
  ),
};

async function bodyFrom({ args: [, action], flags, terminal }: Call<SetFlags>): Promise<ScheduleBody> {
  const { cron, timeZone, overlap, catchUp, paused, start, end } = flags;
  if (cron === undefined) throw usageProblem("--cron is missing", "such as --cron '0 9 * * 1-5': at nine on weekdays");
  const task: ScheduleTask = await taskBodyFrom(action, flags, terminal, HOW);
  const startAt = instantFrom("--start", start, terminal);
  const endAt = instantFrom("--end", end, terminal);
  return { cron, task, ...given({ timeZone, overlap, catchUp, paused, startAt, endAt }) };
}

const remove: Verb<Record<never, never>> = {
  name: "remove",
  summary: "remove a recurring task; what it has submitted stays",
  takes: [{ name: "<id>", about: "the schedule" }],
  examples: [["drover schedules remove nightly", "it is not run again"]],
  run: answering(
    (client, call) => client.removeSchedule(idOf(call)),
    ({ id }) => `${plain(id)} removed\n`,
  ),
};

const list: Verb<PageFlags> = {
  name: "list",
  summary: "list recurring tasks by their ids (drover schedules: the first page)",
  flags: PAGE_FLAGS,
  examples: [
    ["drover schedules list", "the first page"],
    ["drover schedules list --all --json", "all of them, for a program"],
  ],
  run: answering(
    async (client, { flags }): Promise<SchedulePage> => {
      const { items, ...next } = await readPages(flags, client.schedules, ({ schedules }) => schedules);
      return { schedules: items, count: items.length, ...next };
    },
    ({ schedules, nextCursor }, output) => {
      if (schedules.length === 0) return "Nothing is scheduled.\n";
      const how = `drover schedules list --cursor ${plain(nextCursor ?? "")}, or --all`;
      return scheduleTable(schedules, output) + (nextCursor === undefined ? "" : `\nThere are more: ${how}.\n`);
    },
  ),
};

export const schedulesVerb: VerbBody<PageFlags> = {
  examples: [["drover schedules", "what runs when, and when it is next due"]],
  verbs: [list, set, remove] as readonly Verb<never>[],
  ...(list.run === undefined ? {} : { run: list.run }),
};
