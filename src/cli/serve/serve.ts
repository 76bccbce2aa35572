/**
 * `drover serve`: the engine and the server in one process, with a worker to begin with.
 *
 * The file in which the two halves of Drover meet (beside `drover run`). It opens the log, puts HTTP in front of it,
 * brings a local worker along, reads the config again when it changes, and ends in good order: the first signal lets
 * what runs end within a grace, the second does not wait.
 */
import { join } from "node:path";
import { type Logger, pino } from "pino";
import { errorText } from "../../core/base/index.ts";
import { type Drover, DroverError, LogFailure, openDrover } from "../../engine/index.ts";
import { replicaSource } from "../../engine/node/index.ts";
import type { Settings } from "../../protocol/index.ts";
import { shownPath } from "../../protocol/schema/index.ts";
import { hostRefusal, type Server, StartRefusal, startServer } from "../../server/index.ts";
import { collectYoung, isLoopback, keptBy, realClock, restFor } from "../../std/index.ts";
import { asInForce } from "../config/differences.ts";
import type { Setting } from "../config/file.ts";
import { dataSetting, loadSettings, type ServerConfig } from "../config/load.ts";
import { checkNothingLost, keepReloading, type Reloading } from "../config/reload.ts";
import { settingViews } from "../config/shown.ts";
import { CliProblem, EXIT, type ExitCode, ownName, usageProblem } from "../shell/problem.ts";
import { removeServerFile, writeServerFile } from "../shell/server-file.ts";
import { exitOf, type StopSignal, type Terminal } from "../shell/terminal.ts";
import { plainLines } from "../shell/text.ts";
import type { Call, ConfigFlags } from "../shell/verb.ts";
import { type OpenedNode, openServedNode } from "./cluster-node.ts";
import { type LocalWorker, type LocalWorkerFlags, startLocalWorker } from "./local-worker.ts";
import type { LogTarget } from "./messages.ts";
import {
  afterFailure,
  logTargetOf,
  needsRestart,
  othersWhoMaySubmit,
  portTaken,
  roomToStart,
  welcome,
} from "./messages.ts";
import { startNodeWorker } from "./node-worker.ts";

export type ServeFlags = ConfigFlags &
  LocalWorkerFlags & {
    readonly host?: string;
    readonly port?: number;
    readonly data?: string;
    readonly log?: string;
    readonly node?: string;
    readonly advertise?: string;
    readonly logLevel?: string;
  };

export async function serve(call: Call<ServeFlags>): Promise<ExitCode> {
  const { flags, terminal, output } = call;
  collectYoung();
  const first = load(call);
  const serverConsole = consoleFor(call);
  for (const warning of first.warnings) serverConsole.complain(warning);
  const log = logTargetOf(first.settings.log.url, terminal.cwd, first.data);
  checkFlags(flags, log);
  const stop = listen(terminal);
  try {
    const parts = await unlessStopped(stop, (signal) => start(call, first, log, serverConsole, signal));
    if (typeof parts === "number") return parts;
    const { worker, cluster } = parts;
    const facts = { url: parts.server.url, log, config: first, worker, cwd: terminal.cwd };
    const node = cluster === null ? {} : { node: nodeFacts(cluster) };
    const data = log.kind === "memory" ? null : log.directory;
    return await whileFound(data, parts.server, serverConsole, () => {
      const answer = { url: facts.url, data, ...node, pid: process.pid, worker: worker.id() };
      output.answer(answer, () => welcome({ ...facts, ...node }, output.paint));
      return untilStopped(parts, stop, serverConsole);
    });
  } finally {
    stop.silence();
  }
}

function checkFlags(flags: ServeFlags, log: LogTarget): void {
  if (flags.shell === true && flags.exec === undefined)
    throw usageProblem("--shell is for --exec", "add --exec 'LINE'");
  const [flag] = (["node", "advertise"] as const).filter((name) => flags[name] !== undefined);
  if (flag !== undefined && log.kind !== "journal")
    throw usageProblem(`--${flag} is for a node of a cluster`, "add --log etcd://… or --log postgres://…");
}

const nodeFacts = ({ node, advertise, begins }: OpenedNode) => ({
  id: node.id,
  role: node.life().role,
  advertise,
  ...(begins === null ? {} : { begins }),
});

/** An exit code if a signal comes before it has begun: the first gives it up, the second does not wait for that. */
async function unlessStopped(
  stop: Listening,
  begin: (signal: AbortSignal) => Promise<Parts>,
): Promise<Parts | ExitCode> {
  const giveUp = new AbortController();
  void stop.first.then(() => giveUp.abort());
  const begun = begin(giveUp.signal).catch((error: unknown) => {
    if (giveUp.signal.aborted) return EXIT.ok;
    throw error;
  });
  return Promise.race([begun, stop.second.then(exitOf)]);
}

