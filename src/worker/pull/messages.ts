/**
 * What is said between the handlers of a pull worker and the thread that keeps its connection.
 *
 * Apart from both, because importing the thread's own file would start it. Between threads messages are JSON, which
 * takes two thirds of the time that cloning them does. Results and progress are JSON text in them: it is made once,
 * where the value is, and measured there; the connection never looks into it.
 */
import type {
  AttemptOutcome,
  AttemptRef,
  FileRef,
  LeanTask,
  TaskView,
  Usage,
  WantedLog,
} from "../../protocol/index.ts";

/** What the server wants, and as whom to answer it. */
export type WantedLogs = { readonly workerId: string; readonly session: string; readonly logs: readonly WantedLog[] };

/** Why an attempt must stop: Drover says so, or the server has not heard of this worker and may give it away. */
export type AttemptStopCause = "cancelled" | "lease-lost" | "session-lost" | "not-begun";
export type Stop = AttemptRef & { readonly cause: AttemptStopCause };

/** How an attempt ended, in the words of the wire. */
export type Outcome = {
  /** How the attempt ended. */
  readonly outcome: AttemptOutcome;
  /** What it answered. */
  readonly result?: unknown;
  /** Why it did not end well. */
  readonly error?: string;
  /** The tokens it used. */
  readonly usage?: Usage;
  /** How long to rest first. */
  readonly retryAfterMs?: number;
  /** With `requeue`: the provider said 429 or 529. */
  readonly rateLimited?: boolean;
  /** Another attempt would fail as well. */
  readonly permanent?: boolean;
  /** With `again`: what the next round of its loop is to see. */
  readonly note?: string;
  /** With `ask`: what is asked of a person. */
  readonly question?: string;
  /** With `ask`: how long there is to answer. */
  readonly timeoutMs?: number;
};
/** The same, with its result as JSON text. */
export type Report = Omit<Outcome, "result"> & { readonly result?: string; readonly files?: readonly FileRef[] };
/** What there is to tell of an attempt that runs. */
export type Update = {
  /** JSON text. */
  readonly progress?: string;
  readonly usage?: Usage;
};
/** Assignments as JSON: their names, and the task of each in its place. */
export type Unread = { readonly named: string; readonly tasks: string };
/** A task that was given in full has its token; of one that was given leanly the worker makes it. */
export type Handed = AttemptRef & {
  /** It was kept for this worker: it is begun, whatever of its neighbours goes back. */
  readonly goesOn?: true;
  readonly task: TaskView | LeanTask;
  readonly token?: string | undefined;
};

export type FromHandlers =
  /** It was begun out of turn: of those that are begun in the order in which they came, the cell says how many. */
  | ({ readonly type: "began" } & AttemptRef)
  /** A report of null: it was never begun, and there is nothing to say of it. */
  | ({ readonly type: "ended"; readonly report: Report | null } & AttemptRef)
  /** Several that are done, with no result: of each its id, and behind it the number of its attempt. */
  | { readonly type: "all-done"; readonly names: readonly (string | number)[] }
  | { readonly type: "progress"; readonly items: readonly (AttemptRef & Update)[] }
  /** Run at most so many at once from now on; with 0, the note says why. */
  | { readonly type: "limit"; readonly count: number; readonly note: string | null }
  /** Take at most so many that want a worktree, or any number; the note says why. */
  | { readonly type: "limit-worktrees"; readonly count: number | null; readonly note: string | null }
  /** Take no more, and leave when all has ended. */
  | { readonly type: "drain" }
  /** Take no more: handlers are being stopped. */
  | { readonly type: "closing" }
  /** The handlers have ended or were given up: leave. */
  | { readonly type: "leave" };

