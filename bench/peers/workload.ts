/**
 * The workload every peer gets: no-op jobs from submit to durably completed, in one process.
 *
 * Two ways to submit, since users do both: one job per call with many calls in flight, and batches. The
 * worker runs meanwhile in the same process, as an embedded user would have it. The clock stops when the last job
 * is completed on disk, not when its handler returned, and a round in which not exactly every job ran once is no
 * figure at all. The best of several rounds counts, which favours the peer.
 */

const ROUND_SECONDS_MAX = 6;

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

/** Jobs per second, the best round, after a short one that warms up and says how many jobs a slow peer gets. */
export async function bestRound(session: Session, { jobs, rounds }: Workload): Promise<number> {
  const warmUp = Math.ceil(jobs / 10);
  const expected = await playRound(session, warmUp);
  const count = Math.min(jobs, Math.max(warmUp, Math.round(expected * ROUND_SECONDS_MAX)));
  let best = 0;
  for (let round = 0; round < rounds; round += 1) best = Math.max(best, await playRound(session, count));
  return best;
}

async function playRound(session: Session, jobs: number): Promise<number> {
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
