/**
 * `drover workers`: who executes; and how to let one finish and go.
 */
import { clientFor } from "../shell/connection.ts";
import { EXIT } from "../shell/problem.ts";
import { plain } from "../shell/text.ts";
import type { Verb, VerbBody } from "../shell/verb.ts";
import { workerTable } from "../show/fleet-view.ts";

const id = { name: "<id>", about: "the worker" };

const drain: Verb<Record<never, never>> = {
  name: "drain",
  summary: "give a worker nothing more, and let it finish",
  takes: [id],
  examples: [["drover workers drain mac-1", "before its machine is restarted"]],
  run: async (call) => {
    const answer = await clientFor(call).drainWorker(call.args[0] ?? "");
    call.output.answer(answer, () => `${plain(answer.workerId)} is draining: it finishes what it has\n`);
    return EXIT.ok;
  },
};

const remove: Verb<Record<never, never>> = {
  name: "remove",
  summary: "take a worker away; what it held is queued again",
  takes: [id],
  examples: [["drover workers remove mac-1", "a machine that will not come back"]],
  run: async (call) => {
    const answer = await clientFor(call).leaveWorker(call.args[0] ?? "");
    call.output.answer(answer, () => `${plain(answer.workerId)} has left; what it held is queued again\n`);
    return EXIT.ok;
  },
};

export const workersVerb: VerbBody<Record<never, never>> = {
  examples: [["drover workers", "who is there, how busy, and with what capabilities"]],
  verbs: [drain, remove],
  run: async (call) => {
    const list = await clientFor(call).workers();
    call.output.answer(list, () =>
      list.count === 0
        ? "No worker is here. Start one: drover worker --exec 'COMMAND'\n"
        : workerTable(list.workers, call.output),
    );
    return EXIT.ok;
  },
};
