/**
 * `drover/testing`: a Drover whose clock is turned by hand.
 *
 *     await using test = await createTestDrover({ config: { scheduler: { retry: { base: "1s" } } } });
 *     await test.drover.worker({}, () => { throw new Error("not yet"); });
 *     await test.drover.submit({ id: "t", agentId: "ann", action: "build" });
 *     await test.settle();                  // the first attempt has failed, and the task rests
 *     await test.clock.advance(2000);       // the second attempt has failed too
 *
 * It is the real engine, in memory unless `data` names a directory: only the clock, the next turn and the look for
 * artifacts are not the world's. So a test needs no sleep, and two runs of it are equal.
 */
import "../engine/index.ts"; // The version of Node is checked before anything else.

import { randomUUID } from "node:crypto";
import { isRecord } from "../core/base/index.ts";
import { badInput } from "../engine/base/index.ts";
import { type Drover, type OpenOptions, openDrover } from "../engine/index.ts";
import { createHandClock, type TestClock } from "../std/index.ts";

export type { TestClock } from "../std/index.ts";

/** A plain round instant, so that times in failures are easy to read: 2026-01-01T00:00:00Z. */
const BEGINNING = 1_767_225_600_000;

/** How a test begins. */
export type TestDroverOptions = Pick<OpenOptions, "config" | "data" | "log"> & {
  /** What the clock says at first, in milliseconds since 1970. */
  readonly at?: number;
};
/** A Drover for tests, with its clock. */
export type TestDrover = AsyncDisposable & {
  /** The engine itself. */
  readonly drover: Drover;
  /** Turned by hand. */
  readonly clock: TestClock;
  /** Input artifacts that are there. Add a name and call `drover.lookForArtifacts()`, or turn the clock. */
  readonly artifacts: Set<string>;
  /** Runs turns until nothing is left to do at this instant, and everything is durable. */
  settle(): Promise<void>;
};

/** Opens a Drover whose clock is turned by hand. */
export async function createTestDrover(options: TestDroverOptions = {}): Promise<TestDrover> {
  if (!isRecord(options)) throw badInput("options", options, "an object");
  const { at = BEGINNING, ...open } = options;
  const artifacts = new Set<string>();
  let opened: Drover | null = null;
  // A log of its own has had no life before, so its names may be the same in every run.
  const names = open.data === undefined && open.log === undefined ? "test" : randomUUID();
  let ids = 0;
  const clock = createHandClock({ at, isAtRest: () => isDurable(opened) });
  const drover = await openDrover({
    ...open,
    clock,
    newId: () => `${names}-${++ids}`,
    artifactExists: async (artifact) => artifacts.has(artifact),
  });
  opened = drover;
  return { drover, clock, artifacts, settle: clock.settle, [Symbol.asyncDispose]: () => drover.close() };
}

/** Any answer leaves only when what it saw is durable; whether more was applied meanwhile shows in the state. */
async function isDurable(drover: Drover | null): Promise<boolean> {
  if (drover === null) return true;
  const { seq } = drover.state;
  try {
    await drover.workers();
  } catch {
    return true; // It was closed or its log failed: nothing more will happen.
  }
  return drover.state.seq === seq;
}
