/**
 * `drover tasks`: which tasks there are, page by page.
 */

import type { Client } from "../../client/index.ts";
import type { TaskPage, TaskState } from "../../protocol/index.ts";
import { TASK_STATES } from "../../protocol/wire/index.ts";

import { clientFor } from "../shell/connection.ts";
import { EXIT } from "../shell/problem.ts";
import { type FlagSpec, several, type VerbBody } from "../shell/verb.ts";
import { taskTable } from "../show/task-view.ts";
import { PAGE_FLAGS, type PageFlags, readPages } from "./pages.ts";

export type FilterFlags = {
  readonly project?: string;
  readonly agent?: string;
  readonly type?: string;
  readonly state?: readonly string[];
};
type Flags = FilterFlags & PageFlags;

export const FILTER_FLAGS: readonly FlagSpec[] = [
  { flags: "-p, --project <name>", about: "only of this project" },
  { flags: "-a, --agent <name>", about: "only of this agent" },
  { flags: "-t, --type <name>", about: "only of this type" },
  { flags: "-s, --state <states>", about: `only in these states: ${TASK_STATES.join(", ")}`, read: several },
];

export const tasksVerb: VerbBody<Flags> = {
  about: "List tasks, in the order of submission. Ended ones are listed until scheduler.resultTtl after their end.",
  flags: [...FILTER_FLAGS, ...PAGE_FLAGS],
  examples: [
    ["drover tasks", "the first page"],
    ["drover tasks --project web --state queued,running", "what is under way for one project"],
    ["drover tasks --state failed --all --json", "every failed task, for a program"],
  ],
  run: async (call) => {
    const { flags, output } = call;
    const page = await readTasks(clientFor(call), flags);
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

async function readTasks(client: Client, flags: Flags): Promise<TaskPage> {
  const { project, agent, type, state } = flags;
  const filter = {
    ...(project === undefined ? {} : { project }),
    ...(agent === undefined ? {} : { agentId: agent }),
    ...(type === undefined ? {} : { type }),
    // An unknown state is refused by the server, which names those there are.
    ...(state === undefined ? {} : { state: state as readonly TaskState[] }),
  };
  const read = (query: PageFlags): Promise<TaskPage> => client.tasks({ ...filter, ...query });
  const { items, ...more } = await readPages(flags, read, ({ tasks }) => tasks);
  return { tasks: items, count: items.length, ...more };
}
