/**
 * Loops on the wire: tasks that run again until their work is good.
 */
import type * as wire from "../generated/loops.ts";
import * as s from "../schema/schema.ts";
import { roundUsage } from "./usage.ts";

const ROUNDS_MAX = 1000;
const NOTE_MAX = 4096;
export const loop: s.Schema<wire.Loop> = s.namedObject("Loop", {
  until: s.optional(
    s.text(1, 65_536),
    "For exec workers: a shell line that is run in the workspace when the command has ended with 0. With exit code 0 " +
      "the task is done; otherwise what it printed is the note for the next round.",
  ),
  max: s.described(
    s.whole(1, ROUNDS_MAX),
    "How many rounds there may be; the task fails when the last was not enough.",
  ),
});
/** A round of a loop that has ended. */
export const round: s.Schema<wire.Round> = s.namedAnswer("Round", {
  iteration: s.described(s.whole(0), "The iteration of the task that it was."),
  outcome: s.oneOf("again", "done"),
  note: s.optional(s.text(0, NOTE_MAX), "What it left for the next; cut short once there is a later one."),
  usage: s.optional(roundUsage, "What it used, as far as its worker said; absent if that is unknown."),
});
export const currentRound: s.Schema<wire.CurrentRound> = s.namedAnswer("CurrentRound", {
  number: s.described(s.whole(1), "Which round this is, from 1."),
  max: s.described(s.whole(1, ROUNDS_MAX), "How many there may be."),
  note: s.optional(s.text(0, NOTE_MAX), "What the round before left for this one."),
});
