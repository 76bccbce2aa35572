/**
 * One run: a history from a seed, played to the end under the auditor's eyes.
 *
 * The same seed gives the same history, the same bytes in the log and the same report. A run that fails carries
 * the history that made it fail; `shrink.ts` makes it short. `everyCrash` plays one history many times, each time with
 * a crash at another append, so that no boundary between two batches is left out.
 */
import type { Event } from "../core/model/index.ts";
import { type Blinkers, type Complaint, createAuditor } from "./auditor.ts";
import { createContext, type SimContext } from "./context.ts";
import type { Plant } from "./engine-lives.ts";
import type { AppendFault } from "./faulty-log.ts";
import { writeHistory } from "./fleet-script.ts";
import { FAULTS, type Fault, type History } from "./history.ts";
import { createPlayers } from "./play.ts";
import { createRandom } from "./random.ts";

const DEEP_LOOK_EVERY = 60;

export type Figures = {
  readonly tasks: number;
  readonly attempts: number;
  readonly losses: number;
  readonly rateLimits: number;
  readonly resets: number;
  readonly permits: number;
  readonly crashes: number;
  readonly reopenings: number;
  readonly appends: number;
  readonly events: number;
  readonly simulatedMs: number;
};
export type Report = {
  readonly seed: number;
  readonly complaints: readonly Complaint[];
  readonly figures: Figures;
  /** The chain's hash at the end: equal histories end in equal bytes. */
  readonly headHash: string;
  readonly history: History;
};
export type PlantedBug = Plant & Blinkers;

export const simulate = (options: {
  readonly seed: number;
  readonly steps: number;
  readonly faults?: ReadonlySet<Fault>;
  readonly plant?: PlantedBug;
}): Promise<Report> => playHistory(writeHistory({ faults: new Set(FAULTS), ...options }), options.plant);

export async function playHistory(history: History, plant: PlantedBug = {}): Promise<Report> {
  const context = createContext({
    history,
    plant,
    auditorOf: (store) => createAuditor(store, plant),
    onOpened: (engine) => players.onOpened(engine),
  });
  const players = createPlayers(history, context);
  const { complaints } = context.auditor;
  await context.ensureOpen();
  for (const [index, step] of history.steps.entries()) {
    await players.act(step);
    if (step.together) continue;
    await context.settle();
    await look(context, index % DEEP_LOOK_EVERY === 0);
    if (complaints.length > 0) break;
  }
  if (complaints.length === 0) await players.clearUp();
  if (complaints.length === 0) await look(context, true);
  return report(history, context);
}

async function look(context: SimContext, deep: boolean): Promise<void> {
  const resting = context.resting();
  if (resting !== null) context.auditor.atRest(resting.state, resting.now);
  if (deep) await context.auditor.replay(context.engine()?.state ?? null);
}

function report(history: History, { store, tally, world, auditor }: SimContext): Report {
  const { counts, complaints } = auditor;
  const count = (kind: Event["kind"]): number => counts.get(kind) ?? 0;
  return {
    seed: history.seed,
    complaints,
    history,
    headHash: store.head.hash,
    figures: {
      tasks: count("task-submitted"),
      attempts: count("task-assigned"),
      losses: count("attempt-lost"),
      rateLimits: count("gate-throttled"),
      resets: count("gate-reset"),
      permits: count("permit-granted"),
      crashes: tally.crashes,
      reopenings: tally.openings - 1,
      appends: tally.appends,
      events: store.head.seq,
      simulatedMs: world.elapsed(),
    },
  };
}

/** The same history once for each append, with a crash just before or just after it; the first failure ends it. */
export async function* everyCrash(options: { readonly seed: number; readonly steps: number }): AsyncGenerator<Report> {
  const history = writeHistory({ ...options, faults: new Set(["storm", "handlers", "workers"]) });
  const calm = await playHistory(history);
  yield calm;
  const random = createRandom(options.seed);
  for (let append = 0; append < calm.figures.appends; append++) {
    const fault: AppendFault = random.percent(50) ? "crash-before" : "crash-after";
    yield await playHistory({ ...history, appends: { [append]: fault } });
  }
}
