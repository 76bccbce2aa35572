/**
 * The three events every task costs, written without making text of them: format 2.
 *
 * As JSON they took a quarter of the engine's time, and 550 bytes a task that a thread had to hash and the disk to
 * store; now they are 140 or so. A record begins with the number of the format and a byte that holds the kind in its
 * low half and flags in its high half. Then come the instant, the cause or null, the task's id, and what is left of
 * the event, each as `value-write.ts` says:
 *
 *     02 ·1   task-submitted: project, agent, bodySize; which of the values from the type on are not what they mostly
 *             are (a bit each, as a number), then those; last the 32 bytes of bodyHash. Flag 1: named
 *     02 ·2   task-assigned: attempt, worker, the reason's number and its numbers, the rank's level, weight,
 *             agentInFlight, priority and score, charge, reserve. Flags 1, 2, 4: express, hold, overdue
 *     02 ·3   task-done: attempt, tokens or null, resultSize, and the 32 bytes of resultHash. Flag 1: it has one
 *
 * The bytes depend on the event and on nothing else. An event that holds what has no such form (a hash that is none,
 * a reason added since) is not written: the caller is told, and writes JSON. This is a file format: a kind that is to
 * hold something else gets another number, except that a submit may be given more values at the end of MOSTLY.
 * `compact-read.ts` reads it.
 */

import type { Event, Rank, Reason, TaskSubmitted } from "../../core/model/index.ts";
import { type Block, makeRoom } from "./byte-block.ts";
import { HASH_BYTES } from "./chain.ts";
import {
  CHARACTER_BYTES_MAX,
  roomFor,
  writeHash,
  writeId,
  writeNumber,
  writeNumberOrNull,
  writeText,
  writeValue,
} from "./value-write.ts";

type Of<Kind extends Event["kind"]> = Extract<Event, { kind: Kind }>;

export const PACKED = 2;
export const SUBMITTED = 1;
export const ASSIGNED = 2;
export const DONE = 3;
export const FLAG_1 = 0x10;
export const FLAG_2 = 0x20;
export const FLAG_4 = 0x40;
export const ONLY_WORKER = 0;
export const LEAST_LOADED = 1;
export const ROUND_ROBIN = 2;
export const RANDOM = 3;
export const RESOURCE_FIT = 4;
export const AFFINITY = 5;

/** A reason's own words are short. */
const REASON_VALUE_BYTES_MAX = 64;
/** The most that an event takes beside its texts: sixteen values of nine bytes, a hash, and what a reason says. */
const FIXED_BYTES_MAX: number = 16 * 9 + HASH_BYTES + 2 * REASON_VALUE_BYTES_MAX;

const EMPTY: readonly never[] = Object.freeze([]);
/** What a submit mostly says from its type on, in the order of FIELDS. As fixed as the format. */
// biome-ignore format: one row per row of FIELDS
export const MOSTLY: readonly unknown[] = [
  "other", EMPTY, 0, 0,
  null, EMPTY, null, null, 0, false, 0, null, EMPTY, null, null,
  null, 0, 1, 3, null, "skip",
  true, null, "retry", "",
];

/** Where the action stands among them, which is last: it is nearly always there, and mostly the only one. */
const ACTION = MOSTLY.length - 1;
const ACTION_BIT: number = 1 << ACTION;

/** Writes the event behind what the block holds, or answers false: it has no such form. */
export function writePacked(block: Block, event: Event, cause: number | null): boolean {
  if (cause !== null && !Number.isFinite(cause)) return false;
  const end = placeBehind(block, event, cause);
  if (end < 0) return false;
  block.length = end;
  return true;
}

function placeBehind(block: Block, event: Event, cause: number | null): number {
  switch (event.kind) {
    case "task-submitted":
      return writeSubmitted(block, event, cause);
    case "task-assigned":
      return writeAssigned(block, event, cause);
    case "task-done":
      return writeDone(block, event, cause);
    default:
      return -1;
  }
}

