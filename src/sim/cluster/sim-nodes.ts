/**
 * Nodes over one journal, and what goes wrong with them.
 *
 * Each node has a replica that outlives it, as its disk would, a wall clock of its own that may be set at any time, and
 * a life of the simulated world. A node may be cut off, lose appends or answers, send appends that arrive late, hang
 * (its alarms and turns wait, and so does what it has sent), crash, or close in good order. One who crashed or closed
 * is opened again on its replica.
 */
import { readConfig } from "../../core/config/index.ts";
import { refused } from "../../engine/base/index.ts";
import { type DroverNode, openNode } from "../../engine/node/index.ts";
import {
  createMemoryJournal,
  createMemoryJournalStore,
  type MemoryJournal,
  type MemoryJournalStore,
  openMemorySharedLog,
} from "../../log/journal/index.ts";
import { createMemoryStore, type MemoryStore } from "../../log/memory/index.ts";
import type { Clock } from "../../std/index.ts";
import type { Life, SimWorld } from "../sim-clock.ts";

export const LEASE_MS = 3000;

/** A bug put into a node on purpose, to see whether the auditor notices. */
export type NodePlant = {
  readonly journal?: (journal: MemoryJournal, store: MemoryJournalStore) => MemoryJournal;
  readonly clock?: (clock: Clock) => Clock;
};
export type SimNode = {
  readonly id: string;
  readonly replica: MemoryStore;
  /** How far its wall clock is from the truth. */
  skewMs: number;
  /** Null while it is down. */
  node: DroverNode | null;
  journal: MemoryJournal | null;
  life: Life | null;
  /** Ends a hang; null if it does not hang. */
  wake: (() => void) | null;
};

export type SimNodes = {
  readonly store: MemoryJournalStore;
  readonly all: readonly SimNode[];
  open(node: SimNode): Promise<void>;
  crash(node: SimNode): void;
  close(node: SimNode): Promise<void>;
  hang(node: SimNode): void;
  wake(node: SimNode): void;
  /** Sets its wall clock; whether it will have done no harm. */
  setClock(node: SimNode, byMs: number, isHarmless: boolean): void;
  /** How far log time may be ahead of the truth: so far is a clock ahead that may be believed. */
  believedMs(): number;
  /** What it appends arrives so much later, for as long. */
  delay(node: SimNode, spanMs: number): void;
};

type NodesOptions = {
  readonly world: SimWorld;
  readonly count: number;
  readonly config: object;
  readonly plant: NodePlant;
  /** A node began to lead, or fails for good. */
  readonly onLeads: (node: string, epoch: number) => void;
  readonly onBroken: (detail: string) => void;
};

export function createSimNodes({ world, count, config, plant, onLeads, onBroken }: NodesOptions): SimNodes {
  const store = createMemoryJournalStore(world.newLife().clock);
  const read = readConfig(config);
  if (!read.ok) throw refused(read.failure);
  const settings = read.value;
  const all: SimNode[] = Array.from({ length: count }, (_, index) => ({
    id: `n${index + 1}`,
    replica: createMemoryStore(),
    skewMs: 0,
    node: null,
    journal: null,
    life: null,
    wake: null,
  }));

  let believedMs = 0;
  function believe({ skewMs }: SimNode): void {
    believedMs = Math.max(believedMs, skewMs);
  }

  /** Unless it is up, or still going down: one node is one process. */
  async function open(sim: SimNode): Promise<void> {
    if (sim.life !== null) return;
    const life = world.newLife();
    sim.life = life;
    try {
      await start(sim, life);
    } catch (error) {
      end(sim, life);
      throw error;
    }
  }

  function end(sim: SimNode, life: Life): void {
    life.end();
    if (sim.life === life) Object.assign(sim, { node: null, journal: null, life: null, wake: null });
  }

  async function start(sim: SimNode, life: Life): Promise<void> {
    const { clock: own, hang, wake } = stallable({ ...life.clock, now: () => life.clock.now() + sim.skewMs });
    const clock = plant.clock?.(own) ?? own;
    const plain = createMemoryJournal({ store, clock });
    const journal = plant.journal?.(plain, store) ?? plain;
    // It has no past to compare its clock with.
    believe(sim);
    sim.journal = journal;
    const log = await openMemorySharedLog({ journal, store: sim.replica });
    const node = await openNode({
      id: sim.id,
      log,
      clock,
      config: () => settings,
      leaseMs: LEASE_MS,
      advertise: () => `http://${sim.id}`,
      publicKey: sim.id,
      newId: () => `${sim.id}/${life.newId()}`,
      onWarning: () => {},
      artifactExists: async () => false,
    });
    if (!life.isAlive()) return;
    sim.node = node;
    hangs.set(sim, { hang, wake });
    node.onLife(({ role }) => {
      if (role === "leader" && life.isAlive()) onLeads(sim.id, node.applied().epoch);
    });
    void node.failed.then((error) => life.isAlive() && onBroken(`${sim.id} failed: ${error.stack}`));
  }

  const hangs = new Map<SimNode, Pick<ReturnType<typeof stallable>, "hang" | "wake">>();

  function crash(sim: SimNode): void {
    sim.journal?.fault({ cut: "both" });
    if (sim.life !== null) end(sim, sim.life);
  }

  return {
    store,
    all,
    open,
    crash,
    async close(sim) {
      const { node, life } = sim;
      if (node === null || life === null) return;
      sim.node = null;
      await node.close();
      end(sim, life);
    },
    hang(sim) {
      if (sim.node === null || sim.wake !== null) return;
      const held = Promise.withResolvers<void>();
      const { hang, wake } = hangs.get(sim) as Pick<ReturnType<typeof stallable>, "hang" | "wake">;
      const { journal } = sim;
      journal?.fault({ hold: held.promise, cut: "both" });
      hang();
      sim.wake = () => {
        sim.wake = null;
        journal?.fault({ hold: null, cut: "none" });
        held.resolve();
        wake();
      };
    },
    wake: (sim) => sim.wake?.(),
    setClock(sim, byMs, isHarmless) {
      // There is no date before 1970.
      sim.skewMs = Math.max(sim.skewMs + byMs, 1 - world.now());
      if (!isHarmless) believe(sim);
    },
    believedMs: () => believedMs,
    delay({ journal, wake }, spanMs) {
      if (journal === null || wake !== null) return;
      const arrives = Promise.withResolvers<void>();
      journal.fault({ hold: arrives.promise });
      world.after(spanMs, () => {
        journal.fault({ hold: null });
        arrives.resolve();
      });
    },
  };
}

/** A clock whose alarms and turns wait while it hangs, as those of a process that was stopped. */
function stallable(clock: Clock): { clock: Clock; hang(): void; wake(): void } {
  let missed: (() => void)[] | null = null;
  const later = (ring: () => void) => (): void => {
    if (missed === null) ring();
    else missed.push(ring);
  };
  return {
    clock: {
      ...clock,
      defer: (turn) => clock.defer(later(turn)),
      ringAt: (at, ring, options) => {
        let isOff = false;
        const cancel = clock.ringAt(
          at,
          later(() => {
            if (!isOff) ring();
          }),
          options,
        );
        return () => {
          isOff = true;
          cancel();
        };
      },
    },
    hang: () => {
      missed ??= [];
    },
    wake: () => {
      const all = missed ?? [];
      missed = null;
      for (const ring of all) ring();
    },
  };
}
