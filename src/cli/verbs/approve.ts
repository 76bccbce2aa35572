/**
 * `drover approve`: answer what parked tasks ask.
 *
 * The first answer counts. With a note, the next attempt sees it; denied, the task has failed.
 */
import { given, type VerbBody } from "../shell/verb.ts";
import { forEachId } from "./cancel.ts";
import { named } from "./named.ts";

type Flags = { readonly note?: string; readonly deny?: boolean };

export const approveVerb: VerbBody<Flags> = {
  about: "Answer what parked tasks ask: they go on, and their next attempt sees the note; denied, they have failed.",
  takes: [{ name: "<ids...>", about: "the tasks, by id or as PLAN/TASK; drover tasks --state parked lists them" }],
  flags: [
    { flags: "--note <text>", about: "what the next attempt sees; with --deny, why" },
    { flags: "--deny", about: "the tasks fail" },
  ],
  examples: [
    ["drover approve tsk_12 --note 'use the blue one'", "it goes on"],
    ["drover approve tsk_12 --deny --note 'not this week'", "it has failed, and says why"],
    ["drover approve release/ship", "a task of a plan, on a server or run alone"],
  ],
  run: (call) => {
    const { note, deny } = call.flags;
    return forEachId(call, deny === true ? "denied" : "approved", async (word) => {
      const { calls, id } = await named(call, word);
      return await calls.approve(id, given({ note, deny }));
    });
  },
};