/** Instant, cause and task. */
function writeHead(
  target: Buffer,
  start: number,
  kind: number,
  { at: instant, task }: Of<"task-submitted" | "task-assigned" | "task-done">,
  cause: number | null,
): number {
  target[start] = PACKED;
  target[start + 1] = kind;
  return writeId(target, writeNumberOrNull(target, writeNumber(target, start + 2, instant), cause), task);
}

function writeSubmitted(block: Block, event: TaskSubmitted, cause: number | null): number {
  const { task, project, agent, named, bodyHash, bodySize } = event;
  if (!areTexts(task, project) || !areTexts(agent, bodyHash)) return -1;
  if (typeof named !== "boolean" || !Number.isFinite(bodySize)) return -1;
  const others = othersIn(event);
  // The action alone is written without gathering the others.
  const isPlain = (others & ~ACTION_BIT) === 0;
  const values = isPlain ? MOSTLY : valuesFromType(event);
  const characters = task.length + project.length + agent.length;
  const more = isPlain ? roomFor(event.action) : roomForOthers(values, others);
  const room = FIXED_BYTES_MAX + CHARACTER_BYTES_MAX * characters + more;
  if (room === Number.POSITIVE_INFINITY) return -1;
  makeRoom(block, room);
  const { bytes: target } = block;
  let at = writeHead(target, block.length, named ? SUBMITTED | FLAG_1 : SUBMITTED, event, cause);
  at = writeText(target, writeText(target, at, project), agent);
  at = writeNumber(target, writeNumber(target, at, bodySize), others);
  if (!isPlain) at = writeOthers(target, at, values, others);
  else if (others !== 0) at = writeValue(target, at, event.action);
  return writeHash(target, at, bodyHash);
}

const areTexts = (left: unknown, right: unknown): boolean => typeof left === "string" && typeof right === "string";

/** A bit for each value that is not what MOSTLY says. */
// biome-ignore format: one row per row of FIELDS
const othersIn = (e: TaskSubmitted): number =>
  bit(0, e.type === "other") | bit(1, isEmpty(e.capabilities)) | bit(2, e.cpu === 0) | bit(3, e.memory === 0) |
  bit(4, e.provider === null) | bit(5, isEmpty(e.locks)) | bit(6, e.zone === null) | bit(7, e.tab === null) |
  bit(8, e.priority === 0) | bit(9, e.prioritised === false) | bit(10, e.depth === 0) | bit(11, e.parent === null) |
  bit(12, isEmpty(e.needs)) | bit(13, e.artifact === null) | bit(14, e.notBefore === null) |
  bit(15, e.deadline === null) | bit(16, e.estimatedTokens === 0) | bit(17, e.iteration === 1) |
  bit(18, e.maxAttempts === 3) | bit(19, e.timeoutMs === null) | bit(20, e.onDependencyFailure === "skip") |
  bit(21, e.runnable === true) | bit(22, e.pin === null) | bit(23, e.onLoss === "retry") | bit(ACTION, e.action === "");

const bit = (index: number, isUsual: boolean): number => (isUsual ? 0 : 1 << index);
const isEmpty = (list: unknown): boolean => Array.isArray(list) && list.length === 0;

// biome-ignore format: one row per row of FIELDS
const valuesFromType = (e: TaskSubmitted): readonly unknown[] => [
  e.type, e.capabilities, e.cpu, e.memory,
  e.provider, e.locks, e.zone, e.tab, e.priority, e.prioritised, e.depth, e.parent, e.needs, e.artifact, e.notBefore,
  e.deadline, e.estimatedTokens, e.iteration, e.maxAttempts, e.timeoutMs, e.onDependencyFailure,
  e.runnable, e.pin, e.onLoss, e.action,
];

