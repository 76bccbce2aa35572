/**
 * Says it loudly when log time and this machine's clock are apart. The log clock does what can be done without knowing
 * which of the two is right; to find that out, and to set the clock, is a person's.
 */
const APART_MS = 5000;

/** Null: they agree again. It is said when that changes, and not with every reading. */
export type SayApart = (text: string | null) => void;

/** Takes how far log time is ahead of the clock, at each reading; that may be one that other nodes have. */
export function createClockWatch(say: SayApart, isOfOthers = (): boolean => false): (aheadMs: number) => void {
  let was: "together" | "ahead" | "behind" = "together";
  return (aheadMs) => {
    const is = aheadMs > APART_MS ? "ahead" : aheadMs < -APART_MS ? "behind" : "together";
    if (is === was) return;
    was = is;
    if (is === "together") return say(null);
    const whose = isOfOthers() ? "THE CLOCK that most nodes agree on" : "THE CLOCK of this machine";
    say(`${whose} ${is === "ahead" ? setBack(aheadMs) : jumped(-aheadMs)}`);
  };
}

const seconds = (ms: number): string => `${Math.round(ms / 1000)} s`;

const setBack = (ms: number): string =>
  `was found ${seconds(ms)} behind the time in the log: it was set back, or who wrote ` +
  "the log had one that was ahead. Log time goes on at half the pace until they meet, and deadlines come early by " +
  "as much. Look which clock is right, and keep all by NTP.";
const jumped = (ms: number): string =>
  `has jumped ${seconds(ms)} ahead of the time in the log. If it stays there for a ` +
  "minute it is believed, and all that is due by then is due at once. If it is wrong, set it right before; keep it " +
  "by NTP.";
