/**
 * The state as it was: rebuilt from the log up to a number.
 *
 * Asked for by people who want to know why something did not run an hour ago. It costs what a restart costs, so one is
 * made at a time, in small slices that give way to everything else, and what would take too long is refused. A few may
 * wait for their turn. Where old events were pruned, the newest snapshot is the beginning, and what was before it is
 * refused too.
 */
import { type Seq, seq, whole } from "../../core/base/index.ts";
import { emptyState, evolve } from "../../core/index.ts";
import type { MutableState, State } from "../../core/model/index.ts";
import { decodeEvent } from "../../log/format/index.ts";
import { type Log, LogFailure } from "../../log/index.ts";
import { nextTurn } from "../../std/index.ts";
import { accepted, badInput, DroverError } from "../base/drover-error.ts";
import { stateInSlices } from "../writer/recovery.ts";

const EVENTS_MAX = 5_000_000;
/** What is read and done again in one turn of the event loop: about a millisecond's worth. */
const SLICE_BYTES = 16 * 1024;
const SLICE_EVENTS = 128;
const SLICE_LINES = 256;
/** Looks that wait for the one under way. */
const WAITING_MAX = 16;

/** Looks at the state after the event of that number, which is let go of when the look is over. */
type LookAtPast = <Seen>(at: unknown, head: number, see: (state: State) => Seen) => Promise<Seen>;

export function createPast(log: Log): LookAtPast {
  let waiting = 0;
  let last: Promise<unknown> = Promise.resolve();

  /** The state to go on from, if the first event of the log is gone or too far away. */
  async function beginning(at: Seq): Promise<MutableState> {
    const snapshot = await log.loadSnapshot();
    if (snapshot === null) return emptyState();
    if (snapshot.seq > at)
      throw badInput("at", at, `at least ${snapshot.seq}: what was before is no longer in the log`);
    return stateInSlices(snapshot, { lines: SLICE_LINES, nextTurn });
  }

  async function rebuild(at: Seq, state: MutableState): Promise<State> {
    if (at - state.seq > EVENTS_MAX)
      throw new DroverError("limit", `event ${at} is more than ${EVENTS_MAX} events from where the log begins`);
    while (state.seq < at) {
      const before = state.seq;
      for await (const { records } of log.read(seq(before), { payloads: false, bytesMax: SLICE_BYTES }))
        for (const { bytes } of records) {
          if (state.seq === at) return state;
          evolve(state, decodeEvent(bytes, seq(state.seq + 1)).event);
          if (state.seq % SLICE_EVENTS === 0) await nextTurn();
        }
      if (state.seq === before) throw badInput("at", at, "the number of an event in the log");
      await nextTurn();
    }
    return state;
  }

  const stateAt = async (at: Seq): Promise<State> =>
    rebuild(at, at > EVENTS_MAX ? await beginning(at) : emptyState()).catch(async (error: unknown) => {
      if (!isPruned(error)) throw error;
      return rebuild(at, await beginning(at));
    });

  return async (given, head, see) => {
    const at = accepted(whole(1)(given, "at"));
    if (at > head) throw badInput("at", given, `at most ${head}, the last event`);
    if (waiting > WAITING_MAX)
      throw new DroverError("overloaded", `${waiting} looks at the past wait already; try again in a moment`);
    waiting++;
    const seen = last.then(async () => see(await stateAt(seq(at)))).finally(() => waiting--);
    last = seen.catch(() => {});
    return seen;
  };
}

const isPruned = (error: unknown): boolean => error instanceof LogFailure && error.code === "pruned";
