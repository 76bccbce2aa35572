/**
 * Why an attempt must stop, once: the first reason stays.
 *
 * An attempt runs several children one after the other (setup, the command, cleanup). Whichever is there when the
 * reason comes is stopped, and one that begins after it is stopped as it begins. One that gives no signs of life is a
 * reason too.
 */

import { type Clock, ringAfter } from "../../std/index.ts";
import type { RunningProcess } from "../process/group.ts";
import type { CommandStop } from "./outcome.ts";

export type Stopper = {
  readonly cause: CommandStop | null;
  stop(cause: CommandStop): void;
  /** The child that runs now, or none. */
  guard(child: RunningProcess | null): void;
  /** SIGKILL at once. */
  kill(): void;
  /** The signal is listened to no more. */
  end(): void;
};

export function createStopper(signal: AbortSignal): Stopper {
  let cause: CommandStop | null = null;
  let current: RunningProcess | null = null;
  const onAbort = (): void => stop({ kind: "cancelled", reason: reasonOf(signal.reason) });

  function stop(why: CommandStop): void {
    cause ??= why;
    current?.stop();
  }

  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  return {
    get cause() {
      return cause;
    },
    stop,
    guard(child) {
      current = child;
      if (cause !== null) child?.stop();
    },
    kill: () => current?.kill(),
    end: () => signal.removeEventListener("abort", onAbort),
  };
}

function reasonOf(reason: unknown): string {
  if (reason instanceof Error && reason.name !== "AbortError") return reason.message;
  return typeof reason === "string" && reason !== "" ? reason : "it was told to stop";
}

/**
 * Whether a child still gives signs of life. Two limits, both optional: how long until its first byte, and how long
 * between any two (from the start, if only that one is set). Output is noted by the clock alone; one timer is set for
 * the earliest instant at which a limit could be passed, and set again if it was not.
 */
type Watch = { noteOutput(): void; end(): void };

export function createWatch(options: {
  readonly clock: Pick<Clock, "elapsed" | "ringAt">;
  readonly startMs: number | null;
  readonly idleMs: number | null;
  onSilence(kind: "start" | "idle", spanMs: number): void;
}): Watch {
  const { clock, startMs, idleMs, onSilence } = options;
  let lastAt = clock.elapsed();
  let hasSpoken = false;
  let cancel = (): void => {};

  function limit(): { kind: "start" | "idle"; spanMs: number } | null {
    if (!hasSpoken && startMs !== null) return { kind: "start", spanMs: startMs };
    return idleMs === null ? null : { kind: "idle", spanMs: idleMs };
  }
  function arm(): void {
    cancel();
    const next = limit();
    if (next === null) return;
    cancel = ringAfter(clock, Math.max(1, lastAt + next.spanMs - clock.elapsed()), () => {
      const due = limit();
      if (due === null) return;
      if (clock.elapsed() - lastAt >= due.spanMs) onSilence(due.kind, due.spanMs);
      else arm();
    });
  }

  arm();
  return {
    noteOutput() {
      lastAt = clock.elapsed();
      if (hasSpoken) return;
      hasSpoken = true;
      arm();
    },
    end: () => cancel(),
  };
}
