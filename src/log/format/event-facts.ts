/**
 * What the log itself needs to know of an event: when it happened, and the hash of the payload that lies beside it.
 *
 * The log stores any bytes; of those that are no event it knows nothing, and asks nothing of what lies beside them.
 */

import { hash } from "node:crypto";
import type { Seq } from "../../core/base/index.ts";
import type { Event } from "../../core/model/index.ts";

import { LogFailure } from "../log.ts";
import { decodeEvent } from "./codec.ts";

export type EventFacts = { readonly at: number | null; readonly payloadHash: string | null };

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
  return event.kind === "task-done" ? event.resultHash : null;
}

export const hashOfPayload = (payload: Uint8Array): string => hash("sha256", payload, "hex");
