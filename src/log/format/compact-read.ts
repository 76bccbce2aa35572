/**
 * The three events every task costs, read: from format 2, which `compact-write.ts` writes, and from the JSON of older
 * logs.
 *
 * Each is made as an object literal, so that all of a kind have one shape for the engine that runs them, whoever made
 * them. Giving thirty properties by a computed name would take longer than reading the bytes. Tests hold these to
 * `FIELDS`.
 */
import { instant, type Seq, seq, type WorkerId } from "../../core/base/index.ts";
import type { AffinityKind, Event, Rank, Reason, TaskSubmitted } from "../../core/model/index.ts";
import { corruptAt } from "../log.ts";
import {
  AFFINITY,
  ASSIGNED,
  DONE,
  FLAG_1,
  FLAG_2,
  FLAG_4,
  LEAST_LOADED,
  MOSTLY,
  ONLY_WORKER,
  RANDOM,
  RESOURCE_FIT,
  ROUND_ROBIN,
  SUBMITTED,
} from "./compact-write.ts";
import {
  readByte,
  readHash,
  readId,
  readNumber,
  readNumberOrNull,
  readText,
  readValue,
  type Source,
} from "./value-read.ts";

const KIND_BITS = 0x0f;

/** An event of format 2 and its cause. */
export function readPacked(bytes: Uint8Array, place: Seq): { readonly event: Event; readonly cause: Seq | null } {
  const from: Source = { bytes, at: 1, seq: place };
  const mark = readByte(from);
  const at = readNumber(from);
  if (!Number.isSafeInteger(at) || at < 0) throw corruptAt(place, `its instant is ${at}`);
  const cause = readNumberOrNull(from);
  const event = readEvent(from, mark, at);
  if (from.at !== bytes.length) throw corruptAt(place, `${bytes.length - from.at} bytes follow it`);
  return { event, cause: cause === null ? null : seq(cause) };
}

function readEvent(from: Source, mark: number, at: number): Event {
  switch (mark & KIND_BITS) {
    case SUBMITTED:
      checkFlags(from, mark, FLAG_1);
      return readSubmitted(from, mark, at);
    case ASSIGNED:
      checkFlags(from, mark, FLAG_1 | FLAG_2 | FLAG_4);
      return readAssigned(from, mark, at);
    case DONE:
      checkFlags(from, mark, FLAG_1);
      return readDone(from, mark, at);
    default:
      throw corruptAt(from.seq, `it is of no known kind (${mark & KIND_BITS})`);
  }
}

function checkFlags(from: Source, mark: number, known: number): void {
  if ((mark & ~(KIND_BITS | known)) !== 0) throw corruptAt(from.seq, `its second byte is ${mark}`);
}

function readSubmitted(from: Source, mark: number, at: number): Event {
  const task = readId(from);
  const project = readText(from);
  const agent = readText(from);
  const bodySize = readNumber(from);
  const mask = readNumber(from);
  const v = mask === 0 ? MOSTLY : readOthers(from, mask);
  const bodyHash = readHash(from);
  // biome-ignore format: one row per row of FIELDS
  return {
    kind: "task-submitted", at: instant(at),
    task, project, agent, named: (mark & FLAG_1) !== 0, bodyHash, bodySize, type: v[0],
    capabilities: v[1], cpu: v[2], memory: v[3],
    provider: v[4], locks: v[5], zone: v[6], tab: v[7], priority: v[8], prioritised: v[9], depth: v[10],
    parent: v[11], needs: v[12], artifact: v[13], notBefore: v[14],
    deadline: v[15], estimatedTokens: v[16], iteration: v[17], maxAttempts: v[18], timeoutMs: v[19],
    onDependencyFailure: v[20], runnable: v[21], pin: v[22], onLoss: v[23], action: v[24],
  } as TaskSubmitted;
}

