/**
 * Nodes of a cluster as processes: `drover serve --log …` on free ports of loopback, each with a data directory of its
 * own, that can be killed, frozen, stopped in good order, and started again over what they have.
 *
 *     await using etcd = await startEtcd({ members: 3 });
 *     await using cluster = await startNodes({ log: etcd.url("drover"), ids: ["a", "b", "c"] });
 *     const leader = await cluster.leader();
 *     await leader.kill();
 *
 * When the cluster is disposed, every process that was started here has ended and the directories are gone.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Journal } from "../../src/log/journal/journal.ts";
import { LogFailure } from "../../src/log/log.ts";
import { openJournal } from "../../src/log/shared/index.ts";
import { realClock, restFor } from "../../src/std/clock.ts";
import { type Served, startServe } from "./serve-process.ts";
import { until } from "./waits.ts";

/** How often the journal is asked who leads: the nodes under test need the cores more. */
const LOOK_MS = 50;

export type NodeProcess = {
  readonly id: string;
  /** Its data directory. */
  readonly data: string;
  /** Where it is reached, since its last start. */
  url(): string;
  /** What it has written to standard error since its last start. */
  said(): string;
  isRunning(): boolean;
  /** Resolves with the exit code of what runs now: null if a signal ended it. */
  ended(): Promise<number | null>;
  /** Ends it as a crash does. May be called twice. */
  kill(): Promise<void>;
  /** It hangs: connections stand, nothing is answered. */
  freeze(): void;
  thaw(): void;
  /** Ends it in good order; answers the exit code. */
  stop(): Promise<number | null>;
  /** Runs it again over its data; resolves when it serves. */
  start(): Promise<void>;
};

export type NodeCluster = AsyncDisposable & {
  readonly nodes: readonly NodeProcess[];
  node(id: string): NodeProcess;
  /** Starts one more; with `log`, one that reaches the same journal by another address. */
  add(id: string, flags?: readonly string[], log?: string): Promise<NodeProcess>;
  /** The running node that leads; waits for one, or for another than this. */
  leader(butNot?: NodeProcess): Promise<NodeProcess>;
  /** The running nodes that do not lead. */
  followers(): Promise<NodeProcess[]>;
  /** The addresses of all running nodes, as DROVER_URL has them. */
  urls(): string;
};

export type NodesOptions = {
  /** The URL of the journal. */
  readonly log: string;
  readonly ids: readonly string[];
  /** For every node, beside its own. */
  readonly flags?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  /** What the shell does before each node, such as a limit it sets. */
  readonly before?: string;
};

export async function startNodes(options: NodesOptions): Promise<NodeCluster> {
  const directory = mkdtempSync(join(tmpdir(), "drover-nodes-"));
  const nodes: NodeProcess[] = [];
  let journal: Promise<Journal> | null = null;

  async function add(id: string, more: readonly string[] = [], log: string = options.log): Promise<NodeProcess> {
    const flags = [...(options.flags ?? []), ...more];
    const node = createNode({ ...options, log, id, data: join(directory, id), flags });
    nodes.push(node);
    await node.start();
    return node;
  }
  const running = (): NodeProcess[] => nodes.filter((node) => node.isRunning());

  /** Who leads by the journal. Null while nobody does, and while the journal is out of reach, which passes. */
  async function leadingId(): Promise<string | null> {
    journal ??= openJournal(options.log);
    try {
      return (await (await journal).nodes()).lead?.node ?? null;
    } catch (error) {
      if (error instanceof LogFailure && error.code === "unreachable") return null;
      throw error;
    }
  }

  async function leader(butNot?: NodeProcess): Promise<NodeProcess> {
    let found: NodeProcess | undefined;
    const isFound = async (): Promise<boolean> => {
      const leading = await leadingId();
      found = running().find((node) => node.id === leading && node !== butNot);
      return found !== undefined;
    };
    await until(butNot === undefined ? "a node to lead" : `another than ${butNot.id} to lead`, isFound, () =>
      restFor(realClock, LOOK_MS),
    );
    return found as NodeProcess;
  }

  async function dispose(): Promise<void> {
    await Promise.all(nodes.map((node) => node.kill()));
    await (await journal)?.close();
    rmSync(directory, { recursive: true, force: true });
  }
  try {
    await Promise.all(options.ids.map((id) => add(id)));
  } catch (error) {
    await dispose();
    throw error;
  }
  return {
    nodes,
    node: (id) => nodes.find((node) => node.id === id) as NodeProcess,
    add,
    leader,
    followers: async () => {
      const leading = await leader();
      return running().filter((node) => node !== leading);
    },
    urls: () =>
      running()
        .map((node) => node.url())
        .join(","),
    [Symbol.asyncDispose]: dispose,
  };
}

type NodeOptions = Omit<NodesOptions, "ids"> & { readonly id: string; readonly data: string };

function createNode({ id, data, log, flags = [], env, before }: NodeOptions): NodeProcess {
  let served: Served | null = null;
  const present = (): Served => {
    if (served === null) throw new Error(`node ${id} was not started`);
    return served;
  };
  const given = { ...(env === undefined ? {} : { env }), ...(before === undefined ? {} : { before }) };
  return {
    id,
    data,
    url: () => present().url,
    said: () => present().said(),
    isRunning: () => served?.isRunning() ?? false,
    ended: () => present().ended,
    kill: async () => {
      served?.signal("SIGKILL");
      await served?.ended;
    },
    freeze: () => present().signal("SIGSTOP"),
    thaw: () => present().signal("SIGCONT"),
    stop: () => present().stop(),
    start: async () => {
      served = await startServe({
        cwd: tmpdir(),
        flags: ["--log", log, "--node", id, "--data", data, ...flags],
        ...given,
      });
    },
  };
}
