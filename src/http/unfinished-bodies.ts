/**
 * Bodies that have begun to arrive and not ended: how many bytes they hold here, and that this has an end.
 *
 * Each has a limit of its own (`server.bodyLimit`), and there may be thousands of connections. When all of them
 * together are more than there is room for, the one that began first is refused, and the next, until there
 * is room: somebody who sends at all is rarely it, and may send again. One that comes in one piece is never counted.
 */
import { ServerRefusal } from "./problem.ts";

/** Lets go of what it holds, and says why. */
type CutOff = (why: ServerRefusal) => void;
export type UnfinishedBodies = {
  /** So many bytes more are held for this one. */
  add(body: CutOff, bytes: number): void;
  end(body: CutOff): void;
  bytes(): number;
};

export function createUnfinishedBodies({ bodyBytesMax }: { readonly bodyBytesMax: number }): UnfinishedBodies {
  /** Oldest first. */
  const held = new Map<CutOff, number>();
  let sum = 0;

  function end(body: CutOff): void {
    sum -= held.get(body) ?? 0;
    held.delete(body);
  }

  return {
    add(body, bytes) {
      held.set(body, (held.get(body) ?? 0) + bytes);
      sum += bytes;
      for (const oldest of held.keys()) {
        // One alone is bounded by its own limit.
        if (sum <= bodyBytesMax || held.size === 1) break;
        end(oldest);
        oldest(tooManyBytes(bodyBytesMax));
      }
    },
    end,
    bytes: () => sum,
  };
}

const tooManyBytes = (max: number): ServerRefusal =>
  new ServerRefusal("overloaded", `bodies that have not arrived in full hold ${max} bytes, which is the maximum`, {
    bodyBytesMax: max,
  });