function roomForOthers(values: readonly unknown[], others: number): number {
  let room = 0;
  for (let index = 0; index < values.length; index++) if ((others & (1 << index)) !== 0) room += roomFor(values[index]);
  return room;
}

function writeOthers(target: Buffer, start: number, values: readonly unknown[], others: number): number {
  let at = start;
  for (let index = 0; index < values.length; index++)
    if ((others & (1 << index)) !== 0) at = writeValue(target, at, values[index]);
  return at;
}

function writeAssigned(block: Block, event: Of<"task-assigned">, cause: number | null): number {
  const { task, worker, attempt, rank, reason, charge, reserve } = event;
  if (!areTexts(task, worker) || !areNumbers(attempt, charge, reserve) || !isRank(rank)) return -1;
  makeRoom(block, FIXED_BYTES_MAX + CHARACTER_BYTES_MAX * (task.length + worker.length));
  const { bytes: target } = block;
  const flags = (rank.express ? FLAG_1 : 0) | (rank.hold ? FLAG_2 : 0) | (rank.overdue ? FLAG_4 : 0);
  let at = writeHead(target, block.length, ASSIGNED | flags, event, cause);
  at = writeText(target, writeNumber(target, at, attempt), worker);
  at = writeReason(target, at, reason);
  if (at < 0) return -1;
  at = writeNumber(target, writeNumber(target, at, rank.level), rank.weight);
  at = writeNumber(target, writeNumber(target, at, rank.agentInFlight), rank.priority);
  at = writeNumber(target, writeNumber(target, at, rank.score), charge);
  return writeNumber(target, at, reserve);
}

const areNumbers = (first: unknown, second: unknown, third: unknown): boolean =>
  Number.isFinite(first) && Number.isFinite(second) && Number.isFinite(third);

const isRank = (rank: Rank): boolean =>
  typeof rank.express === "boolean" &&
  typeof rank.hold === "boolean" &&
  typeof rank.overdue === "boolean" &&
  areNumbers(rank.level, rank.weight, rank.agentInFlight) &&
  Number.isFinite(rank.priority) &&
  Number.isFinite(rank.score);

/** The number of the reason, then what it says more; less than 0 for one that has no number. */
function writeReason(target: Buffer, at: number, reason: Reason): number {
  switch (reason.type) {
    case "only-worker-available":
      return writeNumber(target, at, ONLY_WORKER);
    case "least-loaded":
      return writeSaid(target, writeNumber(target, at, LEAST_LOADED), reason.queueDepth);
    case "round-robin":
      return writeNumber(target, at, ROUND_ROBIN);
    case "random":
      return writeNumber(target, at, RANDOM);
    case "affinity":
      return writeSaid(target, writeNumber(target, at, AFFINITY), reason.reason);
    case "resource-fit": {
      const middle = writeSaid(target, writeNumber(target, at, RESOURCE_FIT), reason.availableCpu);
      return middle < 0 ? -1 : writeSaid(target, middle, reason.requiredCpu);
    }
    default:
      return -1;
  }
}

const writeSaid = (target: Buffer, at: number, value: unknown): number =>
  roomFor(value) > REASON_VALUE_BYTES_MAX ? -1 : writeValue(target, at, value);

function writeDone(block: Block, event: Of<"task-done">, cause: number | null): number {
  const { task, attempt, tokens, resultHash, resultSize } = event;
  if (typeof task !== "string" || !areNumbers(attempt, tokens === null ? 0 : tokens, resultSize)) return -1;
  makeRoom(block, FIXED_BYTES_MAX + CHARACTER_BYTES_MAX * task.length);
  const { bytes: target } = block;
  let at = writeHead(target, block.length, resultHash === null ? DONE : DONE | FLAG_1, event, cause);
  at = writeNumberOrNull(target, writeNumber(target, at, attempt), tokens);
  at = writeNumber(target, at, resultSize);
  if (resultHash === null) return at;
  return typeof resultHash === "string" ? writeHash(target, at, resultHash) : -1;
}