/** While it runs, the data directory says where the server is that owns it. */
async function whileFound<Value>(
  data: string | null,
  { url, id }: Server,
  { complain }: ServerConsole,
  run: () => Promise<Value>,
): Promise<Value> {
  if (data === null) return await run();
  try {
    writeServerFile(data, { url, id });
  } catch (error) {
    // It serves all the same. If the disk is full, its first write says so.
    complain(`${data} does not say where this server is (${errorText(error)}): commands need --url ${url}`);
  }
  try {
    return await run();
  } finally {
    removeServerFile(data, id);
  }
}

// ----------------------------------------------------------------- the console

/**
 * How a server speaks while it runs: to a person in sentences, to a log in lines of JSON, and not both in one stream.
 * Standard output has the welcome and nothing else. Standard error is a person's where it is a terminal, and where
 * nothing is to be logged; anywhere else it is a log, which a collector reads line by line. Only why it could not
 * start, or had to end, is a sentence everywhere, as with every other verb.
 */
type ServerConsole = {
  readonly logger: Logger;
  /** Good to know. */
  readonly say: (text: string) => void;
  /** Not as it should be, though the server goes on. */
  readonly complain: (text: string) => void;
  /** Something that was asked for is not done. */
  readonly alarm: (text: string) => void;
};

function consoleFor({ flags, terminal, output }: Call<ServeFlags>): ServerConsole {
  const level = flags.logLevel ?? (terminal.isErrorTerminal ? "warn" : "info");
  const logger = pino({ level, base: null }, { write: (line: string) => terminal.err(line) });
  if (!terminal.isErrorTerminal && level !== "silent")
    return {
      logger,
      say: (text) => logger.info(text),
      complain: (text) => logger.warn(text),
      alarm: (text) => logger.error(text),
    };
  return {
    logger,
    say: (text) => (output.isJson ? undefined : terminal.err(`${text}\n`)),
    complain: (text) => terminal.err(`warning: ${plainLines(text)}\n`),
    alarm: (text) => terminal.err(`error: ${plainLines(text)}\n`),
  };
}

// ------------------------------------------------------------------ the config

function load({ flags, terminal }: Call<ServeFlags>): ServerConfig {
  const { env, cwd, home } = terminal;
  const sets = flags.set ?? [];
  return loadSettings({ env, cwd, home, configFile: flags.config, sets, flags: ownSettings(flags) });
}

function loadAgain(call: Call<ServeFlags>, inForce: ServerConfig): ServerConfig {
  const next = load(call);
  checkNothingLost(inForce, next);
  return next;
}

/** What the flags of this verb set; --log wins over --data, since it says more. */
function ownSettings({ host, port, data, log, node, advertise }: ServeFlags): Setting[] {
  const own = (flag: string, path: readonly string[], value: unknown): Setting[] =>
    value === undefined ? [] : [{ path, value, origin: { kind: "flag", flag } }];
  return [
    ...own("--host", ["server", "host"], host),
    ...own("--port", ["server", "port"], port),
    ...(data === undefined ? [] : [dataSetting(data, { kind: "flag", flag: "--data" })]),
    ...own("--log", ["log", "url"], log),
    ...own("--node", ["cluster", "node"], node),
    ...own("--advertise", ["cluster", "advertise"], advertise),
  ];
}

/** Where others can reach the server, unregistered projects are not created unless the config says so. */
const isAutoCreate = ({ path }: Setting): boolean => path.join(".") === "projects.autoCreate";
const isShut = ({ settings, effective }: ServerConfig): boolean =>
  !isLoopback(settings.server.host) && effective.find(isAutoCreate)?.origin.kind === "default";

function engineConfig(given: ServerConfig): Settings["config"] {
  const { config } = given.settings;
  return isShut(given) ? { ...config, projects: { ...config.projects, autoCreate: false } } : config;
}

/** Every knob as this server holds it: what a new file says of some holds from the next start on. */
function settingsOf(first: ServerConfig, now: ServerConfig): readonly Setting[] {
  const later = needsRestart(first.settings, now.settings);
  const early = first.effective.filter(({ path }) => later.includes(shownPath(path)));
  const isLater = ({ path }: Setting): boolean => later.includes(shownPath(path));
  const inForce = [...now.effective.filter((setting) => !isLater(setting)), ...early];
  return isShut(now) ? inForce.map((one) => (isAutoCreate(one) ? { ...one, value: false } : one)) : inForce;
}

// ------------------------------------------------------------------- the parts

type Parts = {
  readonly log: LogTarget;
  readonly drover: Drover;
  /** The node of a cluster that it is, if it is one. */
  readonly cluster: OpenedNode | null;
  readonly server: Server;
  readonly worker: LocalWorker;
  readonly reloading: Reloading<ServerConfig>;
};

