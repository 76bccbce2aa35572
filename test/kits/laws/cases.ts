/**
 * How many cases, from which seed.
 *
 * The full run has over a hundred thousand cases across the laws; DROVER_QUICK asks for a hundredth of that. Every run
 * begins from a new seed, which is printed; DROVER_SEED repeats one. In CI the seed is always the same, so that a run
 * that fails there fails for what was changed.
 */
import fc from "fast-check";

const QUICK_DIVISOR = 100;
/** Too few cases then for a law to say how much it has seen. */
export const isQuick: boolean = process.env.DROVER_QUICK !== undefined;
const CI_SEED = 20_261_115;
const given = Number(process.env.DROVER_SEED);
const seed = process.env.DROVER_SEED !== undefined && Number.isSafeInteger(given) ? given : freshSeed();
console.log(`seed ${seed} (DROVER_SEED=${seed} repeats it)`);

function freshSeed(): number {
  if (process.env.CI === "true") return CI_SEED;
  return Math.floor(Math.random() * 0x7fff_ffff);
}

/** Holds a law against so many cases. */
export function holds<Given>(cases: number, given: fc.Arbitrary<Given>, law: (given: Given) => void): void {
  fc.assert(fc.property(given, law), runOf(cases));
}

/** The same for a law that waits. */
export async function holdsInTime<Given>(
  cases: number,
  given: fc.Arbitrary<Given>,
  law: (given: Given) => Promise<void>,
): Promise<void> {
  await fc.assert(fc.asyncProperty(given, law), runOf(cases));
}

function runOf(cases: number): { seed: number; numRuns: number; verbose: fc.VerbosityLevel } {
  const numRuns = isQuick ? Math.ceil(cases / QUICK_DIVISOR) : cases;
  return { seed, numRuns, verbose: fc.VerbosityLevel.None };
}
