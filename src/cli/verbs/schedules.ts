/**
 * `drover schedules`: recurring tasks. A schedule's task is given with the same flags as `drover submit`.
 */
import type { ScheduleBody, SchedulePage, ScheduleTask } from "../../protocol/index.ts";
import { clientFor } from "../shell/connection.ts";
import { EXIT, usageProblem } from "../shell/problem.ts";
import type { Terminal } from "../shell/terminal.ts";
import { plain } from "../shell/text.ts";
import { type FlagSpec, type Verb, type VerbBody, wholeNumber } from "../shell/verb.ts";
import { scheduleTable } from "../show/fleet-view.ts";
import { PAGE_FLAGS, type PageFlags, readPages } from "./pages.ts";
import { instantFrom, TASK_FLAGS, type TaskFlags, taskBodyFrom } from "./task-flags.ts";

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
  run: async (call) => {
    const { args, flags, terminal, output } = call;
    const [id = "", action] = args;
    const body = await bodyFrom(action, flags, terminal);
    const schedule = await clientFor(call).putSchedule(id, body);
    output.answer(schedule, () => scheduleTable([schedule], output));
    return EXIT.ok;
  },
};

async function bodyFrom(action: string | undefined, flags: SetFlags, terminal: Terminal): Promise<ScheduleBody> {
  const { cron, timeZone, overlap, catchUp, paused, start, end } = flags;
  if (cron === undefined) throw usageProblem("--cron is missing", "such as --cron '0 9 * * 1-5': at nine on weekdays");
  const task: ScheduleTask = await taskBodyFrom(action, flags, terminal, HOW);
  const now = terminal.now();
  return {
    cron,
    task,
    ...(timeZone === undefined ? {} : { timeZone }),
    ...(overlap === undefined ? {} : { overlap }),
    ...(catchUp === undefined ? {} : { catchUp }),
    ...(paused === undefined ? {} : { paused }),
    ...(start === undefined ? {} : { startAt: instantFrom("--start", start, now) }),
    ...(end === undefined ? {} : { endAt: instantFrom("--end", end, now) }),
  };
}

const remove: Verb<Record<never, never>> = {
  name: "remove",
  summary: "remove a recurring task; what it has submitted stays",
  takes: [{ name: "<id>", about: "the schedule" }],
  examples: [["drover schedules remove nightly", "it is not run again"]],
  run: async (call) => {
    const answer = await clientFor(call).removeSchedule(call.args[0] ?? "");
    call.output.answer(answer, () => `${plain(answer.id)} removed\n`);
    return EXIT.ok;
  },
};

const list: Verb<PageFlags> = {
  name: "list",
  summary: "list recurring tasks by their ids (drover schedules: the first page)",
  flags: PAGE_FLAGS,
  examples: [
    ["drover schedules list", "the first page"],
    ["drover schedules list --all --json", "all of them, for a program"],
  ],
  run: async (call) => {
    const client = clientFor(call);
    const read = (query: PageFlags): Promise<SchedulePage> => client.schedules(query);
    const { items, nextCursor } = await readPages(call.flags, read, ({ schedules }) => schedules);
    const next = nextCursor === undefined ? {} : { nextCursor };
    call.output.answer({ schedules: items, count: items.length, ...next }, () => {
      if (items.length === 0) return "Nothing is scheduled.\n";
      const more =
        nextCursor === undefined
          ? ""
          : `\nThere are more: drover schedules list --cursor ${plain(nextCursor)}, or --all.\n`;
      return scheduleTable(items, call.output) + more;
    });
    return EXIT.ok;
  },
};

export const schedulesVerb: VerbBody<PageFlags> = {
  examples: [["drover schedules", "what runs when, and when it is next due"]],
  verbs: [list, set, remove] as readonly Verb<never>[],
  ...(list.run === undefined ? {} : { run: list.run }),
};
