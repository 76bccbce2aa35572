/**
 * A plan from its file to its exit code: what `drover run` does.
 *
 * It only gathers what a run needs: the plan, the path of its log, how many commands at once, who shows what happens,
 * and what Ctrl-C means. A first interrupt lets commands end in good order, a second kills them; in both cases the
 * same command later goes on where this one stopped.
 */

import { existsSync, renameSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { nearest } from "../../core/base/index.ts";

import { type Known, matchTasks, type PlanTask, planSchemaText, withNeeds } from "../../plan/index.ts";
import { type Clock, realClock } from "../../std/index.ts";
import { findRepository, probeWorktree, relocateTrees } from "../../worker/worktree/index.ts";

import { readConfigText } from "../config/file.ts";
import { BadConfig } from "../config/problem.ts";
import { type PlanFile, readPlan } from "../plan/plan-file.ts";
import { EXIT, type ExitCode, usageProblem } from "../shell/problem.ts";
import type { StopSignal, Terminal } from "../shell/terminal.ts";
import type { Call } from "../shell/verb.ts";
import { refusalOf } from "../worker/preflight.ts";
import { createAttempts } from "./attempts.ts";
import { isInUse, knownBefore, logProblem } from "./log.ts";
import { showPreview } from "./preview.ts";
import { type RunRequest, startRun } from "./session.ts";
import { createShow } from "./show.ts";
import { exitOf, showSummary } from "./summary.ts";

export type RunFlags = {
  readonly data?: string;
  readonly slots?: number;
  readonly only?: readonly string[];
  readonly dryRun?: boolean;
  readonly fresh?: boolean;
  readonly failFast?: boolean;
  readonly approve?: readonly string[];
  readonly keepGoing?: boolean;
  readonly retryFailed?: boolean;
  readonly output?: boolean;
  readonly printSchema?: boolean;
};

const INPUT_BYTES_MAX = 1024 * 1024;
/** No name that a plan could take from its file: two plans from standard input would share one log. */
const INPUT_NAME = "standard input";
const NAMES_SHOWN_MAX = 10;
/** Two interrupts closer together than this are one, sent by a terminal and by the launcher that passed it on. */
const ONE_INTERRUPT_MS = 300;

/** The clock and timers may be given, for tests. */
export async function runPlan(call: Call<RunFlags>, clock: Clock = realClock): Promise<ExitCode> {
  const { flags, terminal, output } = call;
  if (flags.printSchema === true) {
    terminal.out(planSchemaText());
    return EXIT.ok;
  }
  if (flags.failFast === true && flags.keepGoing === true)
    throw usageProblem("--fail-fast and --keep-going contradict each other", "give one of the two");
  const plan = await loadPlan(call.args, terminal);
  const tasks = flags.only === undefined ? plan.tasks : chosen(plan, flags.only);
  const data =
    flags.data === undefined ? resolve(plan.directory, ".drover/runs", plan.name) : resolve(terminal.cwd, flags.data);
  const slots = flags.slots ?? plan.slots ?? availableParallelism();
  if (flags.dryRun === true) {
    const known = flags.fresh === true ? [] : await knownBefore(data).catch(rethrown(data));
    showPreview({ plan, tasks, slots, known, retriesFailed: flags.retryFailed !== false }, output);
    return EXIT.ok;
  }
  await checkWorktrees(tasks, plan.directory, () => (flags.fresh === true ? [] : knownBefore(data)));
  if (flags.fresh === true) await moveAside(data, terminal);
  return await perform({ call, plan, tasks, data, slots, clock });
}

type Prepared = Pick<RunRequest, "plan" | "tasks" | "data" | "slots" | "clock"> & { readonly call: Call<RunFlags> };

async function perform({ call, plan, tasks, data, slots, clock }: Prepared): Promise<ExitCode> {
  const { flags, terminal, output } = call;
  const startedAt = terminal.now();
  const { name } = plan;
  const attempts = createAttempts({
    plan,
    data,
    clock,
    env: terminal.env,
    onWarning: (text) => show.noted(text),
    ...(flags.output === true ? { onOutput: (id: string, line: string) => show.wrote(id, line) } : {}),
  });
  const show = createShow({ terminal, output, name, data, slots, lastLine: attempts.lastLine, clock });
  const running = startRun({
    plan,
    tasks,
    data,
    slots,
    attempts,
    now: terminal.now,
    clock,
    observer: show,
    retriesFailed: flags.retryFailed !== false,
    failsFast: flags.failFast === true,
    approved: new Set(flags.approve),
  });
  const interrupts = listen(terminal, show.noted, running.interrupt, attempts.kill);
  try {
    const { runState, end } = await running.ended.catch(rethrown(data));
    show.end();
    const exit = exitOf(runState, end, interrupts.signal());
    const { before, all } = runState.counts();
    if (before < all || output.isJson)
      await showSummary(
        { runState, end, name, file: call.args[0] ?? "", data, exit, tookMs: terminal.now() - startedAt },
        { attempts, output, cwd: terminal.cwd },
      );
    return exit;
  } finally {
    show.end();
    interrupts.end();
  }
}

/** The first interrupt asks, the second does not. */
function listen(
  terminal: Terminal,
  noted: (text: string) => void,
  interrupt: () => void,
  kill: () => void,
): { signal(): StopSignal | null; end(): void } {
  let first: { readonly signal: StopSignal; readonly at: number } | null = null;
  const end = terminal.onSignal(["SIGINT", "SIGTERM", "SIGHUP"], (signal) => {
    const at = terminal.now();
    if (first === null) {
      first = { signal, at };
      noted("stopping: what runs may end; once more (Ctrl-C) kills it at once");
      interrupt();
    } else if (at - first.at >= ONE_INTERRUPT_MS) kill();
  });
  return { signal: () => first?.signal ?? null, end };
}

// -------------------------------------------------------------------- the plan

async function loadPlan([file]: readonly string[], terminal: Terminal): Promise<PlanFile> {
  if (file === undefined)
    throw usageProblem(
      "which plan? name its file",
      "drover run FILE; drover help run has examples, and drover run --print-schema every key",
    );
  const isInput = file === "-";
  const path = resolve(terminal.cwd, file);
  const text = isInput ? await readInput(terminal) : readFile(path, file);
  if (text === null) throw usageProblem(`there is no file ${file}`, "give the path of a plan file that is there");
  return readPlan({ file: isInput ? INPUT_NAME : file, text, directory: isInput ? terminal.cwd : dirname(path) });
}

function readFile(path: string, name: string): string | null {
  try {
    return readConfigText(path, name);
  } catch (error) {
    if (error instanceof BadConfig) throw usageProblem(error.message, "give the path of a plan file");
    throw error;
  }
}

async function readInput(terminal: Terminal): Promise<string> {
  try {
    return await terminal.readInput(INPUT_BYTES_MAX);
  } catch (error) {
    if (error instanceof TypeError) throw usageProblem("standard input is not UTF-8 text");
    throw error;
  }
}

/** The named tasks, by their own name or that of all their values, and what they need. */
function chosen({ tasks }: PlanFile, names: readonly string[]): PlanTask[] {
  const wanted = names.flatMap((name) => {
    const found = tasks.filter((task) => task.name === name || task.definition === name);
    if (found.length > 0) return found.map((task) => task.name);
    const meant = nearest(name, [...new Set(tasks.flatMap((task) => [task.definition, task.name]))]);
    throw usageProblem(
      `--only names ${name}, which is no task of the plan`,
      meant === null ? `its tasks: ${someOf(tasks)}` : `did you mean ${meant}?`,
    );
  });
  return withNeeds(tasks, wanted);
}

function someOf(tasks: readonly PlanTask[]): string {
  const names = [...new Set(tasks.map(({ definition }) => definition))];
  const rest = names.length - NAMES_SHOWN_MAX;
  return names.slice(0, NAMES_SHOWN_MAX).join(", ") + (rest > 0 ? ` and ${rest} more (--dry-run shows all)` : "");
}

// --------------------------------------------------------------------- the log

const rethrown =
  (data: string) =>
  (error: unknown): never => {
    throw logProblem(error, data) ?? error;
  };

/** The old log stays under another name: there is no question first, so nothing may be lost. */
async function moveAside(data: string, { now, cwd, err }: Terminal): Promise<void> {
  if (!existsSync(data)) return;
  if (await isInUse(data)) throw logProblem(null, data);
  const stamp = new Date(now()).toISOString().replaceAll(/[-:]|\.\d+/g, "");
  let aside = `${data}.${stamp}`;
  for (let count = 2; existsSync(aside); count++) aside = `${data}.${stamp}-${count}`;
  renameSync(data, aside);
  await relocateTrees(join(aside, "worktrees"));
  err(`note: the old log is now ${relative(cwd, aside)}\n`);
}

/**
 * Refuses a plan with a worktree that cannot be made. An earlier task may make what a later one stands on (a branch, a
 * commit, a clone), so only what needs no other is looked at in full; of the others only that a directory which is
 * there is in a repository. `known` is asked only if something is wrong: it is read from the log.
 */
async function checkWorktrees(
  tasks: readonly PlanTask[],
  directory: string,
  known: () => readonly Known[] | Promise<readonly Known[]>,
): Promise<void> {
  const answers = new Map<string, string | null>();
  const bad: { readonly task: PlanTask; readonly why: string }[] = [];
  for (const task of tasks) {
    const { cwd, worktree } = task.work;
    if (worktree === null) continue;
    const path = resolve(directory, cwd);
    const isFirst = task.needs.length === 0;
    const key = JSON.stringify([path, worktree.base, isFirst]);
    if (!answers.has(key)) answers.set(key, await refusalOf(() => probe(path, worktree.base, isFirst)));
    const why = answers.get(key) ?? null;
    if (why !== null) bad.push({ task, why });
  }
  if (bad.length === 0) return;
  // A log that cannot be read is complained of where it is opened.
  const before = await Promise.resolve(known()).catch(() => []);
  const left = matchTasks(tasks, before).matched.filter(({ phase }) => phase !== "done");
  const wanted = new Set(left.map(({ task }) => task.name));
  const [first] = bad.filter(({ task }) => wanted.has(task.name));
  if (first === undefined) return;
  throw usageProblem(
    `task ${first.task.name} wants a worktree: ${first.why}`,
    "nothing was started; without worktree: a task runs in the directory itself",
  );
}

async function probe(cwd: string, base: string, isFirst: boolean): Promise<void> {
  if (isFirst) await probeWorktree({ cwd, base });
  else if (existsSync(cwd)) await findRepository(cwd);
}
