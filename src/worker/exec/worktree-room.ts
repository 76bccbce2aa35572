/**
 * A worker takes no more tasks than it can give a worktree to.
 *
 * Trees with work in them are kept until a person has looked at them, so their number has a limit. At the limit nothing
 * is wrong with any task: the worker takes none, says so and why, and the tasks stay in the queue. It looks again
 * whenever an attempt has ended, since that may have left a tree, and every few seconds while it takes fewer than it
 * could, since a tree may have gone.
 */

import { type Clock, ringAfter } from "../../std/index.ts";
import type { ExecHandler } from "./contract.ts";

const LOOK_MS = 5000;

type RoomWatch = {
  /** Resolves when the worker has been told how many it may take. */
  look(): Promise<void>;
  end(): void;
};

export function watchRoom(deps: {
  readonly room: ExecHandler["room"];
  readonly slots: number;
  readonly limit: (count: number, note: string | null) => void;
  readonly warn: (text: string) => void;
  readonly clock: Pick<Clock, "elapsed" | "ringAt">;
}): RoomWatch {
  const { slots, limit, warn, clock } = deps;
  let cancel = (): void => {};
  let isOver = false;
  let told = "";
  let last: Promise<void> = Promise.resolve();
  let next: Promise<void> | null = null;

  /** One at a time, so that what is said last is what was seen last. All who ask while one looks share the next. */
  function look(): Promise<void> {
    next ??= last.then(() => {
      next = null;
      return lookOnce();
    });
    last = next;
    return next;
  }

  async function lookOnce(): Promise<void> {
    cancel();
    const room = await deps.room().catch((error: Error) => ({ count: 0, note: `no worktree: ${error.message}` }));
    if (room === null || isOver) return;
    const isShort = room.count < slots;
    const note = room.count === 0 ? room.note : null;
    limit(Math.min(slots, room.count), note);
    if (note !== null && note !== told) warn(`no task with a worktree is taken: ${note}`);
    if (note === null && told !== "") warn("there is room for a worktree again: tasks are taken");
    told = note ?? "";
    if (isShort) cancel = ringAfter(clock, LOOK_MS, () => void look());
  }

  return {
    look,
    end() {
      isOver = true;
      cancel();
    },
  };
}
