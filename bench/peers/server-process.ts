/**
 * Starts a database server for one benchmark and takes it away again.
 *
 * Each server gets a fresh folder and a free port on the loopback, so it meets no other server of the machine. It
 * is stopped by its own process id on every path: when the benchmark ends, when it throws, and when somebody presses
 * Ctrl-C. What is missing is installed when we are root on a Debian-like machine; otherwise the peer is
 * skipped with a line that says what to install.
 */

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { chownSync, existsSync, globSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { progress } from "../report.ts";

const START_LIMIT_MS = 20_000;
const STOP_POLITELY_MS = 3_000;
const STOP_LIMIT_MS = 10_000;
/** Servers speak the language of their environment; we listen for English. */
const PLAIN_WORDS = { ...process.env, LC_ALL: "C" };

export type Server = {
  readonly port: number;
  readonly pid: number;
  readonly about: string;
  readonly [Symbol.asyncDispose]: () => Promise<void>;
};

/** A peer that cannot be measured here, with the reason for people. */
export class Skipped extends Error {
  override readonly name: string = "Skipped";
}

type Command = {
  readonly file: string;
  readonly args: readonly string[];
  readonly user?: number;
  readonly folder: string;
};

export async function startRedis(): Promise<Server> {
  const file = findOrInstall({ find: () => onPath("redis-server"), debianPackage: "redis-server" });
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), "drover-bench-redis-"));
  const settings = {
    port: String(port),
    bind: "127.0.0.1",
    dir: folder,
    save: "",
    appendonly: "yes",
    appendfsync: "always",
    "auto-aof-rewrite-percentage": "0",
  };
  const args = Object.entries(settings).flatMap(([key, value]) => [`--${key}`, value]);
  const about = versionOf(file, /v=(\S+)/);
  return startServer({ file, args, folder }, { port, about: `Redis ${about}, appendfsync always` });
}

export async function startPostgres(): Promise<Server> {
  const file = findOrInstall({ find: findPostgres, debianPackage: "postgresql" });
  const port = await freePort();
  const user = postgresUser();
  const folder = mkdtempSync(join(tmpdir(), "drover-bench-postgres-"));
  if (user !== undefined) chownSync(folder, user, user);
  const as = user === undefined ? {} : { uid: user, gid: user };
  const initdb = join(file, "../initdb");
  const made = spawnSync(initdb, ["-D", join(folder, "data"), "-U", "bench", "-A", "trust", "-E", "UTF8"], {
    ...as,
    cwd: folder,
    env: PLAIN_WORDS,
  });
  if (made.status !== 0) {
    rmSync(folder, { recursive: true, force: true });
    throw new Error(`initdb failed: ${made.stderr}`);
  }
  const settings = {
    port: String(port),
    listen_addresses: "127.0.0.1",
    unix_socket_directories: folder,
    fsync: "on",
    synchronous_commit: "on",
    shared_buffers: "512MB",
    max_wal_size: "4GB",
    max_connections: "200",
    jit: "off",
  };
  const args = [
    "-D",
    join(folder, "data"),
    ...Object.entries(settings).flatMap(([key, value]) => ["-c", `${key}=${value}`]),
  ];
  const command = { file, args, folder, ...(user === undefined ? {} : { user }) };
  const about = `PostgreSQL ${versionOf(file, /(\d[\d.]*)/)}, fsync and synchronous_commit on`;
  return startServer(command, { port, about });
}

type Started = { readonly port: number; readonly about: string };

async function startServer(command: Command, { port, about }: Started): Promise<Server> {
  const { file, args, folder, user } = command;
  const as = user === undefined ? {} : { uid: user, gid: user };
  const child = spawn(file, args, { ...as, cwd: folder, env: PLAIN_WORDS, stdio: ["ignore", "pipe", "pipe"] });
  const forget = stopAtExit(child, folder);
  const stop = async (): Promise<void> => {
    await stopChild(child);
    rmSync(folder, { recursive: true, force: true });
    forget();
  };
  try {
    await untilReady(child);
  } catch (error) {
    await stop();
    throw error;
  }
  return { port, about, pid: child.pid as number, [Symbol.asyncDispose]: stop };
}

