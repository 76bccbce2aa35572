/**
 * The workload every peer gets: no-op jobs from submit to durably completed, in one process.
 *
 * Two ways to submit, since users do both: one job per call with many calls in flight, and batches. The
 * worker runs meanwhile in the same process, as an embedded user would have it. The clock stops when the last job
 * is completed on disk, not when its handler returned, and a round in which not exactly every job ran once is no
 * figure at all. Alone, the best of several rounds counts. Side by side, two play in turn, round by round, so that
 * whatever slows the machine down for a while slows both down, and what counts is how they compare in the middle one
 * of all pairs of neighbouring rounds.
 */

const ROUND_SECONDS_MAX = 3;

export type Mode = "singles" | "batches";
export type Workload = { readonly jobs: number; readonly rounds: number };

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
  readonly [Symbol.asyncDispose]: () => Promise<void>;
};

/** Jobs per second, the best round. */
export async function bestRound(session: Session, { jobs, rounds }: Workload): Promise<number> {
  const count = await warmUp(session, jobs);
  let best = 0;
  for (let round = 0; round < rounds; round += 1) best = Math.max(best, await playRound(session, count));
  return best;
}

export type Duel = {
  /** Jobs per second in the best round of each. */
  readonly ours: number;
  readonly theirs: number;
  /** How many times as many we carry, the median over pairs of neighbouring rounds. */
  readonly ratio: number;
};

export async function playInTurn(
  ours: { readonly session: Session; readonly jobs: number },
  theirs: { readonly session: Session; readonly jobs: number },
  rounds: number,
): Promise<Duel> {
  const ourCount = await warmUp(ours.session, ours.jobs);
  const theirCount = await warmUp(theirs.session, theirs.jobs);
  const pairs: { readonly ours: number; readonly theirs: number }[] = [];
  for (let round = 0; round < rounds; round += 1)
    pairs.push({
      ours: await playRound(ours.session, ourCount),
      theirs: await playRound(theirs.session, theirCount),
    });
  const ratios = pairs.map((pair) => pair.ours / pair.theirs).sort((left, right) => left - right);
  return {
    ours: Math.max(...pairs.map((pair) => pair.ours)),
    theirs: Math.max(...pairs.map((pair) => pair.theirs)),
    ratio: ratios[rounds >> 1] as number,
  };
}

/** A short round and a whole one; answers how many jobs a round has, which for a slow peer are fewer. */
async function warmUp(session: Session, jobs: number): Promise<number> {
  const few = Math.ceil(jobs / 10);
  const expected = await playRound(session, few);
  const count = Math.min(jobs, Math.max(few, Math.round(expected * ROUND_SECONDS_MAX)));
  await playRound(session, count);
  return count;
}

async function playRound(session: Session, jobs: number): Promise<number> {
  // What the other left behind is not collected at the cost of this one.
  globalThis.gc?.();
  const ranBefore = session.ran();
  const startedAt = performance.now();
  await submitAll(session, jobs);
  await session.completed();
  const seconds = (performance.now() - startedAt) / 1000;
  const ran = session.ran() - ranBefore;
  if (ran !== jobs) throw new Error(`${ran} jobs ran where ${jobs} were submitted`);
  return jobs / seconds;
}

async function submitAll({ perCall, inFlight, submit }: Session, jobs: number): Promise<void> {
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
