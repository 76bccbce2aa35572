/**
 * `drover group ID`: how far the tasks of a batch are; waits for them, cancels them, runs them again.
 */
import type { GroupView } from "../../protocol/index.ts";
import { clientFor, idOf } from "../shell/connection.ts";
import type { Output } from "../shell/output.ts";
import { EXIT, type ExitCode, usageProblem } from "../shell/problem.ts";
import { interruptible } from "../shell/terminal.ts";
import type { Call, VerbBody } from "../shell/verb.ts";
import { usageOf } from "../show/task-view.ts";
import { age } from "../show/time.ts";

type Flags = { readonly wait?: boolean; readonly cancel?: boolean; readonly retry?: boolean };

export const groupVerb: VerbBody<Flags> = {
  about: "How far the tasks of a batch are. A group is known until the last record of its tasks has expired.",
  takes: [{ name: "<id>", about: "the group, as the answer to a batch has it" }],
  flags: [
    { flags: "-w, --wait", about: "wait until all have ended; exit code 1 unless all are done" },
    { flags: "--cancel", about: "cancel what has not ended" },
    { flags: "--retry", about: "run what failed, was cancelled or skipped again" },
  ],
  examples: [
    ["drover group grp_7", "how many of its tasks are where"],
    ["drover group grp_7 --retry --wait", "once more what did not go well, and wait for it"],
    ["drover tasks --group grp_7 --state failed", "which of them failed"],
  ],
  run: async (call) => {
    const { cancel = false, retry = false, wait = false } = call.flags;
    if (cancel && retry) throw usageProblem("--cancel and --retry are two things", "say one of them");
    const client = clientFor(call);
    if (cancel) await client.cancelGroup(idOf(call));
    if (retry) await client.retryGroup(idOf(call));
    if (!wait) return show(call, await client.group(idOf(call)));
    return interruptible(call.terminal, async (signal) => {
      const group = await client.waitGroup(idOf(call), { signal });
      show(call, group);
      return group.counts.done === group.total ? EXIT.ok : EXIT.failed;
    });
  },
};

function show({ output }: Call<Flags>, group: GroupView): ExitCode {
  output.answer(group, () => groupDetails(group, output));
  return EXIT.ok;
}

function groupDetails({ id, projects, counts, total, usage, createdAt, endedAt }: GroupView, output: Output): string {
  const now = output.now();
  const some = Object.entries(counts).filter(([, count]) => count > 0);
  return output.list([
    ["group", id],
    ["projects", projects.join(", ")],
    ["tasks", `${total}: ${some.map(([state, count]) => `${count} ${state}`).join(", ")}`],
    ["used", usage && usageOf(usage)],
    ["created", `${createdAt} (${age(createdAt, now)})`],
    ["ended", endedAt === undefined ? undefined : `${endedAt} (${age(endedAt, now)})`],
  ]);
}
