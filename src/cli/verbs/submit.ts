/**
 * `drover submit`: gives the server one task; with --batch many.
 *
 * Alone it prints the id and nothing else, so that a script can keep it. With --wait it stays until the task has ended:
 * what happens on the way goes to standard error, the result to standard output, and the exit code says how it ended.
 * Of a batch the ids are printed, one a line, and what was turned away is said by its line.
 */
import type { BatchAnswer, Submitted, TaskView } from "../../protocol/index.ts";
import { clientFor } from "../shell/connection.ts";
import { EXIT, type ExitCode, ownName, usageProblem } from "../shell/problem.ts";
import { interruptible } from "../shell/terminal.ts";
import { plain } from "../shell/text.ts";
import { type Call, given, type VerbBody } from "../shell/verb.ts";
import { shownValue, taskLine } from "../show/task-view.ts";
import { agentFrom, asOwnAgent, SUBMIT_FLAGS, type SubmitFlags, taskBodyFrom, textOf } from "./task-flags.ts";
import { watchTask } from "./watch-task.ts";

type Flags = SubmitFlags & { readonly wait?: boolean; readonly batch?: string };

export const submitVerb: VerbBody<Flags> = {
  takes: [{ name: "[action]", about: "what is to be done (with --command: exec)" }],
  flags: [
    ...SUBMIT_FLAGS,
    {
      flags: "--batch <file>",
      about:
        "up to scheduler.maxBatch (50) tasks as one group, no flag but --agent, --project: JSON lines, an array; or -",
    },
    { flags: "-w, --wait", about: "stay until it has ended; exit code 1 unless it is done" },
  ],
  examples: [
    ["drover submit --command 'echo hello' --wait", "run a command on the local worker and print what it gave"],
    ["drover submit build --project web --type code --capability git", "a task for workers that offer git"],
    ["drover submit review --needs build-1 --params @review.json", "after another task, with arguments from a file"],
    ["id=$(drover submit nightly --not-before 8h)", "the id alone is printed, so a script can keep it"],
    ["drover submit --batch tasks.jsonl", 'many at once, one a line: {"action": "build", "type": "code"}'],
  ],
  run: async (call) => {
    const { args, flags, terminal, output } = call;
    if (flags.batch !== undefined) return submitBatch(call, flags.batch);
    const body = await taskBodyFrom(args[0], flags, terminal);
    const client = clientFor(call);
    const submitted = await asOwnAgent(call, body.agentId, (agentId) => client.submit({ ...body, agentId }));
    warn(submitted, call);
    if (flags.wait === true) return waitFor(submitted.taskId, call);
    output.answer(submitted, () => `${plain(submitted.taskId)}\n`);
    return EXIT.ok;
  },
};

/** What says something of one task says nothing of a batch. */
const OF_A_BATCH: ReadonlySet<string> = new Set(["batch", "agent", "project", "json", "url", "color"]);

async function submitBatch(call: Call<Flags>, file: string): Promise<ExitCode> {
  const { args, flags, terminal, output } = call;
  const other = args[0] ?? Object.keys(flags).find((key) => !OF_A_BATCH.has(key));
  if (other !== undefined)
    throw usageProblem(
      `${args[0] ?? flagOf(other)} is of one task, and --batch has many`,
      "say it in their lines; drover group ID --wait waits for them",
    );
  const { text, from } = await textOf("--batch", file === "-" ? file : `@${file}`, terminal);
  const { tasks, placeOf } = (await import("../shell/batch-text.ts")).readBatch(text, from);
  const project = given({ project: flags.project });
  const client = clientFor(call);
  const answer = await asOwnAgent(call, agentFrom(flags, terminal), (agentId) =>
    client.submitBatch({ agentId, ...project, tasks }),
  );
  output.answer(answer, () =>
    answer.tasks.map(({ taskId, error }) => (error ? "" : `${plain(taskId ?? "")}\n`)).join(""),
  );
  if (!output.isJson) tellBatch(answer, placeOf, terminal.err);
  return answer.rejected === 0 ? EXIT.ok : EXIT.refused;
}

function tellBatch(
  { tasks, groupId, accepted }: BatchAnswer,
  placeOf: (index: number) => string,
  err: (text: string) => void,
): void {
  for (const [index, { error }] of tasks.entries())
    if (error !== undefined) err(`error: ${plain(`${placeOf(index)}: ${error.replace(`tasks[${index}].`, "")}`)}\n`);
  if (groupId !== undefined)
    err(`${accepted} of ${tasks.length} accepted; ${ownName()} group ${plain(groupId)} --wait waits for them\n`);
}

const flagOf = (key: string): string => `--${key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

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
