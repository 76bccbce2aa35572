/**
 * What a run leaves behind is killed, wherever it went.
 *
 * A child that ends is not the end of what it started: servers call `setsid`, launchers are handed on to pid 1, and
 * both outlive their parent and its group. Ours is what is in the run's process group, what carries the run's tag in
 * the environment it was started with, and what descends from either. Nothing is signalled on the word of a number
 * alone: the instant at which it began is compared once more right before the signal.
 *
 * A process can start another and end while it is being looked for. So a search that finds nothing counts only if
 * nothing unknown ended during it: what was there at its beginning was then still there when it was looked at, and
 * had no time to hand on. It is repeated until that holds, or too often on a machine that never rests.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { ProcessEntry, ProcessTable } from "./table.ts";

/** The variable every process of a run inherits. */
export const RUN_TAG = "DROVER_RUN_ID";
/** All runs it is part of, outermost first, with slashes: a worker may itself be somebody's task. */
export const RUN_PATH_TAG = "DROVER_RUN_PATH";

const ROUNDS_MAX = 60;
const PAUSE_MS_MAX = 50;
/** Some tenths of a second on a machine on which processes come and go all the time; one search on any other. */
const SEARCHES_MAX = 30;

export type Leader = { readonly pid: number; readonly startedAt: string | null };
export type Leftovers = {
  readonly killed: number;
  /** What would not die: another user's, or stuck in the kernel. */
  readonly remaining: readonly number[];
};

export async function killLeftovers(table: ProcessTable, run: Run): Promise<Leftovers> {
  const killed = new Set<string>();
  for (let round = 0; ; round++) {
    const found = await findOurs(table, run);
    if (found.length === 0) return { killed: killed.size, remaining: [] };
    if (round === ROUNDS_MAX) return { killed: killed.size, remaining: found.map(({ pid }) => pid) };
    for (const entry of found) if (strike(table, entry)) killed.add(`${entry.pid} ${entry.startedAt}`);
    await pause(Math.min(PAUSE_MS_MAX, 1 + round));
  }
}

type Run = {
  readonly id: string;
  /** Only if it is certain that its group's number has not passed to another. */
  readonly leader: Leader | null;
  /** When it began: what was there before is not of it. */
  readonly since: string | null;
};

async function findOurs(table: ProcessTable, run: Run): Promise<ProcessEntry[]> {
  /** Those that are known not to carry the tag. */
  const strangers = new Set<number>();
  for (let search = 0; search < SEARCHES_MAX; search++) {
    const { entries, gone } = await table.list();
    const tagged = entries.filter((entry) => isOurs(table, run, entry, strangers)).map(({ pid }) => pid);
    const ours = new Set([...groupOf(entries, run.leader), ...tagged]);
    addDescendants(entries, ours);
    const found = entries.filter(({ pid, isZombie }) => ours.has(pid) && !isZombie && pid !== process.pid && pid > 1);
    const isSure = entries.every(({ pid }) => strangers.has(pid)) && gone.every((pid) => strangers.has(pid));
    if (found.length > 0 || isSure) return found;
    // One that had ended already when it was looked at: what it started is in the next list at the latest.
    for (const { pid, isZombie } of entries) if (isZombie) strangers.add(pid);
    await pause(1);
  }
  return [];
}

/** Whether it carries the tag; if it certainly does not, it is noted down as a stranger. */
function isOurs(table: ProcessTable, { id, since }: Run, entry: ProcessEntry, strangers: Set<number>): boolean {
  const { pid } = entry;
  if (strangers.has(pid)) return false;
  const environment = beganBefore(entry, since) ? null : table.environment(pid);
  // Gone, ended, or about to become another program: then nothing is known about it yet.
  if (environment === "gone" || environment?.length === 0) return false;
  const isTheRuns = isTagged(environment, id);
  if (!isTheRuns) strangers.add(pid);
  return isTheRuns;
}

/** Only where beginnings are numbers. */
function beganBefore({ startedAt }: ProcessEntry, since: string | null): boolean {
  return Number(startedAt ?? Number.NaN) < Number(since ?? Number.NaN);
}

function groupOf(entries: readonly ProcessEntry[], leader: Leader | null): number[] {
  if (!isOurGroup(entries, leader)) return [];
  return entries.filter(({ group }) => group === leader?.pid).map(({ pid }) => pid);
}

/** Most processes do not hold the id at all, so it is looked for before anything is taken apart. */
export function isTagged(environment: Buffer | null, run: string): boolean {
  if (environment === null || !environment.includes(run)) return false;
  const path = `${RUN_PATH_TAG}=`;
  const variables = environment.toString("latin1").split("\0");
  const runs = variables
    .filter((variable) => variable.startsWith(path))
    .flatMap((all) => all.slice(path.length).split("/"));
  return runs.includes(run) || variables.includes(`${RUN_TAG}=${run}`);
}

/** A group's number is not given away while it has members; but once it has none, anybody may get it. */
function isOurGroup(entries: readonly ProcessEntry[], leader: Leader | null): boolean {
  if (leader === null || leader.startedAt === null) return false;
  const holder = entries.find(({ pid }) => pid === leader.pid);
  return holder === undefined || holder.startedAt === leader.startedAt;
}

function addDescendants(entries: readonly ProcessEntry[], ours: Set<number>): void {
  for (let before = -1; before < ours.size; ) {
    before = ours.size;
    for (const { pid, parent } of entries) if (parent > 1 && ours.has(parent)) ours.add(pid);
  }
}

/** Kills it if it is still the same process; false if it is gone, or not ours to kill. */
function strike(table: ProcessTable, entry: ProcessEntry): boolean {
  const now = table.read(entry.pid);
  if (now === null || now.startedAt === null || now.startedAt !== entry.startedAt) return false;
  return sendSignal(entry.pid, "SIGKILL");
}

/** To a process, or with a negative number to its group. */
export function sendSignal(pid: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    // Gone already; or a group of which nothing is left but what belongs to another user.
    if (code === "ESRCH" || code === "EPERM") return false;
    throw error;
  }
}
