/**
 * `drover workers`: who executes; and how to let one finish and go.
 */
import { answering, idOf } from "../shell/connection.ts";
import { asTyped } from "../shell/problem.ts";
import { plain } from "../shell/text.ts";
import type { Verb, VerbBody } from "../shell/verb.ts";
import { workerTable } from "../show/fleet-view.ts";

const id = { name: "<id>", about: "the worker" };

const drain: Verb<Record<never, never>> = {
  name: "drain",
  summary: "give a worker nothing more, and let it finish",
  takes: [id],
  examples: [["drover workers drain mac-1", "before its machine is restarted"]],
  run: answering(
    (client, call) => client.drainWorker(idOf(call)),
    ({ workerId }) => `${plain(workerId)} is draining: it finishes what it has\n`,
  ),
};

const remove: Verb<Record<never, never>> = {
  name: "remove",
  summary: "take a worker away; what it held is queued again",
  takes: [id],
  examples: [["drover workers remove mac-1", "a machine that will not come back"]],
  run: answering(
    (client, call) => client.leaveWorker(idOf(call)),
    ({ workerId }) => `${plain(workerId)} has left; what it held is queued again\n`,
  ),
};

export const workersVerb: VerbBody<Record<never, never>> = {
  examples: [["drover workers", "who is there, how busy, and with what capabilities"]],
  verbs: [drain, remove],
  run: answering(
    (client) => client.workers(),
    ({ count, workers }, output) =>
      count === 0
        ? `No worker is here. Start one: ${asTyped("drover worker --commands")} (or --exec 'PROGRAM')\n`
        : workerTable(workers, output),
  ),
};
