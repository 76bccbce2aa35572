/**
 * Whether a child still gives signs of life.
 *
 * Two limits, both optional: how long until its first byte, and how long between any two (from the start, if only
 * that one is set). Output is noted by the
 * clock alone; one timer is set for the earliest instant at which a limit could be passed, and set again if it was not.
 */
import { type Clock, ringAfter } from "../../std/index.ts";

export type Watch = { noteOutput(): void; end(): void };

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
