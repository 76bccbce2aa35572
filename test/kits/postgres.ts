/**
 * A real PostgreSQL for tests, as a process of its own on loopback, that can be killed, frozen and started again.
 *
 * Its data is in a directory of its own under the system's temporary one. It does not run as root: there the user
 * `postgres` of Debian's package runs it. When it is disposed, the process has ended and the data is gone.
 */
import { type ChildProcess, execFile, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import pg from "pg";
import { isMissing } from "./optional-tool.ts";
import { within } from "./waits.ts";

const DEBIAN = "/usr/lib/postgresql";
const PACKAGE = "postgresql";
const READY = /database system is ready to accept/;
const USER = "drover";
const PASSWORD = "a secret/of:tests";

const bin = findBin();
/** False if PostgreSQL can be run; else why not, as a test's `skip` takes it. */
export const postgresMissing: string | false = missing();

export type PostgresServer = AsyncDisposable & {
  readonly port: number;
  readonly directory: string;
  readonly password: string;
  /** Its address for a journal; options such as `{ schema: "s" }`. */
  url(options?: Readonly<Record<string, string>>): string;
  /** Runs a statement as the owner of the database. */
  sql(text: string): Promise<Record<string, unknown>[]>;
  /** Ends it as a crash does. May be called twice. */
  kill(): Promise<void>;
  /** It hangs: connections stand, nothing is answered. */
  freeze(): void;
  thaw(): void;
  /** Runs it again on the data it has, with these settings beside the first. */
  start(settings?: Readonly<Record<string, string>>): Promise<void>;
};

/** With `standbyOf`, one that copies all that server writes, as `standby1`, until `SELECT pg_promote()`. */
export async function startPostgres(
  settings: Readonly<Record<string, string>> = {},
  standbyOf?: PostgresServer,
): Promise<PostgresServer> {
  const directory = mkdtempSync(join(tmpdir(), "drover-postgres-"));
  const owner = ownerOf();
  const data = join(directory, "data");
  const secret = join(directory, "password");
  writeFileSync(secret, PASSWORD);
  mkdirSync(data, { mode: 0o700 });
  if (owner !== null) for (const path of [directory, data, secret]) chownSync(path, owner.uid, owner.gid);
  const run = { ...(owner ?? {}), cwd: directory };
  const init = ["-D", data, "-U", USER, "-A", "scram-sha-256", "--pwfile", secret, "-E", "UTF8", "--no-sync"];
  const copy = ["-D", data, "-R", "-c", "fast", "--no-sync"];
  const from = `host=127.0.0.1 port=${standbyOf?.port} user=${USER} password='${PASSWORD}' application_name=standby1`;
  if (standbyOf === undefined) await promisify(execFile)(join(bin, "initdb"), [...init, "--locale=C"], run);
  else await promisify(execFile)(join(bin, "pg_basebackup"), [...copy, "-d", from], run);
  const port = await freePort();
  let child: ChildProcess | null = null;
  const isRunning = (): boolean => child !== null && child.exitCode === null && child.signalCode === null;

  async function start(more: Readonly<Record<string, string>> = {}): Promise<void> {
    const fixed = { port, listen_addresses: "127.0.0.1", unix_socket_directories: "", max_connections: 50 };
    const flags = Object.entries({ ...fixed, ...settings, ...more }).flatMap(([name, value]) => [
      "-c",
      `${name}=${value}`,
    ]);
    child = spawn(join(bin, "postgres"), ["-D", data, ...flags], { ...run, stdio: ["ignore", "ignore", "pipe"] });
    await within("PostgreSQL being ready", readiness(child, "PostgreSQL", READY));
  }
  async function kill(): Promise<void> {
    if (!isRunning()) return;
    const ended = once(child as ChildProcess, "exit");
    child?.kill("SIGCONT");
    // At once, with no checkpoint: its processes end with it, which they would not with SIGKILL.
    child?.kill("SIGQUIT");
    await within("the end of PostgreSQL", ended);
  }
  const dispose = async (): Promise<void> => {
    await kill();
    rmSync(directory, { recursive: true, force: true });
  };
  const account = `${USER}:${encodeURIComponent(PASSWORD)}`;
  try {
    await start();
  } catch (error) {
    await dispose();
    throw error;
  }
  return {
    port,
    directory,
    password: PASSWORD,
    url: (options = {}) => {
      const query = new URLSearchParams(options).toString();
      return `postgres://${account}@127.0.0.1:${port}/postgres${query === "" ? "" : `?${query}`}`;
    },
    sql: (text) => ask(port, text),
    kill,
    freeze: () => void signalAll(child, "SIGSTOP"),
    thaw: () => void signalAll(child, "SIGCONT"),
    start,
    [Symbol.asyncDispose]: dispose,
  };
}

/** False if pgbouncer can be run; else why not, as a test's `skip` takes it. */
export const poolerMissing = (): string | false => isMissing("pgbouncer", "pgbouncer");

/** A pooler before the server that lends its two connections for a transaction each. */
export async function startPooler(server: PostgresServer): Promise<AsyncDisposable & { readonly port: number }> {
  const port = await freePort();
  const directory = mkdtempSync(join(tmpdir(), "drover-pooler-"));
  const file = join(directory, "pgbouncer.ini");
  const target = `host=127.0.0.1 port=${server.port} dbname=postgres user=${USER} password='${PASSWORD}'`;
  const settings = ["auth_type = any", "pool_mode = transaction", "default_pool_size = 2", "unix_socket_dir ="];
  const lines = ["[databases]", `postgres = ${target}`, "[pgbouncer]", "listen_addr = 127.0.0.1", ...settings];
  writeFileSync(file, `${[...lines, `listen_port = ${port}`].join("\n")}\n`);
  const owner = ownerOf();
  if (owner !== null) for (const path of [directory, file]) chownSync(path, owner.uid, owner.gid);
  const child = spawn("pgbouncer", [file], { ...(owner ?? {}), cwd: directory, stdio: ["ignore", "ignore", "pipe"] });
  const dispose = async (): Promise<void> => {
    const ended = once(child, "exit");
    if (child.exitCode === null && child.kill("SIGKILL")) await within("the end of pgbouncer", ended);
    rmSync(directory, { recursive: true, force: true });
  };
  try {
    await within("pgbouncer being ready", readiness(child, "pgbouncer", /process up/));
  } catch (error) {
    await dispose();
    throw error;
  }
  return { port, [Symbol.asyncDispose]: dispose };
}

async function ask(port: number, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ host: "127.0.0.1", port, user: USER, password: PASSWORD, database: "postgres" });
  await client.connect();
  try {
    const answer = await client.query(text);
    return answer.rows ?? [];
  } finally {
    await client.end();
  }
}

