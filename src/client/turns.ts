/**
 * A call about tasks that another call of this client is still about waits for the answer of that one.
 *
 * Requests overtake each other, and an answer may be lost: a task that needs one which is under way, or the cancel of
 * it, could come to the server first and be refused for good. What a call is about is told by the ids that its caller
 * gave: no other can name what has none. A call only ever waits for earlier ones, so that none wait for each other.
 * One that is given up while it waits opens the way for nobody: what would have waited for it waits for those before.
 */
import type { CallName } from "../protocol/index.ts";

/** Makes the call when its turn has come. */
export type Turns = <Value>(
  ids: CallIds,
  signal: AbortSignal | undefined,
  call: () => Promise<Value>,
) => Promise<Value>;
/** The tasks that a call makes or changes, and all that it names. */
export type CallIds = { readonly own: readonly unknown[]; readonly named: readonly unknown[] };

export function createTurns(): Turns {
  /** By the id of a task: the last call that makes or changes it and all before that, while one has no answer. */
  const unanswered = new Map<unknown, Promise<unknown>>();
  return ({ own, named }, signal, call) => {
    if (named.length === 0) return call();
    const before = new Set(named.flatMap((id) => unanswered.get(id) ?? []));
    const made = before.size === 0 ? call() : allOver(before, signal).then(call);
    if (own.length === 0) return made;
    const all = before.size === 0 ? made : Promise.allSettled([...before, made]).then(NO_ANSWERS);
    for (const id of own) unanswered.set(id, all);
    const isOver = (): void => {
      for (const id of own) if (unanswered.get(id) === all) unanswered.delete(id);
    };
    all.then(isOver, isOver);
    return made;
  };
}

/** A promise that held those of the one before it would hold every answer for as long as calls follow each other. */
const NO_ANSWERS = (): void => {};

async function allOver(calls: Iterable<Promise<unknown>>, signal: AbortSignal | undefined): Promise<void> {
  const { promise: givenUp, reject } = Promise.withResolvers<never>();
  const giveUp = (): void => reject(signal?.reason);
  if (signal?.aborted === true) giveUp();
  signal?.addEventListener("abort", giveUp, { once: true });
  try {
    await Promise.race([givenUp, Promise.allSettled(calls)]);
  } finally {
    signal?.removeEventListener("abort", giveUp);
  }
}

type Task = { readonly id?: unknown; readonly parent?: unknown; readonly needs?: object | null };

/** What is no task is left for the server to refuse. */
export function idsIn(name: CallName, params: object | undefined, body: unknown): CallIds {
  if (name === "cancel") return ofTasks([params as Task]);
  if (name === "submit") return ofTasks([body as Task]);
  if (name !== "submitBatch") return NONE;
  const { tasks } = body as { readonly tasks?: unknown };
  return Array.isArray(tasks) ? ofTasks(tasks as readonly (Task | null)[]) : NONE;
}
const NONE: CallIds = { own: [], named: [] };

function ofTasks(tasks: readonly (Task | null | undefined)[]): CallIds {
  const own: unknown[] = [];
  const named: unknown[] = [];
  for (const task of tasks) {
    const { id, parent, needs } = task ?? {};
    if (id !== undefined) {
      own.push(id);
      named.push(id);
    }
    if (parent !== undefined) named.push(parent);
    if (needs !== undefined && needs !== null) named.push(...Object.values(needs));
  }
  return { own, named };
}
