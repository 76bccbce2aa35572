/**
 * `drover logs ID`: the end of what an attempt of a task wrote. The same as `drover task ID --logs`.
 */
import type { VerbBody } from "../shell/verb.ts";
import { TASK_ARGUMENT } from "./named.ts";
import { LOG_FLAGS, type LogFlags, logs } from "./task.ts";

export const logsVerb: VerbBody<LogFlags> = {
  about: "Print the end of what an attempt of a task wrote; drover task ID --logs --watch goes on with what comes.",
  takes: [{ name: "<id>", about: TASK_ARGUMENT }],
  flags: LOG_FLAGS,
  examples: [
    ["drover logs tsk_12", "of its last attempt"],
    ["drover logs release/build --attempt 1 --tail 50", "of a task of a plan, on a server or run alone"],
  ],
  run: logs,
};
