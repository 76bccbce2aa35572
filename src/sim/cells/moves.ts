/**
 * Projects that move from one cell to another, a few at a time.
 *
 * A project that moves starts nothing: what runs may end, then what is queued is given to the other cell. A cell takes
 * part in so many moves at once, as the one that gives or the one that gets. Moves begin in the sequence of the list,
 * as soon as both cells are free.
 */
import type { Random } from "../chance/random.ts";
import type { Placement, Project } from "./placement.ts";

export type Move = { readonly from: number; readonly to: number; readonly load: number };

export type MoveInput = {
  readonly moves: readonly Move[];
  readonly random: Random;
  readonly perCell: number;
  /** What runs when a project is paused ends within so long. */
  readonly taskSeconds: number;
  /** So many seconds of a project's load are queued, and so many tasks a second are given over. */
  readonly queuedSeconds: number;
  readonly givenPerSecond: number;
};

export type Moved = {
  /** How long each project started nothing, in seconds. */
  readonly pauses: readonly number[];
  /** From the first pause to the last move's end, in seconds. */
  readonly seconds: number;
};

export function movesBetween(projects: readonly Project[], before: Placement, after: Placement): Move[] {
  return projects.flatMap(({ load }, index) => {
    const [from, to] = [before.cells[index] as number, after.cells[index] as number];
    return from === to ? [] : [{ from, to, load }];
  });
}

export function playMoves(input: MoveInput): Moved {
  const { moves, random, perCell, taskSeconds, queuedSeconds, givenPerSecond } = input;
  /** When each place of a cell is free again. */
  const places = new Map<number, number[]>();
  const placesOf = (cell: number): number[] => {
    const known = places.get(cell) ?? new Array<number>(perCell).fill(0);
    places.set(cell, known);
    return known;
  };
  const pauses: number[] = [];
  let seconds = 0;
  for (const { from, to, load } of moves) {
    const pause = (random.below(1000) / 1000) * taskSeconds + (load * queuedSeconds) / givenPerSecond;
    const [giving, getting] = [placesOf(from), placesOf(to)];
    const [give, get] = [firstFree(giving), firstFree(getting)];
    const end = Math.max(giving[give] as number, getting[get] as number) + pause;
    giving[give] = end;
    getting[get] = end;
    pauses.push(pause);
    seconds = Math.max(seconds, end);
  }
  return { pauses, seconds };
}

const firstFree = (places: readonly number[]): number => places.indexOf(Math.min(...places));
