/**
 * One engine after the other, on the same store.
 *
 * When an engine crashes, is deposed or loses its log, the next one is opened on the same store, as a supervisor would.
 * Faults of the log are armed here: the append with that number meets them.
 */
import type { Event, MutableState } from "../core/model/index.ts";
import type { Applied, DroverError } from "../engine/writer/index.ts";
import type { Log } from "../log/index.ts";
import { createMemoryLog, type MemoryStore } from "../log/memory/index.ts";
import type { Clock } from "../std/index.ts";
import type { Auditor } from "./auditor.ts";
import { type AppendFault, createFaultyLog } from "./faulty-log.ts";
import type { History } from "./history.ts";
import { openEngine, type SimEngine } from "./open-engine.ts";
import type { Life, SimWorld } from "./sim-clock.ts";

const TURNS_MAX = 20_000;
const RINGS_MAX = 5000;
const OPENINGS_MAX = 60;

/** A bug put into the engine or its log on purpose, to see whether the auditor notices. */
export type Plant = {
  readonly engine?: (state: MutableState) => void;
  readonly log?: (log: Log, store: MemoryStore) => Log;
  readonly clock?: (clock: Clock) => Clock;
};
export type Tally = { crashes: number; openings: number; appends: number; stops: number };
export type Switches = { faults: boolean; allArtifacts: boolean };
/** The life of one engine; `engine` is null until it is open. */
type Tenure = { readonly life: Life; engine: SimEngine | null; isClosing: boolean };

export type EngineLives = {
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

export function createEngineLives(deps: {
  readonly history: History;
  readonly plant: Plant;
  readonly world: SimWorld;
  readonly store: MemoryStore;
  readonly auditor: Auditor;
  readonly tally: Tally;
  readonly switches: Switches;
  readonly artifacts: ReadonlySet<string>;
  readonly onApplied: (event: Event) => void;
  readonly onCommitted: (batch: readonly Applied[]) => void;
  readonly onOpened: (engine: SimEngine) => void;
}): EngineLives {
  const { history, plant, world, store, auditor, tally, switches, artifacts } = deps;
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
    tally.stops++;
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
      config: history.config,
      remote: history.remote,
      artifactExists: async (name) => switches.allArtifacts || artifacts.has(name),
      onWarning: (message) => isCurrent() && auditor.complain("broken", message),
      onApplied: (event) => isCurrent() && deps.onApplied(event),
      onCommitted: (batch) => isCurrent() && deps.onCommitted(batch),
    }).then(
      (engine) => {
        mine.engine = engine;
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

export const turnOfTheLoop = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Lets everything happen that can happen now, without the auditor reading on. */
export async function settleWorld(world: SimWorld, auditor: Auditor): Promise<void> {
  for (let turns = 0; turns < TURNS_MAX; turns++) {
    await turnOfTheLoop();
    if (!world.runDeferred()) return;
  }
  auditor.complain("spins", `the engine takes ${TURNS_MAX} turns and no time passes`);
}
