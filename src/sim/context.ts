/**
 * What one history is played in: a store, a world with its own time, and one engine after the other.
 *
 * Time moves only here. `settle` lets everything happen that can happen now: promises first (one turn of the real
 * event loop runs them all), then the engine's deferred turns, until nothing is left. `pass` moves the clock from one
 * timer to the next. An engine that keeps itself busy without time passing is caught and reported.
 *
 * When an engine crashes, is deposed or loses its log, the next one is opened on the same store, as a supervisor would.
 * Faults of the log are armed here: the append with that number meets them.
 */
import type { MutableState, State } from "../core/model/index.ts";
import type { DroverError } from "../engine/base/index.ts";
import type { FileMedium, Inputs } from "../engine/index.ts";
import type { PlanVerbs } from "../engine/plans/index.ts";
import type { Log } from "../log/index.ts";
import { createMemoryLog, createMemoryStore, type MemoryStore } from "../log/memory/index.ts";
import { type Clock, nextTurn } from "../std/index.ts";
import type { Auditor } from "./auditor.ts";
import { createRandom } from "./chance/random.ts";
import { type AppendFault, createFaultyLog } from "./faulty-log.ts";
import type { Act, History } from "./history.ts";
import { openEngine, type SimEngine } from "./open-engine.ts";
import { actsInName } from "./plan-script.ts";
import { createSimWorld, type Life, type SimWorld } from "./sim-clock.ts";
import { createSimFiles, type SimFiles } from "./sim-files.ts";
import { createRemoteFleet, type RemoteFleet, type Surroundings } from "./workers.ts";

/** Small, so that levels need no rescaling in a run; any instant would do. */
const START_MS = 10_000_000;
const TURNS_MAX = 20_000;
const RINGS_MAX = 5000;
const OPENINGS_MAX = 60;
const CLOSING_MS = 3000;

/** A bug put into the engine or its log on purpose, to see whether the auditor notices. */
export type Plant = {
  readonly engine?: (state: MutableState) => void;
  readonly log?: (log: Log, store: MemoryStore) => Log;
  readonly clock?: (clock: Clock) => Clock;
  readonly files?: (medium: FileMedium) => FileMedium;
  readonly plans?: (plans: PlanVerbs) => PlanVerbs;
  /** What handlers are shown instead of their inputs. */
  readonly inputs?: (inputs: Inputs) => Inputs;
};
type Tally = { crashes: number; openings: number; appends: number; refusedReports: number };
type Switches = { faults: boolean; allArtifacts: boolean };
export type SimContext = Pick<EngineLives, "engine" | "arm" | "crash" | "open" | "ensureOpen"> & {
  readonly auditor: Auditor;
  readonly world: SimWorld;
  readonly store: MemoryStore;
  readonly files: SimFiles;
  readonly surroundings: Surroundings;
  readonly remoteFleet: RemoteFleet;
  /** Until when a gate's provider turns calls away. */
  readonly storms: Map<string, number>;
  readonly artifacts: Set<string>;
  readonly bodies: Map<string, readonly Act[]>;
  readonly tally: Tally;
  readonly switches: Switches;
  life(): Life;
  /** Its state, and the time by its log, while it has nothing to do: all is durable, and no alarm is late. */
  resting(): { readonly state: State; readonly now: number } | null;
  closeEngine(): Promise<void>;
  settle(): Promise<void>;
  pass(ms: number): Promise<void>;
};

type ContextOptions = {
  readonly history: History;
  readonly plant: Plant;
  readonly auditorOf: (store: MemoryStore) => Auditor;
  readonly onOpened: (engine: SimEngine) => void;
};

