/**
 * Why an attempt must stop, once: the first reason stays.
 *
 * An attempt runs several children one after the other (setup, the command, cleanup). Whichever is there when the
 * reason comes is stopped, and one that begins after it is stopped as it begins.
 */

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
