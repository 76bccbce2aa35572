/**
 * Three nodes as processes over each engine of a cluster: the leader is killed, the next is stopped for longer than its
 * lease. Nothing that was acknowledged is lost, no two lead under one epoch, and all end with the same hash.
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { openDrover } from "../../src/engine/index.ts";
import { openJournal, openSharedLog } from "../../src/log/shared/index.ts";
import { etcdMissing, startEtcd } from "../kits/etcd.ts";
import { postgresMissing, startPostgres } from "../kits/postgres.ts";
import { within } from "../kits/waits.ts";

const CHILD = join(import.meta.dirname, "../kits/faults/cluster-node.ts");

type Said = { readonly node: string; readonly word: string; readonly id: string; readonly epoch: number };
type NodeProcess = { readonly id: string; readonly directory: string; readonly child: ChildProcess };

/** What all nodes have said, and a wait for what they will say. */
function createHearing() {
  const all: Said[] = [];
  const waiting = new Set<() => void>();
  const hear = (node: string, line: string): void => {
    const [word = "", id = "", epoch = "0"] = line.split(" ");
    all.push({ node, word, id, epoch: Number(epoch) });
    for (const look of [...waiting]) look();
  };
  /** The first that fits, from what was said at `from` on. */
  const until = (what: string, from: number, fits: (said: Said, index: number) => boolean): Promise<Said> => {
    const { promise, resolve } = Promise.withResolvers<Said>();
    let at = from;
    const look = (): void => {
      for (; at < all.length; at++) if (fits(all[at] as Said, at)) return resolve(all[at] as Said);
    };
    waiting.add(look);
    look();
    return within(what, promise).finally(() => waiting.delete(look));
  };
  return { all, hear, until };
}
type Hearing = ReturnType<typeof createHearing>;

function startNode(hearing: Hearing, url: string, directory: string, id: string): NodeProcess {
  const child = spawn(process.execPath, [CHILD, url, directory, id], { stdio: ["pipe", "pipe", "inherit"] });
  createInterface({ input: child.stdout as NodeJS.ReadableStream }).on("line", (line) => hearing.hear(id, line));
  return { id, directory, child };
}

/** Ends in good order. */
async function ended({ id, child }: NodeProcess, hearing: Hearing): Promise<void> {
  const from = hearing.all.length;
  const exited = once(child, "exit");
  child.stdin?.end();
  await hearing.until(`the end of ${id}`, from, ({ word, node }) => word === "end" && node === id);
  await exited;
}

/** So many tasks more are done, whoever leads. */
const moreDone = (hearing: Hearing, count: number): Promise<Said> => {
  let left = count;
  return hearing.until(`${count} tasks more`, hearing.all.length, ({ word }) => word === "D" && --left === 0);
};

const ENGINES: readonly { name: string; missing: string | false; start: () => Promise<Engine> }[] = [
  {
    name: "three members of etcd",
    missing: etcdMissing,
    start: async () => {
      const etcd = await startEtcd({ members: 3 });
      return { url: etcd.url("cell"), [Symbol.asyncDispose]: () => etcd[Symbol.asyncDispose]() };
    },
  },
  {
    name: "PostgreSQL",
    missing: postgresMissing,
    start: async () => {
      const postgres = await startPostgres();
      return { url: postgres.url(), [Symbol.asyncDispose]: () => postgres[Symbol.asyncDispose]() };
    },
  },
];
type Engine = AsyncDisposable & { readonly url: string };

for (const { name, missing, start } of ENGINES)
  test(`over ${name}: the leader is killed, the next is stopped and continued`, { skip: missing }, async (context) => {
    await using engine = await start();
    await story(context, engine);
  });

async function story(context: TestContext, { url }: Engine): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), "drover-cluster-"));
  const hearing = createHearing();
  const nodes = new Map(["a", "b", "c"].map((id) => [id, startNode(hearing, url, join(root, id), id)]));
  context.after(() => {
    for (const { child } of nodes.values()) child.kill("SIGKILL");
    rmSync(root, { recursive: true, force: true });
  });
  const leads = (from: number, except: string): Promise<Said> =>
    hearing.until("a leader", from, ({ node, word }) => word === "leader" && node !== except);

  const first = await leads(0, "");
  await moreDone(hearing, 100);
  let from = hearing.all.length;
  nodes.get(first.node)?.child.kill("SIGKILL");
  const second = await leads(from, first.node);
  await moreDone(hearing, 100);

  // Comes back while another leads, and follows.
  nodes.set(first.node, startNode(hearing, url, join(root, first.node), first.node));
  await hearing.until("the killed node", from, ({ node, word }) => node === first.node && word === "follower");

  from = hearing.all.length;
  nodes.get(second.node)?.child.kill("SIGSTOP");
  const third = await leads(from, second.node);
  const continued = hearing.all.length;
  nodes.get(second.node)?.child.kill("SIGCONT");
  await hearing.until("the stopped node", continued, ({ node, word }) => node === second.node && word === "follower");
  await moreDone(hearing, 100);

  const promises = hearing.all.filter(({ word }) => word === "S" || word === "D");
  const leaders = new Map<number, Set<string>>();
  for (const { node, epoch } of promises) leaders.set(epoch, (leaders.get(epoch) ?? new Set()).add(node));
  for (const [epoch, who] of leaders) assert.equal(who.size, 1, `epoch ${epoch} was led by ${[...who]}`);
  assert.ok(leaders.size >= 3, `the lead went from ${first.node} to ${second.node} to ${third.node}`);

  await Promise.all([...nodes.values()].map((node) => ended(node, hearing)));
  const directories = [...nodes.values()].map(({ directory }) => directory);
  // Opening brings each up to the journal.
  for (const directory of directories)
    await (await openSharedLog({ journal: await openJournal(url), directory })).close();
  assertOneHistory(directories);
  await assertKept(directories[0] as string, promises);
}

type Row = { readonly first_seq: number; readonly epoch: number; readonly batch_id: string; readonly hash: string };

/** Batch by batch: the same events under the same epoch with the same hash, and epochs never go back. */
function assertOneHistory(directories: readonly string[]): void {
  const histories = directories.map((directory) => {
    const database = new DatabaseSync(join(directory, "drover.db"), { readOnly: true });
    const select = "SELECT first_seq, epoch, batch_id, hex(post_hash) AS hash FROM batch ORDER BY first_seq";
    const rows = database.prepare(select).all() as unknown as Row[];
    database.close();
    return rows;
  });
  const [first = [], ...others] = histories;
  assert.ok(first.length > 100);
  for (const rows of others) assert.deepEqual(rows, first);
  for (const [index, { epoch }] of first.entries()) assert.ok(epoch >= (first[index - 1]?.epoch ?? 0));
}

/** Every promise is kept in the history of this node. */
async function assertKept(directory: string, promises: readonly Said[]): Promise<void> {
  await using drover = await openDrover({ data: directory });
  for (const { word, id } of promises) {
    const task = await drover.task(id);
    assert.equal(task.taskId, id);
    if (word === "D") assert.equal(task.state, "done");
  }
}
