/**
 * How much was used lately: windows over time, for rate limits and rolling budgets.
 *
 * Two kinds. A sliding window asks about the last `windowMs`, whenever the question is put, so there is
 * no edge at which twice the limit slips through. A fixed window starts with the first record and ends
 * `windowMs` later; the next record starts a new one. Fixed exists because some providers count that way.
 *
 * A record made at t counts while now − t < windowMs and is gone at exactly t + windowMs. So whenever a
 * limit is reached the wait is at least one millisecond: "limited, retry in 0 ms" cannot be said.
 *
 * A rolling sum keeps one running total per bucket. Exact windows have buckets of one millisecond, hence at
 * most windowMs entries; a 24 h budget uses 1000 wide ones. A bucket expires when the latest record it may
 * hold does: late, never early, so a rounded window may refuse a little longer but never lets too much
 * through. Writing drops what has expired. Reading is a binary search over running totals and changes
 * nothing, not even a cursor: asking must leave no mark on a state that is compared byte by byte.
 *
 * Instants and amounts are whole numbers. A clock that steps back is taken to stand still. The tallies
 * (`RollingSum`, `FixedSum`) trust their caller; `createWindow` and `windowFromFacts` check what they are given.
 */

/** Whether a window is the last span of time, or begins with the first record. */
export type WindowKind = "sliding" | "fixed";

/** What a window counts, and up to where. */
export type WindowOptions = {
  /** Whether it slides or is fixed. */
  readonly kind: WindowKind;
  /** The amount at which it is exceeded. */
  readonly max: number;
  /** How long it is, in milliseconds. */
  readonly windowMs: number;
  /** Sliding only: at most about so many entries instead of one per millisecond. */
  readonly buckets?: number;
};

export type RollingFacts = {
  readonly kind: "sliding";
  readonly windowMs: number;
  readonly buckets: number | null;
  /** The last instant of each bucket, ascending, and what was recorded in it. */
  readonly ends: readonly number[];
  readonly amounts: readonly number[];
};
type FixedFacts = {
  readonly kind: "fixed";
  readonly windowMs: number;
  readonly startedAt: number | null;
  readonly used: number;
};
export type SumFacts = RollingFacts | FixedFacts;
/** A window as plain data, to be kept as JSON. */
export type WindowFacts = {
  /** The amount at which it is exceeded. */
  readonly max: number;
  /** What was recorded and still counts. */
  readonly sum: SumFacts;
};

/** How much was used lately. Instants are whole milliseconds. */
export type UsageWindow = {
  /** Counts an amount at an instant. */
  record(amount: number, now: number): void;
  /** Whether the use has reached the maximum. */
  exceeded(now: number): boolean;
  /** Milliseconds to the boundary (fixed), or until the use is below max (sliding); 0 if nothing is to wait for. */
  untilReset(now: number): number;
  /** How much of it still counts. */
  used(now: number): number;
  /** The window as plain data: see `windowFromFacts`. */
  facts(): WindowFacts;
};

/** What was recorded within the last windowMs. */
export class RollingSum {
  windowMs: number;
  readonly buckets: number | null;
  private bucketMs: number;
  private ends: number[] = [];
  /** The sum of all amounts up to and including each bucket. */
  private totals: number[] = [];
  /** Entries before head have expired; `before` is the running total there. */
  private head = 0;
  private before = 0;

  /** Without `buckets` it is exact to the millisecond. */
  constructor(windowMs: number, buckets: number | null) {
    this.windowMs = windowMs;
    this.buckets = buckets;
    this.bucketMs = bucketWidth(windowMs, buckets);
  }

  add(amount: number, now: number): void {
    this.dropExpired(now);
    if (amount === 0) return;
    const { ends, totals } = this;
    const last = ends.length - 1;
    const end = this.bucketMs === 1 ? now : (Math.floor(now / this.bucketMs) + 1) * this.bucketMs - 1;
    if (last >= this.head && end <= (ends[last] as number)) {
      totals[last] = (totals[last] as number) + amount;
    } else {
      totals.push((last >= 0 ? (totals[last] as number) : this.before) + amount);
      ends.push(end);
    }
  }

  total(now: number): number {
    const { ends, totals, head } = this;
    const last = ends.length - 1;
    const cut = now - this.windowMs;
    if (last < head || (ends[last] as number) <= cut) return 0;
    const all = totals[last] as number;
    if ((ends[head] as number) > cut) return all - this.before;
    return all - (totals[this.firstAfter(cut) - 1] as number);
  }