export function createContext(options: ContextOptions): SimContext {
  const { history, plant, onOpened } = options;
  const world = createSimWorld(START_MS, createRandom(history.seed));
  const store = createMemoryStore();
  const auditor = options.auditorOf(store);
  const storms = new Map<string, number>();
  const artifacts = new Set<string>();
  const bodies = new Map<string, readonly Act[]>();
  const tally: Tally = { crashes: 0, openings: 0, appends: 0, refusedReports: 0 };
  const switches: Switches = { faults: true, allArtifacts: false };
  const surroundings: Surroundings = {
    world,
    isStorm: (gate) => world.elapsed() < (storms.get(gate) ?? -1),
    actsOf: (task) => bodies.get(task) ?? actsInName(task),
    noteActs: (task, acts) => bodies.set(task, acts),
    sawInputs: (task, attempt, inputs = {}) => auditor.sawInputs(task, attempt, plant.inputs?.(inputs) ?? inputs),
    noteRefused: () => void tally.refusedReports++,
  };
  const files = createSimFiles(world, () => switches.faults);
  const shared = { world, store, files, auditor, tally, switches, artifacts };
  const lives = createEngineLives({
    ...shared,
    history,
    plant,
    onApplied: (event) => remoteFleet.onApplied(event),
    onCommitted: (batch) => remoteFleet.onCommitted(batch),
    onOpened: (engine) => {
      remoteFleet.meet(engine);
      onOpened(engine);
    },
  });
  const remoteFleet = createRemoteFleet(surroundings, lives.engine);

  async function settle(): Promise<void> {
    await settleWorld(world, auditor);
    auditor.catchUp();
  }

  function resting(): { state: State; now: number } | null {
    const engine = lives.engine();
    if (engine === null || lives.current().isClosing || engine.state.seq !== store.head.seq || world.hasJumpedLately())
      return null;
    const { at: now } = engine.logTime();
    return lives.current().life.hasLateAlarm() ? null : { state: engine.state, now };
  }

  async function pass(ms: number): Promise<void> {
    const end = world.elapsed() + ms;
    let rings = 0;
    for (;;) {
      await settle();
      const asleep = resting();
      if (asleep !== null) auditor.asleep(asleep.state, asleep.now);
      if (auditor.complaints.length > 0) return;
      const next = world.nextRing();
      if (next === null || next > end) break;
      rings = next <= world.elapsed() ? rings + 1 : 0;
      if (rings > RINGS_MAX) return auditor.complain("spins", `an alarm rings ${RINGS_MAX} times at one instant`);
      world.moveTo(next);
      if (lives.engine() === null) {
        await lives.ensureOpen();
        if (auditor.complaints.length > 0) return;
      }
    }
    world.moveTo(end);
    await settle();
  }

  async function closeEngine(): Promise<void> {
    const tenure = lives.current();
    tenure.isClosing = true;
    const closing = lives
      .engine()
      ?.close()
      .catch(() => {});
    await pass(CLOSING_MS);
    lives.current().life.end();
    await Promise.race([closing, nextTurn()]);
  }

  const time = { life: () => lives.current().life, resting, closeEngine, settle, pass };
  return { ...shared, ...lives, ...time, surroundings, remoteFleet, storms, bodies };
}

/** The life of one engine; `engine` is null until it is open. */
type Tenure = { readonly life: Life; engine: SimEngine | null; isClosing: boolean };

type EngineLives = {
  current(): Tenure;
  /** The engine of the present life; null while there is none. */
  engine(): SimEngine | null;
  arm(fault: AppendFault, inAppends: number): void;
  crash(): void;
  /** Opens another engine, and leaves the present one alone. */
  open(): Promise<SimEngine | null>;
  /** Opens an engine if there is none. */
  ensureOpen(): Promise<void>;
};

type LivesDeps = Pick<SimContext, "world" | "store" | "files" | "auditor" | "tally" | "switches" | "artifacts"> &
  Pick<RemoteFleet, "onApplied" | "onCommitted"> &
  Pick<ContextOptions, "history" | "plant" | "onOpened">;

