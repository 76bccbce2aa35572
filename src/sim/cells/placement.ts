/**
 * Which cell has which project: rendezvous hashing, with a limit to what one cell is given.
 *
 * Each project ranks all cells by a hash of both, and goes to the first that has room for it. Nobody keeps a table of
 * places: whoever has the list of cells finds the first choice by himself. Only what did not fit there is looked up.
 * When a cell comes or goes, only projects that it gets or had are moved, and few more whose room changed.
 */

export type Project = {
  readonly id: number;
  /** What it asks for, in tasks a second. */
  readonly load: number;
};

export type Placement = {
  /** The cell of each project, by its place in the list. */
  readonly cells: readonly number[];
  /** What each cell has to do, by its id. */
  readonly loads: ReadonlyMap<number, number>;
  /** How many projects are not on the first of their ranking. */
  readonly elsewhere: number;
};

export type PlaceInput = {
  readonly projects: readonly Project[];
  readonly cells: readonly number[];
  /** No cell is given more than so many times the mean, unless one project alone is more. */
  readonly limit: number;
};

/** Large projects are placed first: what is small finds room anywhere. */
export function place({ projects, cells, limit }: PlaceInput): Placement {
  const room = (limit * projects.reduce((sum, { load }) => sum + load, 0)) / cells.length;
  const loads = new Map(cells.map((cell) => [cell, 0]));
  const places = new Array<number>(projects.length).fill(-1);
  const order = projects.map((_, index) => index).sort((a, b) => loadAt(projects, b) - loadAt(projects, a) || a - b);
  let elsewhere = 0;
  for (const index of order) {
    const { id, load } = projects[index] as Project;
    const [first, chosen] = choose({ id, cells, fits: (cell) => (loads.get(cell) ?? 0) + load <= room });
    places[index] = chosen;
    loads.set(chosen, (loads.get(chosen) ?? 0) + load);
    if (chosen !== first) elsewhere++;
  }
  return { cells: places, loads, elsewhere };
}

const loadAt = (projects: readonly Project[], index: number): number => projects[index]?.load ?? 0;

type Choice = { readonly id: number; readonly cells: readonly number[]; readonly fits: (cell: number) => boolean };

/** The first of its ranking, and the first that has room; where none has, the first. */
function choose({ id, cells, fits }: Choice): [first: number, chosen: number] {
  const first = best(id, cells) as number;
  return [first, fits(first) ? first : (best(id, cells.filter(fits)) ?? first)];
}

/** The first of a project's ranking. */
export function best(id: number, cells: readonly number[]): number | undefined {
  const own = mixed(id ^ 0x9e3779b9);
  let found: number | undefined;
  let highest = -1;
  for (const cell of cells) {
    const weight = mixed(own ^ Math.imul(cell + 1, 0x85ebca6b)) >>> 0;
    if (weight <= highest) continue;
    highest = weight;
    found = cell;
  }
  return found;
}

/** The finaliser of MurmurHash3. */
function mixed(value: number): number {
  let hash = value | 0;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}
