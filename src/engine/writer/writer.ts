/**
 * The single writer: decides, applies, and makes durable.
 *
 * A command is decided and applied the moment it comes; its events join the batch that is gathering
 * (group-commit.ts). An answer leaves when the events it rests on are committed, also when it only read them. Each turn
 * ends with the pump, in slices of less than a millisecond, so that a burst of starts never holds up the event loop.
 *
 * The applied state runs ahead of the log. If an append fails for good, that state is worth nothing: the writer stops,
 * every open answer is refused, and an engine that reopens the log finds exactly what was acknowledged.
 *
 * If the disk falls far behind, what would add work is refused. What ends work never is: a result or a release
 * that was turned away would be lost for good, and would keep its slot, its locks and its budget.
 */
import { fail, type Instant, instant, type Seq, seq } from "../../core/base/index.ts";
import { decide, evolve, pump as nextStep } from "../../core/index.ts";
import { nextChanges } from "../../core/lifecycle/index.ts";
import type { Command, CommandOf, Decided, Decision, Event, MutableState, State } from "../../core/model/index.ts";
import type { Log } from "../../log/index.ts";
import { type Clock, restFor } from "../../std/index.ts";
import { accepted, DroverError, isStop } from "../base/drover-error.ts";
import { type Applied, type Commit, createGroupCommit } from "./group-commit.ts";
import { createHeadSigning } from "./head-signing.ts";
import { type LogClock, logClockOver } from "./log-clock.ts";
import type { StorageGuard } from "./storage-guard.ts";

/** A slice of the pump is over when this has passed, or after so many steps. */
const SLICE_MS = 0.7;
const SLICE_STEPS_MAX = 256;
const UNCOMMITTED_EVENTS_MAX = 500_000;
const REPEAT_MS_MAX = 250;
/**
 * Old results go with the next turn, or when there was none for so long. Under load some fall due every millisecond;
 * a batch of their own for each would keep the log busy while what others wait for gathers behind it.
 */
export const LET_GO_MS = 50;
const NEVER = Number.POSITIVE_INFINITY;
export type WriterHooks = {
  /** Right after an event was applied, before it is durable; `payload` is the text that is stored with it. */
  onApplied(event: Event, payload?: string): void;
  /** Whether a listener wants this event once it is durable: if not, it need not be kept until then. */
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
   * Decides and applies at once; durable later. `payload` is the text stored with its event. `at` is the time, for a
   * caller that has just read it and has many commands. Throws if it has stopped.
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
  /** Takes no more, at once: whoever waits is rejected with this, and what was not committed is worth nothing. */
  stop(error: DroverError): void;
  /** Waits for what is gathered, then takes no more: whoever waits for anything else is rejected with the reason. */
  close(reason?: DroverError): Promise<void>;
};

/** What makes more to do: refused while too much waits for the disk, and once the end is near. */
const ADDS_WORK: ReadonlySet<Command["type"]> = new Set<Command["type"]>([
  ...(["submit-task", "retry-task", "patch-task", "ask-permit", "join-worker"] as const),
  ...(["put-project", "set-config", "put-plan"] as const),
]);
/** What reports something that has happened already: it is taken down even if the clock has nothing to say. */
const REPORTS: ReadonlySet<Command["type"]> = new Set<Command["type"]>([
  ...(["start-attempt", "report-usage", "finish-attempt", "artifact-ready"] as const),
  ...(["change-worker", "leave-worker", "drop-permit", "settle-permit", "throttle-gate"] as const),
  ...(["lose-attempt", "return-attempt", "settle-callback", "move-schedule"] as const),
]);

export type WriterOptions = {
  readonly state: MutableState;
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
  /** How many events a batch takes before the next begins. */
  readonly batchMax?: number;
  /** Whether the lead is still sure. Once it is not, nothing is started and nothing granted. Absent: always. */
  readonly holds?: () => boolean;
  /** That of the lives before; absent: one of its own. */
  readonly logClock?: LogClock;
};

/** What a command brings along lies beside the event that tells of it. */
const CARRIERS: ReadonlySet<Event["kind"]> = new Set([
  ...(["task-submitted", "task-done", "attempt-done", "plan-put"] as const),
]);