async function start(
  call: Call<ServeFlags>,
  first: ServerConfig,
  log: LogTarget,
  serverConsole: ServerConsole,
  signal: AbortSignal,
): Promise<Parts> {
  const { terminal } = call;
  const { logger, say, complain, alarm } = serverConsole;
  const { drover, cluster, settings } = await open(log, first, serverConsole, signal);
  let server: Server | null = null;
  let worker: LocalWorker | null = null;
  let reloading: Reloading<ServerConfig> | null = null;
  try {
    server = await listenOn(drover, settings, {
      ...(cluster === null ? {} : { node: cluster.node, checksAddress: true }),
      logger,
      onReload: () => reloading?.now() ?? Promise.reject(new Error("the server is not ready yet; try again")),
      logsOf: (task, attempt, { tail, ...age }) => worker?.logsOf(task, attempt, { lines: tail, ...age }) ?? null,
      // A node tells of what its leader has in force, by the log they share.
      settingViews: keptBy(
        () => [reloading?.inForce() ?? first, cluster?.config.own(), drover.state.base, drover.state.cluster.leader],
        ([inForce]) => {
          const own = settingViews(settingsOf(first, inForce));
          return cluster === null ? own : asInForce(own, cluster.config.differences());
        },
      ),
      replica: cluster !== null ? cluster.node.shared : log.kind === "sqlite" ? replicaSource(log.directory) : null,
      historyFile: log.kind === "memory" ? undefined : join(log.directory, "history.jsonl"),
    });
    worker = await startWorker(call, { drover, cluster, log, url: server.url, settings, complain });
    const apply = applyTo({ drover, cluster, server, worker }, first, complain);
    const hooks = { load: (inForce: ServerConfig) => loadAgain(call, inForce), apply, say, complain, alarm };
    reloading = keepReloading(first, hooks, terminal);
    return { log, drover, cluster, server, worker, reloading };
  } catch (error) {
    await worker?.stop();
    // A server that listens already would keep the process, and its port, for ever.
    await (server === null ? drover.close() : server.close({ graceMs: 0 })).catch(() => {});
    throw error instanceof DroverError ? engineProblem(error, log) : error;
  }
}

/** The worker that comes along, or why there is none. */
function startWorker(
  call: Call<ServeFlags>,
  given: Pick<Parts, "drover" | "cluster" | "log"> & {
    readonly url: string;
    readonly settings: Settings;
    readonly complain: (text: string) => void;
  },
): Promise<LocalWorker> {
  const { flags, terminal } = call;
  const { drover, cluster, log, url, settings, complain } = given;
  const { killGrace: killGraceMs, maxWorktrees } = settings.config.workers;
  if (cluster !== null && log.kind === "journal") {
    const hasTokens = settings.server.tokens.length > 0;
    return startNodeWorker({ call, node: cluster.node.id, log, url, hasTokens, killGraceMs, complain });
  }
  const others = othersWhoMaySubmit(settings);
  return startLocalWorker({ drover, flags, terminal, log, url, complain, others, killGraceMs, maxWorktrees });
}

type Opened = Pick<Parts, "drover" | "cluster"> & { readonly settings: Settings };

async function open(
  log: LogTarget,
  first: ServerConfig,
  { say, complain }: ServerConsole,
  signal: AbortSignal,
): Promise<Opened> {
  const { settings } = first;
  const config = engineConfig(first);
  try {
    if (log.kind !== "journal") {
      const data = log.kind === "memory" ? {} : { data: log.directory };
      return { drover: await openDrover({ ...data, config, onWarning: complain }), cluster: null, settings };
    }
    checkServed(first);
    const cluster = await openServedNode({ log, settings, config, say, complain, signal });
    const { node, port } = cluster;
    return { drover: node.drover, cluster, settings: { ...settings, server: { ...settings.server, port } } };
  } catch (error) {
    if (error instanceof StartRefusal) throw await startProblem(error, settings);
    if (error instanceof LogFailure) throw logProblem(error, log);
    if (error instanceof DroverError && error.code === "log_failed") throw engineProblem(error, log);
    if (error instanceof DroverError) throw usageProblem(error.message);
    throw error;
  }
}

function logProblem({ code, message }: LogFailure, log: LogTarget): CliProblem {
  const elsewhere = `another directory: --data DIR; that server: ${ownName()} tasks, or --url`;
  const hint = code === "locked" ? elsewhere : code === "disk-full" ? (roomToStart(log) ?? undefined) : undefined;
  // The log's own advice is for programs that embed it: this command cannot open a directory readOnly.
  const fitting = message
    .replace(", choose another directory, or open this one with readOnly", ", or choose another directory")
    .replace(", or open the log with readOnly", "");
  // What the call or the config names is a person's to mend: an address, a password, a directory, a name.
  const exit = code === "refused" ? EXIT.usage : EXIT.broken;
  return new CliProblem({ message: fitting, code: `log_${code}`, exit, hint });
}

