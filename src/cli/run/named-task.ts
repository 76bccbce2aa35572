/**
 * A task as a person names it: by its id, or as PLAN/TASK.
 *
 * A plan is on a server or has run alone. So it is looked for on the server that a person names; else on the one that
 * owns ./.drover, then in the run that is alone at work now, then in the log of one that is over. That log is read, and
 * only an answer to what a task asks is written into it.
 */
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { addressFromEnv, type Client, ClientError, DEFAULT_URL } from "../../client/index.ts";
import { nearest } from "../../core/base/index.ts";
import { clientFor } from "../shell/connection.ts";
import { CliProblem, EXIT } from "../shell/problem.ts";
import { liveServer, OWN_DATA } from "../shell/server-file.ts";
import { shortPath } from "../shell/text.ts";
import type { Call } from "../shell/verb.ts";
import type { ServerChoice } from "./find-server.ts";
import { clientAt } from "./link.ts";
import type { NamedTask } from "./past-run.ts";

const NAMES_SHOWN_MAX = 10;

type Asking = Pick<Call, "flags" | "terminal">;

/** Where it is a task of a plan that has run alone, and is over, its log answers. */
export async function namedTask(call: Asking, word: string): Promise<NamedTask> {
  const [plan, name] = partsOf(word);
  if (name === null) return { calls: clientFor(call), id: word };
  const server = await serverWith(call, plan);
  if (server !== null) return await onServer(clientAt(call, server), plan, name, word);
  const { readRun } = await import("./past-run.ts");
  const data = runDirectory(plan, call.terminal.cwd) as string; // Without one there is a server to ask.
  return await readRun(data, plan, (tasks) => taskNamed(tasks, plan, name));
}

/** The same where a server or a run at work is needed. */
export async function liveTask(call: Asking, word: string): Promise<NamedTask<Client>> {
  const [plan, name] = partsOf(word);
  if (name === null) return { calls: clientFor(call), id: word };
  const server = await serverWith(call, plan);
  if (server !== null) return await onServer(clientAt(call, server), plan, name, word);
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
  if (data === null) return { url: own?.url ?? DEFAULT_URL, by: "the default", directory: null };
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
  for (let at = cwd; ; at = dirname(at)) {
    const data = join(at, OWN_DATA, "runs", plan);
    if (existsSync(data)) return data;
    if (at === dirname(at)) return null;
  }
}

async function onServer(calls: Client, plan: string, name: string, word: string): Promise<NamedTask<Client>> {
  try {
    const { tasks } = await calls.plans.get(plan);
    return { calls, id: taskNamed(tasks, plan, name).taskId };
  } catch (error) {
    // An id may have a slash, and no plan is called by what stands before it.
    if (error instanceof ClientError && error.code === "not_found") return { calls, id: word };
    throw error;
  }
}

function taskNamed<Task extends { readonly name: string }>(tasks: readonly Task[], plan: string, name: string): Task {
  const found = tasks.find((task) => task.name === name);
  if (found !== undefined) return found;
  const names = tasks.map((task) => task.name);
  const meant = nearest(name, names);
  const more = names.length > NAMES_SHOWN_MAX ? ` and ${names.length - NAMES_SHOWN_MAX} more` : "";
  const list = `its tasks: ${names.slice(0, NAMES_SHOWN_MAX).join(", ")}${more}`;
  const hint = meant === null ? list : `did you mean ${plan}/${meant}?`;
  throw new CliProblem({
    message: `${name} is no task of the plan ${plan}`,
    code: "not_found",
    exit: EXIT.refused,
    hint,
  });
}
