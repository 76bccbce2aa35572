/**
 * `drover approve`: answer what parked tasks ask.
 *
 * The first answer counts. With a note, the next attempt sees it; denied, the task has failed.
 */
import { clientFor } from "../shell/connection.ts";
import { given, type VerbBody } from "../shell/verb.ts";
import { forEachId } from "./cancel.ts";

type Flags = { readonly note?: string; readonly deny?: boolean };

export const approveVerb: VerbBody<Flags> = {
  about: "Answer what parked tasks ask: they go on, and their next attempt sees the note; denied, they have failed.",
  takes: [{ name: "<ids...>", about: "the tasks; drover tasks --state parked lists them" }],
  flags: [
    { flags: "--note <text>", about: "what the next attempt sees; with --deny, why" },
    { flags: "--deny", about: "the tasks fail" },
  ],
  examples: [
    ["drover approve tsk_12 --note 'use the blue one'", "it goes on"],
    ["drover approve tsk_12 --deny --note 'not this week'", "it has failed, and says why"],
  ],
  run: (call) => {
    const client = clientFor(call);
    const { note, deny } = call.flags;
    return forEachId(call, deny === true ? "denied" : "approved", (id) => client.approve(id, given({ note, deny })));
  },
};