/** The server and the processes it made, which serve a connection each. */
function signalAll(child: ChildProcess | null, signal: NodeJS.Signals): void {
  if (child?.pid === undefined) return;
  const { stdout } = spawnSync("pgrep", ["-P", String(child.pid)], { encoding: "utf8" });
  for (const pid of stdout.split("\n").filter((line) => line !== "")) {
    try {
      process.kill(Number(pid), signal);
    } catch {
      // It has ended meanwhile.
    }
  }
  child.kill(signal);
}

/** Resolves when it says that it is ready; its lines are read on, so that it never waits for a reader. */
function readiness(child: ChildProcess, name: string, ready: RegExp): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const last: string[] = [];
  const lines = createInterface({ input: child.stderr as NodeJS.ReadableStream });
  lines.on("line", (line) => {
    if (ready.test(line)) resolve();
    last.push(line);
    if (last.length > 10) last.shift();
  });
  child.once("error", reject);
  lines.once("close", () => reject(new Error(`${name} ended: ${last.join("\n")}`)));
  return promise;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Who runs it: root may not. */
function ownerOf(): { uid: number; gid: number } | null {
  if (process.getuid?.() !== 0) return null;
  const idOf = (flag: string): number => Number(spawnSync("id", [flag, "postgres"], { encoding: "utf8" }).stdout);
  return { uid: idOf("-u"), gid: idOf("-g") };
}

/** Where its programs are: Debian keeps those of the server off the PATH. */
function findBin(): string {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).sort((left, right) => Number(right) - Number(left)) : [];
  const places = [
    ...versions.map((version) => join(DEBIAN, version, "bin")),
    ...(process.env.PATH ?? "").split(delimiter),
  ];
  return places.find((place) => existsSync(join(place, "initdb")) && existsSync(join(place, "postgres"))) ?? "";
}

function missing(): string | false {
  if (bin !== "") return false;
  return isMissing("psql", PACKAGE) || (findBin() === "" ? `PostgreSQL is missing: apt-get install ${PACKAGE}` : false);
}
