/**
 * Callers that wait until a permit is granted, by its id; several may wait for the same one.
 */
import type { Clock } from "../../std/index.ts";
import type { DroverError } from "../writer/drover-error.ts";

export type PermitWaits = {
  /** Resolves when the wait is ended or its time is over; rejects when its signal fires or the engine stops. */
  wait(id: string, waitMs: number, signal: AbortSignal | undefined): Promise<void>;
  /** The permit was granted or dropped: every wait for it ends. */
  end(id: string): void;
  stop(error: DroverError): void;
};

export function createPermitWaits(clock: Clock): PermitWaits {
  const waiting = new Map<string, Set<() => void>>();
  let stopped: DroverError | null = null;

  /** Also a call that does not want to wait: the pump has its turn first, and lets most calls out at once. */
  function afterTurn(over: () => void): () => void {
    clock.defer(() => clock.defer(over));
    return () => {};
  }

  function end(id: string): void {
    for (const over of [...(waiting.get(id) ?? [])]) over();
  }

  return {
    wait: (id, waitMs, signal) =>
      new Promise((resolve, reject) => {
        const over = (): void => {
          cancel();
          signal?.removeEventListener("abort", over);
          const others = waiting.get(id);
          others?.delete(over);
          if (others?.size === 0) waiting.delete(id);
          if (stopped !== null) reject(stopped);
          else if (signal?.aborted === true) reject(signal.reason);
          else resolve();
        };
        const cancel =
          waitMs > 0 ? clock.ringAt(clock.elapsed() + waitMs, over, { keepAlive: false }) : afterTurn(over);
        signal?.addEventListener("abort", over, { once: true });
        waiting.set(id, (waiting.get(id) ?? new Set()).add(over));
      }),
    end,
    stop(error) {
      stopped = error;
      for (const id of [...waiting.keys()]) end(id);
    },
  };
}
