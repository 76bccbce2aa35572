/**
 * Runs what a task brings: its own command, or the work of a plan's task.
 *
 *     params: { command: "make test" }           a line for /bin/sh -e, or a list of words
 *     params: { plan, task, work }               what the plan says: command or agent, environment, input, worktree, …
 *
 * The same process groups, kill ladder, environment, logs and worktrees as for one command that is given every task;
 * only what is run differs from task to task, so each attempt is set up by its own. Expressions in the work are filled
 * in here, from what the task sees of its needs. What a task brings is run as the person who started this worker:
 * whoever may submit may do what that person may.
 */

import { resolve } from "node:path";
import { isRecord, sentence } from "../../core/base/index.ts";
import { commandIn, matches, workIn } from "../../core/fleet/index.ts";
import {
  type Command,
  ExpressionError,
  filledWork,
  IF_REASON,
  isWanted,
  MissingValue,
  readWork,
  type Work,
} from "../../plan/index.ts";
import type { HeldPermit } from "../../protocol/index.ts";
import { present } from "../../std/index.ts";
import { createEventReader } from "../output/events.ts";
import type { Inherited } from "../process/environment.ts";
import { type Attempt, type AttemptTools, TROUBLE_RETRY_MS } from "./attempt.ts";
import type { ExecContext, ExecOutcome, ExecTask } from "./contract.ts";
import { type AttemptRunner, createTools, ownTools, type Prepared, runAttempts } from "./handler.ts";
import { wholeInputs } from "./inputs.ts";
import { type ExecOptions, type ExecSetup, readExecOptions } from "./options.ts";
import type { Invocation, Preset } from "./presets.ts";

/** How such commands are run; what is run, and in a worktree or not, is for the task to say. */
export type TaskCommandOptions = Omit<ExecOptions, "command" | "shell" | "preset" | "args" | "isolation"> & {
  /** An attempt has started. */
  readonly onStart?: (attempt: Attempt) => void;
};
export type TaskCommands = AttemptRunner & {
  /** Where the output of an attempt is written. */
  logPath(taskId: string, attempt: number): string;
};

/** Without -e a command of several lines would go on after one that failed. */
const SHELL = ["/bin/sh", "-e", "-c"] as const;

/** Throws, in plain words, if the options make no sense. */
export function createTaskCommands({ onStart, ...given }: TaskCommandOptions): TaskCommands {
  const shared: ExecOptions = { ...given, allowUntil: true };
  const tools = createTools(readExecOptions({ ...shared, preset: taskCommand, isolation: "by-task" }));
  let { maxWorktrees } = tools.setup;

  async function prepare(task: ExecTask, context: ExecContext): Promise<Prepared> {
    if (workIn(task.params) === null) return { tools, task };
    const read = readWork(task.params?.work, "params.work");
    if (!read.ok) return permanent(sentence(read.failure));
    const inputs = await wholeInputs(task.inputs ?? {}, context.file).catch((error: Error) => error);
    // As little the task's fault as a file that cannot be laid.
    if (inputs instanceof Error) return unread(task, inputs);
    try {
      if (!isWanted(read.value, inputs)) return { outcome: "skipped", error: `${IF_REASON}${read.value.if}` };
      const work = filledWork(read.value, inputs);
      if (work.command.kind === "nothing") return { outcome: "done" };
      return { tools: toolsFor(task, work), task: withWork(task, work) };
    } catch (error) {
      if (error instanceof MissingValue || error instanceof ExpressionError || error instanceof BadWork)
        return permanent(error.message);
      throw error;
    }
  }

  function unread({ taskId }: ExecTask, { message }: Error): ExecOutcome {
    const error = `its inputs could not be read: ${message}`;
    tools.setup.onWarning(`${taskId}: ${error}`);
    return { outcome: "requeue", error, retryAfterMs: TROUBLE_RETRY_MS };
  }

  function toolsFor(task: ExecTask, work: Work): AttemptTools {
    const { table } = tools.setup;
    const setup = setupFor({ ...shared, table, maxWorktrees }, tools.setup, task, work);
    const preset = setup.preset ?? withInput(work.input, setup.argv ?? []);
    return { ...tools, setup: { ...setup, preset }, ...ownTools(setup) };
  }

  const runner = runAttempts(tools, prepare, onStart);

  async function run(task: ExecTask, context: ExecContext): Promise<ExecOutcome> {
    const work = workIn(task.params);
    if (work === null) return await runner.run(task, context);
    const outcome = await throughGate(task, context, () => runner.run(task, context), runner.isClosing);
    if (outcome.usage === undefined && isFree(task, work)) context.usage({ inputTokens: 0 });
    return outcome;
  }

  return {
    ...runner,
    run,
    logPath: tools.outputs.pathOf,
    limitWorktrees(count) {
      maxWorktrees = count;
      runner.limitWorktrees(count);
    },
  };
}

