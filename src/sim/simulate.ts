/**
 * One run: a history from a seed, played to the end under the auditor's eyes.
 *
 * The same seed gives the same history, the same bytes in the log and the same report. A run that fails carries
 * the history that made it fail; `shrink` makes it short. `everyCrash` plays one history many times, each time with
 * a crash at another append, so that no boundary between two batches is left out.
 */
import type { Event } from "../core/model/index.ts";
import { type Blinkers, type Complaint, createAuditor } from "./auditor.ts";
import { createRandom } from "./chance/random.ts";
import { createContext, type Plant, type SimContext } from "./context.ts";
import type { AppendFault } from "./faulty-log.ts";
import { writeHistory } from "./fleet-script.ts";
import { FAULTS, type Fault, type History } from "./history.ts";
import { createPlayers } from "./play.ts";

const DEEP_LOOK_EVERY = 60;
const SHRINKING_RUNS_MAX = 250;

type Counted =
  | ("tasks" | "attempts" | "losses" | "rateLimits" | "resets" | "permits" | "crashes" | "reopenings")
  | ("children" | "rounds" | "parkings" | "approvals" | "reportsWithFiles" | "refusedReports")
  | ("planPuts" | "planPauses" | "planRemovals");
export type Figures = Readonly<Record<Counted | "appends" | "events" | "simulatedMs", number>>;
export type RunReport = {
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
}): Promise<RunReport> => playHistory(writeHistory({ faults: new Set(FAULTS), ...options }), options.plant);

export async function playHistory(history: History, plant: PlantedBug = {}): Promise<RunReport> {
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
  if (resting !== null) context.auditor.atRest(resting.state, resting.now, context.files);
  if (deep) await context.auditor.replay(context.engine()?.state ?? null);
}

function report(history: History, { store, tally, world, auditor }: SimContext): RunReport {
  const { counts, complaints } = auditor;
  const count = (kind: Event["kind"] | "child-submitted"): number => counts.get(kind) ?? 0;
  return {
    seed: history.seed,
    complaints,
    history,
    headHash: store.head.hash,
    figures: {
      tasks: count("task-submitted") + count("child-submitted"),
      children: count("child-submitted"),
      rounds: count("round-ended"),
      parkings: count("task-parked"),
      approvals: count("task-approved"),
      reportsWithFiles: count("attempt-files"),
      planPuts: count("plan-put"),
      planPauses: count("plan-paused"),
      planRemovals: count("plan-removed"),
      refusedReports: tally.refusedReports,
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
export async function* everyCrash(options: {
  readonly seed: number;
  readonly steps: number;
  /** No more than so many of them, spread over all. */
  readonly atMost?: number;
}): AsyncGenerator<RunReport> {
  const history = writeHistory({ ...options, faults: new Set(["storm", "handlers", "workers"]) });
  const calm = await playHistory(history);
  yield calm;
  const random = createRandom(options.seed);
  const { appends } = calm.figures;
  const stride = Math.max(1, Math.ceil(appends / (options.atMost ?? appends)));
  for (let append = 0; append < appends; append += stride) {
    const fault: AppendFault = random.percent(50) ? "crash-before" : "crash-after";
    yield await playHistory({ ...history, appends: { [append]: fault } });
  }
}

/**
 * From a long history that fails to a short one that fails in the same way: delta debugging on the list of steps.
 * Halves are left out, then quarters, down to single steps, and whatever still breaks the same rule is kept. Every try
 * is a whole run, so their number is bounded.
 */
export async function shrink(failed: RunReport, plant: PlantedBug = {}): Promise<RunReport> {
  const rule = failed.complaints[0]?.rule;
  let best = failed;
  let runs = 0;

  async function tryWithout(from: number, count: number): Promise<boolean> {
    const { steps } = best.history;
    const shorter: History = { ...best.history, steps: [...steps.slice(0, from), ...steps.slice(from + count)] };
    runs++;
    const report = await playHistory(shorter, plant);
    if (report.complaints[0]?.rule !== rule) return false;
    best = report;
    return true;
  }

  for (let size = Math.ceil(best.history.steps.length / 2); runs < SHRINKING_RUNS_MAX; size = Math.ceil(size / 2)) {
    let hasShrunk = false;
    // From the end: what came after the failure goes first.
    for (let end = best.history.steps.length; end > 0 && runs < SHRINKING_RUNS_MAX; end -= size) {
      if (await tryWithout(Math.max(0, end - size), Math.min(size, end))) hasShrunk = true;
    }
    if (size === 1 && !hasShrunk) break;
  }
  return best;
}