const engineProblem = ({ message, code, details }: DroverError, log: LogTarget): CliProblem =>
  new CliProblem({ message, code, exit: EXIT.broken, hint: afterFailure(details.log, log) });

type ServeOptions = Parameters<typeof startServer>[0];
type ServerHooks = Pick<
  ServeOptions,
  "node" | "checksAddress" | "replica" | "onReload" | "logsOf" | "historyFile" | "settingViews"
> & {
  readonly logger: NonNullable<ServeOptions["logger"]>;
};

async function listenOn(drover: Drover, settings: Settings, hooks: ServerHooks): Promise<Server> {
  try {
    return await startServer({ drover, settings, ...hooks });
  } catch (error) {
    throw error instanceof StartRefusal ? await startProblem(error, settings) : error;
  }
}

const startProblem = async ({ code, message }: StartRefusal, { server }: Settings): Promise<CliProblem> =>
  code === "port_taken" ? portTaken(server) : settingsProblem(message);

const settingsProblem = (message: string): CliProblem =>
  usageProblem(message, `${ownName()} help config says where these settings come from`);

/** What a server would refuse of these settings when it starts, said without starting one. */
export function checkServed({ settings }: ServerConfig): void {
  const refusal = hostRefusal(settings.server.host, settings);
  if (refusal !== null) throw settingsProblem(refusal);
}

/** A config that has changed, put in force: by the server and the engine, or, if either refuses it, by neither. */
function applyTo(
  { drover, cluster, server, worker }: Pick<Parts, "drover" | "cluster" | "server" | "worker">,
  first: ServerConfig,
  complain: (text: string) => void,
): (config: ServerConfig) => Promise<void> {
  let wasAlone = othersWhoMaySubmit(first.settings) === null;
  return async (config) => {
    const putInForce = server.prepare(config.settings);
    await (cluster === null ? drover.reload(engineConfig(config)) : cluster.config.change(engineConfig(config)));
    const others = othersWhoMaySubmit({ server: { ...config.settings.server, host: first.settings.server.host } });
    if (wasAlone && others !== null) worker.withdraw(others);
    wasAlone = wasAlone && others === null;
    worker.limitWorktrees(config.settings.config.workers.maxWorktrees);
    putInForce();
    for (const knob of needsRestart(first.settings, config.settings)) complain(`${knob} changes with the next start`);
  };
}

// --------------------------------------------------------------------- the end

type Listening = {
  /** Resolves with the first signal, and with the second. */
  readonly first: Promise<StopSignal>;
  readonly second: Promise<StopSignal>;
  readonly silence: () => void;
};

function listen(terminal: Terminal): Listening {
  const first = Promise.withResolvers<StopSignal>();
  const second = Promise.withResolvers<StopSignal>();
  let count = 0;
  const silence = terminal.onSignal(["SIGINT", "SIGTERM"], (signal) => {
    count += 1;
    (count === 1 ? first : second).resolve(signal);
  });
  return { first: first.promise, second: second.promise, silence };
}

async function untilStopped(parts: Parts, stop: Listening, { say }: ServerConsole): Promise<ExitCode> {
  const { drover, reloading, log } = parts;
  const failed = await Promise.race([stop.first.then(() => null), drover.failed]);
  reloading.stop();
  if (failed === null) {
    say("Stopping: nothing new begins, and what runs may end first (again: at once)");
    const forced = stop.second.then(exitOf);
    return Promise.race([end(parts).then(() => EXIT.ok), forced]);
  }
  // What ends an engine that has failed can only fail as well, and the first reason is the one to report.
  await Promise.race([end(parts).catch(() => {}), stop.second]);
  throw engineProblem(failed, log);
}

async function end(parts: Parts): Promise<void> {
  const { server, worker, reloading, cluster } = parts;
  await reloading.settled();
  // What runs goes on with the node that leads next, and the lead is handed over: nothing here waits for it.
  if (cluster !== null) {
    cluster.config.stop();
    return leaveCluster(parts, cluster);
  }
  // What it runs is waited for by the server; an engine that has failed does not even answer.
  worker.drain().catch(() => {});
  try {
    await server.close();
  } finally {
    await worker.stop();
  }
}

/** The lead goes at once. What the worker of this node runs may end first, and is reported to whoever leads then. */
async function leaveCluster({ server, worker, reloading }: Parts, { node }: OpenedNode): Promise<void> {
  const { shutdownGrace } = reloading.inForce().settings.server;
  const drained = worker.drain();
  try {
    const late = restFor(realClock, shutdownGrace, { keepAlive: false });
    await Promise.race([Promise.all([node.handOver(), drained]), late, node.failed]);
    await worker.stop();
  } finally {
    await server.close();
  }
}