const permanent = (error: string): ExecOutcome => ({ outcome: "failed", error, permanent: true });

/** A command uses no tokens unless its task says so: what it does not report must not be booked at a guess. */
const isFree = ({ estimatedTokens }: ExecTask, { command }: Readonly<Record<string, unknown>>): boolean =>
  (estimatedTokens ?? 0) === 0 && !(isRecord(command) && command.kind === "agent");

/** The command of a task as a preset: like a coding agent whose command line is the task's own. */
const taskCommand: Preset = ({ params }) => {
  const command = commandIn(params) ?? ["false"];
  return { argv: typeof command === "string" ? [...SHELL, command] : command, createReader: createEventReader };
};

// ------------------------------------------------------- the work of a plan's task

/** The work makes no sense to this worker, and would make none to the next attempt. */
class BadWork extends Error {}

/** What the exec worker needs to know to run this work. */
function setupFor(shared: ExecOptions, { cwd, inherited }: ExecSetup, { params }: ExecTask, work: Work): ExecSetup {
  const { idleTimeoutMs = shared.idleTimeoutMs } = params ?? {};
  const variables = Object.entries(work.env).map(([name, value]) => `${name}=${value}`);
  try {
    return readExecOptions({
      ...shared,
      ...toolOf(work.command),
      cwd: resolve(cwd, work.cwd),
      env: [...(shared.env ?? []), ...passed(work.passEnv, inherited), ...variables],
      idleTimeoutMs: idleTimeoutMs as number | null,
      ...(work.worktree === null ? {} : { isolation: "worktree", base: work.worktree.base }),
    });
  } catch (error) {
    throw new BadWork((error as Error).message);
  }
}

function toolOf(command: Command): Pick<ExecOptions, "command" | "preset" | "args"> {
  switch (command.kind) {
    case "line":
      return { command: [...SHELL, command.line] };
    case "words":
      return { command: command.words };
    case "agent":
      return { preset: command.preset, args: command.args };
    case "call":
      throw new BadWork(`it is for a worker that takes the action ${command.action}`);
    case "nothing":
      return { command: ["true"] };
    default:
      return command satisfies never;
  }
}

/** A command reads what its task says, and nothing else, from its standard input. */
const withInput = (stdin: string, argv: readonly string[]) => (): Invocation => ({
  argv,
  stdin,
  createReader: createEventReader,
});

/** What the exec worker reads of a task: what its agent is told, what its worktree begins from, how it is checked. */
function withWork(task: ExecTask, { command, worktree, until }: Work): ExecTask {
  const { work: _, idleTimeoutMs: __, worktree: ___, ...params } = task.params ?? {};
  const { from, merge } = worktree ?? {};
  const flow = from !== undefined ? { worktree: { from } } : merge !== undefined ? { worktree: { merge } } : {};
  const told = command.kind === "agent" ? { prompt: command.prompt, ...present({ model: command.model }) } : {};
  const checked = task.loop === undefined ? {} : { loop: { ...task.loop, ...present({ until }) } };
  return { ...task, ...checked, params: { ...params, ...told, ...flow } };
}

/** The names in our environment that a plan lets through; `*` stands for any part of a name. */
export function passed(patterns: readonly string[], env: Inherited): string[] {
  // The variables of an outer Drover are about its own task, and not passed on to ours.
  return Object.keys(env).filter(
    (name) => /^(?!DROVER_)[A-Za-z_]\w*$/.test(name) && patterns.some((pattern) => matches(pattern, name)),
  );
}

/** A command of a provider goes out as a call of its gate does: when it may, and telling the gate how it went. */
async function throughGate(
  { provider, estimatedTokens: tokens = 0 }: ExecTask,
  { withPermit }: ExecContext,
  run: () => Promise<ExecOutcome>,
  isStopping: () => boolean,
): Promise<ExecOutcome> {
  if (provider === undefined || withPermit === undefined) return await run();
  const over = new AbortController();
  let outcome: ExecOutcome | null = null;
  const call = async (permit: HeldPermit): Promise<ExecOutcome> => {
    outcome = await run();
    if (outcome.usage !== undefined) permit.usage(outcome.usage);
    const { rateLimited, retryAfterMs, error } = outcome;
    if (rateLimited !== true || isStopping()) return outcome;
    // The gate is notified, so that other calls wait too. This attempt is over: it must not ask for another permit.
    over.abort();
    throw Object.assign(new Error(error), { status: 429, retryAfterMs });
  };
  try {
    return await withPermit(provider, call, { tokens, signal: over.signal });
  } catch (error) {
    if (outcome !== null && over.signal.aborted) return outcome;
    throw error;
  }
}
