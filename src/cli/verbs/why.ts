/**
 * `drover why ID`: every condition between a task and its start, now or as of an event in the past.
 */
import { clientFor } from "../shell/connection.ts";
import { EXIT } from "../shell/problem.ts";
import { type VerbBody, wholeNumber } from "../shell/verb.ts";
import { whyPicture } from "../show/why-view.ts";

type Flags = { readonly at?: number };

export const whyVerb: VerbBody<Flags> = {
  takes: [{ name: "<id>", about: "the task" }],
  flags: [{ flags: "--at <seq>", about: "as of this event (drover events shows their numbers)", read: wholeNumber(1) }],
  examples: [
    ["drover why tsk_12", "what it waits for, who is ahead, when it could start"],
    ["drover why tsk_12 --at 4711", "the same as of event 4711"],
  ],
  run: async (call) => {
    const { at } = call.flags;
    const why = await clientFor(call).why(call.args[0] ?? "", at === undefined ? {} : { at });
    call.output.answer(why, () => whyPicture(why, call.output));
    return EXIT.ok;
  },
};
