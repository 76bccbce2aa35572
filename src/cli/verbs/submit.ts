/**
 * `drover submit`: gives the server one task.
 *
 * Alone it prints the id and nothing else, so that a script can keep it. With --wait it stays until the task has ended:
 * what happens on the way goes to standard error, the result to standard output, and the exit code says how it ended.
 */
import type { Submitted, TaskView } from "../../protocol/index.ts";
import { clientFor } from "../shell/connection.ts";
import { EXIT, type ExitCode, ownName } from "../shell/problem.ts";
import { interruptible } from "../shell/terminal.ts";
import { plain } from "../shell/text.ts";
import type { Call, VerbBody } from "../shell/verb.ts";
import { shownValue, taskLine } from "../show/task-view.ts";
import { asOwnAgent, SUBMIT_FLAGS, type SubmitFlags, taskBodyFrom } from "./task-flags.ts";
import { watchTask } from "./watch-task.ts";

type Flags = SubmitFlags & { readonly wait?: boolean };

export const submitVerb: VerbBody<Flags> = {
  takes: [{ name: "[action]", about: "what is to be done (with --command: exec)" }],
  flags: [...SUBMIT_FLAGS, { flags: "-w, --wait", about: "stay until it has ended; exit code 1 unless it is done" }],
  examples: [
    ["drover submit --command 'echo hello' --wait", "run a command on the local worker and print what it gave"],
    ["drover submit build --project web --type code --capability git", "a task for workers that offer git"],
    ["drover submit review --needs build-1 --params @review.json", "after another task, with arguments from a file"],
    ["id=$(drover submit nightly --not-before 8h)", "the id alone is printed, so a script can keep it"],
  ],
  run: async (call) => {
    const { args, flags, terminal, output } = call;
    const body = await taskBodyFrom(args[0], flags, terminal);
    const client = clientFor(call);
    const submitted = await asOwnAgent(call, body.agentId, (agentId) => client.submit({ ...body, agentId }));
    warn(submitted, call);
    if (flags.wait === true) return waitFor(submitted.taskId, call);
    output.answer(submitted, () => `${plain(submitted.taskId)}\n`);
    return EXIT.ok;
  },
};

/** A task that has just been submitted cannot have ended so: the same body was submitted before. */
const ENDED_BEFORE: ReadonlySet<string> = new Set(["done", "failed", "cancelled"]);

function warn({ taskId, state, throttle, warnings = [] }: Submitted, { terminal }: Call<Flags>): void {
  if (ENDED_BEFORE.has(state))
    terminal.err(`warning: ${plain(taskId)} was submitted before and is ${state}; to run it again, take a new id\n`);
  for (const { type, detail } of warnings) terminal.err(`warning: ${plain(detail ?? type)}\n`);
  if (throttle === true) terminal.err("warning: the queue is filling; submit more slowly\n");
  if (warnings.some(({ type }) => type === "never-fits" || type === "no-workers"))
    terminal.err(`         ${ownName()} why ${plain(taskId)} says what is missing\n`);
}

async function waitFor(id: string, call: Call<Flags>): Promise<ExitCode> {
  const { terminal, output } = call;
  const client = clientFor(call);
  const tell = (task: TaskView): void => (output.isJson ? undefined : terminal.err(`${taskLine(task, output)}\n`));
  return interruptible(
    terminal,
    async (signal) => {
      const task = await watchTask(client, id, { signal, onChange: tell });
      output.answer(task, () => (task.result === undefined ? "" : `${shownValue(task.result).trimEnd()}\n`));
      return task.state === "done" ? EXIT.ok : EXIT.failed;
    },
    () => terminal.err(`stopped waiting; the task goes on: ${ownName()} task ${plain(id)} --watch\n`),
  );
}
