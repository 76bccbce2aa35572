/**
 * Which of those that were handed over have been begun, or will never be: nearly always they are in their order.
 *
 * The other side is the session, in the thread that keeps the connection: it takes back what was fetched ahead, and
 * disowns what another worker may have by then. Both say first and look second (messages.ts), so this file is the only
 * one that says what is begun, and it looks behind that each time. That it has looked is said too: until then what was
 * revoked stays so, though the count has passed it.
 */
import type { LeaseCell } from "./messages.ts";

/** What of the shared numbers the handlers use. */
export type BegunCell = Pick<LeaseCell, "setBegun" | "setBegunEarly" | "setLooked" | "isRevoked" | "isDisowned">;
type Turns = {
  /** The place of the next that is handed over. */
  next(): number;
  /**
   * It is begun now: in its turn, which the count says, or before one that came earlier. "never": it went back. What
   * goes on here is not fetched ahead, and not taken back as if it were.
   */
  begin(place: number, goesOn: boolean): "in turn" | "early" | "never";
  /** It will never be begun. */
  pass(place: number): void;
};

export function createTurns(cell: BegunCell): Turns {
  /** Begun before one that came earlier. */
  const early = new Set<number>();
  let handedOver = 0;
  let begun = 0;
  let last = 0;

  function take(place: number): void {
    early.add(place);
    while (early.delete(begun + 1)) begun++;
    last = Math.max(last, place);
    if (last > begun) cell.setBegunEarly(last);
    cell.setBegun(begun);
  }

  return {
    next: () => ++handedOver,
    begin(place, goesOn) {
      take(place);
      // Said first, then looked: what goes back is never begun.
      const isOver = cell.isDisowned(place) || (!goesOn && cell.isRevoked(place));
      cell.setLooked(begun);
      if (isOver) return "never";
      return place <= begun ? "in turn" : "early";
    },
    pass(place) {
      take(place);
      cell.setLooked(begun);
    },
  };
}
