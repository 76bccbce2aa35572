/**
 * A thread that does what can wait gives way to the others.
 *
 * Linux knows a priority for each thread, and a thread passes its own on to those it starts. Elsewhere there is one for
 * the whole process only, which must not be lowered, so there nothing is done.
 */
import { readlinkSync } from "node:fs";
import { constants, setPriority } from "node:os";

/** Lowers the priority of the thread that calls it, as far as it goes; answers whether it could. */
export function giveWay(): boolean {
  if (process.platform !== "linux") return false;
  try {
    setPriority(ownThread(), constants.priority.PRIORITY_LOW);
    return true;
  } catch {
    // Not every sandbox shows a thread its number, or lets it say so: then it goes on as it is.
    return false;
  }
}

/** The number by which the system knows this thread. */
export function ownThread(): number {
  const number = Number(readlinkSync("/proc/thread-self").split("/").at(-1));
  if (!Number.isSafeInteger(number) || number <= 0) throw new RangeError("a thread has a number");
  return number;
}
