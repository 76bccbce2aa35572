/**
 * What one history is played in: a store, a world with its own time, and the engines (engine-lives.ts).
 *
 * Time moves only here. `settle` lets everything happen that can happen now: promises first (one turn of the real
 * event loop runs them all), then the engine's deferred turns, until nothing is left. `pass` moves the clock from one
 * timer to the next. An engine that keeps itself busy without time passing is caught and reported.
 */
import type { State } from "../core/model/index.ts";
import { createMemoryStore, type MemoryStore } from "../log/memory/index.ts";
import type { Auditor } from "./auditor.ts";
import {
  createEngineLives,
  type EngineLives,
  type Plant,
  type Switches,
  settleWorld,
  type Tally,
  turnOfTheLoop,
} from "./engine-lives.ts";
import type { Act, History } from "./history.ts";
import type { SimEngine } from "./open-engine.ts";
import { createRandom } from "./random.ts";
import { createSimWorld, type Life, type SimWorld } from "./sim-clock.ts";
import { createRemoteFleet, type RemoteFleet, type Surroundings } from "./workers.ts";

/** Small, so that levels need no rescaling in a run; any instant would do. */
const START_MS = 10_000_000;
const RINGS_MAX = 5000;
const CLOSING_MS = 3000;

export type SimContext = Pick<EngineLives, "engine" | "arm" | "crash" | "open" | "ensureOpen"> & {
  readonly auditor: Auditor;
  readonly world: SimWorld;
  readonly store: MemoryStore;
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

export function createContext(options: {
  readonly history: History;
  readonly plant: Plant;
  readonly auditorOf: (store: MemoryStore) => Auditor;
  readonly onOpened: (engine: SimEngine) => void;
}): SimContext {
  const { history, plant, onOpened } = options;
  const world = createSimWorld(START_MS, createRandom(history.seed));
  const store = createMemoryStore();
  const auditor = options.auditorOf(store);
  const storms = new Map<string, number>();
  const artifacts = new Set<string>();
  const bodies = new Map<string, readonly Act[]>();
  const tally: Tally = { crashes: 0, openings: 0, appends: 0, stops: 0 };
  const switches: Switches = { faults: true, allArtifacts: false };
  const surroundings: Surroundings = {
    world,
    isStorm: (gate) => world.elapsed() < (storms.get(gate) ?? -1),
    actsOf: (task) => bodies.get(task) ?? [],
  };
  const shared = { world, store, auditor, tally, switches, artifacts };
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
    await Promise.race([closing, turnOfTheLoop()]);
  }

  const time = { life: () => lives.current().life, resting, closeEngine, settle, pass };
  return { ...shared, ...lives, ...time, surroundings, remoteFleet, storms, bodies };
}
