/**
 * `drover tasks`: which tasks there are, page by page.
 */

import type { TaskPage, TaskState } from "../../protocol/index.ts";
import { TASK_STATES } from "../../protocol/wire/index.ts";

import type { NamedTask } from "../run/past-run.ts";
import { clientFor } from "../shell/connection.ts";
import { EXIT } from "../shell/problem.ts";
import { type Call, type FlagSpec, given, label, several, type VerbBody } from "../shell/verb.ts";
import { namesFor, type TaskNames, taskByName } from "../show/plan-names.ts";
import { taskTable, taskTree } from "../show/task-view.ts";
import { PAGE_FLAGS, type PageFlags, readPages, type SinceFlags, sinceFlag, sinceFrom } from "./pages.ts";

/** As the API names them: desc is newest, asc is oldest. */
const ORDERS = ["newest", "oldest", "desc", "asc"] as const;
type Order = (typeof ORDERS)[number];
type Flags = PageFlags &
  SinceFlags & {
    readonly project?: string;
    readonly agent?: string;
    readonly type?: string;
    readonly state?: readonly string[];
    readonly label?: readonly string[];
    readonly group?: string;
    readonly parent?: string;
    readonly tree?: string | true;
    readonly order?: Order;
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
  sinceFlag("was submitted or has ended"),
  {
    flags: "--order <order>",
    about: "which come first (default: newest); desc is newest, asc is oldest",
    choices: ORDERS,
  },
  { flags: "--group <id>", about: "only of this group: the tasks of one batch" },
  { flags: "--parent <id>", about: "only tasks that name this one as parent; its id, or PLAN/TASK" },
  { flags: "--tree [id]", about: "each task under its parent; with an id or PLAN/TASK, that task and all below it" },
];

export const tasksVerb: VerbBody<Flags> = {
  about:
    "List tasks, the newest first. Failed and skipped ones are listed until scheduler.failedTtl after their end, " +
    "other ended ones until resultTtl.",
  flags: [...FILTER_FLAGS, ...PAGE_FLAGS],
  examples: [
    ["drover tasks", "the first page"],
    ["drover tasks --project web --state queued,running", "what is under way for one project"],
    ["drover tasks --label team=web --label run=7", "with both of these labels"],
    ["drover tasks --state failed --since 8h", "what failed overnight"],
    ["drover tasks --tree release/spec", "a task, here of a plan, and all that came of it"],
    ["drover tasks --state failed --all --json", "every failed task, for a program"],
  ],
  run: async (call) => {
    const { page, names } = await readTasks(call);
    call.output.answer(page, () => shown({ ...page, tasks: page.tasks.map((task) => taskByName(task, names)) }, call));
    return EXIT.ok;
  },
};

function shown({ count, tasks, nextCursor }: TaskPage, { flags, output }: Call<Flags>): string {
  if (count === 0)
    return "No tasks here. Ended ones leave the list after scheduler.resultTtl, failed ones after failedTtl.\n";
  const more = nextCursor === undefined ? "" : `\nThere are more: --cursor ${nextCursor}, or --all.\n`;
  return (flags.tree === undefined ? taskTable(tasks, output) : taskTree(inOrder(tasks, flags), output)) + more;
}

/** A tree is read from its root: whole, and children in the order in which they came. */
const orderOf = ({ order, tree }: Flags): Order => order ?? (typeof tree === "string" ? "oldest" : "newest");
const inOrder = (tasks: TaskPage["tasks"], flags: Flags): TaskPage["tasks"] =>
  ["oldest", "asc"].includes(orderOf(flags)) ? tasks : tasks.toReversed();

const found = async (call: Call<Flags>, word: string): Promise<NamedTask> =>
  (await import("./named.ts")).named(call, word);

/** Where the task is that a filter names, there are those it names. */
async function readTasks(call: Call<Flags>): Promise<{ readonly page: TaskPage; readonly names: TaskNames }> {
  const { flags, terminal } = call;
  const { project, agent, type, state, label: labels, group } = flags;
  const tree = typeof flags.tree === "string" ? flags.tree : undefined;
  const top = tree === undefined ? null : await found(call, tree);
  const above = flags.parent === undefined ? null : await found(call, flags.parent);
  const { calls } = top ?? above ?? { calls: clientFor(call) };
  const [root, parent] = [top?.id, above?.id];
  const since = sinceFrom(flags, terminal.now());
  // An unknown state is refused by the server, which names those there are.
  const states = state as readonly TaskState[] | undefined;
  const filter = given({
    project,
    agentId: agent,
    type,
    state: states,
    label: labels,
    group,
    parent,
    root,
    order: orderOf(flags),
    since,
  });
  const read = (query: PageFlags): Promise<TaskPage> => calls.tasks({ ...filter, ...query });
  const { items, ...more } = await readPages(
    root === undefined ? flags : { all: flags.limit === undefined, ...flags },
    read,
    ({ tasks }) => tasks,
  );
  const id = root ?? parent;
  // One that is not there has nothing below it either, and its name may be wrong: this says so.
  if (items.length === 0 && id !== undefined) await calls.task(id);
  const known = top?.names ?? above?.names ?? (call.output.isJson ? new Map() : undefined);
  const names = known ?? (await namesFor(clientFor(call), items));
  return { page: { tasks: items, count: items.length, ...more }, names };
}
