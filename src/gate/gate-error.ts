/**
 * How a gate says no.
 *
 * Wrong input names the field, what was given and what would be right. A refusal names the call and the reason. A
 * closed gate says that it is closed. Anything else a gate throws came from the caller's own function or signal.
 */
import { kindShown } from "../core/base/index.ts";

/** What was given to the gate is wrong. */
export class GateInputError extends TypeError {
  override readonly name: string = "GateInputError";
  /** Which field is wrong. */
  readonly field: string;
  /** What it is, in words. */
  readonly value: unknown;
  /** What would be right. */
  readonly expected: string;

  constructor(field: string, value: unknown, expected: string) {
    super(`${field}: got ${shown(value)}, expected ${expected}`);
    this.field = field;
    this.value = value;
    this.expected = expected;
  }
}

/** Why a call is not let out. */
export type RefusalReason = "Already running" | "Already queued" | "Not scheduled" | "Cancelled";

/** A call was not let out. */
export class GateRefusedError extends Error {
  override readonly name: string = "GateRefusedError";
  /** The call. */
  readonly id: string;
  /** Why not. */
  readonly reason: RefusalReason;

  constructor(id: string, reason: RefusalReason) {
    super(`${id}: ${reason}`);
    this.id = id;
    this.reason = reason;
  }
}

/** The gate was closed. */
export class GateClosedError extends Error {
  override readonly name: string = "GateClosedError";

  constructor() {
    super("the gate is closed");
  }
}

function shown(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (value === null) return "null";
  if (typeof value === "object") return kindShown(value) || (Array.isArray(value) ? "a list" : "an object");
  return typeof value === "function" ? "a function" : String(value);
}
