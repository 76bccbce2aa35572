/**
 * `drover worker`: this machine runs tasks of a server, one command per task.
 *
 * The first Ctrl-C or SIGTERM lets it finish: it takes nothing more and leaves when what runs has ended. The second
 * stops what runs, by the ladder; the third does not wait for that. A terminal that is closed (SIGHUP) counts as two:
 * there is no terminal to press again, and commands, which have process groups of their own, would outlive the worker.
 * Whatever it has not finished is queued again by the server.
 */

import { hostname } from "node:os";
import { join, resolve } from "node:path";
import { addressFromEnv, ClientError, DEFAULT_URL } from "../../client/index.ts";
import { EXEC_COMMAND, EXEC_WORKTREE } from "../../core/fleet/index.ts";
import { realClock } from "../../std/index.ts";
import { type TaskCommandOptions, watchRoom } from "../../worker/exec/index.ts";
import type { ExecHandler, ExecOptions, PresetName, PullWorker } from "../../worker/index.ts";
import { execLogs, startWorkerWithOutcomes } from "../../worker/index.ts";
import { asTyped, CliProblem, EXIT, type ExitCode, usageProblem } from "../shell/problem.ts";
import { liveServer, OWN_DATA } from "../shell/server-file.ts";
import { exitOf, type StopSignal, type Terminal } from "../shell/terminal.ts";
import { type Call, given } from "../shell/verb.ts";
import { checkProgram, checkWorktree, commandsFrom, handlerFrom, makeWorkerData, whyNoTree } from "./preflight.ts";
import { type QuietFlag, taskLines } from "./task-lines.ts";

/** What an exec worker runs and where: the same for `drover worker` and `drover serve --exec`. */
export type ExecFlags = {
  readonly exec?: string;
  readonly shell?: boolean;
  readonly preset?: PresetName;
  /** What tasks bring, and nothing else. */
  readonly commands?: boolean;
  readonly arg?: readonly string[];
  readonly env?: readonly string[];
  readonly worktree?: boolean;
  readonly base?: string;
  readonly setup?: string;
  readonly cleanup?: string;
  readonly allowUntil?: boolean;
  readonly idleTimeout?: number;
  readonly killGrace?: number;
  readonly maxWorktrees?: number;
};
export type WorkerFlags = ExecFlags &
  QuietFlag & {
    readonly id?: string;
    readonly slots?: number;
    readonly capability?: readonly string[];
    readonly action?: readonly string[];
    readonly type?: readonly string[];
    readonly project?: readonly string[];
    readonly cpu?: number;
    readonly memory?: number;
    readonly zone?: string;
    readonly data?: string;
  };

