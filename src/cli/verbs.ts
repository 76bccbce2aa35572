/**
 * Every verb of `drover`, in the order of the help, and where the rest of it is.
 *
 * A name and a summary are all that the help needs of a verb. What it takes and does is loaded when it is asked for: a
 * command that makes one call should not wait for the engine, for YAML or for nineteen other verbs.
 */
import type { ListedVerb, VerbBody } from "./shell/verb.ts";

type Module<Name extends string> = Readonly<Record<`${Name}Verb`, VerbBody<never>>>;

const verb = <Name extends string>(name: Name, summary: string, load: () => Promise<Module<Name>>): ListedVerb => ({
  name,
  summary,
  load: async () => (await load())[`${name}Verb`],
});

const group = (name: string, verbs: readonly ListedVerb[]): ListedVerb[] =>
  verbs.map((verb) => ({ ...verb, group: name }));

/** An installed package is compiled, and has no simulator. */
const IS_CLONE = import.meta.filename.endsWith(".ts");

export const VERBS: readonly ListedVerb[] = [
  ...group("Start here:", [
    verb("serve", "start the server here, with a worker that runs commands", () => import("./serve/verb.ts")),
    verb("run", "run a plan file until it is done, on a server or alone", () => import("./run/verb.ts")),
    verb("worker", "run tasks on this machine: one command for each", () => import("./worker/verb.ts")),
  ]),
  ...group("Tasks:", [
    verb("submit", "submit a task; print its id, or with --wait its result", () => import("./verbs/submit.ts")),
    verb("tasks", "list tasks, the newest first", () => import("./verbs/tasks.ts")),
    verb(
      "task",
      "show one task; --watch until it has ended, --logs for what it wrote",
      () => import("./verbs/task.ts"),
    ),
    verb("logs", "print the end of what a task wrote", () => import("./verbs/logs.ts")),
    verb("files", "list the files that a task has left, or fetch one", () => import("./verbs/files.ts")),
    verb("plans", "list the plans on the server", () => import("./verbs/plans.ts")),
    verb("plan", "attach to a plan on the server; cancel, retry, pause it", () => import("./verbs/plans.ts")),
    verb("group", "show how far the tasks of a batch are; wait, cancel, retry", () => import("./verbs/group.ts")),
    verb("why", "say why a task is not running: every condition, with numbers", () => import("./verbs/why.ts")),
    verb("cancel", "cancel tasks: by id, or all that --where names", () => import("./verbs/cancel.ts")),
    verb("approve", "answer what parked tasks ask: approve or deny", () => import("./verbs/approve.ts")),
    verb("retry", "run failed, cancelled or skipped tasks again", () => import("./verbs/cancel.ts")),
    verb(
      "worktrees",
      "list the worktrees that tasks have left here; diff, merge or clean",
      () => import("./verbs/worktrees.ts"),
    ),
  ]),
  ...group("The fleet:", [
    verb("top", "watch the fleet: what runs, what waits and why, as it happens", () => import("./top/verb.ts")),
    verb("workers", "list workers; drain or remove one", () => import("./verbs/workers.ts")),
    verb("projects", "list projects with shares and budgets; set one", () => import("./verbs/projects.ts")),
    verb("usage", "sum up what was used: by project, agent, type, day or a label", () => import("./verbs/projects.ts")),
    verb("gates", "list the gates before LLM providers; show, reset or delete one", () => import("./verbs/gates.ts")),
    verb("schedules", "list recurring tasks; set or remove one", () => import("./verbs/schedules.ts")),
    verb("pause", "start nothing more: of the fleet, a project or a task", () => import("./verbs/pause.ts")),
    verb("resume", "take a pause back", () => import("./verbs/pause.ts")),
  ]),
  ...group("The log:", [
    verb(
      "log",
      "copy a log: into a cluster's journal, out of it, or to another directory",
      () => import("./log/copy.ts"),
    ),
    verb("cluster", "show the nodes that share a log, and how far each is", () => import("./log/cluster.ts")),
    verb("events", "print the events of the log; --follow as they happen", () => import("./verbs/events.ts")),
    verb(
      "verify",
      "check that a log is what was written: every link, signature, payload and snapshot",
      () => import("./log/verify.ts"),
    ),
    ...(IS_CLONE
      ? [verb("simulate", "play random histories with faults against the engine", () => import("./verbs/simulate.ts"))]
      : []),
  ]),
  ...group("This program:", [
    verb("config", "check the config, show it, or print its schema", () => import("./verbs/config.ts")),
    verb("completion", "print a script for completion in your shell", () => import("./verbs/completion.ts")),
  ]),
];
