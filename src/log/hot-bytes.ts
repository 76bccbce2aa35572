/**
 * A start and a finish, written byte by byte: the two frequent events that are mostly names of fields and numbers.
 *
 * Every task costs one of each, and a quarter of the engine's time went into making strings of them. A submit has
 * thirty values and little else, and `JSON.stringify` is as quick. A test holds these bytes to those of `codec.ts`.
 */
import type { Event } from "../core/events.ts";
import type { Reason } from "../core/placement.ts";
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