export async function work(call: Call<WorkerFlags>): Promise<ExitCode> {
  const { flags, terminal, output } = call;
  const address = addressFromEnv(terminal.env);
  const url =
    flags.url ?? address.url ?? (await liveServer(join(terminal.cwd, OWN_DATA), terminal.fetch))?.url ?? DEFAULT_URL;
  const data = resolve(terminal.cwd, flags.data ?? ".drover/worker");
  const warn = (text: string): void => terminal.err(`warning: ${asTyped(text)}\n`);
  const isByTask = flags.commands === true;
  const options = { ...(isByTask ? commandOptionsFrom(flags) : execOptionsFrom(flags)), data, url, cwd: terminal.cwd };
  const exec = await prepare({ ...options, onWarning: warn }, call);
  const stop = stopper(terminal, exec);
  const slots = flags.slots ?? 1;
  const lines = taskLines(terminal, flags);
  const joined = Promise.withResolvers<PullWorker>();
  joined.promise.catch(() => {});
  /** The server says how many worktrees a worker of its fleet may keep now, unless --max-worktrees says otherwise. */
  const heed = ({ maxWorktrees }: PullWorker): ExecHandler => {
    if (maxWorktrees !== null && options.maxWorktrees === undefined) exec.limitWorktrees(maxWorktrees);
    return exec;
  };
  const limit = async (count: number, note: string | null): Promise<void> => {
    const worker = await joined.promise;
    return isByTask ? worker.limitWorktrees(count, note) : worker.limit(count, note);
  };
  const letGo = async (task: string): Promise<void> => ((await exec.letGo(task)) ? trees.look() : undefined);
  const room: ExecHandler["room"] = async () => {
    const note = isByTask ? await whyNoTree(terminal.cwd) : null;
    return note === null ? heed(await joined.promise).room() : { count: 0, note };
  };
  const trees = watchRoom({ room, slots, warn, clock: realClock, limit: (...said) => void limit(...said) });
  try {
    const worker = await startWorkerWithOutcomes(
      {
        ...joinFrom(flags),
        url,
        signal: stop.beforeJoin,
        onWarning: warn,
        onOver: (task) => void letGo(task).catch((error: Error) => warn(error.message)),
        killGraceMs: killGraceOf(options),
        ...given({ token: address.token }),
        // None until it is known how many worktrees there may be.
        ...(flags.worktree === true ? { limit: 0 } : {}),
        ...(isByTask ? { worktrees: 0 } : {}),
        logs: execLogs(data, (...asked) => exec.tail(...asked)),
      },
      async (task, context) => {
        const handler = heed(await joined.promise);
        const outcome = await lines(task, () => handler.run(task, context));
        await trees.look();
        return outcome;
      },
    );
    joined.resolve(worker);
    await trees.look();
    const count = slots === 1 ? "1 task" : `${slots} tasks`;
    const how = isByTask ? "at a time, as you, what tasks bring" : "at a time";
    const ready = { workerId: worker.id, url, slots, data };
    output.line(ready, () => `${worker.id} has joined ${url}: ${count} ${how}`);
    return await stop.end(worker);
  } catch (error) {
    const heard = stop.heard();
    if (heard === null || error instanceof CliProblem) throw error;
    return exitOf(heard);
  } finally {
    stop.silence();
    trees.end();
    // Who will not wait leaves the process, and that kills what still runs.
    if (!stop.isForced()) await exec.close();
  }
}

/** The options of the exec worker, without its data directory. */
function execOptionsFrom(flags: ExecFlags): Omit<ExecOptions, "data"> {
  const { exec, preset, arg, env, base, setup, cleanup, allowUntil, idleTimeout, killGrace, maxWorktrees } = flags;
  if ((exec === undefined) === (preset === undefined))
    throw usageProblem(
      "say what to run: --exec COMMAND or --preset AGENT, and not both; or --commands, for what tasks bring",
      "drover help worker has examples",
    );
  if (base !== undefined && flags.worktree !== true)
    throw usageProblem("--base is for --worktree", "add --worktree, or leave --base out");
  const limits = { idleTimeoutMs: idleTimeout, killGraceMs: killGrace, maxWorktrees };
  return {
    ...(exec === undefined ? {} : { command: exec, shell: flags.shell === true }),
    ...(flags.worktree === true ? { isolation: "worktree" } : {}),
    ...given({ preset, args: arg, env, base, setup, cleanup, allowUntil, ...limits }),
  };
}

/** What tasks say for themselves when they bring what is to be run. */
const SAID_BY_TASKS: readonly (keyof WorkerFlags)[] = [
  ...(["exec", "preset", "shell", "arg", "worktree", "base", "allowUntil", "action"] as const),
];

