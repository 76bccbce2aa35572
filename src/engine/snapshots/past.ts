/**
 * The state as it was: rebuilt from the log up to a number.
 *
 * Asked for by people who want to know why something did not run an hour ago. It costs what a restart costs, so one is
 * made at a time and what would take too long is refused. Where old events were pruned, the newest snapshot is the
 * beginning, and what was before it is refused too.
 */
import { type Seq, seq, whole } from "../../core/base/index.ts";
import { emptyState, evolve } from "../../core/index.ts";
import type { State } from "../../core/model/index.ts";
import { decodeEvent } from "../../log/format/index.ts";
import { type Log, LogFailure } from "../../log/index.ts";
import { badInput, DroverError, refused } from "../writer/drover-error.ts";
import { stateOf } from "../writer/recovery.ts";

const EVENTS_MAX = 5_000_000;

export type Past = {
  /** The state after the event of that number. */
  stateAt(at: unknown, head: number): Promise<State>;
};

export function createPast(log: Log): Past {
  let isBusy = false;

  /** The state to go on from, if the first event of the log is gone or too far away. */
  async function beginning(at: Seq): Promise<State> {
    const snapshot = await log.loadSnapshot();
    if (snapshot === null) return emptyState();
    if (snapshot.seq > at)
      throw badInput("at", at, `at least ${snapshot.seq}: what was before is no longer in the log`);
    return stateOf(snapshot);
  }

  async function rebuild(at: Seq, state: State): Promise<State> {
    if (state.seq === at) return state;
    if (at - state.seq > EVENTS_MAX)
      throw new DroverError("limit", `event ${at} is more than ${EVENTS_MAX} events from where the log begins`);
    for await (const batch of log.read(seq(state.seq), { beside: false })) {
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
      if (isBusy) throw new DroverError("overloaded", "another look at the past is under way; try again in a moment");
      isBusy = true;
      try {
        const at = seq(read.value);
        return await rebuild(at, at > EVENTS_MAX ? await beginning(at) : emptyState()).catch(async (error: unknown) => {
          if (!isPruned(error)) throw error;
          return rebuild(at, await beginning(at));
        });
      } finally {
        isBusy = false;
      }
    },
  };
}

const isPruned = (error: unknown): boolean => error instanceof LogFailure && error.code === "pruned";
