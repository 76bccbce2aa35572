/**
 * Every verb of `drover`, in the order of the help, and where the rest of it is.
 *
 * A name and a summary are all that the help needs of a verb. What it takes and does is loaded when it is asked for: a
 * command that makes one call should not wait for the engine, for YAML or for nineteen other verbs.
 */
import type { ListedVerb } from "./shell/verb.ts";

const group = (name: string, verbs: readonly ListedVerb[]): ListedVerb[] =>
  verbs.map((verb) => ({ ...verb, group: name }));

const START: readonly ListedVerb[] = [
  {
    name: "serve",
    summary: "start the server here, with a worker that runs commands",
    load: async () => (await import("./serve/verb.ts")).serveVerb,
  },
  {
    name: "run",
    summary: "run a plan file on this machine until it is done",
    load: async () => (await import("./run/verb.ts")).runVerb,
  },
  {
    name: "worker",
    summary: "run tasks on this machine: one command for each",
    load: async () => (await import("./worker/verb.ts")).workerVerb,
  },
];

const TASKS: readonly ListedVerb[] = [
  {
    name: "submit",
    summary: "submit a task; print its id, or with --wait its result",
    load: async () => (await import("./verbs/submit.ts")).submitVerb,
  },
  {
    name: "tasks",
    summary: "list tasks, in the order of submission",
    load: async () => (await import("./verbs/tasks.ts")).tasksVerb,
  },
  {
    name: "task",
    summary: "show one task; --watch until it has ended, --logs for what it wrote",
    load: async () => (await import("./verbs/task.ts")).taskVerb,
  },
  {
    name: "why",
    summary: "say why a task is not running: every condition, with numbers",
    load: async () => (await import("./verbs/why.ts")).whyVerb,
  },
  {
    name: "cancel",
    summary: "cancel tasks: by id, or all that --where names",
    load: async () => (await import("./verbs/cancel.ts")).cancelVerb,
  },
  {
    name: "retry",
    summary: "run failed, cancelled or skipped tasks again",
    load: async () => (await import("./verbs/cancel.ts")).retryVerb,
  },
];

const FLEET: readonly ListedVerb[] = [
  {
    name: "workers",
    summary: "list workers; drain or remove one",
    load: async () => (await import("./verbs/workers.ts")).workersVerb,
  },
  {
    name: "projects",
    summary: "list projects with shares and budgets; set one",
    load: async () => (await import("./verbs/projects.ts")).projectsVerb,
  },
  {
    name: "gates",
    summary: "list the gates before LLM providers; show, reset or delete one",
    load: async () => (await import("./verbs/gates.ts")).gatesVerb,
  },
  {
    name: "schedules",
    summary: "list recurring tasks; set or remove one",
    load: async () => (await import("./verbs/schedules.ts")).schedulesVerb,
  },
  {
    name: "pause",
    summary: "start nothing more: of the fleet, a project or a task",
    load: async () => (await import("./verbs/pause.ts")).pauseVerb,
  },
  {
    name: "resume",
    summary: "take a pause back",
    load: async () => (await import("./verbs/pause.ts")).resumeVerb,
  },
];

const LOG: readonly ListedVerb[] = [
  {
    name: "events",
    summary: "print the events of the log; --follow as they happen",
    load: async () => (await import("./verbs/events.ts")).eventsVerb,
  },
  {
    name: "verify",
    summary: "check that a log is what was written: every link, signature, payload and snapshot",
    load: async () => (await import("./verbs/verify.ts")).verifyVerb,
  },
  {
    name: "simulate",
    summary: "play random histories with faults against the engine (in a clone)",
    load: async () => (await import("./verbs/simulate.ts")).simulateVerb,
  },
];

const PROGRAM: readonly ListedVerb[] = [
  {
    name: "config",
    summary: "check the config, show it, or print its schema",
    load: async () => (await import("./verbs/config.ts")).configVerb,
  },
  {
    name: "completion",
    summary: "print a script for completion in your shell",
    load: async () => (await import("./verbs/completion.ts")).completionVerb,
  },
];

export const VERBS: readonly ListedVerb[] = [
  ...group("Start here:", START),
  ...group("Tasks:", TASKS),
  ...group("The fleet:", FLEET),
  ...group("The log:", LOG),
  ...group("This program:", PROGRAM),
];
