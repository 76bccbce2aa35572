/** What other layers may use of this room. */

export type { Onlookers, TellAnswered } from "./observers.ts";
