/**
 * `drover why ID`: every condition between a task and its start, now or as of an event in the past.
 */
import { answering, idOf } from "../shell/connection.ts";
import { given, type VerbBody, wholeNumber } from "../shell/verb.ts";
import { whyPicture } from "../show/why-view.ts";

type Flags = { readonly at?: number };

export const whyVerb: VerbBody<Flags> = {
  takes: [{ name: "<id>", about: "the task" }],
  flags: [{ flags: "--at <seq>", about: "as of this event (drover events shows their numbers)", read: wholeNumber(1) }],
  examples: [
    ["drover why tsk_12", "what it waits for, who is ahead, when it could start"],
    ["drover why tsk_12 --at 4711", "the same as of event 4711"],
  ],
  run: answering((client, call) => client.why(idOf(call), given({ at: call.flags.at })), whyPicture),
};