/** Both servers say so in the same words; an open port alone is too early for PostgreSQL. */
async function untilReady(child: ChildProcess): Promise<void> {
  let said = "";
  let timer: NodeJS.Timeout | undefined;
  await new Promise<void>((resolve, reject) => {
    const giveUp = (reason: string): void => reject(new Error(`${child.spawnfile} ${reason}: ${said}`));
    const listen = (chunk: unknown): void => {
      said = `${said}${chunk}`.slice(-2000);
      if (/ready to accept connections/i.test(said)) resolve();
    };
    timer = setTimeout(() => giveUp(`was not ready within ${START_LIMIT_MS / 1000} s`), START_LIMIT_MS);
    child.stdout?.on("data", listen);
    child.stderr?.on("data", listen);
    child.once("error", (error) => giveUp(error.message));
    child.once("exit", () => giveUp("ended"));
  }).finally(() => clearTimeout(timer));
}

/** The last resort: whatever way this process ends, the server and its folder do not outlive it. */
function stopAtExit(child: ChildProcess, folder: string): () => void {
  const onExit = (): void => {
    child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  };
  const onSignal = (): void => process.exit(130);
  process.once("exit", onExit);
  process.once("SIGINT", onSignal);
  process.once("SIGTERM", onSignal);
  return () => {
    process.off("exit", onExit);
    process.off("SIGINT", onSignal);
    process.off("SIGTERM", onSignal);
  };
}

/** First politely: on SIGTERM PostgreSQL lets its clients leave, and a pool says it ended before its sockets have. */
async function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  child.kill("SIGTERM");
  const timers = [
    setTimeout(() => child.kill("SIGINT"), STOP_POLITELY_MS),
    setTimeout(() => child.kill("SIGKILL"), STOP_LIMIT_MS),
  ];
  await ended;
  for (const timer of timers) clearTimeout(timer);
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === "string") throw new Error("no port was given");
  return address.port;
}

type Program = { readonly find: () => string | undefined; readonly debianPackage: string };

function findOrInstall({ find, debianPackage }: Program): string {
  const found = find();
  if (found !== undefined) return found;
  const missing = new Skipped(`not found here; install it with: apt-get install ${debianPackage}`);
  if (process.getuid?.() !== 0 || onPath("apt-get") === undefined) throw missing;
  progress(`installing ${debianPackage} with apt-get`);
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  spawnSync("apt-get", ["update", "-q"], { env, stdio: ["ignore", "ignore", 2] });
  spawnSync("apt-get", ["install", "-y", "-q", "--no-install-recommends", debianPackage], {
    env,
    stdio: ["ignore", "ignore", 2],
  });
  const installed = find();
  if (installed === undefined) throw missing;
  return installed;
}

function onPath(name: string): string | undefined {
  const folders = (process.env.PATH ?? "").split(":");
  return [...folders, "/usr/sbin", "/usr/local/bin"]
    .map((folder) => join(folder, name))
    .find((path) => existsSync(path));
}

function findPostgres(): string | undefined {
  const debian = globSync("/usr/lib/postgresql/*/bin/postgres").sort((a, b) => versionIn(b) - versionIn(a));
  return debian[0] ?? onPath("postgres");
}

function versionIn(path: string): number {
  return Number(/postgresql\/(\d+)/.exec(path)?.[1] ?? 0);
}

/** PostgreSQL refuses to run as root; the Debian package brings a user of that name. */
function postgresUser(): number | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const id = Number(spawnSync("id", ["-u", "postgres"], { encoding: "utf8" }).stdout);
  if (!(id > 0)) throw new Skipped("PostgreSQL does not run as root and there is no user `postgres`");
  return id;
}

function versionOf(file: string, pattern: RegExp): string {
  return pattern.exec(spawnSync(file, ["--version"], { encoding: "utf8" }).stdout)?.[1] ?? "of unknown version";
}
