/**
 * What `drover serve` says: a welcome with a first thing to try, and plain words for what keeps it from starting.
 */
import { statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Settings } from "../../protocol/index.ts";
import { DATABASE_FILE, isLoopback, versionText } from "../../std/index.ts";
import { isJournalUrl, type ServerConfig } from "../config/load.ts";
import { withoutCredentials } from "../config/secret.ts";
import { CliProblem, EXIT, ownName, usageProblem } from "../shell/problem.ts";
import { OWN_DATA } from "../shell/server-file.ts";
import { type Paint, shortPath } from "../shell/text.ts";

export type LogTarget =
  | { readonly kind: "memory" }
  | { readonly kind: "sqlite"; readonly directory: string }
  /** What nodes share, and the directory that is this node's own. */
  | JournalTarget;
export type JournalTarget = { readonly kind: "journal"; readonly url: string; readonly directory: string };

/**
 * `sqlite:.drover/drover.db` or `sqlite:.drover`: the directory is what counts. `memory:` keeps nothing. A node of a
 * cluster has a directory beside its log.
 */
export function logTargetOf(url: string, cwd: string, data: string | null = null): LogTarget {
  if (url === "memory:" || url === "memory") return { kind: "memory" };
  if (isJournalUrl(url)) return { kind: "journal", url, directory: resolve(cwd, data ?? OWN_DATA) };
  const [, path = ""] = /^sqlite:(.+)$/.exec(url) ?? [];
  if (path === "") {
    const hint =
      "sqlite:PATH, such as sqlite:.drover/drover.db; memory: to keep nothing; " +
      "for a cluster etcd://HOST:2379,HOST:2379/PREFIX or postgres://USER:PASSWORD@HOST:5432/DATABASE";
    throw usageProblem(`log.url is ${JSON.stringify(withoutCredentials(url))}, which this version cannot open`, hint);
  }
  const plain = path.replace(/^\/\//, "");
  return { kind: "sqlite", directory: resolve(cwd, plain.endsWith(".db") ? dirname(plain) : plain) };
}

/** What a start writes beside what is there: the index of the write-ahead log, the first events, a lock. */
const START_BYTES = 1024 * 1024;
const MIB = 1024 * 1024;

/**
 * How much must be free on a full disk before a server starts again; null if nothing is kept. What the write-ahead log
 * holds is moved into the database then, which may grow by as much.
 */
export function roomToStart(log: LogTarget): string | null {
  if (log.kind === "memory") return null;
  const { size = 0 } = statSync(join(log.directory, `${DATABASE_FILE}-wal`), { throwIfNoEntry: false }) ?? {};
  const mib = Math.ceil((START_BYTES + size) / MIB);
  return `make at least ${mib} MiB free for ${log.directory}, and start it again`;
}

/** What to do about an engine that stopped because its log failed in this way. */
export function afterFailure(code: unknown, log: LogTarget): string {
  if (code === "diverged")
    return (
      "this node and the journal have different histories: one of them has lost or changed what was acknowledged; " +
      "change neither before you know which, by the hashes that the other nodes have"
    );
  if (code === "refused") return "nothing that was acknowledged is lost";
  const again = code === "disk-full" ? roomToStart(log) : null;
  return `nothing that was acknowledged is lost; ${again ?? "start it again when the disk is fine"}`;
}

/** Why callers other than the owner's own programs may submit; null if they may not. */
export function othersWhoMaySubmit({ server }: { readonly server: Settings["server"] }): string | null {
  if (!isLoopback(server.host)) return "others can reach this server";
  if (server.tokens.length > 0) return "server.tokens lets others in";
  if (server.allowedHosts.length > 0) return "server.allowedHosts lets others in";
  return server.allowedOrigins.length > 0 ? "server.allowedOrigins lets others in" : null;
}

/** What was changed in the file and holds only from the next start on. */
export function needsRestart(before: Settings, after: Settings): string[] {
  const knobs: [name: string, of: (settings: Settings) => unknown][] = [
    ["server.host", ({ server }) => server.host],
    ["server.port", ({ server }) => server.port],
    ["server.bodyLimit", ({ server }) => server.bodyLimit],
    ["server.telemetry", ({ server }) => server.telemetry],
    ["log.url", ({ log }) => log.url],
    ["cluster.lease", ({ cluster }) => cluster.lease],
    ["cluster.node", ({ cluster }) => cluster.node],
    ["cluster.advertise", ({ cluster }) => cluster.advertise],
    ["workers.killGrace of the local worker", ({ config }) => config.workers.killGrace],
  ];
  return knobs.filter(([, of]) => of(before) !== of(after)).map(([name]) => name);
}

type Facts = {
  readonly url: string;
  readonly log: LogTarget;
  readonly config: ServerConfig;
  /** What the local worker does, or why there is none. */
  readonly worker: { readonly describe: () => string; readonly runs: boolean };
  readonly cwd: string;
  /** The node of a cluster that it is, if it is one. */
  readonly node?:
    | { readonly id: string; readonly role: string; readonly advertise: string; readonly begins?: string }
    | undefined;
};

export function welcome({ url, log, config, worker, cwd, node }: Facts, paint: Paint): string {
  const drover = ownName();
  const data = log.kind === "memory" ? "in memory: nothing is kept" : shortPath(log.directory, cwd);
  const token = config.settings.server.tokens.length === 0 ? "" : ' \\\n    -H "authorization: Bearer $DROVER_TOKEN"';
  const body = '{"agentId": "me", "action": "exec", "params": {"command": "echo hello"}}';
  const at = isDefaultUrl(url) ? "" : ` --url ${url}`;
  const files = config.filesRead.map((file) => shortPath(file, cwd));
  const rows: [string, string][] = [
    ...(node === undefined ? [] : [["node", `${node.id}, ${node.role}, at ${node.advertise}`] as [string, string]]),
    ...(log.kind === "journal" ? [["log", withoutCredentials(log.url)] as [string, string]] : []),
    ...(node?.begins === undefined ? [] : [["", paint("yellow", node.begins)] as [string, string]]),
    ["data", data],
    ["config", files.length === 0 ? "the defaults (no drover.yml here)" : files.join(", ")],
    ["worker", worker.describe()],
    ["page", `${url}/ui/`],
  ];
  return [
    `${paint("bold", `Drover ${versionText()}`)} is ready at ${paint("cyan", url)}`,
    ...rows.map(([name, text]) => `  ${paint("dim", name.padEnd(7))} ${text}`),
    "",
    worker.runs
      ? "Try it, in another terminal:"
      : "Try it, in two other terminals; what is submitted waits for a worker:",
    ...(worker.runs ? [] : [`  ${drover} worker --commands${at}`]),
    `  curl ${url}/tasks -H 'content-type: application/json'${token} \\`,
    `    -d '${body}'`,
    `  ${drover} tasks${at}`,
    "",
    "Ctrl-C stops it.",
    "",
  ].join("\n");
}

const isDefaultUrl = (url: string): boolean => url === "http://127.0.0.1:4747";

const LOOK_MS = 1000;

/** Who is there already? If it is a Drover, a person most likely wants that one. */
export async function portTaken({ host, port }: Settings["server"]): Promise<CliProblem> {
  const url = `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
  const version = await versionAt(url);
  const message =
    version === null
      ? `port ${port} of ${host} is taken by another program`
      : `port ${port} of ${host} is taken: a Drover server (version ${version}) runs there already`;
  const hint =
    version === null
      ? "choose another: --port 4748, or --port 0 for any that is free"
      : `use that one (${ownName()} tasks), or start a second one apart from it: --port 0 --data OTHER`;
  return new CliProblem({ message, code: "port_taken", exit: EXIT.broken, hint });
}

async function versionAt(url: string): Promise<string | null> {
  try {
    const answer = await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(LOOK_MS) });
    const { status, version } = (await answer.json()) as { status?: unknown; version?: unknown };
    return status === "ok" && typeof version === "string" ? version : null;
  } catch {
    return null;
  }
}