export function startWriter(options: WriterOptions): Writer {
  const { state, log, epoch, clock, newId, hooks, storage, uncommittedMax = UNCOMMITTED_EVENTS_MAX } = options;
  const { batchMax, holds, logClock = logClockOver(clock, () => state) } = options;
  const phase = { scheduled: false, admitting: true, stopped: null as DroverError | null };
  let cancelAlarm: (() => void) | null = null;

  const { nowOrLast } = logClock;
  const commits = createGroupCommit({
    state,
    log,
    epoch,
    newId,
    signing: createHeadSigning({ log, rule: () => state.config.log.signEvery, later }),
    ...(batchMax === undefined ? {} : { batchMax }),
    ...(holds === undefined ? {} : { mayRepeat: whileSure(holds, clock) }),
    onCommitted: hooks.onCommitted,
    onFailed: stop,
  });

  function apply(event: Event, payload: string | undefined): void {
    const before = evolve(state, event) as Seq | null;
    const { cause } = event as { readonly cause?: unknown };
    const carried = payload !== undefined && CARRIERS.has(event.kind) ? payload : undefined;
    const led = typeof cause === "number" ? (cause as Seq) : before;
    commits.add(event, led, carried, hooks.isAwaited(event));
    hooks.onApplied(event, carried);
  }

  function execute(command: Command, payload?: string, given?: Instant): Decided {
    if (phase.stopped !== null) throw phase.stopped;
    const more = command.type === "put-plan" ? eventsWith(command) : 0;
    if (ADDS_WORK.has(command.type)) admit(more);
    const at = given ?? (REPORTS.has(command.type) ? nowOrLast() : logClock.now());
    try {
      const decided = decide(state, command, at);
      if (decided.ok && decided.value.events.length > 0) {
        const full = storage?.weigh(command, at) ?? null;
        if (full !== null) return fail(full);
        commits.begin(decided.value.events.length + more);
        for (const event of decided.value.events) apply(event, payload);
        poke();
      }
      return decided;
    } catch (error) {
      throw stopBroken(error);
    }
  }

  function admit(more: number): void {
    if (!phase.admitting) throw closed();
    if (state.seq - commits.committed() + more > uncommittedMax)
      throw new DroverError("overloaded", `${uncommittedMax} events wait for the disk; try again later`);
  }

  /** A broken rule may have left the state half changed: nothing may be built on it any more. */
  function stopBroken(cause: unknown): DroverError {
    const error = broken(cause);
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
      if (holds?.() !== false) pump(at);
      setAlarm(at);
    } catch (error) {
      // The writer has stopped and has rejected every caller. This turn has none: thrown on, it would end the program.
      stopBroken(error);
      return;
    }
    void commits.flush();
  }

  function pump(at: Instant): void {
    const startedAt = clock.stopwatch?.() ?? 0;
    for (let step = 0; step < SLICE_STEPS_MAX; step++) {
      if (step > 0 && clock.stopwatch !== undefined && clock.stopwatch() - startedAt >= SLICE_MS) break;
      const events = nextStep(state, at);
      if (events.length === 0) return;
      commits.begin(events.length);
      for (const event of events) apply(event, undefined);
    }
    poke();
  }

  function setAlarm(at: Instant): void {
    cancelAlarm?.();
    cancelAlarm = null;
    if (phase.scheduled) return;
    const { move, next } = nextTurnAt(state, at);
    // The program is kept alive while time will move something, and not for letting go of old results.
    if (next !== NEVER)
      cancelAlarm = clock.ringAt(logClock.alarmFor(instant(next)), poke, { keepAlive: move !== null });
  }

  function later(ms: number, ring: () => void): () => void {
    return clock.ringAt(logClock.alarmFor(instant(nowOrLast() + ms)), ring, { keepAlive: false });
  }

  function stop(error: DroverError): void {
    if (phase.stopped !== null) return;
    phase.stopped = error;
    cancelAlarm?.();
    commits.stop(error);
    hooks.onStopped(error);
  }

  async function run(command: Command, payload?: string): Promise<Decision> {
    const decided = execute(command, payload);
    // A refusal may rest on events that are not durable yet: it waits for them like any answer.
    await commits.settled();
    return accepted(decided);
  }

  async function close(reason: DroverError = closed()): Promise<void> {
    if (phase.stopped !== null) return;
    void commits.flush();
    await commits.settled().catch(() => {});
    stop(reason);
  }

  poke();
  return {
    state,
    stopAdmitting: () => {
      phase.admitting = false;
    },
    committedSeq: () => seq(commits.committed()),
    now: nowOrLast,
    sureNow: logClock.now,
    aheadMs: logClock.aheadMs,
    alarmFor: logClock.alarmFor,
    execute,
    run,
    settled: commits.settled,
    poke,
    stop,
    close,
  };
}

/** When time will move something, and when to take a turn at the latest; null and for ever if it never does. */
function nextTurnAt(state: State, at: Instant): { move: Instant | null; next: number } {
  const { move, expiry } = nextChanges(state, at);
  const letGo = expiry === null ? NEVER : Math.max(expiry, at + LET_GO_MS);
  return { move, next: Math.min(move ?? NEVER, letGo) };
}

/** An append whose answer was lost is repeated as long as the lead is sure, at growing intervals. */
const whileSure =
  (holds: () => boolean, clock: Clock) =>
  async (tries: number): Promise<boolean> => {
    const ms = Math.min(REPEAT_MS_MAX, 2 ** tries);
    if (holds()) await restFor(clock, ms, { keepAlive: false });
    if (holds()) return true;
    throw new DroverError("deposed", "the lead was over before the log said whether it stored this; try again");
  };

/** What comes with a plan comes to its end: so many events follow at most. Only an idle writer takes more than fit. */
const eventsWith = ({ cancels, retries, submissions }: CommandOf<"put-plan">): number =>
  cancels.length + retries.length + EVENTS_OF_SUBMIT_MAX * submissions.length;
/** Its project, itself, and that it is skipped or parked. */
const EVENTS_OF_SUBMIT_MAX = 3;

/** A view of what is applied now, answered when that is durable. */
export async function onceDurable<Value>(writer: Pick<Writer, "settled">, view: () => Value): Promise<Value> {
  const value = view();
  await writer.settled();
  return value;
}

/** Executes what reports a fact. A writer that has stopped has rejected every caller already, and takes no more. */
export function notify(writer: Pick<Writer, "execute">, command: Command, payload?: string): void {
  try {
    writer.execute(command, payload);
  } catch (error) {
    if (!isStop(error)) throw error;
  }
}

export const broken = (cause: unknown): DroverError =>
  new DroverError("broken", `a rule of the core broke: ${(cause as Error).message}`, { cause });

export const closed = (): DroverError => new DroverError("closed", "this Drover is closed; open it again");
