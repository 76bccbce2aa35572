/**
 * Every verb of `drover`, in the order of the help.
 */
import { cancelVerb, retryVerb } from "./cancel.ts";
import { completionVerb } from "./completion.ts";
import { configVerb } from "./config.ts";
import { eventsVerb } from "./events.ts";
import { gatesVerb } from "./gates.ts";
import { pauseVerb, resumeVerb } from "./pause.ts";
import { projectsVerb } from "./projects.ts";
import { runVerb } from "./run.ts";
import { schedulesVerb } from "./schedules.ts";
import { serveVerb } from "./serve-verb.ts";
import { simulateVerb } from "./simulate.ts";
import { submitVerb } from "./submit.ts";
import { taskVerb } from "./task.ts";
import { tasksVerb } from "./tasks.ts";
import type { Verb } from "./verb.ts";
import { verifyVerb } from "./verify.ts";
import { whyVerb } from "./why.ts";
import { workerVerb } from "./worker-verb.ts";
import { workersVerb } from "./workers.ts";

const group = (name: string, verbs: readonly Verb<never>[]): Verb<never>[] =>
  verbs.map((verb) => ({ ...verb, group: name }));

export const VERBS: readonly Verb<never>[] = [
  ...group("Start here:", [serveVerb, runVerb, workerVerb]),
  ...group("Tasks:", [submitVerb, tasksVerb, taskVerb, whyVerb, cancelVerb, retryVerb]),
  ...group("The fleet:", [workersVerb, projectsVerb, gatesVerb, schedulesVerb, pauseVerb, resumeVerb]),
  ...group("The log:", [eventsVerb, verifyVerb, simulateVerb]),
  ...group("This program:", [configVerb, completionVerb]),
];
