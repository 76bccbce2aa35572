/**
 * What follows when the server will not read a sync, and says so in its own words.
 *
 * It mostly names what is wrong. A result that it names is replaced by a failure that says why, and the others go on.
 *
 * If it names nothing, that is perhaps no fault of any result, and passes: something on the way may have cut the body.
 * So no result is touched before two syncs have told the difference. The first only names what is held here, the
 * results too, as if they still ran. When it was heard, so that syncs are taken again, the next brings one result, and
 * nothing else that could be wrong. If that is refused, it was the result: it is replaced, and all begins anew. Between
 * all these lie the rests of a server that is away.
 *
 * If even the failure is refused, nothing can be said of how that attempt ended. It is not forgotten then: the server
 * may still have it as given and never begun, would give it once more, and it would run twice under one number. It is
 * named until a sync that did so was heard. From then on the server has it as running and does not give it again; it
 * is named no more, and so is lost, and its task is tried again under the next number.
 */

import { stopGivingBack } from "./give-back.ts";
import { drop, type Flight, type Held, type PullSession } from "./held.ts";
import type { Ended } from "./sync-body.ts";

/** How those that have ended are in the next sync: which it may report, and which it can only name. */
export function endedFor({ held, share }: PullSession): {
  readonly ended: readonly (Held & Ended)[];
  readonly unsayable: readonly Held[];
} {
  const ended: (Held & Ended)[] = [];
  const unsayable: Held[] = [];
  for (const one of held.ended.values())
    if (share !== "names" && hasReport(one)) ended.push(one);
    else unsayable.push(one);
  return { ended, unsayable };
}

const hasReport = (one: Held): one is Held & Ended => one.report !== null;

/** The server has heard this sync. */
export function settleShare(state: PullSession, { share, named }: Flight): void {
  state.share = share === "names" ? "one" : "all";
  const givenUp = [...state.held.ended.values()].filter((one) => !hasReport(one));
  for (const one of givenUp) if (named.includes(one)) drop(state, one);
}

/** The server would not read it; `field` is where. */
export function refuse(state: PullSession, n: number, field: string | null, why: string): void {
  const flight = state.flights.get(n);
  state.flights.delete(n);
  if (flight === undefined) return;
  // The server was replaced by an older one.
  if (field === "brief" || field === "lean") {
    state.isBrief = state.isLean = false;
    return;
  }
  if (field === "ahead" || field?.startsWith("unbegun") === true) {
    stopGivingBack(state);
    return;
  }
  if (field?.endsWith("].taskSeq") === true) return forgetSeqs(state);
  const [, list, index] = /^(results|running)\[(\d+)\]/.exec(field ?? "") ?? [];
  // News that is not read is not worth another try.
  if (list === "running") return;
  const named = list === "results" ? flight.results[Number(index)] : undefined;
  if (named !== undefined) return spoil(state, named, why);
  const [alone] = flight.results;
  if (flight.share === "one" && alone !== undefined) spoil(state, alone, why);
  state.share = "names";
}

function forgetSeqs({ held }: PullSession): void {
  for (const stage of Object.values(held)) for (const one of stage.values()) delete one.taskSeq;
}

/** Its report is replaced by one that says why; if that is refused too, it is given up. */
function spoil({ held }: PullSession, one: Held, why: string): void {
  if (held.ended.get(one.key) !== one) return;
  one.report = one.isSpoilt ? null : { outcome: "failed", error: why, permanent: true };
  one.isSpoilt = true;
}
