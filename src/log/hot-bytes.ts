/**
 * The three events every task costs, written byte by byte.
 *
 * An eighth of the engine's time went into making strings of them, and bytes of the strings. A test holds these bytes
 * to what `JSON.stringify` makes of the same values in the order of `FIELDS`.
 */
import type { Event, TaskSubmitted } from "../core/events.ts";
import type { Reason } from "../core/placement.ts";
import { type Block, makeRoom } from "./block.ts";
import {
  writeAny,
  writeAscii,
  writeFlag,
  writeNumber,
  writeNumberOrNull,
  writeString,
  writeStringOrNull,
} from "./json-bytes.ts";

type Of<Kind extends Event["kind"]> = Extract<Event, { kind: Kind }>;

const COMMA = 44;
const END_OF_LIST = 93;
/** What both events take at most, beside their names. */
const FIXED_BYTES_MAX = 1024;
const BYTES_PER_CHARACTER_MAX = 6;

/** How much room a start or a finish needs at most. */
export function roomFor(event: Of<"task-assigned" | "task-done">): number {
  const characters = event.task.length + (event.kind === "task-assigned" ? event.worker.length : 0);
  return FIXED_BYTES_MAX + BYTES_PER_CHARACTER_MAX * characters;
}

/** A submit from its type on, as written last. Whoever submits repeats itself, so mostly the next is the same. */
let lastTail: { readonly of: TaskSubmitted; readonly bytes: Buffer } | null = null;

export function writeSubmitted(block: Block, event: TaskSubmitted, cause: number | null): void {
  if (lastTail === null || !endsAlike(lastTail.of, event)) lastTail = { of: event, bytes: tailOf(event) };
  const { bytes: tail } = lastTail;
  const characters = event.task.length + event.project.length + event.agent.length + event.bodyHash.length;
  makeRoom(block, FIXED_BYTES_MAX + BYTES_PER_CHARACTER_MAX * characters + tail.length);
  const { bytes: target } = block;
  let at = writeNumber(target, writeAscii(target, block.length, '[1,"task-submitted",'), event.at);
  target[at++] = COMMA;
  at = writeNumberOrNull(target, at, cause);
  target[at++] = COMMA;
  at = writeString(target, at, event.task);
  target[at++] = COMMA;
  at = writeString(target, at, event.project);
  target[at++] = COMMA;
  at = writeString(target, at, event.agent);
  target[at++] = COMMA;
  at = writeFlag(target, at, event.named);
  target[at++] = COMMA;
  at = writeString(target, at, event.bodyHash);
  target[at++] = COMMA;
  at = writeNumber(target, at, event.bodySize);
  target.set(tail, at);
  block.length = at + tail.length;
}

/** The comma behind the body's size, the values from the type on, and the end of the list. */
function tailOf(e: TaskSubmitted): Buffer {
  // biome-ignore format: one row per row of FIELDS
  const values = [
    e.type, e.capabilities, e.cpu, e.memory,
    e.provider, e.locks, e.zone, e.tab, e.priority, e.prioritised, e.depth, e.parent, e.needs, e.artifact, e.notBefore,
    e.deadline, e.estimatedTokens, e.iteration, e.maxAttempts, e.timeoutMs, e.onDependencyFailure,
    e.runnable, e.pin,
  ];
  return Buffer.from(`,${JSON.stringify(values).slice(1)}`);
}

const endsAlike = (left: TaskSubmitted, right: TaskSubmitted): boolean =>
  left.type === right.type &&
  isSame(left.capabilities, right.capabilities) &&
  left.cpu === right.cpu &&
  left.memory === right.memory &&
  left.provider === right.provider &&
  isSame(left.locks, right.locks) &&
  left.zone === right.zone &&
  left.tab === right.tab &&
  left.priority === right.priority &&
  left.prioritised === right.prioritised &&
  left.depth === right.depth &&
  left.parent === right.parent &&
  isSame(left.needs, right.needs) &&
  left.artifact === right.artifact &&
  left.notBefore === right.notBefore &&
  left.deadline === right.deadline &&
  left.estimatedTokens === right.estimatedTokens &&
  left.iteration === right.iteration &&
  left.maxAttempts === right.maxAttempts &&
  left.timeoutMs === right.timeoutMs &&
  left.onDependencyFailure === right.onDependencyFailure &&
  left.runnable === right.runnable &&
  left.pin === right.pin;

const isSame = (left: readonly string[], right: readonly string[]): boolean =>
  left === right || (left.length === 0 && right.length === 0);

export function writeAssigned(target: Buffer, start: number, event: Of<"task-assigned">, cause: number | null): number {
  const { rank } = event;
  let at = writeHead(target, start, '[1,"task-assigned",', event, cause);
  at = writeString(target, at, event.worker);
  target[at++] = COMMA;
  at = writeReason(target, at, event.reason);
  at = writeFlag(target, writeAscii(target, at, ',{"express":'), rank.express);
  at = writeFlag(target, writeAscii(target, at, ',"hold":'), rank.hold);
  at = writeNumber(target, writeAscii(target, at, ',"level":'), rank.level);
  at = writeNumber(target, writeAscii(target, at, ',"weight":'), rank.weight);
  at = writeNumber(target, writeAscii(target, at, ',"agentInFlight":'), rank.agentInFlight);
  at = writeNumber(target, writeAscii(target, at, ',"priority":'), rank.priority);
  at = writeFlag(target, writeAscii(target, at, ',"overdue":'), rank.overdue);
  at = writeNumber(target, writeAscii(target, at, ',"score":'), rank.score);
  at = writeNumber(target, writeAscii(target, at, "},"), event.charge);
  target[at++] = COMMA;
  at = writeNumber(target, at, event.reserve);
  target[at++] = END_OF_LIST;
  return at;
}

export function writeDone(target: Buffer, start: number, event: Of<"task-done">, cause: number | null): number {
  let at = writeHead(target, start, '[1,"task-done",', event, cause);
  at = writeNumberOrNull(target, at, event.tokens);
  target[at++] = COMMA;
  at = writeStringOrNull(target, at, event.resultHash);
  target[at++] = COMMA;
  at = writeNumber(target, at, event.resultSize);
  target[at++] = END_OF_LIST;
  return at;
}

/** Format and kind, instant, cause, task and attempt, each with its comma. */
function writeHead(
  target: Buffer,
  start: number,
  opening: string,
  { at: instant, task, attempt }: Of<"task-assigned" | "task-done">,
  cause: number | null,
): number {
  let at = writeNumber(target, writeAscii(target, start, opening), instant);
  target[at++] = COMMA;
  at = writeNumberOrNull(target, at, cause);
  target[at++] = COMMA;
  at = writeString(target, at, task);
  target[at++] = COMMA;
  at = writeNumber(target, at, attempt);
  target[at++] = COMMA;
  return at;
}

const ONLY_WORKER = '{"type":"only-worker-available"}';

function writeReason(target: Buffer, at: number, reason: Reason): number {
  if (reason.type === "only-worker-available") return writeAscii(target, at, ONLY_WORKER);
  if (reason.type !== "least-loaded") return writeAny(target, at, JSON.stringify(reason));
  const end = writeNumber(target, writeAscii(target, at, '{"type":"least-loaded","queueDepth":'), reason.queueDepth);
  return writeAscii(target, end, "}");
}
