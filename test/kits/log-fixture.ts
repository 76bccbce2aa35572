/**
 * A log as an engine leaves it, with everything in it that a log can have: tasks that ended and tasks that wait, bodies
 * and results, snapshots, a pruned beginning whose payloads are partly kept.
 */
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Log } from "../../src/log/log.ts";
import { createSqliteLog } from "../../src/log/sqlite/sqlite-log.ts";
import { openSqliteStore } from "../../src/log/sqlite/store.ts";
import type { StoreThread } from "../../src/log/sqlite/thread-client.ts";
import { createTestDrover } from "../../src/testing/index.ts";

const HOURS_2 = 7_200_000;

const directories: string[] = [];
process.once("exit", () => {
  for (const directory of directories) rmSync(directory, { recursive: true, force: true });
});

export function newDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "drover-fixture-"));
  directories.push(directory);
  return directory;
}

export function copyOf(directory: string): string {
  const copy = newDirectory();
  cpSync(directory, copy, { recursive: true });
  return copy;
}

/** A log that was closed. Tasks `done-…` have results, tasks `wait-…` are for a worker that never comes. */
export async function closedLog({ pruned = false } = {}): Promise<string> {
  const data = newDirectory();
  const kit = await createTestDrover({ data, config: { log: { retain: "1h" }, scheduler: { resultTtl: "30d" } } });
  await kit.drover.worker({ slots: 3 }, ({ action }) => ({ echo: action, more: "r".repeat(200) }));
  for (let round = 0; round < (pruned ? 4 : 1); round++) {
    for (let index = 0; index < 8; index++) {
      const id = `${index < 4 ? "done" : "wait"}-${round}-${index % 4}`;
      const more = index < 4 ? {} : { capabilities: ["nobody"] };
      await kit.drover.submit({ id, agentId: "ann", action: id, payload: "x".repeat(index * 400), ...more });
    }
    await kit.settle();
    await kit.clock.set(kit.clock.now() + HOURS_2);
    if (pruned) await kit.drover.snapshot();
  }
  await kit.drover.close();
  return data;
}

/** A reader's log whose database is in this thread: a thread for each damage would take longer than all the rest. */
export function readerOf(directory: string): Log {
  const store = openSqliteStore({ directory, readOnly: true, maxBytes: null });
  const thread: StoreThread = {
    ask: async (op, input) => (store[op] as (input: unknown) => ReturnType<(typeof store)[typeof op]>)(input),
    isLostAnswer: () => false,
    close: async () => store.close(),
  };
  return createSqliteLog({ directory, readOnly: true, thread });
}

/** What verify finds, in words; nothing if the log is sound. */
export async function problemsOf(directory: string): Promise<string[]> {
  const log = readerOf(directory);
  try {
    return (await log.verify()).problems.map(({ seq, message }) => `${seq}: ${message}`);
  } finally {
    await log.close();
  }
}
