/**
 * A task as a person names it: by its id, or as PLAN/TASK.
 *
 * A plan is on a server or has run alone. So it is looked for on the server that a person names; else on the one that
 * owns ./.drover, then in the run that is alone at work now, then in the log of one that is over. That log is read, and
 * only an answer to what a task asks is written into it.
 */
import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { addressFromEnv, type Client, ClientError, DEFAULT_URL } from "../../client/index.ts";
import { nearest } from "../../core/base/index.ts";
import type { PlanView } from "../../protocol/index.ts";
import { clientFor, clientProblem } from "../shell/connection.ts";
import { listOf, noSuchTask } from "../shell/meant.ts";
import { CliProblem, EXIT } from "../shell/problem.ts";
import { liveServer, OWN_DATA } from "../shell/server-file.ts";
import { asWord, plainLines, shortPath } from "../shell/text.ts";
import type { Call } from "../shell/verb.ts";
import { namesIn } from "../show/plan-names.ts";
import type { ServerChoice } from "./find-server.ts";
import { clientAt } from "./link.ts";
import type { NamedTask } from "./past-run.ts";

const PLANS_LOOKED_AT = 100;
/** Who names a server that nobody has named. */
const NO_SERVER = "the default";

const NO_SUCH: ReadonlySet<string> = new Set(["not_found", "bad_request"]);

type Asking = Pick<Call, "flags" | "terminal">;

/** Where it is a task of a plan that has run alone, and is over, its log answers. */
export async function namedTask(call: Asking, word: string): Promise<NamedTask> {
  const [plan, name] = partsOf(word);
  if (name === null) return { calls: clientFor(call), id: word };
  const server = await serverWith(call, plan);
  if (server !== null) return await onServer(call, server, word);
  const { readRun } = await import("./past-run.ts");
  const data = runDirectory(plan, call.terminal.cwd) as string; // Without one there is a server to ask.
  const noted = (text: string): void => call.terminal.err(`note: ${plainLines(text)}\n`);
  return await readRun(data, plan, (tasks) => taskNamed(tasks, plan, name), noted);
}

/** How a plan has ended, or stands, that has run alone; null if nothing says. */
export async function pastPlan({ terminal }: Asking, plan: string): Promise<PlanView | null> {
  const { readPlanOf } = await import("./past-run.ts");
  const data = runDirectory(plan, terminal.cwd);
  return data === null ? null : await readPlanOf(data, plan);
}

/** The same where a server or a run at work is needed. */
export async function liveTask(call: Asking, word: string): Promise<NamedTask<Client>> {
  const [plan, name] = partsOf(word);
  if (name === null) return { calls: clientFor(call), id: word };
  const server = await serverWith(call, plan);
  if (server !== null) return await onServer(call, server, word);
  throw overText(plan);
}

/** What has run alone is shown by its log, and goes on by its file. */
export function overText(plan: string): CliProblem {
  const message = `the plan ${plan} has run alone, and nothing of it runs now`;
  const hint = `drover run FILE goes on with it; drover task ${plan}/TASK shows one of its tasks`;
  return new CliProblem({ message, code: "not_found", exit: EXIT.refused, hint });
}

/** `release/ship`; a name in brackets may have slashes of its own. Without one it is the id of a task. */
function partsOf(word: string): readonly [plan: string, name: string | null] {
  const at = word.indexOf("/");
  return at < 1 || at === word.length - 1 ? [word, null] : [word.slice(0, at), word.slice(at + 1)];
}

/** The server that has the plan now, or a run at work; null if it has run alone and is over. */
export async function serverWith(call: Asking, plan: string): Promise<ServerChoice | null> {
  const { flags, terminal } = call;
  const { url = flags.url } = addressFromEnv(terminal.env);
  if (flags.url !== undefined) return { url: flags.url, by: "--url", directory: null };
  if (url !== undefined) return { url, by: "DROVER_URL", directory: null };
  const directory = join(terminal.cwd, OWN_DATA);
  const own = await liveServer(directory, terminal.fetch);
  const by = (path: string): string => shortPath(join(path, "server.json"), terminal.cwd);
  if (own !== null) {
    const server = { ...own, directory, by: by(directory) };
    if (await hasPlan(clientAt(call, server), plan)) return server;
  }
  const data = runDirectory(plan, terminal.cwd);
  if (data === null) return { url: own?.url ?? DEFAULT_URL, by: NO_SERVER, directory: null };
  const run = await liveServer(data, terminal.fetch);
  return run === null ? null : { ...run, directory: data, by: by(data) };
}