export type Fatal = { readonly code: string; readonly message: string; readonly status: number };
/** Limits that the server may change. */
export type Terms = {
  readonly leaseMs: number;
  readonly maxWorktrees: number | null;
  /** With which the worker makes the tokens of its attempts; null: they come with them. */
  readonly tokenKey: string | null;
};
export type ToHandlers =
  | ({ readonly type: "joined"; readonly workerId: string; readonly session: string } & Terms)
  /** The server has changed one of them. */
  | ({ readonly type: "terms" } & Terms)
  | { readonly type: "start"; readonly assignments: readonly Handed[] }
  /** The same, of a lean answer: the task of each stands in its place. */
  | { readonly type: "start-lean"; readonly named: readonly AttemptRef[]; readonly tasks: readonly LeanTask[] }
  /** And as it came: it is only passed on. */
  | ({ readonly type: "start-unread" } & Unread)
  | { readonly type: "stop"; readonly stops: readonly Stop[] }
  /** These wait for a slot: they are given back, if they have not been begun by now. */
  | { readonly type: "give-back"; readonly attempts: readonly AttemptRef[] }
  | { readonly type: "logs"; readonly wanted: WantedLogs }
  /** Tasks that were to go on here have ended. */
  | { readonly type: "over"; readonly tasks: readonly string[] }
  /** The server wants this worker to finish and leave. */
  | { readonly type: "draining" }
  | { readonly type: "warning"; readonly message: string }
  | { readonly type: "left" }
  | { readonly type: "failed"; readonly error: Fatal };

export const keyOf = ({ taskId, attempt }: AttemptRef): string => `${taskId}#${attempt}`;

/**
 * What all threads may read at any time, though one of them stands still.
 *
 * Until when the lease holds: the connection writes it, and the handlers look before they begin. A lease is a matter of
 * spans, not of dates: this is time that has elapsed, with one beginning for all threads. And how many of those that
 * were handed over have been begun, in their order: the handlers count, so that a handler which then keeps its thread
 * for itself is known to run, without a message for each. The last place that was begun out of turn. And which places
 * are not to be begun any more, of what was fetched ahead or of all: one side says that it begins before it looks
 * whether it may, the other says what may not before it looks what was begun, so never do both take the same one.
 */
export type LeaseCell = {
  readonly shared: SharedArrayBuffer;
  read(): number;
  write(leaseEnd: number): void;
  begun(): number;
  setBegun(count: number): void;
  setBegunEarly(place: number): void;
  /** Up to where it was looked whether they may be begun: the count says that it is about to. */
  setLooked(count: number): void;
  /** Those behind the first place, up to the last; answers up to where some were begun already. */
  revoke(behind: number, last: number): number;
  isRevoked(place: number): boolean;
  /** All up to this place; answers up to where some were begun already. */
  disown(last: number): number;
  isDisowned(place: number): boolean;
};

/** Where each of the numbers stands. */
const AT = {
  leaseEnd: 0,
  begun: 1,
  begunEarly: 2,
  looked: 3,
  revokedBehind: 4,
  revokedTo: 5,
  disownedTo: 6,
} as const;
const CELL_BYTES = Object.keys(AT).length * BigInt64Array.BYTES_PER_ELEMENT;

export function createLeaseCell(shared: SharedArrayBuffer = new SharedArrayBuffer(CELL_BYTES)): LeaseCell {
  const cell = new BigInt64Array(shared);
  const write = (index: number, value: number): void => void Atomics.store(cell, index, BigInt(value));
  const read = (index: number): number => Number(Atomics.load(cell, index));
  const begunTo = (): number => Math.max(read(AT.begun), read(AT.begunEarly));
  return {
    shared,
    read: () => read(AT.leaseEnd),
    write: (leaseEnd) => write(AT.leaseEnd, Math.max(0, Math.floor(leaseEnd))),
    begun: () => read(AT.begun),
    setBegun: (count) => write(AT.begun, count),
    setBegunEarly: (place) => write(AT.begunEarly, place),
    setLooked: (count) => write(AT.looked, count),
    revoke(behind, last) {
      // What was revoked before may still wait there, or be counted and not looked at: it stays so until it was.
      const isWaited = read(AT.revokedTo) > read(AT.looked);
      write(AT.revokedBehind, isWaited ? Math.min(read(AT.revokedBehind), behind) : behind);
      write(AT.revokedTo, last);
      return begunTo();
    },
    isRevoked: (place) => place <= read(AT.revokedTo) && place > read(AT.revokedBehind),
    disown(last) {
      write(AT.disownedTo, Math.max(read(AT.disownedTo), last));
      return begunTo();
    },
    isDisowned: (place) => place <= read(AT.disownedTo),
  };
}