  /** The next instant at which the total falls by time alone. */
  nextExpiry(now: number): number | null {
    const index = this.firstAfter(now - this.windowMs);
    return index < this.ends.length ? (this.ends[index] as number) + this.windowMs : null;
  }

  /** The first instant from now on at which the total is below `limit` (at least 1), if nothing is added. */
  belowAt(limit: number, now: number): number {
    if (this.total(now) < limit) return now;
    const { ends, totals } = this;
    const all = totals[ends.length - 1] as number;
    let low = this.firstAfter(now - this.windowMs);
    let high = ends.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (all - (totals[middle] as number) < limit) high = middle;
      else low = middle + 1;
    }
    return (ends[low] as number) + this.windowMs;
  }

  /** What has already been dropped does not come back when a window grows. */
  resize(windowMs: number): void {
    this.windowMs = windowMs;
    this.bucketMs = bucketWidth(windowMs, this.buckets);
  }

  facts(): RollingFacts {
    const totals = this.totals.slice(this.head);
    const amounts = totals.map((total, index) => total - (index === 0 ? this.before : (totals[index - 1] as number)));
    const { windowMs, buckets } = this;
    return { kind: "sliding", windowMs, buckets, ends: this.ends.slice(this.head), amounts };
  }

  static fromFacts(facts: RollingFacts): RollingSum {
    const sum = new RollingSum(facts.windowMs, facts.buckets);
    let total = 0;
    for (const amount of facts.amounts) {
      total += amount;
      sum.totals.push(total);
    }
    sum.ends = facts.ends.slice();
    return sum;
  }

  /** The first live entry whose end is later than `cut`. */
  private firstAfter(cut: number): number {
    const { ends } = this;
    let low = this.head;
    let high = ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((ends[middle] as number) > cut) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** Each entry is dropped once and moved at most once, so this is constant per record in the long run. */
  private dropExpired(now: number): void {
    const { ends, totals } = this;
    const cut = now - this.windowMs;
    const length = ends.length;
    let head = this.head;
    if (head === length || (ends[head] as number) > cut) return;
    while (head < length && (ends[head] as number) <= cut) head++;
    const before = totals[head - 1] as number;
    if (head === length) {
      ends.length = totals.length = 0;
      this.head = this.before = 0;
    } else if (head * 2 > length) {
      ends.copyWithin(0, head);
      for (let index = head; index < length; index++) totals[index - head] = (totals[index] as number) - before;
      ends.length = totals.length = length - head;
      this.head = this.before = 0;
    } else {
      this.head = head;
      this.before = before;
    }
  }
}

/** What was recorded since the window started; it starts with the first record after it ended. */
export class FixedSum {
  windowMs: number;
  private startedAt: number | null = null;
  private used = 0;

  constructor(windowMs: number) {
    this.windowMs = windowMs;
  }

  add(amount: number, now: number): void {
    if (amount === 0) return;
    if (!this.isOpen(now)) {
      this.startedAt = now;
      this.used = 0;
    }
    this.used += amount;
  }

  total(now: number): number {
    return this.isOpen(now) ? this.used : 0;
  }

  nextExpiry(now: number): number | null {
    return this.isOpen(now) ? (this.startedAt as number) + this.windowMs : null;
  }

  belowAt(limit: number, now: number): number {
    return this.total(now) < limit ? now : (this.startedAt as number) + this.windowMs;
  }

  resize(windowMs: number): void {
    this.windowMs = windowMs;
  }

  facts(): FixedFacts {
    return { kind: "fixed", windowMs: this.windowMs, startedAt: this.startedAt, used: this.used };
  }

  static fromFacts(facts: FixedFacts): FixedSum {
    const sum = new FixedSum(facts.windowMs);
    sum.startedAt = facts.startedAt;
    sum.used = facts.used;
    return sum;
  }

  private isOpen(now: number): boolean {
    return this.startedAt !== null && now - this.startedAt < this.windowMs;
  }
}

export type UsageSum = RollingSum | FixedSum;

/** A window in which nothing is recorded yet. */
export function createWindow(options: WindowOptions): UsageWindow {
  if (typeof options !== "object" || options === null) {
    throw new TypeError(bad("options", options, "an object with kind, max and windowMs"));
  }
  const { kind, max, windowMs, buckets } = options;
  if (kind !== "sliding" && kind !== "fixed") throw new TypeError(bad("kind", kind, '"sliding" or "fixed"'));
  const limit = whole("max", max, 1);
  if (kind === "fixed" && buckets !== undefined)
    throw new TypeError(bad("buckets", buckets, "nothing for a fixed window"));
  const span = whole("windowMs", windowMs, 1);
  if (kind === "fixed") return windowOver(new FixedSum(span), limit);
  return windowOver(new RollingSum(span, buckets === undefined ? null : whole("buckets", buckets, 1)), limit);
}

