/**
 * Calls that hold their answer back: how many there are, and how they end.
 *
 * A caller that hangs up ends its wait in the engine too; otherwise each one that gave up would leave a waiter behind.
 * There may be so many at once and no more. A worker holds one all the time and is lost without it, so it may have the
 * last; others share them (shared-slots.ts). When the server shuts down, the polls of workers are ended first, so that
 * each hears at once that the server goes; the others wait on for what still runs, until the grace is over.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { ServerRefusal } from "./problem.ts";
import { createSharedSlots } from "./shared-slots.ts";
import { type Caller, holderOf } from "./tokens.ts";

/** Why a wait ended without what it waited for. */
export type EndOfPoll = "closing" | "time-over" | "hung-up" | "log-wanted";
export class PollEnded extends Error {
  override readonly name: string = "PollEnded";
  readonly why: EndOfPoll;

  constructor(why: EndOfPoll) {
    super(`the poll ended: ${why}`);
    this.why = why;
  }
}

type PollKind = "sync" | "other";
/** Who waits, and on which connection. */
export type Polled = { readonly caller: Caller; readonly request: IncomingMessage; readonly response: ServerResponse };
export type LongPolls = {
  /** Runs the work with a signal that fires when the caller hangs up, or the server ends the poll. */
  hold<Value>(
    exchange: Polled,
    kind: PollKind,
    work: (signal: AbortSignal, end: (why: EndOfPoll) => void) => Promise<Value>,
  ): Promise<Value>;
  count(): number;
  /** Every worker's poll is answered now. */
  letWorkersGo(): void;
  /** Every poll ends with this error. */
  end(error: Error): void;
};

export function createLongPolls({ max }: { readonly max: number }): LongPolls {
  const open = new Map<AbortController, PollKind>();
  const slots = createSharedSlots(max);
  return {
    async hold({ caller, request, response }, kind, work) {
      const giveBack = slots.take(holderOf(caller, request), { isNeeded: kind === "sync" });
      if (giveBack === null)
        throw new ServerRefusal("overloaded", `${open.size} calls wait for an answer already; try again later`);
      const controller = new AbortController();
      const hangUp = (): void => controller.abort(new PollEnded("hung-up"));
      if (response.destroyed) hangUp();
      open.set(controller, kind);
      response.once("close", hangUp);
      try {
        return await work(controller.signal, (why) => controller.abort(new PollEnded(why)));
      } finally {
        response.removeListener("close", hangUp);
        open.delete(controller);
        giveBack();
      }
    },
    count: () => open.size,
    letWorkersGo() {
      for (const [controller, kind] of open) if (kind === "sync") controller.abort(new PollEnded("closing"));
    },
    end(error) {
      for (const controller of open.keys()) controller.abort(error);
    },
  };
}
