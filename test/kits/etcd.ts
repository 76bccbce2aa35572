/**
 * A real etcd for tests: one member or several, as processes on loopback, that can be killed, frozen and restarted.
 *
 * Each has its data in a directory of its own under the system's temporary one. A member is ready when it says so; a
 * port that another program took in between is no fault: others are tried. When the cluster is disposed, every process
 * that was started here has ended.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { isMissing } from "./optional-tool.ts";
import { until, within } from "./waits.ts";

const STARTS_MAX = 5;
const READY = /ready to serve client requests|serving client traffic/;
const TAKEN = /address already in use/;

/** False if etcd can be run; else why not, as a test's `skip` takes it. */
export const etcdMissing: string | false =
  isMissing("etcd", "etcd-server") || isMissing("etcdctl", "etcd-client", "version");

export type EtcdMember = {
  readonly name: string;
  /** `127.0.0.1:PORT`, where clients reach it. */
  readonly endpoint: string;
  /** Of the process that runs it now. */
  pid(): number;
  /** Ends it as a crash does. May be called twice. */
  kill(): Promise<void>;
  /** It hangs: connections stand, nothing is answered. */
  freeze(): void;
  thaw(): void;
  /** Runs it again on the data it has; resolves when it is there, or with `isWaitedFor: false` when it was begun. */
  start(options?: { readonly isWaitedFor?: boolean }): Promise<void>;
};

export type EtcdCluster = AsyncDisposable & {
  readonly members: readonly EtcdMember[];
  /** Its address for a journal, with all members. */
  url(prefix: string): string;
  /** Runs etcdctl on all members; answers what it printed. */
  ctl(...args: readonly string[]): Promise<string>;
  /** The member that leads now. */
  leader(): Promise<EtcdMember>;
};

export type EtcdOptions = {
  readonly members?: number;
  readonly flags?: readonly string[];
  /** Flags for etcdctl, such as a user; they may change while it runs. */
  readonly ctlFlags?: string[];
  readonly scheme?: "http" | "https";
};

export async function startEtcd(options: EtcdOptions = {}): Promise<EtcdCluster> {
  for (let tried = 1; ; tried++) {
    try {
      return await tryToStart(options);
    } catch (error) {
      if (tried === STARTS_MAX || !TAKEN.test(String(error))) throw error;
    }
  }
}

async function tryToStart(options: EtcdOptions): Promise<EtcdCluster> {
  const { members: count = 1, scheme = "http", ctlFlags = [] } = options;
  const directory = mkdtempSync(join(tmpdir(), "drover-etcd-"));
  const ports = await freePorts(2 * count);
  const peers = Array.from({ length: count }, (_, index) => `m${index}=http://127.0.0.1:${ports[count + index]}`);
  const members = peers.map((peer, index) => {
    const [name = "", peerUrl = ""] = peer.split("=");
    const clientUrl = `${scheme}://127.0.0.1:${ports[index]}`;
    return createMember(name, `127.0.0.1:${ports[index]}`, [
      ...["--name", name, "--data-dir", join(directory, name)],
      ...["--listen-client-urls", clientUrl, "--advertise-client-urls", clientUrl],
      ...["--listen-peer-urls", peerUrl, "--initial-advertise-peer-urls", peerUrl],
      ...["--initial-cluster", peers.join(","), "--logger", "zap", "--log-outputs", "stderr"],
      ...(options.flags ?? []),
    ]);
  });
  const endpoints = members.map(({ endpoint }) => endpoint);
  const dispose = async (): Promise<void> => {
    await Promise.all(members.map((member) => member.kill()));
    rmSync(directory, { recursive: true, force: true });
  };
  const ctl = async (...args: readonly string[]): Promise<string> => {
    const flags = [...ctlFlags, "--endpoints", endpoints.map((each) => `${scheme}://${each}`).join(",")];
    const { stdout } = await promisify(execFile)("etcdctl", [...flags, ...args], {
      env: { ...process.env, ETCDCTL_API: "3" },
    });
    return stdout;
  };
  try {
    await Promise.all(members.map((member) => member.start()));
  } catch (error) {
    await dispose();
    throw error;
  }
  return {
    members,
    url: (prefix) => `etcd://${endpoints.join(",")}/${prefix}`,
    ctl,
    leader: async () => {
      let leading: EtcdMember | undefined;
      // While they elect one, none says that it leads.
      await until("a member of etcd to lead", async () => {
        const statuses = JSON.parse(await ctl("endpoint", "status", "-w", "json")) as MemberStatus[];
        leading = members[statuses.findIndex(({ Status }) => Status.header.member_id === Status.leader)];
        return leading !== undefined;
      });
      return leading as EtcdMember;
    },
    [Symbol.asyncDispose]: dispose,
  };
}

type MemberStatus = { readonly Status: { readonly header: { readonly member_id: number }; readonly leader: number } };

function createMember(name: string, endpoint: string, args: readonly string[]): EtcdMember {
  let child: ChildProcess | null = null;
  const isRunning = (): boolean => child !== null && child.exitCode === null && child.signalCode === null;
  return {
    name,
    endpoint,
    pid: () => child?.pid ?? 0,
    start: async ({ isWaitedFor = true } = {}) => {
      child = spawn("etcd", args, { stdio: ["ignore", "ignore", "pipe"] });
      const ready = readiness(child);
      if (isWaitedFor) await within(`etcd ${name} being ready`, ready);
      else ready.catch(() => {});
    },
    kill: async () => {
      if (!isRunning()) return;
      const ended = once(child as ChildProcess, "exit");
      child?.kill("SIGKILL");
      await within(`the end of etcd ${name}`, ended);
    },
    freeze: () => void child?.kill("SIGSTOP"),
    thaw: () => void child?.kill("SIGCONT"),
  };
}

/** Resolves when it says that it is ready; its lines are read on, so that it never waits for a reader. */
function readiness(child: ChildProcess): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const last: string[] = [];
  const lines = createInterface({ input: child.stderr as NodeJS.ReadableStream });
  lines.on("line", (line) => {
    if (READY.test(line)) resolve();
    last.push(line);
    if (last.length > 10) last.shift();
  });
  child.once("error", reject);
  lines.once("close", () => reject(new Error(`etcd ended: ${last.join("\n")}`)));
  return promise;
}

async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer();
      await once(server.listen(0, "127.0.0.1"), "listening");
      return server;
    }),
  );
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => once(server.close(), "close")));
  return ports;
}