async function hasPlan(client: Client, plan: string): Promise<boolean> {
  try {
    await client.plans.get(plan);
    return true;
  } catch (error) {
    if (error instanceof ClientError && error.code === "not_found") return false;
    throw error;
  }
}

/** Where a plan has run alone: beside the plan file, here or above. */
export function runDirectory(plan: string, cwd: string): string | null {
  if (!/^[\w.-]+$/.test(plan) || /^\.+$/.test(plan)) return null;
  return nearestOf(cwd, (at) => join(at, OWN_DATA, "runs", plan));
}

/** The plans that have run alone, by the same way. */
export function runsHere(cwd: string): readonly string[] {
  const runs = nearestOf(cwd, (at) => join(at, OWN_DATA, "runs"));
  return runs === null ? [] : readdirSync(runs).toSorted();
}

function nearestOf(cwd: string, pathIn: (directory: string) => string): string | null {
  for (let at = cwd; ; at = dirname(at)) {
    if (existsSync(pathIn(at))) return pathIn(at);
    if (at === dirname(at)) return null;
  }
}

async function onServer(call: Asking, server: ServerChoice, word: string): Promise<NamedTask<Client>> {
  const calls = clientAt(call, server);
  const [plan, name] = partsOf(word);
  try {
    const view = await calls.plans.get(plan);
    const isOwn = view.tasks.some((task) => task.name === name);
    const names = namesIn(
      plan,
      view.tasks.map((task) => ({ name: task.name, id: task.taskId })),
    );
    if (!isOwn && (await isBelow(calls, view, name ?? ""))) return { calls, id: name ?? "", names };
    return { calls, id: taskNamed(view.tasks, plan, name ?? "").taskId, names };
  } catch (error) {
    if (!(error instanceof ClientError)) throw error;
    if (error.code === "not_found") return await byId(calls, word);
    const near =
      server.by === NO_SERVER && error.code === "network" ? nearest(plan, runsHere(call.terminal.cwd)) : null;
    if (near === null) throw error;
    throw new CliProblem({
      ...clientProblem(error),
      hint: `did you mean ${asWord(`${near}/${name}`)}, which ran alone?`,
    });
  }
}

/** Whether a task with this id grew below one of the plan, as it is or was. */
async function isBelow(calls: Client, { tasks, groupId }: PlanView, id: string): Promise<boolean> {
  const own = new Set(tasks.map(({ taskId }) => taskId));
  try {
    for (let at = await calls.task(id), left = at.depth ?? 0; left > 0 && at.parent !== undefined; left--) {
      if (own.has(at.parent)) return true;
      at = await calls.task(at.parent);
      if (at.group === groupId) return true;
    }
  } catch (error) {
    // What is no id at all is one of no task either.
    if (!(error instanceof ClientError) || !NO_SUCH.has(error.code)) throw error;
  }
  return false;
}

/** An id may have a slash, and no plan is called by what stands before it. */
async function byId(calls: Client, word: string): Promise<NamedTask<Client>> {
  try {
    await calls.task(word);
    return { calls, id: word };
  } catch (error) {
    if (!(error instanceof ClientError) || error.code !== "not_found") throw error;
  }
  const [plan, name] = partsOf(word);
  const { plans } = await calls.plans.list({ limit: PLANS_LOOKED_AT });
  throw noSuchTask({
    message: `no task has the id ${word}, and no plan is called ${plan}`,
    name: plan,
    names: plans.map(({ id }) => id),
    typed: (near) => `${near}/${name}`,
    otherwise: "drover tasks and drover plans list them",
  });
}

function taskNamed<Task extends { readonly name: string }>(tasks: readonly Task[], plan: string, name: string): Task {
  const found = tasks.find((task) => task.name === name);
  if (found !== undefined) return found;
  const names = tasks.map((task) => task.name);
  throw noSuchTask({
    message: `${name} is no task of the plan ${plan}`,
    name,
    names,
    typed: (near) => `${plan}/${near}`,
    otherwise: `its tasks: ${listOf(names)}`,
  });
}
