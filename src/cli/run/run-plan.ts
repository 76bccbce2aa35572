/**
 * A plan from its file to where it runs: what `drover run` does.
 *
 * It only gathers what a run needs: the plan, which of its tasks, and the server that it joins, or the path of its log
 * and how many commands at once. What happens then is in join.ts and alone.ts.
 */

import { existsSync, renameSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { type Client, ClientError } from "../../client/index.ts";
import { nearest } from "../../core/base/index.ts";

import { type Known, matchTasks, type PlanTask, planSchemaText, withNeeds } from "../../plan/index.ts";
import { PAGE_MAX } from "../../protocol/index.ts";
import { type Clock, present, realClock } from "../../std/index.ts";
import { findRepository, probeWorktree, relocateTrees } from "../../worker/worktree/index.ts";

import { readConfigText } from "../config/file.ts";
import { BadConfig } from "../config/problem.ts";
import { type PlanFile, readPlan } from "../plan/plan-file.ts";
import { EXIT, type ExitCode, usageProblem } from "../shell/problem.ts";
import type { Terminal } from "../shell/terminal.ts";
import { type Call, given } from "../shell/verb.ts";
import { refusalOf } from "../worker/preflight.ts";
import { runAlone } from "./alone.ts";
import { findServer, type ServerChoice } from "./find-server.ts";
import { joinPlan, type RunFlags } from "./join.ts";
import { clientAt } from "./link.ts";
import { isInUse, knownBefore, logProblem, rethrown } from "./log.ts";
import { showPreview } from "./preview.ts";
import type { RunRequest } from "./session.ts";

const INPUT_BYTES_MAX = 1024 * 1024;
/** No name that a plan could take from its file: two plans from standard input would share one log. */
const INPUT_NAME = "standard input";
const NAMES_SHOWN_MAX = 10;
/** Of the tasks that a plan had before, as many are looked at. */
const KNOWN_MAX = 100_000;

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
  const server = await serverFor(call, plan);
  if (server !== null) return await putAndWatch({ call, server, plan, tasks, clock });
  refuseUnfit(tasks);
  const data =
    flags.data === undefined ? resolve(plan.directory, ".drover/runs", plan.name) : resolve(terminal.cwd, flags.data);
  const slots = flags.slots ?? plan.slots ?? availableParallelism();
  if (flags.dryRun === true) {
    const known = flags.fresh === true ? [] : await knownBefore(data).catch(rethrown(data));
    showPreview(
      { plan, tasks, where: { slots }, prefix: `${plan.name}.`, known, retriesFailed: flags.retryFailed !== false },
      output,
    );
    return EXIT.ok;
  }
  await checkWorktrees(tasks, plan.directory, `${plan.name}.`, () => (flags.fresh === true ? [] : knownBefore(data)));
  if (flags.fresh === true) await moveAside(data, terminal);
  return await runAlone({ call, plan, tasks, data, slots, clock });
}

/** The workers of a run alone run commands, and offer nothing else. */
function refuseUnfit(tasks: readonly PlanTask[]): void {
  const hint = "drover serve starts a server, your worker joins it, and so does drover run";
  for (const { name, work, rules } of tasks) {
    if (work.command.kind === "call")
      throw usageProblem(
        `task ${name} has the action ${work.command.action}, and a plan that runs alone has workers for commands only`,
        hint,
      );
    const [first] = rules.capabilities ?? [];
    if (first !== undefined)
      throw usageProblem(
        `task ${name} needs a worker that offers ${first}, and those of a plan that runs alone offer no capabilities`,
        `${hint}; or leave capabilities: out`,
      );
  }
}

// ------------------------------------------------------------------- on a server

/** The server that the plan joins; null: it runs alone. */
async function serverFor(call: Call<RunFlags>, { directory }: PlanFile): Promise<ServerChoice | null> {
  const { flags, terminal } = call;
  if (flags.alone === true) {
    if (flags.url !== undefined) throw usageProblem("--alone and --url contradict each other", "give one of the two");
    return null;
  }
  const noted = (text: string): void => terminal.err(`note: ${text}; the plan runs alone\n`);
  const server = await findServer({ url: flags.url, terminal, directory, noted });
  if (server === null) return null;
  for (const flag of ["slots", "data"] as const)
    if (flags[flag] !== undefined)
      throw usageProblem(
        `--${flag} is for a plan that runs alone, and this one joins the server at ${server.url} (${server.by})`,
        flag === "slots" ? "its workers have slots of their own; --alone runs it here" : "--alone runs it here",
      );
  return server;
}

type Putting = Pick<RunRequest, "tasks" | "clock"> & {
  readonly call: Call<RunFlags>;
  readonly server: ServerChoice;
  readonly plan: PlanFile;
};

async function putAndWatch({ call, server, plan, tasks, clock }: Putting): Promise<ExitCode> {
  const { flags, output } = call;
  const { name, directory, document } = plan;
  if (flags.dryRun === true) {
    const known = flags.fresh === true ? [] : await knownOnServer(clientAt(call, server), name);
    const where = { server: server.url };
    showPreview(
      { plan, tasks, where, prefix: prefixOf(known, name), known, retriesFailed: flags.retryFailed !== false },
      output,
    );
    return EXIT.ok;
  }
  const { only, retryFailed, failFast, fresh } = flags;
  // Found beside the plan it is of this machine. One that is named may be anywhere, and so may its workers.
  const at = server.directory === null ? {} : { directory };
  return await joinPlan({
    call,
    server,
    name,
    tasks,
    clock,
    file: call.args[0] ?? "",
    watched: only === undefined ? null : new Set(tasks.map((task) => task.name)),
    approved: new Set(flags.approve),
    begin: (link) =>
      link.client().plans.put(name, document, { ...given({ only, retryFailed, failFast, fresh }), ...at }),
  });
}

/** What the ids of its tasks begin with; one that was begun anew has the number of that run behind its name. */
function prefixOf(known: readonly Known[], name: string): string {
  const [{ id } = { id: "" }] = known;
  const [, run = ""] = /^(\d+\.).+\.[0-9a-f]{12}\.[0-9a-f]{8}$/.exec(id.slice(name.length + 1)) ?? [];
  return `${name}.${run}`;
}

/** What the server has of the plan and, as it would find them again, of tasks that were left out of the last put. */
async function knownOnServer(client: Client, name: string): Promise<Known[]> {
  try {
    const { tasks, groupId, createdAt } = await client.plans.get(name);
    const known = new Map<string, Known>();
    for (const { taskId: id, state: phase, reason: error = null } of tasks) known.set(id, { id, phase, error });
    const prefix = prefixOf([...known.values()], name);
    let cursor: string | undefined;
    do {
      const page = await client.tasks({ group: groupId, since: createdAt, limit: PAGE_MAX, ...present({ cursor }) });
      for (const { taskId: id, state: phase, error = null } of page.tasks)
        if (id.startsWith(prefix) && !known.has(id)) known.set(id, { id, phase, error });
      cursor = page.nextCursor;
    } while (cursor !== undefined && known.size < KNOWN_MAX);
    return [...known.values()];
  } catch (error) {
    if (error instanceof ClientError && error.code === "not_found") return [];
    throw error;
  }
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

/** The old log stays under another name: there is no question first, so nothing may be lost. */
async function moveAside(data: string, { now, cwd, err }: Terminal): Promise<void> {
  if (!existsSync(data)) return;
  if (isInUse(data)) throw logProblem(null, data);
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
  prefix: string,
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
  const left = matchTasks(tasks, before, { prefix }).filter(({ phase }) => phase !== "done");
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
