/**
 * The workload every peer gets: no-op jobs from submit to durably completed, in one process.
 *
 * Two ways to submit, since users do both: one job per call with many calls in flight, and batches. The
 * worker runs meanwhile in the same process, as an embedded user would have it. The clock stops when the last job
 * is completed on disk, not when its handler returned, and a round in which not exactly every job ran once is no
 * figure at all. All rounds last about as long, a few seconds, so that what a round leaves to be collected is collected
 * in it for the most part. Side by side, two play in turn, round by round, so that whatever slows the machine down for
 * a while slows both down, and what counts is how they compare in the middle one of all pairs of neighbouring rounds.
 */

export type Mode = "singles" | "batches";
export type Workload = { readonly seconds: number; readonly rounds: number };

/** A peer that is connected, with its worker running. */
export type Session = {
  /** How many jobs one call submits, and how many such calls are under way at a time. */
  readonly perCall: number;
  readonly inFlight: number;
  submit(count: number): Promise<unknown>;
  /** How many jobs have run since the session began. */
  ran(): number;
  /** Resolves when every job submitted so far is completed on disk. */
  completed(): Promise<void>;
  /** CPU time that other processes took for it so far, in microseconds: those of a database. */
  readonly elsewhereMicros?: () => number;
  readonly [Symbol.asyncDispose]: () => Promise<void>;
};

/** The half of a peer that submits; what it is connected to may be shared with its workers or not. */
export type Submitter = {
  submit(count: number): Promise<unknown>;
  /** Whether nothing is left that was submitted and is not completed on disk. */
  isDone(): Promise<boolean>;
  close(): Promise<unknown>;
};
/** The half that runs jobs. */
export type Runner = { close(): Promise<unknown> };

/** Both halves in this process. */
export function sessionOf(
  calls: Pick<Session, "perCall" | "inFlight">,
  { submit, isDone, close }: Submitter,
  runner: Runner,
  ran: () => number,
): Session {
  return {
    ...calls,
    submit,
    ran,
    completed: () => until(isDone),
    [Symbol.asyncDispose]: async () => {
      await runner.close();
      await close();
    },
  };
}

/** Jobs per second, the median over the rounds. */
export async function playAlone(session: Session, { seconds, rounds }: Workload): Promise<number> {
  const count = await warmUp(session, seconds);
  const rates: number[] = [];
  for (let round = 0; round < rounds; round += 1) rates.push((await playRound(session, count)).rate);
  return median(rates);
}

/** Jobs per second, and CPU time for each in microseconds, all processes together where the session knows of them. */
export type Pace = { readonly rate: number; readonly micros: number };
/** Of each the medians. How many times as many jobs we carry, and for what part of the time: over pairs of rounds. */
export type Duel = {
  readonly ours: number;
  readonly theirs: number;
  readonly ratio: number;
  readonly micros: { readonly ours: number; readonly theirs: number; readonly ratio: number };
};

export async function playInTurn(ours: Session, theirs: Session, { seconds, rounds }: Workload): Promise<Duel> {
  const ourCount = await warmUp(ours, seconds);
  const theirCount = await warmUp(theirs, seconds);
  const pairs: { readonly ours: Pace; readonly theirs: Pace }[] = [];
  for (let round = 0; round < rounds; round += 1) {
    // Who goes first may find the machine in another mood: so it is one, then the other.
    const first = round % 2 === 0 ? await playRound(ours, ourCount) : await playRound(theirs, theirCount);
    const second = round % 2 === 0 ? await playRound(theirs, theirCount) : await playRound(ours, ourCount);
    pairs.push(round % 2 === 0 ? { ours: first, theirs: second } : { ours: second, theirs: first });
  }
  const compared = (figure: keyof Pace): { ours: number; theirs: number; ratio: number } => ({
    ours: median(pairs.map((pair) => pair.ours[figure])),
    theirs: median(pairs.map((pair) => pair.theirs[figure])),
    ratio: median(pairs.map((pair) => pair.ours[figure] / pair.theirs[figure])),
  });
  return { ...compared("rate"), micros: compared("micros") };
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((left, right) => left - right);
  return sorted[sorted.length >> 1] as number;
}

/** Two rounds that do not count, a short one and a longer one; answers how many jobs a round of these seconds has. */
async function warmUp(session: Session, seconds: number): Promise<number> {
  const few = session.perCall * session.inFlight;
  const guess = await playRound(session, few);
  const { rate } = await playRound(session, jobsIn(seconds / 2, guess.rate, few));
  return jobsIn(seconds, rate, few);
}

/** In whole calls of everybody who submits. */
export const jobsIn = (seconds: number, rate: number, few: number): number =>
  Math.max(1, Math.round((rate * seconds) / few)) * few;

async function playRound(session: Session, jobs: number): Promise<Pace> {
  // What the other left behind is not collected at the cost of this one.
  globalThis.gc?.();
  const elsewhere = session.elsewhereMicros ?? ((): number => 0);
  const [ranBefore, elsewhereBefore, ownBefore] = [session.ran(), elsewhere(), process.cpuUsage()];
  const startedAt = performance.now();
  await submitAll(session, jobs);
  await session.completed();
  const seconds = (performance.now() - startedAt) / 1000;
  const { user, system } = process.cpuUsage(ownBefore);
  const ran = session.ran() - ranBefore;
  if (ran !== jobs) throw new Error(`${ran} jobs ran where ${jobs} were submitted`);
  return { rate: jobs / seconds, micros: (user + system + elsewhere() - elsewhereBefore) / jobs };
}

export async function submitAll(
  { perCall, inFlight, submit }: Pick<Session, "perCall" | "inFlight" | "submit">,
  jobs: number,
): Promise<void> {
  let left = jobs;
  async function submitter(): Promise<void> {
    while (left > 0) {
      const count = Math.min(perCall, left);
      left -= count;
      await submit(count);
    }
  }
  await Promise.all(Array.from({ length: inFlight }, submitter));
}

export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 1));
}
