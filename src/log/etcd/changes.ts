/**
 * One key as it changes: its newest value, again and again.
 *
 * A watch tells of changes as they happen, and a read behind it, every second, tells whether the watch is still alive:
 * etcd lets a quiet stream be silent for minutes, and a member that hangs or was cut off looks just so. If a read knows
 * of a change and the watch, a little later, does not, it is dead, and the next one is made to another member. Whatever
 * ends a watch, also history that was compacted before its revision, the key is read anew, and the next watch begins at
 * the revision of that read: nothing between is missed. Who listens is told the newest value, not every one.
 */
import { type Clock, restFor } from "../../std/index.ts";
import { type KeyValue, watchOf } from "./answers.ts";
import type { EtcdClient } from "./client.ts";
import { unlessFault } from "./fault.ts";

/** How often a watch is compared with a read. */
const COMPARE_MS = 1000;
/** How long a watch has to tell what a read knows already. */
const COMPARE_AGAIN_MS = 250;

export type ChangesInput = {
  readonly client: EtcdClient;
  readonly key: string;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Asks again where no member answers, for as long as the signal lets it. */
  readonly steadily: <Answer>(work: () => Promise<Answer>) => Promise<Answer>;
};

/** Until the signal ends it: the value as it is, null if there is none, and then each newer one. */
export async function* changesOf(input: ChangesInput): AsyncGenerator<KeyValue | null, void> {
  const { client, key, signal, steadily } = input;
  let told: KeyValue | null | undefined;
  while (!signal.aborted) {
    const { found, revision } = await steadily(() => client.range({ key }, { signal }));
    const first = found[0] ?? null;
    if (told === undefined || revisionOf(told) !== revisionOf(first)) yield first;
    told = yield* watchedFrom(input, first, revision + 1);
  }
}

/** Until the watch ends or is found dead. Returns what was told last. */
async function* watchedFrom(
  input: ChangesInput,
  first: KeyValue | null,
  fromRevision: number,
): AsyncGenerator<KeyValue | null, KeyValue | null> {
  const ending = new AbortController();
  const signal = AbortSignal.any([input.signal, ending.signal]);
  const box = createBox(first);
  const end = (): void => {
    ending.abort();
    box.wake();
  };
  input.signal.addEventListener("abort", end, { once: true });
  const tasks = [readWatch({ ...input, signal }, fromRevision, box), compareReads({ ...input, signal }, box)];
  const settled = Promise.all(tasks.map((task) => task.finally(end)));
  settled.catch(() => {});
  try {
    let told = first;
    while (!signal.aborted) {
      if (revisionOf(box.latest) === revisionOf(told)) await box.news();
      else {
        told = box.latest;
        yield told;
      }
    }
    return told;
  } finally {
    input.signal.removeEventListener("abort", end);
    end();
    await settled;
  }
}

/** The newest that the watch has told, and a bell for who waits for it. */
type Box = { latest: KeyValue | null; news(): Promise<void>; wake(): void };

function createBox(first: KeyValue | null): Box {
  let bell = Promise.withResolvers<void>();
  return {
    latest: first,
    news: () => bell.promise,
    wake: () => {
      bell.resolve();
      bell = Promise.withResolvers();
    },
  };
}

/** Ends when etcd ends it, the connection breaks, or the signal says so. */
async function readWatch({ client, key, signal }: ChangesInput, fromRevision: number, box: Box): Promise<void> {
  try {
    for await (const line of await client.watch(key, fromRevision, signal)) {
      const answer = watchOf(line);
      if (answer.type === "compacted" || answer.type === "cancelled") return;
      if (answer.type !== "changed" || answer.changes.length === 0) continue;
      box.latest = answer.changes.at(-1) ?? null;
      box.wake();
    }
  } catch (error) {
    unlessFault(error);
  }
  if (!signal.aborted) client.turnAway();
}

/** Ends when the watch is found dead, or no member can be read. */
async function compareReads({ client, key, clock, signal }: ChangesInput, box: Box): Promise<void> {
  let behindAt: number | null = null;
  while (await paused(clock, behindAt === null ? COMPARE_MS : COMPARE_AGAIN_MS, signal)) {
    const read = await client.get(key, { signal }).catch(unlessFault);
    const watched = revisionOf(box.latest);
    if (read === undefined) return;
    if (revisionOf(read) === watched) behindAt = null;
    else if (behindAt === watched) return client.turnAway();
    else behindAt = watched;
  }
}

/** False, at once, if the signal ended it. */
async function paused(clock: Clock, ms: number, signal: AbortSignal): Promise<boolean> {
  await restFor(clock, ms, { signal, keepAlive: false });
  return !signal.aborted;
}

const revisionOf = (found: KeyValue | null): number => found?.modRevision ?? 0;
