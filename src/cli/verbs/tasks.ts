/**
 * `drover tasks`: which tasks there are, page by page.
 */

import type { Client } from "../../client/index.ts";
import type { TaskPage, TaskState } from "../../protocol/index.ts";
import { TASK_STATES } from "../../protocol/wire/index.ts";

import { answering } from "../shell/connection.ts";
import { type FlagSpec, given, label, several, type VerbBody } from "../shell/verb.ts";
import { taskTable } from "../show/task-view.ts";
import { PAGE_FLAGS, type PageFlags, readPages } from "./pages.ts";

type Flags = PageFlags & {
  readonly project?: string;
  readonly agent?: string;
  readonly type?: string;
  readonly state?: readonly string[];
  readonly label?: readonly string[];
  readonly group?: string;
};

const FILTER_FLAGS: readonly FlagSpec[] = [
  { flags: "-p, --project <name>", about: "only of this project" },
  { flags: "-a, --agent <name>", about: "only of this agent" },
  { flags: "-t, --type <name>", about: "only of this type" },
  {
    flags: "-s, --state <states>",
    about: `only in these states: ${TASK_STATES.join(", ")}`,
    read: several,
    words: TASK_STATES,
  },
  { flags: "--label <key=value>", about: "only with this label; given again, with all of them", read: label },
  { flags: "--group <id>", about: "only of this group: the tasks of one batch" },
];

export const tasksVerb: VerbBody<Flags> = {
  about:
    "List tasks, in the order of submission. Failed and skipped ones are listed until scheduler.failedTtl after their " +
    "end, other ended ones until resultTtl.",
  flags: [...FILTER_FLAGS, ...PAGE_FLAGS],
  examples: [
    ["drover tasks", "the first page"],
    ["drover tasks --project web --state queued,running", "what is under way for one project"],
    ["drover tasks --label team=web --label run=7", "with both of these labels"],
    ["drover tasks --state failed --all --json", "every failed task, for a program"],
  ],
  run: answering(
    (client, { flags }) => readTasks(client, flags),
    ({ count, tasks, nextCursor }, output) => {
      if (count === 0)
        return "No tasks here. Ended ones leave the list after scheduler.resultTtl, failed ones after failedTtl.\n";
      const more = nextCursor === undefined ? "" : `\nThere are more: --cursor ${nextCursor}, or --all.\n`;
      return taskTable(tasks, output) + more;
    },
  ),
};

async function readTasks(client: Client, flags: Flags): Promise<TaskPage> {
  const { project, agent, type, state, label: labels, group } = flags;
  // An unknown state is refused by the server, which names those there are.
  const states = state as readonly TaskState[] | undefined;
  const filter = given({ project, agentId: agent, type, state: states, label: labels, group });
  const read = (query: PageFlags): Promise<TaskPage> => client.tasks({ ...filter, ...query });
  const { items, ...more } = await readPages(flags, read, ({ tasks }) => tasks);
  return { tasks: items, count: items.length, ...more };
}