function createEngineLives(deps: LivesDeps): EngineLives {
  const { history, plant, world, store, files, auditor, tally, switches, artifacts } = deps;
  const armed = new Map<number, AppendFault>(
    Object.entries(history.appends ?? {}).map(([append, fault]) => [Number(append), fault]),
  );
  let tenure: Tenure = { life: world.newLife(), engine: null, isClosing: false };
  tenure.life.end();
  const engineNow = (): SimEngine | null => (tenure.life.isAlive() ? tenure.engine : null);

  function nextFault(): AppendFault | null {
    const number = tally.appends++;
    const fault = switches.faults ? (armed.get(number) ?? null) : null;
    armed.delete(number);
    return fault;
  }

  function logFor(life: Life): Log {
    const onCrash = (): void => {
      tally.crashes++;
      life.end();
    };
    const inner = createMemoryLog({ store });
    return createFaultyLog({ inner: plant.log?.(inner, store) ?? inner, life, nextFault, onCrash });
  }

  /** An engine that stops by itself is replaced; one that broke its own rules is reported. */
  function onFailed(life: Life, error: DroverError): void {
    if (error.code === "broken")
      auditor.complain("broken", `${error.message} ${error.cause instanceof Error ? (error.cause.stack ?? "") : ""}`);
    life.end();
  }

  async function open(): Promise<SimEngine | null> {
    const life = world.newLife();
    const mine: Tenure = { life, engine: null, isClosing: false };
    const outcome = { error: null as Error | null };
    tenure = mine;
    tally.openings++;
    const isCurrent = (): boolean => life.isAlive();
    openEngine({
      log: logFor(life),
      clock: plant.clock?.(life.clock) ?? life.clock,
      newId: life.newId,
      fileMedium: plant.files?.(files.of(life)) ?? files.of(life),
      config: history.config,
      remote: history.remote,
      batchMax: history.batchMax,
      artifactExists: async (name) => switches.allArtifacts || artifacts.has(name),
      // That a clock is wrong which the history has set is as it should be.
      onWarning: (message) => isCurrent() && !message.startsWith("THE CLOCK") && auditor.complain("broken", message),
      onApplied: (event) => isCurrent() && deps.onApplied(event),
      onCommitted: (batch) => isCurrent() && deps.onCommitted(batch),
    }).then(
      (engine) => {
        mine.engine = plant.plans === undefined ? engine : { ...engine, plans: plant.plans(engine.plans) };
        void engine.failed.then((error) => onFailed(life, error));
      },
      (error: Error) => {
        outcome.error = error;
      },
    );
    for (let rings = 0; mine.engine === null && outcome.error === null && life.isAlive(); rings++) {
      await settleWorld(world, auditor);
      const next = world.nextRing();
      if (mine.engine !== null || outcome.error !== null || !life.isAlive()) break;
      if (next === null || rings > RINGS_MAX) {
        auditor.complain("stuck", "an engine never finishes opening");
        life.end();
      } else world.moveTo(next);
    }
    if (outcome.error !== null) reportOpening(outcome.error, life);
    const { engine } = mine;
    if (engine === null || !life.isAlive()) return null;
    plant.engine?.(engine.state as MutableState);
    deps.onOpened(engine);
    return engine;
  }

  function reportOpening(error: Error, life: Life): void {
    life.end();
    const code = (error as Partial<DroverError>).code;
    if (code !== "log_failed" && code !== "deposed") auditor.complain("broken", `opening failed: ${error.stack}`);
  }

  async function ensureOpen(): Promise<void> {
    for (let tries = 0; engineNow() === null && auditor.complaints.length === 0; tries++) {
      if (tries > OPENINGS_MAX) return auditor.complain("stuck", `${OPENINGS_MAX} openings in a row failed`);
      await open();
    }
  }

  return {
    current: () => tenure,
    engine: engineNow,
    arm: (fault, inAppends) => void armed.set(tally.appends + inAppends, fault),
    crash() {
      tally.crashes++;
      tenure.life.end();
    },
    open,
    ensureOpen,
  };
}

/** Lets everything happen that can happen now, without the auditor reading on. */
async function settleWorld(world: SimWorld, auditor: Auditor): Promise<void> {
  for (let turns = 0; turns < TURNS_MAX; turns++) {
    await nextTurn();
    if (!world.runDeferred()) return;
  }
  auditor.complain("spins", `the engine takes ${TURNS_MAX} turns and no time passes`);
}
