/**
 * Events as bytes.
 *
 * An event is written as one JSON array (format 1): format version, kind, instant, cause, then its values in the order
 * that `FIELDS` fixes for its kind; a person can read it. Fields that the kind was given since are left out at its end
 * where they say nothing new, so that the version before can read it. The three events that every task costs are
 * written in a shorter way (format 2, `compact-events.ts`), except where one holds what that cannot say; older logs
 * hold them as JSON too. The first byte tells which it is: JSON begins with `[`, and everything that begins with a
 * control character with the number of its format. The same event always gives the same bytes, whatever was written
 * before, which is what the hash chain links. `cause` is the number of the event that led to this one. A reader refuses
 * a version it does not know, a kind it does not know and a wrong count of values, and says at which event. What it
 * would refuse is never written: an instant is a whole number from 0, or the event has no bytes.
 */
import { hash } from "node:crypto";
import { invariant, type Seq, seq } from "../../core/base/index.ts";
import { ADDED, type Event, type EventKind, FIELDS, RENAMED } from "../../core/model/index.ts";
import { corruptAt, LogFailure } from "../log.ts";
import { appendText, type Block } from "./byte-block.ts";
import { COMPACT, eventFrom, readCompact, writeCompact } from "./compact-events.ts";

const FORMAT = 1;
const FIRST_PRINTABLE = 32;
const HEADER_LENGTH = 4;

type Told = { readonly event: Event; readonly cause: Seq | null };

const decoder = new TextDecoder("utf-8", { fatal: true });

/** Writes an event behind what a block holds. */
export function writeEvent(block: Block, event: Event, cause: Seq | null): void {
  if (!Number.isSafeInteger(event.at) || event.at < 0) {
    invariant(false, `${event.kind} happens at an instant, not ${event.at}`);
  }
  if (!writeCompact(block, event, cause)) appendText(block, JSON.stringify(allValues(event, cause)));
}

function allValues(event: Event, cause: Seq | null): unknown[] {
  const values: unknown[] = [FORMAT, event.kind, event.at, cause];
  const source = event as unknown as Record<string, unknown>;
  const fields = FIELDS[event.kind];
  for (const field of fields) values.push(source[field]);
  for (let last = fields.length - 1; isAsBefore(event.kind, fields[last], values.at(-1)); last--) values.pop();
  return values;
}

/** Whether it says what an older reader, which does not know the field, takes for granted. */
function isAsBefore(kind: EventKind, field: string | undefined, value: unknown): boolean {
  const added = ADDED[kind];
  if (added === undefined || field === undefined || !Object.hasOwn(added, field)) return false;
  const before = added[field];
  return Array.isArray(before) ? Array.isArray(value) && value.length === 0 : value === before;
}

export function decodeEvent(bytes: Uint8Array, at: Seq): Told {
  const first = bytes[0] ?? FIRST_PRINTABLE;
  if (first === COMPACT) return readCompact(bytes, at);
  if (first < FIRST_PRINTABLE) throw unsupported(first, at);
  const values = parse(bytes, at);
  const [format, , instant, cause] = values;
  if (format !== FORMAT) throw unsupported(format, at);
  let kind = values[1] as EventKind;
  if (FIELDS[kind] === undefined) values[1] = kind = RENAMED[kind] ?? kind;
  const fields: readonly string[] | undefined = FIELDS[kind];
  if (fields === undefined || typeof instant !== "number")
    throw corruptAt(at, `it is of no known kind (${String(kind)})`);
  fillIn(kind, fields, values);
  if (values.length !== HEADER_LENGTH + fields.length)
    throw corruptAt(at, `${String(kind)} has ${values.length} values`);
  const event = eventFrom(kind as EventKind, instant, values, HEADER_LENGTH);
  return { event, cause: typeof cause === "number" ? seq(cause) : null };
}

const unsupported = (format: unknown, at: Seq): LogFailure =>
  new LogFailure(
    "unsupported-version",
    `event ${at} has format ${String(format)}; this Drover reads ${FORMAT} and ${COMPACT}`,
    at,
  );

/** An event of an older log lacks the fields that its kind was given since. */
function fillIn(kind: EventKind, fields: readonly string[], values: unknown[]): void {
  const added = ADDED[kind];
  if (added === undefined) return;
  for (let index = values.length - HEADER_LENGTH; index < fields.length; index++) {
    const field = fields[index] as string;
    if (!Object.hasOwn(added, field)) return;
    values.push(added[field]);
  }
}

function parse(bytes: Uint8Array, at: Seq): unknown[] {
  let values: unknown;
  try {
    values = JSON.parse(decoder.decode(bytes));
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError) throw corruptAt(at, "its bytes are not an event");
    throw error;
  }
  if (!Array.isArray(values)) throw corruptAt(at, "its bytes are not an event");
  return values;
}

/**
 * What the log itself needs to know of an event: when it happened, and the hash of the payload that lies beside it. The
 * log stores any bytes; of those that are no event it knows nothing, and asks nothing of what lies beside them.
 */
type EventFacts = { readonly at: number | null; readonly payloadHash: string | null };

const NOTHING: EventFacts = { at: null, payloadHash: null };

export function factsOf(bytes: Uint8Array, seq: Seq): EventFacts {
  try {
    const { event } = decodeEvent(bytes, seq);
    return { at: event.at, payloadHash: payloadHashOf(event) };
  } catch (error) {
    if (!(error instanceof LogFailure)) throw error;
    return NOTHING;
  }
}

/** The hash of what must lie beside an event; null if nothing must. */
export function payloadHashOf(event: Event): string | null {
  if (event.kind === "task-submitted") return event.bodyHash === "" ? null : event.bodyHash;
  if (event.kind === "plan-put") return event.documentHash;
  if (event.kind === "task-done") return event.resultSeq === null ? event.resultHash : null;
  return event.kind === "attempt-done" ? event.resultHash : null;
}

export const hashOfPayload = (payload: Uint8Array): string => hash("sha256", payload, "hex");
