/**
 * The single writer: decides, applies, and makes durable.
 *
 * A command is decided and applied the moment it comes; its events join the batch that is gathering. One
 * append is in flight at a time, and whatever gathers meanwhile is the next batch: so the disk sets the
 * size of a batch and never the pace of deciding. An answer leaves when the events it rests on are
 * committed, also when it only read them. Each turn ends with the pump, in slices of 32 steps, so that
 * a burst of starts never holds up the event loop.
 *
 * The applied state runs ahead of the log. If an append fails for good, that state is worth nothing: the
 * writer stops, every open answer is refused, and whoever reopens the log finds exactly what was
 * acknowledged. An append whose answer was lost is repeated under the same batch id.
 *
 * If the disk falls far behind, what would add work is refused. What ends work never is: a result or a release
 * that was turned away would be lost for good, and would keep its slot, its locks and its budget.
 */
import { fail, type Instant, instant, type Seq, seq } from "../../core/base/index.ts";
import { decide, evolve, pump as nextStep } from "../../core/index.ts";
import type { Command, Decided, Decision, Event, State } from "../../core/model/index.ts";
import { nextChange } from "../../core/task/index.ts";
import { batchOf, createGathering, emptied, type Gathering, gather, gatheredBytes } from "../../log/format/index.ts";
import { type Head, type Log, LogFailure, type SignRule } from "../../log/index.ts";
import type { Clock } from "../../std/index.ts";
import { DroverError, isStop, refused } from "./drover-error.ts";
import { createHeadSigning } from "./head-signing.ts";
import { createLogClock } from "./log-clock.ts";
import type { StorageGuard } from "./storage-guard.ts";

const STEPS_PER_TURN_MAX = 32;
const BATCH_EVENTS_MAX = 20_000;
const BATCH_BYTES_MAX = 32 * 1024 * 1024;
const UNCOMMITTED_EVENTS_MAX = 500_000;
const REPEATS_MAX = 10;
/** Rooms of batches that are kept for the next: one is on its way while another gathers, and more if many wait. */
const SPARES_MAX = 4;

/** Where the log ends after a batch, and how long it took to store it. */
export type Commit = { readonly head: Head; readonly appendMs: number };
export type Applied = { readonly event: Event; readonly seq: Seq };
export type WriterHooks = {
  /** Right after an event was applied, before it is durable. */
  onApplied(event: Event): void;
  /** Whether anybody will hear of this event once it is durable: if not, it need not be kept until then. */
  isAwaited(event: Event): boolean;
  /** Those events of a batch that were awaited. */
  onCommitted(batch: readonly Applied[], commit: Commit): void;
  onStopped(error: DroverError): void;
};
export type Writer = {
  readonly state: State;
  committedSeq(): Seq;
  /** Log time: never behind the last event, and the last good one while the clock says nothing sensible. */
  now(): Instant;
  /** How far log time was ahead of the wall clock at the last reading; below zero while that one is doubted. */
  aheadMs(): number;
  /** When, by what has elapsed, to look whether log time is there. */
  alarmFor(at: Instant): number;
  /** The same as `now` for what may not be dated if the clock says nothing sensible: then it throws. */
  sureNow(): Instant;
  /**
   * Decides and applies at once; durable later. `payload` is the text beside its event. `at` is the time, for whoever
   * has just asked and has many. Throws if it has stopped.
   */
  execute(command: Command, payload?: string, at?: Instant): Decided;
  /** `execute`, answered when it is durable; a refusal is thrown as a DroverError. */
  run(command: Command, payload?: string): Promise<Decision>;
  /** Resolves when everything applied so far is durable; rejects once the writer has stopped. */
  settled(): Promise<void>;
  /** Something outside changed: take a turn. */
  poke(): void;
  /** The end is near: what adds work is refused from now on, what ends it is not. */
  stopAdmitting(): void;
  /** Waits for what is gathered, then takes no more. */
  close(): Promise<void>;
};

/** What makes more to do: refused while too much waits for the disk, and once the end is near. */
const ADDS_WORK: ReadonlySet<Command["type"]> = new Set<Command["type"]>([
  ...(["submit-task", "retry-task", "patch-task", "ask-permit", "join-worker"] as const),
  ...(["put-project", "set-config"] as const),
]);
/** What tells of something that has happened already: it is taken down even if the clock has nothing to say. */
const REPORTS: ReadonlySet<Command["type"]> = new Set<Command["type"]>([
  ...(["start-attempt", "report-usage", "finish-attempt", "artifact-ready"] as const),
  ...(["change-worker", "leave-worker", "drop-permit", "settle-permit", "throttle-gate"] as const),
  ...(["lose-attempt", "return-attempt", "settle-callback", "move-schedule"] as const),
]);

