/**
 * How far a long command is: a bar with rate and time left on a terminal, a plain line now and then elsewhere.
 *
 * It goes beside what the command answers, to standard error: a script that reads the answer never meets it. On a
 * terminal the bar is drawn over itself and gone at the end. In a file nothing is said of what takes a few seconds.
 */

export type ProgressStream = {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  write(text: string): unknown;
};
export type Progress = {
  /** So many are done, of so many. It may be told as often as one likes. */
  at(done: number, total: number): void;
  /** Takes the bar away. */
  end(): void;
};

/** What is over by then has no bar. */
const FIRST_MS = 300;
const DRAW_MS = 100;
const LINE_MS = 10_000;
const COLUMNS_DEFAULT = 80;
const BAR = 24;
/** The facts say more than a shorter one. */
const BAR_LEAST = 6;
/** Before either of these the rate says more of the beginning than of the rest. */
const FORESEEN_SHARE = 0.01;
const FORESEEN_MS = 5000;
const FULL = "█";
const REST = "░";

/** `what` begins the line, `unit` names what is counted; `now` is any clock in milliseconds. */
export function createProgress(
  what: string,
  unit: string,
  { stream, now }: { readonly stream: ProgressStream; readonly now: () => number },
): Progress {
  const isLive = stream.isTTY === true;
  const beganAt = now();
  let saidAt = isLive ? beganAt + FIRST_MS - DRAW_MS : beganAt;
  let isDrawn = false;
  return {
    at(done, total) {
      const at = now();
      if (at - saidAt < (isLive ? DRAW_MS : LINE_MS)) return;
      saidAt = at;
      const facts = progressFacts({ done, total, unit, ms: at - beganAt });
      if (!isLive) return void stream.write(`${what}: ${facts}\n`);
      // A line that is as wide as the terminal would be wrapped, and could not be drawn over.
      // One that says no size, or that it has none.
      const width = (stream.columns || COLUMNS_DEFAULT) - 1;
      const room = Math.min(BAR, width - `${what}    ${facts}`.length);
      const bar = room < BAR_LEAST ? "" : `${barText(total === 0 ? 1 : done / total, room)}  `;
      const line = `${what}  ${bar}${facts}`;
      stream.write(`\r${line.length > width ? line.slice(0, Math.max(0, width)) : line}\u001b[K`);
      isDrawn = true;
    },
    end() {
      if (isDrawn) stream.write("\r\u001b[K");
      isDrawn = false;
    },
  };
}

function barText(share: number, columns: number): string {
  const full = Math.round(Math.min(1, Math.max(0, share)) * columns);
  return FULL.repeat(full) + REST.repeat(columns - full);
}

type Facts = { readonly done: number; readonly total: number; readonly unit: string; readonly ms: number };

/** `48%, 120,000 of 250,000 events, 40,000/s, 3s left`. */
export function progressFacts({ done, total, unit, ms }: Facts): string {
  const rate = ms <= 0 ? 0 : (done * 1000) / ms;
  const percent = total === 0 ? 100 : Math.floor((Math.min(done, total) * 100) / total);
  const parts = [`${percent}%`, `${grouped(done)} of ${grouped(total)} ${unit}`];
  if (rate > 0) parts.push(rateText(rate));
  const isForeseen = ms >= FORESEEN_MS || done >= total * FORESEEN_SHARE;
  if (rate > 0 && done < total && isForeseen) parts.push(`${spanText((total - done) / rate)} left`);
  return parts.join(", ");
}

/** What is slower than one a second is counted by the minute. */
function rateText(rate: number): string {
  const rounded = (value: number): string => grouped(value < 10 ? Math.round(value * 10) / 10 : Math.round(value));
  return rate < 1 ? `${rounded(rate * 60)}/min` : `${rounded(rate)}/s`;
}

const grouped = (count: number): string => String(count).replaceAll(/\B(?<!\.\d*)(?=(\d{3})+(?!\d))/g, ",");

function spanText(seconds: number): string {
  const whole = Math.ceil(seconds);
  if (whole < 60) return `${whole}s`;
  if (whole < 3600) return `${Math.floor(whole / 60)}m ${whole % 60}s`;
  return `${Math.floor(whole / 3600)}h ${Math.floor((whole % 3600) / 60)}m`;
}
