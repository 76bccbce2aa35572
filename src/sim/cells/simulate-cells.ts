/**
 * Many cells: projects spread over them, cells that come and go, machines that fail.
 *
 * What one cell does is measured (bench/), what a thousand of them would do is played here, with the figures of one.
 * Nothing is taken from the machine it runs on: the same seed gives the same figures.
 */
import { createRandom, type Random } from "../chance/random.ts";
import { type Moved, movesBetween, playMoves } from "./moves.ts";
import { type Outages, playYear } from "./outages.ts";
import { type Placement, type Project, place } from "./placement.ts";

export type CellsInput = {
  readonly seed: number;
  readonly cells: number;
  readonly projects: number;
  /** What one cell carries, in tasks a second. */
  readonly rate: number;
};

export type Spread = {
  /** The loads of cells next to the mean of all. */
  readonly most: number;
  readonly p99: number;
  readonly least: number;
  /** Cells that have more to do than one carries. */
  readonly over: number;
  readonly elsewhere: number;
};
export type Change = {
  readonly cells: number;
  readonly moved: number;
  /** As many would have to move if places were the number of a project modulo that of cells. */
  readonly byModulo: number;
  readonly spread: Spread;
  readonly moves: Moved;
};
export type CellsReport = {
  readonly total: number;
  readonly largest: number;
  /** Each project on the first of its ranking. */
  readonly plain: Spread;
  readonly limited: Spread;
  readonly grown: Change;
  readonly shrunk: Change;
  readonly year: Outages;
};

/** Half of what all cells carry is asked for, and no project asks for more than half a cell. */
const USED = 0.5;
const LARGEST = 0.5;
const LIMIT = 1.25;
const GROWTH = 0.1;
/** Measured: bench/README.md. */
const [LEADER_LOST_MS, HAND_OVER_MS] = [3300, 350];
const YEAR = { betweenHours: 30 * 24, awayHours: 1, upgrades: 12 };
const MOVING = { perCell: 4, taskSeconds: 600, queuedSeconds: 60, givenPerSecond: 2000 };

export function simulateCells({ seed, cells: count, projects: many, rate }: CellsInput): CellsReport {
  const random = createRandom(seed);
  const projects = projectsOf(many, { random, total: USED * count * rate, largest: LARGEST * rate });
  const cells = Array.from({ length: count }, (_, cell) => cell);
  const spread = ({ loads, elsewhere }: Placement): Spread => ({ ...spreadOf([...loads.values()], rate), elsewhere });
  const before = place({ projects, cells, limit: LIMIT });
  const changed = (next: readonly number[]): Change => {
    const after = place({ projects, cells: next, limit: LIMIT });
    const moves = movesBetween(projects, before, after);
    return {
      cells: next.length,
      moved: moves.length,
      byModulo: projects.filter(({ id }) => id % count !== id % next.length).length,
      spread: spread(after),
      moves: playMoves({ moves, random, ...MOVING }),
    };
  };
  const step = Math.max(1, Math.round(count * GROWTH));
  return {
    total: projects.reduce((sum, { load }) => sum + load, 0),
    largest: Math.max(...projects.map(({ load }) => load)),
    plain: spread(place({ projects, cells, limit: Number.POSITIVE_INFINITY })),
    limited: spread(before),
    grown: changed([...cells, ...Array.from({ length: step }, (_, more) => count + more)]),
    shrunk: changed(cells.slice(step)),
    year: playYear({ cells: count, random, leaderLostMs: LEADER_LOST_MS, handOverMs: HAND_OVER_MS, ...YEAR }),
  };
}

type Demand = { readonly random: Random; readonly total: number; readonly largest: number };

/** A few projects are large and most are small: one of rank r has 1/r of the largest, by chance and not in sequence. */
function projectsOf(many: number, { random, total, largest }: Demand): Project[] {
  const drawn = Array.from({ length: many }, (_, id) => ({ id, load: 2 ** 31 / (random.below(2 ** 31) + 1) }));
  // What is cut off the largest is spread over all the others, until nobody is above.
  let scale = total / drawn.reduce((sum, { load }) => sum + load, 0);
  for (let turn = 0; turn < SCALE_TURNS; turn++) {
    const sum = drawn.reduce((all, { load }) => all + Math.min(load * scale, largest), 0);
    scale *= total / sum;
  }
  return drawn.map(({ id, load }) => ({ id, load: Math.min(load * scale, largest) }));
}
const SCALE_TURNS = 50;

function spreadOf(loads: readonly number[], rate: number): Omit<Spread, "elsewhere"> {
  const sorted = [...loads].sort((a, b) => a - b);
  const mean = sorted.reduce((sum, load) => sum + load, 0) / sorted.length;
  const at = (part: number): number =>
    (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0) / mean;
  return { most: at(1), p99: at(0.99), least: at(0), over: sorted.filter((load) => load > rate).length };
}
