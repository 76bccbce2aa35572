/**
 * A push worker's word to the engine: its session, the number of the next sync, and how long it has been silent.
 */
import type { LastWord, RemoteWorkers } from "../../engine/workers/index.ts";
import type { JoinBody, SyncAnswer, SyncBody } from "../../protocol/index.ts";
import type { Clock } from "../../std/index.ts";

const LEASE_MS_DEFAULT = 10_000;

export type PushWorker = JoinBody & { readonly id: string; readonly endpoint: string };
export type PushRemote = Pick<RemoteWorkers, "join" | "sync" | "lastWord">;
export type Joined = { readonly session: string; readonly leaseMs: number };
export type PushSession = {
  isJoined(): boolean;
  /** Joins anew: whatever it held under another session is lost to it. */
  join(): Promise<void>;
  sync(report: Omit<SyncBody, "session" | "n">, signal?: AbortSignal): Promise<SyncAnswer>;
  /** Heard before it returns; there is no answer. */
  lastWord(said: Omit<LastWord, "session">): void;
  /** Numbers go on behind one that the engine has seen already. */
  skipTo(n: number): void;
  leaseMs(): number;
  silentMs(): number;
};

export function createPushSession(deps: {
  readonly worker: PushWorker;
  readonly joined: Joined | null;
  readonly remote: PushRemote;
  readonly clock: Clock;
}): PushSession {
  const { worker, remote, clock } = deps;
  let { joined } = deps;
  let n = 0;
  let saidAt = clock.elapsed();
  return {
    isJoined: () => joined !== null,
    async join() {
      joined = await remote.join(worker);
      n = 0;
      saidAt = clock.elapsed();
    },
    async sync(report, signal) {
      const session = joined?.session;
      saidAt = clock.elapsed();
      const body = { ...report, n: ++n, ...(session === undefined ? {} : { session }) };
      const answer = await remote.sync(worker.id, body, signal === undefined ? {} : { signal });
      // The lease may have been changed since it joined: what the engine grants now is what counts.
      if (joined !== null) joined = { ...joined, leaseMs: answer.leaseMs };
      return answer;
    },
    lastWord(said) {
      if (joined !== null) remote.lastWord(worker.id, { ...said, session: joined.session });
    },
    skipTo(last) {
      n = Math.max(n, last);
    },
    leaseMs: () => joined?.leaseMs ?? LEASE_MS_DEFAULT,
    silentMs: () => clock.elapsed() - saidAt,
  };
}
