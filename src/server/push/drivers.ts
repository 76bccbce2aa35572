/**
 * All push workers of this server, each spoken for by a drive of its own (driver.ts).
 *
 * A worker that registers with an endpoint joins like any other, and from then on this process probes it, syncs
 * for it and posts it its tasks. The log knows it with its endpoint, so the next process takes it up again: it is
 * probed, and joins under its id once it is found there. One that is to drain is left alone then: to join would
 * bring it back to work.
 */
import type { RemoteWorkers } from "../../engine/workers/index.ts";
import { type Exchange, exchange } from "../../http/index.ts";
import type { JoinBody, Joined, WorkerOptions, WorkerView } from "../../protocol/index.ts";
import { type Clock, present, realClock } from "../../std/index.ts";
import { type Drive, type PushChange, startDrive } from "./driver.ts";
import { checkPushTarget, type PushWorld } from "./request.ts";
import type { PushWorker } from "./session.ts";

/** What is used of a worker as the engine shows it. */
type KnownWorker = Pick<WorkerView, "id" | "kind" | "status" | "slots" | "endpoint" | "path" | keyof WorkerOptions>;
/** What is used of the engine. */
type PushEngine = {
  workers(): Promise<readonly KnownWorker[]>;
  readonly remote: Pick<RemoteWorkers, "join" | "sync" | "lastWord">;
};
type PushOptions = {
  readonly drover: PushEngine;
  /** Of Drover, for the User-Agent. */
  readonly version: string;
  readonly onChange?: (change: PushChange) => void;
  readonly onProblem: PushWorld["onProblem"];
  readonly clock?: Clock;
  readonly exchange?: Exchange;
};
export type PushDriver = AsyncDisposable & {
  /** Takes up the push workers that the log knows. Call it once, when the engine is open. */
  resume(): Promise<void>;
  /** A worker with an endpoint registers; if it has before, it has started anew. */
  join(body: JoinBody): Promise<Joined>;
  /** A worker registers under this id. The engine hears first what was not posted, since it takes the rest for lost. */
  giveBack(workerId: string): void;
  /** A worker has left, and its drive ends. Unknown ones are none of ours. */
  left(workerId: string): void;
  standing(): { readonly workers: number; readonly alive: number; readonly underWay: number };
  /** Takes nothing more, waits for what is under way up to the grace, then cuts it off. The workers stay known. */
  stop(options?: { readonly graceMs?: number }): Promise<void>;
};

export function createPushDriver(options: PushOptions): PushDriver {
  const { drover, onChange = () => {} } = options;
  const world: PushWorld = { clock: realClock, exchange, ...options };
  const drives = new Map<string, Drive>();
  let stopping: Promise<void> | null = null;

  function drive(worker: PushWorker, joined: Joined | null): void {
    drives.get(worker.id)?.end("it has registered anew");
    const started = startDrive({ worker, joined, remote: drover.remote, world, onChange });
    drives.set(worker.id, started);
    void started.ended.then(() => {
      if (drives.get(worker.id) === started) drives.delete(worker.id);
    });
  }

  const giveBack = (workerId: string): void => drives.get(workerId)?.giveBack();

  async function join(body: JoinBody): Promise<Joined> {
    const { endpoint, path } = body;
    checkPushTarget({ endpoint, path });
    if (body.id !== undefined) giveBack(body.id);
    const joined = await drover.remote.join(body);
    if (stopping === null) drive({ ...body, id: joined.workerId, endpoint: endpoint as string }, joined);
    return joined;
  }

  async function resume(): Promise<void> {
    for (const { id, kind, status, endpoint, ...known } of await drover.workers()) {
      if (kind !== "push" || endpoint === undefined || status === "draining") continue;
      if (drives.has(id) || stopping !== null) continue;
      const {
        slots,
        capabilities,
        resources,
        zone = null,
        path,
        actions = null,
        types = null,
        projects = null,
        worktrees = null,
      } = known;
      const worker = { id, endpoint, slots, capabilities, zone, actions, types, projects, worktrees };
      drive({ ...worker, ...present({ resources, path }) }, null);
    }
  }

  function stop({ graceMs = 0 }: { readonly graceMs?: number } = {}): Promise<void> {
    stopping ??= Promise.all([...drives.values()].map((each) => each.stop(graceMs))).then(() => {});
    return stopping;
  }

  return {
    resume,
    join,
    giveBack,
    stop,
    left: (workerId) => drives.get(workerId)?.end("it has left"),
    standing() {
      const all = [...drives.values()];
      const underWay = all.reduce((sum, { underWay }) => sum + underWay(), 0);
      return { workers: all.length, alive: all.filter(({ isAlive }) => isAlive()).length, underWay };
    },
    [Symbol.asyncDispose]: () => stop(),
  };
}
