/**
 * `drover tasks`: which tasks there are, page by page.
 */
import type { Client } from "../client/index.ts";
import { PAGE_MAX, TASK_STATES, type TaskJson, type TaskPage, type TaskState } from "../protocol/index.ts";
import { clientFor } from "./connection.ts";
import { EXIT } from "./exit-code.ts";
import { taskTable } from "./task-view.ts";
import { type FlagSpec, several, type Verb, wholeNumber } from "./verb.ts";

export type FilterFlags = {
  readonly project?: string;
  readonly agent?: string;
  readonly type?: string;
  readonly state?: readonly string[];
};
type Flags = FilterFlags & { readonly limit?: number; readonly cursor?: string; readonly all?: boolean };

/** What --all reads at most: a terminal is no place for more, and a script has the API. */
const ALL_MAX = 100_000;
const SHOWN_DEFAULT = 50;

export const FILTER_FLAGS: readonly FlagSpec[] = [
  { flags: "-p, --project <name>", about: "only of this project" },
  { flags: "-a, --agent <name>", about: "only of this agent" },
  { flags: "-t, --type <name>", about: "only of this type" },
  { flags: "-s, --state <states>", about: `only in these states: ${TASK_STATES.join(", ")}`, read: several },
];

export const tasksVerb: Verb<Flags> = {
  name: "tasks",
  summary: "list tasks, in the order of submission",
  about: "List tasks, in the order of submission. Ended ones are listed until scheduler.resultTtl after their end.",
  flags: [
    ...FILTER_FLAGS,
    { flags: "-n, --limit <n>", about: `how many at once (default: ${SHOWN_DEFAULT})`, read: wholeNumber(1, PAGE_MAX) },
    { flags: "--cursor <cursor>", about: "go on where a former page ended" },
    { flags: "--all", about: "all of them, however many pages that takes" },
  ],
  examples: [
    ["drover tasks", "the first page"],
    ["drover tasks --project web --state queued,running", "what is under way for one project"],
    ["drover tasks --state failed --all --json", "every failed task, for a program"],
  ],
  run: async (call) => {
    const { flags, output } = call;
    const page = await readPages(clientFor(call), flags);
    output.answer(page, () => {
      if (page.count === 0)
        return "No tasks here. Ended ones leave the list after scheduler.resultTtl (5 minutes by default).\n";
      const { nextCursor } = page;
      const more = nextCursor === undefined ? "" : `\nThere are more: --cursor ${nextCursor}, or --all.\n`;
      return taskTable(page.tasks, output) + more;
    });
    return EXIT.ok;
  },
};

async function readPages(client: Client, flags: Flags): Promise<TaskPage> {
  const { project, agent, type, state, all = false } = flags;
  const filter = {
    ...(project === undefined ? {} : { project }),
    ...(agent === undefined ? {} : { agentId: agent }),
    ...(type === undefined ? {} : { type }),
    // An unknown state is refused by the server, which names those there are.
    ...(state === undefined ? {} : { state: state as readonly TaskState[] }),
  };
  const wanted = all ? ALL_MAX : (flags.limit ?? SHOWN_DEFAULT);
  const atOnce = flags.limit ?? PAGE_MAX;
  const tasks: TaskJson[] = [];
  let cursor = flags.cursor;
  // A page of large tasks ends before its limit: whether there are more is what its cursor says.
  do {
    const limit = Math.min(atOnce, wanted - tasks.length);
    const page: TaskPage = await client.tasks({ ...filter, limit, ...(cursor === undefined ? {} : { cursor }) });
    tasks.push(...page.tasks);
    cursor = page.nextCursor;
  } while (cursor !== undefined && tasks.length < wanted);
  return { tasks, count: tasks.length, ...(cursor === undefined ? {} : { nextCursor: cursor }) };
}
