/**
 * The state as it was: rebuilt from the log up to a number.
 *
 * Asked for by people who want to know why something did not run an hour ago. It costs what a restart costs, so one is
 * made at a time and a log that has grown too long, or no longer reaches back that far, is refused.
 */
import { type Seq, seq } from "../core/brand.ts";
import { emptyState } from "../core/empty-state.ts";
import { evolve } from "../core/evolve.ts";
import { whole } from "../core/shape-of-input.ts";
import type { State } from "../core/state.ts";
import { decodeEvent } from "../log/codec.ts";
import type { Log } from "../log/log.ts";
import { badInput, DroverError, refused } from "./drover-error.ts";

const EVENTS_MAX = 5_000_000;

export type Past = {
  /** The state after the event of that number. */
  stateAt(at: unknown, head: number): Promise<State>;
};

export function createPast(log: Log): Past {
  let isBusy = false;

  async function rebuild(at: Seq): Promise<State> {
    const state = emptyState();
    for await (const batch of log.read(seq(0), { beside: false })) {
      if (batch.firstSeq > state.seq + 1)
        throw badInput("at", at, `at least ${batch.firstSeq}: what was before is no longer in the log`);
      for (const { bytes } of batch.records) {
        evolve(state, decodeEvent(bytes, seq(state.seq + 1)).event);
        if (state.seq === at) return state;
      }
    }
    throw badInput("at", at, "the number of an event in the log");
  }

  return {
    async stateAt(given, head) {
      const read = whole(1)(given, "at");
      if (!read.ok) throw refused(read.failure);
      if (read.value > head) throw badInput("at", given, `at most ${head}, the last event`);
      if (read.value > EVENTS_MAX)
        throw new DroverError(
          "limit",
          `event ${read.value} is more than ${EVENTS_MAX} events from the start of the log`,
        );
      if (isBusy) throw new DroverError("overloaded", "another look at the past is under way; try again in a moment");
      isBusy = true;
      try {
        return await rebuild(seq(read.value));
      } finally {
        isBusy = false;
      }
    },
  };
}
