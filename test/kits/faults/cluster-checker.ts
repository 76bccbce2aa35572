/**
 * Judges the history of a cluster: what every node says happened, against what callers were told.
 *
 * It reads `GET /events` of every node and the tables in their directories, and shares no code with the product. A rule
 * that is broken is a sentence; a sound history has none.
 */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Promised } from "./cluster-load.ts";

type Entry = { readonly seq: number; readonly hash?: string; readonly payload: Payload };
type Payload = { readonly kind: string; readonly [name: string]: unknown };
type Node = { readonly id: string; readonly data: string; url(): string };
type Batch = { first_seq: number; last_seq: number; epoch: number; batch_id: string; hash: string };

const PAGE = 1000;
const ANSWER_MS = 30_000;

/** Waits until all nodes tell of as many events, and answers what is wrong with the history. */
export async function judge(nodes: readonly Node[], promises: readonly Promised[]): Promise<string[]> {
  const histories = await settledHistories(nodes);
  const [history = []] = histories;
  const wrong = [
    ...oneHistory(nodes, histories),
    ...oneLeaderPerEpoch(nodes, history),
    ...promisesKept(history, promises),
  ];
  return [...wrong, ...oneOwner(history, promises), ...permitsOnce(history)];
}

async function settledHistories(nodes: readonly Node[]): Promise<Entry[][]> {
  for (;;) {
    const histories = await Promise.all(nodes.map(historyOf));
    const ends = histories.map((history) => history.length);
    if (new Set(ends).size === 1) return histories;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function historyOf(node: Node): Promise<Entry[]> {
  const all: Entry[] = [];
  for (;;) {
    const path = `/events?after=${all.at(-1)?.seq ?? 0}&limit=${PAGE}`;
    const response = await fetch(`${node.url()}${path}`, { signal: AbortSignal.timeout(ANSWER_MS) });
    if (!response.ok) throw new Error(`${node.id} tells no events: ${response.status} ${await response.text()}`);
    const { events } = (await response.json()) as { events: Entry[] };
    all.push(...events);
    if (events.length < PAGE) return all;
  }
}

/** No two events at one number, none missing, the same everywhere, down to the hashes. */
function oneHistory(nodes: readonly Node[], histories: readonly Entry[][]): string[] {
  const wrong: string[] = [];
  const [first = []] = histories;
  for (const [at, history] of histories.entries()) {
    const id = nodes[at]?.id;
    const gap = history.findIndex(({ seq }, index) => seq !== index + 1);
    if (gap >= 0) wrong.push(`${id} has event ${history[gap]?.seq} where ${gap + 1} should be`);
    const other = history.findIndex((entry, index) => JSON.stringify(entry) !== JSON.stringify(first[index]));
    if (other >= 0) wrong.push(`${id} tells of event ${other + 1} otherwise than ${nodes[0]?.id}`);
  }
  const batches = nodes.map(({ data }) => JSON.stringify(batchesIn(data)));
  for (const [at, text] of batches.entries())
    if (text !== batches[0])
      wrong.push(`${nodes[at]?.id} has other batches or hashes on its disk than ${nodes[0]?.id}`);
  return wrong;
}

function batchesIn(directory: string): Batch[] {
  const database = new DatabaseSync(join(directory, "drover.db"), { readOnly: true });
  const columns = "first_seq, last_seq, epoch, batch_id, hex(post_hash) AS hash";
  const rows = database.prepare(`SELECT ${columns} FROM batch ORDER BY first_seq`).all() as unknown as Batch[];
  database.close();
  return rows;
}

/** Each epoch is begun by one node, and epochs never go back. */
function oneLeaderPerEpoch([node]: readonly Node[], history: readonly Entry[]): string[] {
  const wrong: string[] = [];
  const leaders = new Map<number, Set<string>>();
  const batches = node === undefined ? [] : batchesIn(node.data);
  for (const [at, { first_seq, last_seq, epoch }] of batches.entries()) {
    if (epoch < (batches[at - 1]?.epoch ?? 0)) wrong.push(`event ${first_seq} is of epoch ${epoch}, after a later one`);
    for (const { payload } of history.slice(first_seq - 1, last_seq))
      if (payload.kind === "node-joined" && payload.leads === true)
        leaders.set(epoch, (leaders.get(epoch) ?? new Set()).add(String(payload.node)));
  }
  for (const [epoch, who] of leaders) if (who.size > 1) wrong.push(`epoch ${epoch} has the leaders ${[...who]}`);
  return wrong;
}

/** What was acknowledged is in the history, and what was submitted was so once and has ended. */
function promisesKept(history: readonly Entry[], promises: readonly Promised[]): string[] {
  const wrong: string[] = [];
  const counts = new Map<string, number>();
  for (const { payload } of history)
    for (const name of ["task", "permit"]) {
      const key = `${payload.kind} ${payload[name]}`;
      if (payload[name] !== undefined) counts.set(key, (counts.get(key) ?? 0) + 1);
    }
  const has = (kind: string, id: string): boolean => counts.has(`${kind} ${id}`);
  for (const promised of promises) {
    if (promised.kind === "submitted") {
      const times = counts.get(`task-submitted ${promised.task}`) ?? 0;
      if (times !== 1) wrong.push(`${promised.task} was acknowledged and is submitted ${times} times`);
      if (!ENDS.some((end) => has(end, promised.task))) wrong.push(`${promised.task} never ends`);
    } else if (promised.kind === "cancelled" && !has("task-cancelled", promised.task))
      wrong.push(`the cancel of ${promised.task} was acknowledged and is lost`);
    else if (promised.kind === "result" && !has("task-done", promised.task))
      wrong.push(`the result of ${promised.task} was acknowledged and is lost`);
    else if (promised.kind === "settled" && !has("permit-settled", promised.permit))
      wrong.push(`the settlement of ${promised.permit} was acknowledged and is lost`);
  }
  return wrong;
}
const ENDS = ["task-done", "task-failed", "task-cancelled", "task-skipped"];

/** A task ends once; an attempt is given once; a result that counts is of the attempt that was given last. */
function oneOwner(history: readonly Entry[], promises: readonly Promised[]): string[] {
  const wrong: string[] = [];
  const given = new Map<string, string>();
  const ended = new Set<string>();
  for (const { seq, payload } of history) {
    const task = String(payload.task);
    if (payload.kind === "task-assigned") {
      const key = `${task}/${payload.attempt}`;
      if (given.has(key)) wrong.push(`attempt ${key} is given to ${given.get(key)} and to ${payload.worker}`);
      if (ended.has(task)) wrong.push(`${task} is given out at event ${seq}, after its end`);
      given.set(key, String(payload.worker));
    }
    if (!ENDS.includes(payload.kind)) continue;
    if (ended.has(task)) wrong.push(`${task} ends twice, again at event ${seq}`);
    ended.add(task);
  }
  const counted = new Map<string, string>();
  for (const promised of promises) {
    if (promised.kind !== "result") continue;
    const key = `${promised.task}/${promised.attempt}`;
    if (given.get(key) !== promised.worker)
      wrong.push(`${promised.worker} was thanked for ${key}, which is not its own`);
    const other = counted.get(promised.task);
    if (other !== undefined) wrong.push(`${other} and ${key} both count`);
    counted.set(promised.task, key);
  }
  return wrong;
}

/** A permit that was settled is not granted again. */
function permitsOnce(history: readonly Entry[]): string[] {
  const wrong: string[] = [];
  const settled = new Set<string>();
  for (const { seq, payload } of history) {
    const permit = String(payload.permit);
    if (payload.kind === "permit-settled" && payload.expired !== true) settled.add(permit);
    if (payload.kind === "permit-granted" && settled.has(permit))
      wrong.push(`permit ${permit} is granted at event ${seq}, after it was settled`);
  }
  return wrong;
}
