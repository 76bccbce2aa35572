/**
 * Those who watch an attempt while it runs.
 *
 * Each follower has a short queue of its own. One that reads slowly loses the oldest lines of its queue, and is told
 * so; it never slows the attempt, nor the others.
 */
import type { Tail } from "./tail.ts";

export type Following = Tail & {
  /** Every line from then on, with its newline, until the attempt ends or the signal fires. */
  readonly lines: AsyncIterable<string>;
};
export type Followers = {
  tell(line: string): void;
  follow(tail: Tail, signal?: AbortSignal): Following;
  end(): void;
};

const QUEUE_MAX = 2000;

type Follower = { readonly queue: string[]; lost: number; isOver: boolean; wake: () => void };

export function createFollowers(): Followers {
  const all = new Set<Follower>();
  let isOver = false;

  function stop(follower: Follower): void {
    follower.isOver = true;
    all.delete(follower);
    follower.wake();
  }

  return {
    tell(line) {
      for (const follower of all) {
        if (follower.queue.length >= QUEUE_MAX) {
          follower.queue.shift();
          follower.lost += 1;
        }
        follower.queue.push(`${line}\n`);
        follower.wake();
      }
    },
    follow(tail, signal) {
      const follower: Follower = { queue: [], lost: 0, isOver: isOver || signal?.aborted === true, wake: () => {} };
      if (!follower.isOver) all.add(follower);
      const onAbort = (): void => stop(follower);
      signal?.addEventListener("abort", onAbort, { once: true });
      const onEnd = (): void => {
        signal?.removeEventListener("abort", onAbort);
        all.delete(follower);
      };
      return { ...tail, lines: linesOf(follower, onEnd) };
    },
    end() {
      isOver = true;
      for (const follower of [...all]) stop(follower);
    },
  };
}

async function* linesOf(follower: Follower, onEnd: () => void): AsyncGenerator<string> {
  try {
    for (;;) {
      if (follower.lost > 0) {
        const lost = follower.lost;
        follower.lost = 0;
        yield `[… ${lost} lines are left out here …]\n`;
      }
      const batch = follower.queue.splice(0);
      if (batch.length > 0) yield batch.join("");
      else if (follower.isOver) return;
      else await new Promise<void>((resolve) => (follower.wake = resolve));
    }
  } finally {
    onEnd();
  }
}