/** A window as it was when its `facts()` were taken, which may have been JSON in between. */
export function windowFromFacts(facts: WindowFacts): UsageWindow {
  if (typeof facts !== "object" || facts === null) throw new TypeError(bad("facts", facts, WHAT_FACTS_ARE));
  return windowOver(sumFromFacts(checked(facts.sum)), whole("max", facts.max, 1));
}

const WHAT_FACTS_ARE = "an object with max and sum, as facts() of a window gives it";

/** The facts of a sum, of which nothing is believed: they come from wherever somebody kept them. */
function checked(sum: SumFacts): SumFacts {
  if (typeof sum !== "object" || sum === null) throw new TypeError(bad("sum", sum, WHAT_FACTS_ARE));
  whole("sum.windowMs", sum.windowMs, 1);
  if (sum.kind === "fixed") {
    whole("sum.used", sum.used, 0);
    if (sum.startedAt !== null) whole("sum.startedAt", sum.startedAt, 0);
    return sum;
  }
  if (sum.kind !== "sliding") throw new TypeError(bad("sum.kind", (sum as SumFacts).kind, '"sliding" or "fixed"'));
  if (sum.buckets !== null) whole("sum.buckets", sum.buckets, 1);
  for (const field of ["ends", "amounts"] as const)
    if (!Array.isArray(sum[field])) throw new TypeError(bad(`sum.${field}`, sum[field], "a list of whole numbers"));
  if (sum.ends.length !== sum.amounts.length)
    throw new RangeError(bad("sum.amounts", sum.amounts, `as long as sum.ends, which has ${sum.ends.length}`));
  for (const [index, end] of sum.ends.entries()) {
    whole(`sum.amounts[${index}]`, sum.amounts[index], 0);
    whole(`sum.ends[${index}]`, end, index === 0 ? 0 : (sum.ends[index - 1] as number) + 1);
  }
  return sum;
}

export function sumFromFacts(facts: SumFacts): UsageSum {
  return facts.kind === "fixed" ? FixedSum.fromFacts(facts) : RollingSum.fromFacts(facts);
}

const LIMIT_WINDOW_MS = new Map<unknown, number>([
  ["per_minute", 60_000],
  ["per_hour", 3_600_000],
  ["per_day", 86_400_000],
]);

/** How long the window of a limit is, in milliseconds. */
export function limitWindow(limit: "per_minute" | "per_hour" | "per_day"): number {
  const windowMs = LIMIT_WINDOW_MS.get(limit);
  if (windowMs === undefined) throw new RangeError(bad("limit", limit, '"per_minute", "per_hour" or "per_day"'));
  return windowMs;
}

/** Methods that need no `this`, since people take them apart. */
function windowOver(sum: UsageSum, max: number): UsageWindow {
  return {
    record: (amount, now) => sum.add(whole("amount", amount, 0), wholeInstant(now)),
    exceeded: (now) => sum.total(wholeInstant(now)) >= max,
    untilReset: (now) => {
      const at = sum instanceof FixedSum ? sum.nextExpiry(wholeInstant(now)) : sum.belowAt(max, wholeInstant(now));
      return at === null ? 0 : at - now;
    },
    used: (now) => sum.total(wholeInstant(now)),
    facts: () => ({ max, sum: sum.facts() }),
  };
}

function bucketWidth(windowMs: number, buckets: number | null): number {
  return buckets === null ? 1 : Math.ceil(windowMs / buckets);
}

function whole(
  field: string,
  value: unknown,
  least: number,
  expected: string = `a whole number of at least ${least}`,
): number {
  if (typeof value !== "number" || Number.isNaN(value)) throw new TypeError(bad(field, value, expected));
  if (!Number.isSafeInteger(value) || value < least) throw new RangeError(bad(field, value, expected));
  return value;
}

const wholeInstant = (now: unknown): number =>
  whole("now", now, Number.MIN_SAFE_INTEGER, "an instant in whole milliseconds");

function bad(field: string, value: unknown, expected: string): string {
  const shown =
    typeof value === "string" ? JSON.stringify(value) : typeof value === "object" ? "an object" : String(value);
  return `${field}: got ${value === null ? "null" : shown}, expected ${expected}`;
}