/** The same for a worker that runs what tasks bring. */
function commandOptionsFrom(flags: WorkerFlags): Omit<TaskCommandOptions, "data"> {
  const stray = SAID_BY_TASKS.find((name) => flags[name] !== undefined);
  if (stray !== undefined) {
    const flag = `--${stray.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
    throw usageProblem(`${flag} means nothing with --commands: tasks say that themselves`, `leave out one of the two`);
  }
  const { env, setup, cleanup, idleTimeout, killGrace, maxWorktrees } = flags;
  return given({ env, setup, cleanup, idleTimeoutMs: idleTimeout, killGraceMs: killGrace, maxWorktrees });
}

/** The handler of the commands, once all that it needs is there. */
async function prepare(base: ExecOptions, { flags, terminal }: Call<WorkerFlags>): Promise<ExecHandler> {
  const options: ExecOptions = { ...base, inherited: terminal.env, ...given({ workerId: flags.id }) };
  const exec = flags.commands === true ? commandsFrom(options, "worker") : handlerFrom(options, "worker");
  if (flags.commands !== true) {
    checkProgram(options, terminal);
    await checkWorktree(options, terminal.cwd);
  }
  makeWorkerData(options.data);
  await sweep(exec, options.onWarning ?? (() => {}));
  return exec;
}

/** The kill grace of the pull worker must outlast the ladder of the commands. */
const killGraceOf = ({ killGraceMs = 10_000 }: Partial<ExecOptions>): number => killGraceMs + 2000;

async function sweep(exec: ExecHandler, warn: (text: string) => void): Promise<void> {
  const { killed, problems, worktreesKept } = await exec.sweep();
  if (killed > 0) warn(`${killed} processes of an earlier worker were still there, and were killed`);
  for (const path of worktreesKept) warn(`there is work in ${path}, so it is kept`);
  for (const problem of problems) warn(problem);
}

type Joining = Pick<
  Parameters<typeof startWorkerWithOutcomes>[0],
  "id" | "slots" | "capabilities" | "resources" | "zone" | "actions" | "types" | "projects"
>;

function joinFrom({
  id,
  slots,
  capability,
  cpu,
  memory,
  zone,
  commands,
  type,
  project,
  ...flags
}: WorkerFlags): Joining {
  // One program for every task is for those that bring a command too.
  const every = flags.exec === undefined ? undefined : ["*"];
  const action = commands === true ? [EXEC_COMMAND, EXEC_WORKTREE] : (flags.action ?? every);
  const offered = given({ cpuMillicores: cpu, memoryBytes: memory });
  const resources = Object.keys(offered).length === 0 ? undefined : offered;
  return {
    id: id ?? `${hostname().replaceAll(/[^\w.-]/g, "_")}-${process.pid}`,
    ...given({ slots, capabilities: capability, resources, zone, actions: action, types: type, projects: project }),
  };
}

type Stopper = {
  /** Fires at a signal that comes before the worker has joined. */
  readonly beforeJoin: AbortSignal;
  readonly heard: () => StopSignal | null;
  /** Resolves when the worker has left, however that came about. */
  readonly end: (worker: PullWorker) => Promise<ExitCode>;
  readonly silence: () => void;
  /** Whether a third signal has come. */
  readonly isForced: () => boolean;
};

function stopper(terminal: Terminal, exec: ExecHandler): Stopper {
  const beforeJoin = new AbortController();
  const forced = Promise.withResolvers<void>();
  let joined: PullWorker | null = null;
  let heard: StopSignal | null = null;
  let count = 0;

  function onSignal(signal: StopSignal): void {
    heard ??= signal;
    count += signal === "SIGHUP" && count === 0 ? 2 : 1;
    if (joined === null) return beforeJoin.abort(new Error("interrupted"));
    if (count === 1) {
      const left = joined.running === 0 ? "" : `, and ${joined.running} still running here may end (again: stop them)`;
      terminal.err(`stopping: nothing more is taken${left}\n`);
      joined.drain().catch(() => {});
    } else if (count === 2) {
      // To write to a terminal that is gone would end the process.
      if (signal !== "SIGHUP") terminal.err("stopping what runs; it goes back to the queue (again: do not wait)\n");
      Promise.all([exec.close(), joined.close()]).catch(() => {});
    } else forced.resolve();
  }

  const silence = terminal.onSignal(["SIGINT", "SIGTERM", "SIGHUP"], onSignal);
  return {
    beforeJoin: beforeJoin.signal,
    heard: () => heard,
    isForced: () => count > 2,
    silence,
    async end(worker) {
      joined = worker;
      if (heard !== null) onSignal(heard);
      try {
        await Promise.race([worker.closed, forced.promise]);
      } catch (error) {
        throw lost(error, worker.id);
      }
      return count > 1 ? exitOf(heard ?? "SIGINT") : EXIT.ok;
    },
  };
}

function lost(error: unknown, workerId: string): unknown {
  if (!(error instanceof ClientError) || error.code !== "session_lost") return error;
  const message = `another worker has joined as ${workerId}, and this one has stopped`;
  return new CliProblem({ message, code: "session_lost", exit: EXIT.refused, hint: "give each its own --id" });
}
