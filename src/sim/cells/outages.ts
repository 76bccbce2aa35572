/**
 * A year of cells whose machines fail: for how long nobody decides in one.
 *
 * A cell has three machines, each with a member of etcd and a node. A machine fails now and then, by itself, and comes
 * back after a while. When the machine of the leader fails, another leads after `leaderLostMs`. While two of three are
 * away nothing is committed, until one is back. In an upgrade each leader hands over, which takes `handOverMs`.
 */
import type { Random } from "../chance/random.ts";

const MACHINES = 3;
const MAJORITY = 2;
const HOUR_MS = 3_600_000;
const YEAR_MS: number = 365 * 24 * HOUR_MS;

export type OutageInput = {
  readonly cells: number;
  readonly random: Random;
  /** How long a machine runs between two failures, and is away then: means. */
  readonly betweenHours: number;
  readonly awayHours: number;
  readonly leaderLostMs: number;
  readonly handOverMs: number;
  readonly upgrades: number;
};

export type Outages = {
  readonly machinesLost: number;
  readonly leadersLost: number;
  readonly majoritiesLost: number;
  readonly handOvers: number;
  /** Of each cell, how long nobody decided in the year. */
  readonly awayMs: readonly number[];
  /** The most cells that were away at the same time. */
  readonly atOnce: number;
};

type Span = { readonly from: number; readonly to: number };

export function playYear(input: OutageInput): Outages {
  const totals = { machinesLost: 0, leadersLost: 0, majoritiesLost: 0 };
  const all: Span[] = [];
  const awayMs: number[] = [];
  for (let cell = 0; cell < input.cells; cell++) {
    const { spans, ...counts } = playCell(input);
    for (const name of ["machinesLost", "leadersLost", "majoritiesLost"] as const) totals[name] += counts[name];
    all.push(...spans);
    const upgraded = input.upgrades * input.handOverMs;
    awayMs.push(spans.reduce((sum, { from, to }) => sum + to - from, upgraded));
  }
  return { ...totals, handOvers: input.upgrades * input.cells, awayMs, atOnce: mostAtOnce(all) };
}

type Change = { readonly at: number; readonly machine: number; readonly isUp: boolean };

function playCell(input: OutageInput) {
  const changes = Array.from({ length: MACHINES }, (_, machine) => lifeOf(machine, input))
    .flat()
    .sort((a, b) => a.at - b.at || a.machine - b.machine);
  const up = new Set(Array.from({ length: MACHINES }, (_, machine) => machine));
  const spans: Span[] = [];
  const counts = { machinesLost: 0, leadersLost: 0, majoritiesLost: 0 };
  let leader = 0;
  /** Since when there is no majority. */
  let stuckAt: number | null = null;
  for (const { at, machine, isUp } of changes) {
    if (isUp) up.add(machine);
    else {
      up.delete(machine);
      counts.machinesLost++;
    }
    if (up.size >= MAJORITY && stuckAt !== null) {
      spans.push({ from: stuckAt, to: at + input.leaderLostMs });
      leader = [...up][0] as number;
      stuckAt = null;
    } else if (up.size < MAJORITY && stuckAt === null) {
      counts.majoritiesLost++;
      stuckAt = at;
    } else if (stuckAt === null && !isUp && machine === leader) {
      counts.leadersLost++;
      leader = [...up][0] as number;
      spans.push({ from: at, to: at + input.leaderLostMs });
    }
  }
  if (stuckAt !== null) spans.push({ from: stuckAt, to: YEAR_MS });
  return { ...counts, spans };
}

function lifeOf(machine: number, { random, betweenHours, awayHours }: OutageInput): Change[] {
  const changes: Change[] = [];
  for (let at = 0, isUp = true; ; isUp = !isUp) {
    at += drawn(random, (isUp ? betweenHours : awayHours) * HOUR_MS);
    if (at >= YEAR_MS) return changes;
    changes.push({ at, machine, isUp: !isUp });
  }
}

/** A time without memory, of this mean. */
function drawn(random: Random, mean: number): number {
  return -Math.log((random.below(2 ** 31) + 0.5) / 2 ** 31) * mean;
}

function mostAtOnce(spans: readonly Span[]): number {
  const steps = spans.flatMap(({ from, to }) => [
    { at: from, by: 1 },
    { at: to, by: -1 },
  ]);
  steps.sort((a, b) => a.at - b.at || a.by - b.by);
  let [now, most] = [0, 0];
  for (const { by } of steps) {
    now += by;
    most = Math.max(most, now);
  }
  return most;
}
