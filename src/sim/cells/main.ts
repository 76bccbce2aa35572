/**
 * `npm run simulate -- cells`: what many cells would do, in figures.
 */
import { parseArgs } from "node:util";
import type { Outages } from "./outages.ts";
import { type CellsReport, type Change, type Spread, simulateCells } from "./simulate-cells.ts";

/** What is said when a flag is not understood; `CALLED` is how the caller starts the simulator. */
export const cellsUsage = (
  called: string,
): string => `Spreads projects over cells, lets cells come and go, and machines fail for a year.

  ${called} cells [--cells N] [--projects P] [--rate R] [--seed N]

  --cells N       cells, 2 to 10000 (default 1000)
  --projects P    projects, 1 to 1000000 (default 100000)
  --rate R        what one cell carries, in tasks a second, 1 to 1000000 (default 10000)
  --seed N        from 0 (default 1)
`;

type Flags = { readonly cells: number; readonly projects: number; readonly rate: number; readonly seed: number };
type Count = (flag: string, text: string, low: number, high: number) => number;

/** Answers the exit code. */
export function runCells(given: readonly string[], count: Count): number {
  const input = readFlags(given, count);
  for (const line of linesOf(input, simulateCells(input))) console.log(line);
  return 0;
}

function readFlags(given: readonly string[], count: Count): Flags {
  const text = { type: "string" } as const;
  const { values } = parseArgs({ args: [...given], options: { cells: text, projects: text, rate: text, seed: text } });
  return {
    cells: count("--cells", values.cells ?? "1000", 2, 10_000),
    projects: count("--projects", values.projects ?? "100000", 1, 1_000_000),
    rate: count("--rate", values.rate ?? "10000", 1, 1_000_000),
    seed: count("--seed", values.seed ?? "1", 0, Number.MAX_SAFE_INTEGER - 1e9),
  };
}

const whole = (value: number): string => Math.round(value).toLocaleString("en");
const part = (value: number): string => `${(value * 100).toFixed(1)} %`;

function linesOf({ seed, cells, projects, rate }: Flags, report: CellsReport): string[] {
  const { total, largest, plain, limited, grown, shrunk, year } = report;
  return [
    `seed ${seed}: ${whole(projects)} projects on ${whole(cells)} cells of ${whole(rate)} tasks a second each`,
    `  asked for: ${whole(total)} tasks a second in all, ${whole(largest)} by the largest project`,
    "placed by rendezvous hashing, each on its first choice",
    ...spreadLines(plain, projects),
    "placed so, and no cell above 1.25 times the mean",
    ...spreadLines(limited, projects),
    "cells that come and go, with four moves at a time in a cell",
    ...changeLines(cells, projects, grown),
    ...changeLines(cells, projects, shrunk),
    "a year of three machines a cell, each lost once in 30 days for an hour",
    ...yearLines(year),
  ];
}

const seconds = (ms: number): string =>
  ms < 600_000 ? `${(ms / 1000).toFixed(0)} s` : `${(ms / 60_000).toFixed(0)} min`;

const spreadLines = ({ most, p99, least, over, elsewhere }: Spread, projects: number): string[] => [
  `  cells have ${least.toFixed(2)} to ${most.toFixed(2)} of the mean, 99 of 100 up to ${p99.toFixed(2)}`,
  `  cells above what one carries: ${whole(over)}; projects on a further choice: ${part(elsewhere / projects)}`,
];

function changeLines(before: number, projects: number, { cells, moved, byModulo, spread, moves }: Change): string[] {
  const sorted = [...moves.pauses].sort((a, b) => a - b);
  const at = (share: number): string => seconds((sorted[Math.floor((sorted.length - 1) * share)] ?? 0) * 1000);
  return [
    `  ${whole(before)} → ${whole(cells)}: ${part(moved / projects)} of projects move ` +
      `(by modulo ${part(byModulo / projects)}), then up to ${spread.most.toFixed(2)} of the mean`,
    `    it takes ${(moves.seconds / 3600).toFixed(1)} hours; ` +
      `a project starts nothing for ${at(0.5)} (median), ${at(1)} (longest)`,
  ];
}

function yearLines({ machinesLost, leadersLost, majoritiesLost, handOvers, awayMs, atOnce }: Outages): string[] {
  const mean = awayMs.reduce((sum, ms) => sum + ms, 0) / awayMs.length;
  return [
    `  machines lost: ${whole(machinesLost)}; ` +
      `leaders among them: ${whole(leadersLost)}, ${(leadersLost / 365).toFixed(1)} a day`,
    `  hand-overs in twelve upgrades: ${whole(handOvers)}; two of three machines away: ${whole(majoritiesLost)} times`,
    `  a cell decided nothing for ${seconds(mean)} (mean), ${seconds(Math.max(...awayMs))} (worst)`,
    `  decided: ${(100 * (1 - mean / YEAR_MS)).toFixed(4)} % of the time; cells away at once: ${atOnce} at most`,
  ];
}
const YEAR_MS: number = 365 * 24 * 3_600_000;
