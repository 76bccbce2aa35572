/**
 * The settings of a gate: its limits, and how urgent a call is.
 *
 * A gate stands before one provider account, or any named scarce thing. Urgency has four classes and no
 * numbers, since a caller can say honestly that a call is urgent, but not that it is a 37.
 */

export type GateClass = "critical" | "high" | "normal" | "low";

/** Most urgent first; the index in this list is the class's rank. */
export const GATE_CLASSES: readonly GateClass[] = ["critical", "high", "normal", "low"];

export const CLASS_RANK: Readonly<Record<GateClass, number>> = { critical: 0, high: 1, normal: 2, low: 3 };

/** The limits of a gate. */
export type GateSettings = {
  /** Calls that may be out at once. */
  readonly maxConcurrent: number;
  /** At most so many grants in any windowMs. */
  readonly requests: number;
  /** The window of `requests`, in milliseconds. */
  readonly windowMs: number;
  /** Tokens per span of time. */
  readonly tokens: {
    /** Tokens in a minute; null: no limit. */
    readonly perMinute: number | null;
    /** Tokens in an hour; null: no limit. */
    readonly perHour: number | null;
    /** Tokens in a day; null: no limit. */
    readonly perDay: number | null;
    /** Whether those spans slide or begin with a call. */
    readonly kind: "sliding" | "fixed";
  };
  /** How urgent a call is that does not say. */
  readonly defaultPriority: GateClass;
  /** Waiting so long counts as one class more urgent. */
  readonly agingPerClassMs: number;
  /** A permit that is not given back runs out after so many milliseconds. */
  readonly permitTtlMs: number;
};

export const DEFAULT_GATE_SETTINGS: GateSettings = {
  maxConcurrent: 10,
  requests: 50,
  windowMs: 60_000,
  tokens: { perMinute: null, perHour: null, perDay: null, kind: "sliding" },
  defaultPriority: "normal",
  agingPerClassMs: 60_000,
  permitTtlMs: 600_000,
};

/**
 * The call's own class, else that of the task's priority, else by type: plans face a person, others `fallback`. Never
 * more urgent than the project's tasks may be.
 */
export function classOf(call: {
  readonly callClass?: GateClass | undefined;
  readonly priority?: number | undefined;
  readonly type?: string | undefined;
  /** The gate's `defaultPriority`. */
  readonly fallback?: GateClass | undefined;
  /** The project's. */
  readonly maxPriority?: number | undefined;
}): GateClass {
  const asked = askedClass(call);
  const most = classOfPriority(call.maxPriority ?? Number.NEGATIVE_INFINITY);
  return CLASS_RANK[asked] < CLASS_RANK[most] ? most : asked;
}

function askedClass(call: Parameters<typeof classOf>[0]): GateClass {
  if (call.callClass !== undefined) return call.callClass;
  if (call.priority !== undefined) return classOfPriority(call.priority);
  return call.type === "plan" ? "high" : (call.fallback ?? "normal");
}

function classOfPriority(priority: number): GateClass {
  if (priority <= -200) return "critical";
  if (priority <= -100) return "high";
  return priority < 100 ? "normal" : "low";
}
