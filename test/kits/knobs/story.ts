/**
 * What the rows about knobs have in common: a Drover under one setting, and small things that can be seen of it.
 */
import type { Handler } from "../../../src/engine/index.ts";
import type { Log } from "../../../src/log/log.ts";
import { createMemoryLog, createMemoryStore, type MemoryStore } from "../../../src/log/memory/memory-log.ts";
import { createTestDrover, type TestDrover } from "../../../src/testing/index.ts";

export const AT = 1_000_000;

/** A row: the story, told under each setting, and what is seen then. */
export type Knob = {
  readonly base?: object;
  readonly cases: readonly (readonly [value: unknown, seen: unknown])[];
  readonly tell: (kit: Story) => Promise<unknown>;
};
export type Story = TestDrover & {
  readonly store: MemoryStore;
  /** The events that the head was to be signed at. */
  readonly signedAt: readonly number[];
};

export async function openStory(path: string, value: unknown, base: object): Promise<Story> {
  const config = structuredClone(base) as Record<string, unknown>;
  // Named projects and gates lie in the section itself.
  const keys = path.split(".").filter((key) => key !== "named");
  let section = config;
  for (const key of keys.slice(0, -1)) {
    section[key] = { ...(section[key] as object | undefined) };
    section = section[key] as Record<string, unknown>;
  }
  const last = keys.at(-1) as string;
  section[last] = path.endsWith(".named") ? { ...(section[last] as object | undefined), ...(value as object) } : value;
  const store = createMemoryStore();
  const signedAt: number[] = [];
  const log = noting(createMemoryLog({ store }), store, signedAt);
  return { ...(await createTestDrover({ at: AT, config, log })), store, signedAt };
}

/** A log that signs nothing, and says when it would have: by the count of its rule, or as it is asked. */
function noting(log: Log, store: MemoryStore, signedAt: number[]): Log {
  let eventsMax = Number.POSITIVE_INFINITY;
  return {
    ...log,
    append: async (after, epoch, batch, batchId) => {
      const result = await log.append(after, epoch, batch, batchId);
      eventsMax = batch.sign?.events ?? eventsMax;
      const isMany = store.head.seq - (signedAt.at(-1) ?? 0) >= eventsMax;
      if (batch.sign !== undefined || isMany) signedAt.push(store.head.seq);
      return result;
    },
    sign: async () => {
      signedAt.push(store.head.seq);
    },
  };
}

export const task = (id: string, more: object = {}) => ({ id, agentId: "ann", action: "build", ...more });
export const hang: Handler = () => new Promise(() => {});

/** How many of so many equal tasks run at once. */
export async function runningOf(kit: Story, count: number, more: object = {}): Promise<number> {
  await kit.drover.worker({ slots: 9 }, hang);
  for (let index = 0; index < count; index++) await kit.drover.submit(task(`t${index}`, more));
  await kit.settle();
  return kit.drover.state.inFlight;
}

/** How many tasks are let in before one is not, of at most twenty. */
export async function acceptedOf(kit: Story, more: (index: number) => object = () => ({})): Promise<number> {
  for (let index = 0; index < 20; index++) {
    try {
      await kit.drover.submit(task(`t${index}`, more(index)));
    } catch {
      return index;
    }
  }
  return 20;
}

/** What a call came to: its answer, or the code of its refusal. */
export const codeOf = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => "ok",
    (error: { code?: string }) => error.code,
  );

/** A worker that notes who started when, and ends each task at once unless told otherwise. */
export async function note(kit: Story, handler: Handler = () => {}, options: object = {}): Promise<string[]> {
  const starts: string[] = [];
  await kit.drover.worker(options, (given, context) => {
    starts.push(`${given.taskId} ${kit.clock.now() - AT}`);
    return handler(given, context);
  });
  return starts;
}

type Assigned = { readonly worker: string; readonly reason: { type: string }; readonly rank: Record<string, unknown> };

/** The starts of one task, as the log tells them. */
export async function startsOf(kit: Story, id: string): Promise<Assigned[]> {
  const starts: Assigned[] = [];
  for await (const { kind, task: of, payload } of kit.drover.events())
    if (kind === "task-assigned" && of === id) starts.push(payload as unknown as Assigned);
  return starts;
}

/** The rank with which one task started on a worker that comes after so many milliseconds. */
export async function rankAfter(kit: Story, waitMs: number, more: object): Promise<Record<string, unknown>> {
  await kit.drover.submit(task("t", more));
  await kit.clock.advance(waitMs);
  await kit.drover.worker({}, hang);
  await kit.settle();
  return (await startsOf(kit, "t"))[0]?.rank ?? {};
}