/** The values of a submit from its type on, of which these are not what they mostly are. */
function readOthers(from: Source, mask: number): readonly unknown[] {
  if (!Number.isInteger(mask) || mask < 0 || mask >= 2 ** MOSTLY.length)
    throw corruptAt(from.seq, `it holds values ${mask}, of ${MOSTLY.length}`);
  const values = MOSTLY.slice();
  for (let index = 0; index < values.length; index++) if ((mask & (1 << index)) !== 0) values[index] = readValue(from);
  return values;
}

function readAssigned(from: Source, mark: number, at: number): Event {
  const task = readId(from);
  const attempt = readNumber(from);
  const worker = readText(from) as WorkerId;
  const reason = readReason(from);
  const level = readNumber(from);
  const weight = readNumber(from);
  const agentInFlight = readNumber(from);
  const priority = readNumber(from);
  const score = readNumber(from);
  const charge = readNumber(from);
  const reserve = readNumber(from);
  const express = (mark & FLAG_1) !== 0;
  const hold = (mark & FLAG_2) !== 0;
  const overdue = (mark & FLAG_4) !== 0;
  const rank: Rank = { express, hold, level, weight, agentInFlight, priority, overdue, score };
  return { kind: "task-assigned", at: instant(at), task, attempt, worker, reason, rank, charge, reserve };
}

const ONLY: Reason = { type: "only-worker-available" };

function readReason(from: Source): Reason {
  const number = readByte(from);
  switch (number) {
    case ONLY_WORKER:
      return ONLY;
    case LEAST_LOADED:
      return { type: "least-loaded", queueDepth: readNumber(from) };
    case ROUND_ROBIN:
      return { type: "round-robin" };
    case RANDOM:
      return { type: "random" };
    case RESOURCE_FIT:
      return { type: "resource-fit", availableCpu: readNumberOrNull(from), requiredCpu: readNumber(from) };
    case AFFINITY:
      return { type: "affinity", reason: readText(from) as AffinityKind };
    default:
      throw corruptAt(from.seq, `its reason is of no known kind (${number})`);
  }
}

function readDone(from: Source, mark: number, at: number): Event {
  const task = readId(from);
  const attempt = readNumber(from);
  const tokens = readNumberOrNull(from);
  const resultSize = readNumber(from);
  const resultHash = (mark & FLAG_1) === 0 ? null : readHash(from);
  return { kind: "task-done", at: instant(at), task, attempt, tokens, resultHash, resultSize };
}

/** The same events as a log of format 1 holds them, by their counted values; null for others. */
export function hotEvent(values: readonly unknown[]): Event | null {
  switch (values[1]) {
    case "task-submitted":
      return submittedOf(values) as Event;
    case "task-assigned": {
      const [, kind, at, , task, attempt, worker, reason, rank, charge, reserve] = values;
      return { kind, at, task, attempt, worker, reason, rank, charge, reserve } as Event;
    }
    case "task-done": {
      const [, kind, at, , task, attempt, tokens, resultHash, resultSize] = values;
      return { kind, at, task, attempt, tokens, resultHash, resultSize } as Event;
    }
    default:
      return null;
  }
}

function submittedOf(v: readonly unknown[]): unknown {
  // biome-ignore format: one row per row of FIELDS
  return {
    kind: v[1], at: v[2],
    task: v[4], project: v[5], agent: v[6], named: v[7], bodyHash: v[8], bodySize: v[9], type: v[10],
    capabilities: v[11], cpu: v[12], memory: v[13],
    provider: v[14], locks: v[15], zone: v[16], tab: v[17], priority: v[18], prioritised: v[19], depth: v[20],
    parent: v[21], needs: v[22], artifact: v[23], notBefore: v[24],
    deadline: v[25], estimatedTokens: v[26], iteration: v[27], maxAttempts: v[28], timeoutMs: v[29],
    onDependencyFailure: v[30], runnable: v[31], pin: v[32], onLoss: v[33], action: v[34] ?? "",
  };
}