/** A batch that is being gathered: what is to be told of it, its bytes, the number and the time of its last event. */
type Pending = { readonly applied: Applied[]; readonly bytes: Gathering; last: number; at: number };
/** All who wait for the same batch wait for one promise. */
type Waiter = PromiseWithResolvers<void> & { seq: number };

export type WriterOptions = {
  readonly state: State;
  readonly log: Log;
  readonly epoch: number;
  readonly clock: Clock;
  /** A name that no other batch has. */
  readonly newId: () => string;
  readonly hooks: WriterHooks;
  /** Says what there is no room to store; without it, there always is. */
  readonly storage?: Pick<StorageGuard, "weigh">;
  /** How many events may wait for the disk before what adds work is refused. */
  readonly uncommittedMax?: number;
};

export function startWriter(options: WriterOptions): Writer {
  const { state, log, epoch, clock, newId, hooks, storage, uncommittedMax = UNCOMMITTED_EVENTS_MAX } = options;
  const waiters: Waiter[] = [];
  /** Those who wait for the batch that is on its way, and those who wait for the one that is gathering. */
  const waiting: { sent: Waiter | null; gathering: Waiter | null } = { sent: null, gathering: null };
  const phase = {
    committed: state.seq,
    scheduled: false,
    appending: false,
    admitting: true,
    stopped: null as DroverError | null,
  };
  /** Batches in the order in which they go to the log; the last one is gathering. */
  const pending: Pending[] = [];
  const spares: Gathering[] = [];
  let cancelAlarm: (() => void) | null = null;

  const logClock = createLogClock({ clock, last: state.at, maxJumpMs: () => state.config.log.maxClockJump });
  const { nowOrLast } = logClock;
  const signing = createHeadSigning({ log, rule: () => state.config.log.signEvery, later });

  function apply(event: Event, payload: string | undefined): void {
    const before = evolve(state, event) as Seq | null;
    const { cause } = event as { readonly cause?: unknown };
    const carries = payload !== undefined && (event.kind === "task-submitted" || event.kind === "task-done");
    const batch = gathering();
    const led = typeof cause === "number" ? (cause as Seq) : before;
    gather(batch.bytes, state.seq, event, led, carries ? payload : undefined);
    batch.last = state.seq;
    batch.at = event.at;
    if (hooks.isAwaited(event)) batch.applied.push({ event, seq: seq(state.seq) });
    hooks.onApplied(event);
  }

  /** The batch that is gathering, with room for one more event. */
  function gathering(): Pending {
    const last = pending[pending.length - 1];
    if (last !== undefined && last.bytes.count < BATCH_EVENTS_MAX && gatheredBytes(last.bytes) < BATCH_BYTES_MAX)
      return last;
    const next: Pending = { applied: [], bytes: spares.pop() ?? createGathering(), last: state.seq, at: 0 };
    pending.push(next);
    return next;
  }

  function execute(command: Command, payload?: string, given?: Instant): Decided {
    if (phase.stopped !== null) throw phase.stopped;
    if (ADDS_WORK.has(command.type)) admit();
    const at = given ?? (REPORTS.has(command.type) ? nowOrLast() : logClock.now());
    try {
      const decided = decide(state, command, at);
      if (decided.ok && decided.value.events.length > 0) {
        const full = storage?.weigh(command, at) ?? null;
        if (full !== null) return fail(full);
        for (const event of decided.value.events) apply(event, payload);
        poke();
      }
      return decided;
    } catch (error) {
      throw broken(error);
    }
  }

  function admit(): void {
    if (!phase.admitting) throw closed();
    if (state.seq - phase.committed > uncommittedMax)
      throw new DroverError("overloaded", `${uncommittedMax} events wait for the disk; try again later`);
  }

  /** A broken rule may have left the state half changed: nothing may be built on it any more. */
  function broken(cause: unknown): DroverError {
    const error = new DroverError("broken", `a rule of the core broke: ${(cause as Error).message}`, { cause });
    stop(error);
    return error;
  }

  function poke(): void {
    if (phase.scheduled || phase.stopped !== null) return;
    phase.scheduled = true;
    clock.defer(turn);
  }

  function turn(): void {
    phase.scheduled = false;
    if (phase.stopped !== null) return;
    try {
      // One reading for both: what falls due between two of them would be missed by the first and passed by the second.
      const at = nowOrLast();
      pump(at);
      setAlarm(at);
    } catch (error) {
      // The writer stops and tells everybody. Nobody called this turn: thrown on, it would end the program.
      broken(error);
      return;
    }
    void flush();
  }

  function pump(at: Instant): void {
    for (let step = 0; step < STEPS_PER_TURN_MAX; step++) {
      const events = nextStep(state, at);
      if (events.length === 0) return;
      for (const event of events) apply(event, undefined);
    }
    poke();
  }

  function setAlarm(at: Instant): void {
    cancelAlarm?.();
    cancelAlarm = null;
    if (phase.scheduled) return;
    // The program is kept alive while time will move something, and not for letting go of old results.
    const { next, isOnlyExpiry } = nextChange(state, at);
    if (next !== null) cancelAlarm = clock.ringAt(logClock.alarmFor(next), poke, { keepAlive: !isOnlyExpiry });
  }

  function later(ms: number, ring: () => void): () => void {
    return clock.ringAt(logClock.alarmFor(instant(nowOrLast() + ms)), ring, { keepAlive: false });
  }

  async function flush(): Promise<void> {
    if (phase.appending) return;
    phase.appending = true;
    try {
      while (pending.length > 0 && phase.stopped === null) {
        const { applied, bytes, last, at } = pending.shift() as Pending;
        if (pending.length === 0) {
          waiting.sent = waiting.gathering;
          waiting.gathering = null;
        }
        const startedAt = performance.now();
        const head = await appendForSure(bytes, signing.dueWith({ count: bytes.count, at }));
        if (spares.length < SPARES_MAX) spares.push(emptied(bytes));
        phase.committed = last;
        hooks.onCommitted(applied, { head, appendMs: performance.now() - startedAt });
        release();
      }
    } catch (error) {
      stop(asStop(error));
    } finally {
      phase.appending = false;
    }
  }

  async function appendForSure(bytes: Gathering, sign: SignRule | null): Promise<Head> {
    const firstSeq = seq(phase.committed + 1);
    const batch = batchOf(bytes, firstSeq, sign);
    const batchId = newId();
    for (let tries = 1; tries <= REPEATS_MAX; tries++) {
      const answer = await log.append(seq(phase.committed), epoch, batch, batchId);
      if (answer.type === "appended") return answer.head;
      if (answer.type === "conflict") {
        const { head } = answer;
        throw new DroverError(
          "deposed",
          `another writer owns this log (epoch ${head.epoch}, event ${head.seq}); try again`,
        );
      }
    }
    throw new DroverError(
      "log_failed",
      `the log did not say whether it stored event ${firstSeq}, asked ${REPEATS_MAX} times`,
    );
  }

  function release(): void {
    let done = 0;
    while (done < waiters.length && (waiters[done] as Waiter).seq <= phase.committed)
      (waiters[done++] as Waiter).resolve();
    waiters.splice(0, done);
    if (waiting.sent !== null && waiting.sent.seq <= phase.committed) waiting.sent = null;
  }

  function stop(error: DroverError): void {
    if (phase.stopped !== null) return;
    phase.stopped = error;
    signing.stop();
    cancelAlarm?.();
    for (const waiter of waiters.splice(0)) waiter.reject(error);
    hooks.onStopped(error);
  }

  function settled(): Promise<void> {
    const { seq: seen } = state;
    if (phase.stopped !== null) return Promise.reject(phase.stopped);
    if (seen <= phase.committed) return Promise.resolve();
    const which = pending.length === 0 ? "sent" : "gathering";
    const waiter = waiting[which] ?? { seq: seen, ...Promise.withResolvers<void>() };
    if (waiting[which] === null) waiters.push(waiter);
    waiting[which] = waiter;
    waiter.seq = seen;
    return waiter.promise;
  }

  async function run(command: Command, payload?: string): Promise<Decision> {
    const decided = execute(command, payload);
    // A refusal may rest on events that are not durable yet: it waits for them like any answer.
    await settled();
    if (!decided.ok) throw refused(decided.failure);
    return decided.value;
  }

  async function close(): Promise<void> {
    if (phase.stopped !== null) return;
    void flush();
    await settled().catch(() => {});
    stop(closed());
  }

  function stopAdmitting(): void {
    phase.admitting = false;
  }

  poke();
  return {
    state,
    stopAdmitting,
    committedSeq: () => seq(phase.committed),
    now: nowOrLast,
    sureNow: logClock.now,
    aheadMs: logClock.aheadMs,
    alarmFor: logClock.alarmFor,
    execute,
    run,
    settled,
    poke,
    close,
  };
}

/** Executes what reports a fact. A writer that has stopped has rejected every caller already, and takes no more. */
export function notify(writer: Pick<Writer, "execute">, command: Command, payload?: string): void {
  try {
    writer.execute(command, payload);
  } catch (error) {
    if (!isStop(error)) throw error;
  }
}

const closed = (): DroverError => new DroverError("closed", "this Drover is closed; open it again");

function asStop(error: unknown): DroverError {
  if (error instanceof DroverError) return error;
  if (error instanceof LogFailure)
    return new DroverError("log_failed", error.message, { details: { log: error.code }, cause: error });
  return new DroverError("log_failed", `the log failed: ${error instanceof Error ? error.message : String(error)}`, {
    cause: error,
  });
}
