/**
 * A real server with a log on disk, workers in processes of their own, and eyes on both.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { TestContext } from "node:test";
import type { FeedEvent } from "../../../src/engine/index.ts";
import { openServer, type TestServer } from "../test-server.ts";

const CHILD = join(import.meta.dirname, "worker-child.ts");
const PATIENCE_MS = 120_000;

export type Line = Readonly<Record<string, unknown>>;
export type WorkerProcess = {
  readonly child: ChildProcess & { readonly pid: number };
  readonly lines: readonly Line[];
  /** The first line, already said or to come, that has all this in it. */
  said(wanted: Line): Promise<Line>;
  signal(name: NodeJS.Signals): void;
  write(text: string): void;
};
export type World = {
  readonly served: TestServer;
  startWorker(id: string, slots?: number): Promise<WorkerProcess>;
  /** The first event, committed already or to come, of this kind and task, and of this attempt if one is named. */
  event(kind: string, task: string, attempt?: number): Promise<FeedEvent>;
  events(): Promise<FeedEvent[]>;
  /** The server and its engine end, and come back on the same log under the same address. */
  restart(): Promise<void>;
};

export async function createWorld(
  t: TestContext,
  settings: Record<string, unknown>,
  engine: { readonly now?: () => number } = {},
): Promise<World> {
  const home = await mkdtemp(join(tmpdir(), "drover-worker-"));
  const open = (port: number): Promise<TestServer> =>
    openServer({ settings: { ...settings, server: { port } }, open: { data: home, config: settings, ...engine } });
  let served = await open(0);
  const patience = AbortSignal.timeout(PATIENCE_MS);
  const children: ChildProcess[] = [];
  t.after(async () => {
    for (const child of children) child.kill("SIGKILL");
    await served.server.close();
    await rm(home, { recursive: true, force: true });
  });
  return {
    get served() {
      return served;
    },
    async startWorker(id, slots = 1) {
      const worker = spawnWorker([served.url, id, String(slots)], patience);
      children.push(worker.child);
      await worker.said({ joined: id });
      return worker;
    },
    async event(kind, task, attempt) {
      for await (const event of served.drover.events({ follow: true, signal: patience }))
        if (event.kind === kind && event.task === task && (attempt ?? event.attempt) === event.attempt) return event;
      throw new Error(`no ${kind} of ${task}`);
    },
    async events() {
      const found: FeedEvent[] = [];
      for await (const event of served.drover.events()) found.push(event);
      return found;
    },
    async restart() {
      const { port } = served.server;
      await served.server.close();
      served = await open(port);
    },
  };
}

function spawnWorker(args: readonly string[], patience: AbortSignal): WorkerProcess {
  const child = spawn(process.execPath, [CHILD, ...args], { stdio: ["pipe", "pipe", "inherit"] });
  const lines: Line[] = [];
  const reader = createInterface({ input: child.stdout });
  reader.on("line", (text) => {
    lines.push(JSON.parse(text) as Line);
    reader.emit("said");
  });
  const has = (line: Line, wanted: Line): boolean =>
    Object.entries(wanted).every(([key, value]) =>
      value instanceof RegExp ? value.test(String(line[key])) : line[key] === value,
    );
  return {
    child: child as WorkerProcess["child"],
    lines,
    async said(wanted) {
      for (;;) {
        const found = lines.find((line) => has(line, wanted));
        if (found !== undefined) return found;
        await once(reader, "said", { signal: patience });
      }
    },
    signal: (name) => void child.kill(name),
    write: (text) => void child.stdin.write(`${text}\n`),
  };
}
