/**
 * What a gate knows: who waits, who was let through, what was used lately, and whether the provider said stop.
 *
 * Counters exist only where the fact behind them is elsewhere in the state and counting it anew would cost
 * too much; `gateFromFacts` rebuilds them all. Facts are plain data and complete: a restored gate decides exactly as
 * the one they were taken from.
 *
 * `episode` numbers the times this gate was throttled (or restarted). A permit carries the episode it was granted
 * in, so "started after the episode began" is exact even within one millisecond.
 */

import type { DeepReadonly } from "../collections/deep-readonly.ts";
import { SlotMap } from "../collections/slot-map.ts";
import type { GateSettings } from "./settings.ts";
import { FixedSum, type RollingFacts, RollingSum, type SumFacts, sumFromFacts, type UsageSum } from "./usage-window.ts";
import { enqueue, joinShare, newQueue, type Queue, type Ticket } from "./waiting-line.ts";

export type GrantedPermit = Ticket & {
  readonly grantedAt: number;
  readonly expiresAt: number;
  /** Sent alone to see whether the provider answers again. */
  readonly probe: boolean;
  readonly episode: number;
  /** The provider said 429 or 529 to its call. */
  readonly throttled?: true;
};

export type TokenLimit = "perMinute" | "perHour" | "perDay";

/**
 * What a gate has done in all.
 *
 * Counted by the verbs of gate.ts, so that every host of a gate counts alike. `scheduled` is what was admitted,
 * whichever way; `completed` what was given back, except permits that ran out; `rateLimited` every call that met a
 * window or a block when it asked, and every 429 that was reported. A call that is put back after its 429 was counted
 * with that. Waiting and service are sums of milliseconds; the peaks are the most that waited, and were out, at once.
 */
export type GateTotals = {
  /** Calls that were let out. */
  scheduled: number;
  /** Calls that came back; those whose permit ran out are not counted. */
  completed: number;
  /** Calls that met a window or a block when they asked, and 429s reported. */
  rateLimited: number;
  /** The waits of all that were let out. */
  waitMs: number;
  /** The time all that came back were out. */
  serviceMs: number;
  /** The most that ever waited at once. */
  peakQueued: number;
  /** The most that were ever out at once. */
  peakRunning: number;
};

export type Gate = {
  settings: GateSettings;
  readonly queue: Queue;
  /** In order of grant, hence of expiry. */
  readonly held: SlotMap<GrantedPermit>;
  requests: RollingSum;
  /** One for each token limit that is set. */
  readonly tokens: Map<TokenLimit, UsageSum>;
  /** The estimates of all that is held. */
  reserved: number;
  blockedUntil: number | null;
  throttles: number;
  episode: number;
  /** How many calls of this episode may be out; null when there is nothing to recover from. */
  slowStart: number | null;
  /** Held permits of this episode. */
  fresh: number;
  readonly totals: GateTotals;
};

/** A gate for those that only ask it. */
export type ReadonlyGate = DeepReadonly<Gate>;

export type GateFacts = {
  readonly tickets: readonly Ticket[];
  readonly held: readonly GrantedPermit[];
  readonly levels: readonly (readonly [project: string, level: number])[];
  readonly served: number;
  readonly sweepAt: number;
  readonly requests: RollingFacts;
  readonly tokens: readonly (readonly [limit: TokenLimit, used: SumFacts])[];
  readonly blockedUntil: number | null;
  /** Called `strikes` in what an older version wrote. */
  readonly throttles: number;
  readonly strikes?: number;
  readonly episode: number;
  readonly slowStart: number | null;
  /** Absent in what an older version wrote. */
  readonly totals?: GateTotals;
};

const TOKEN_WINDOW_MS: Readonly<Record<TokenLimit, number>> = {
  perMinute: 60_000,
  perHour: 3_600_000,
  perDay: 86_400_000,
};
export const TOKEN_LIMITS: readonly TokenLimit[] = ["perMinute", "perHour", "perDay"];

/** A minute is counted exactly; longer windows in a thousand buckets that expire late. */
const BUCKETS_OF_LONG_WINDOWS = 1000;

export function newGate(settings: GateSettings): Gate {
  const gate: Gate = {
    settings,
    queue: newQueue(),
    held: new SlotMap(),
    requests: new RollingSum(settings.windowMs, null),
    tokens: new Map(),
    reserved: 0,
    blockedUntil: null,
    throttles: 0,
    episode: 0,
    slowStart: null,
    fresh: 0,
    totals: {
      scheduled: 0,
      completed: 0,
      rateLimited: 0,
      waitMs: 0,
      serviceMs: 0,
      peakQueued: 0,
      peakRunning: 0,
    },
  };
  setTokenWindows(gate);
  return gate;
}

/** Everything binds at once, also on permits already out; only a new kind of token window starts counting anew. */
export function configureGate(gate: Gate, settings: GateSettings): void {
  const ttlChanged = settings.permitTtlMs !== gate.settings.permitTtlMs;
  gate.settings = settings;
  gate.requests.resize(settings.windowMs);
  setTokenWindows(gate);
  if (!ttlChanged) return;
  for (const permit of gate.held.values()) {
    gate.held.set(permit.id, { ...permit, expiresAt: permit.grantedAt + settings.permitTtlMs });
  }
}

export function gateFacts(gate: ReadonlyGate): GateFacts {
  const { queue } = gate;
  return {
    tickets: Array.from(queue.entries.values(), ({ ticket }) => ticket),
    held: [...gate.held.values()],
    levels: Array.from(queue.shares.values(), ({ project, level }) => [project, level] as const),
    served: queue.served,
    sweepAt: queue.sweepAt,
    requests: gate.requests.facts(),
    tokens: TOKEN_LIMITS.flatMap((limit) => {
      const sum = gate.tokens.get(limit);
      return sum === undefined ? [] : [[limit, sum.facts()] as const];
    }),
    blockedUntil: gate.blockedUntil,
    throttles: gate.throttles,
    episode: gate.episode,
    slowStart: gate.slowStart,
    totals: { ...gate.totals },
  };
}

export function gateFromFacts(settings: GateSettings, facts: GateFacts): Gate {
  const gate = newGate(settings);
  const { queue } = gate;
  gate.blockedUntil = facts.blockedUntil;
  gate.throttles = facts.throttles ?? facts.strikes;
  gate.episode = facts.episode;
  gate.slowStart = facts.slowStart;
  Object.assign(gate.totals, facts.totals);
  gate.requests = RollingSum.fromFacts(facts.requests);
  for (const [limit, used] of facts.tokens) gate.tokens.set(limit, sumFromFacts(used));
  for (const [project, level] of facts.levels) {
    queue.shares.set(project, { project, level, queued: 0, held: 0, lanes: [] });
  }
  for (const permit of facts.held) {
    gate.held.set(permit.id, permit);
    gate.reserved += permit.tokens;
    if (permit.episode === facts.episode) gate.fresh++;
    joinShare(queue, permit.project).held++;
  }
  for (const ticket of facts.tickets) enqueue(queue, ticket);
  // Joining may have lifted a level; the facts have the last word.
  for (const [project, level] of facts.levels) joinShare(queue, project).level = level;
  queue.served = facts.served;
  queue.sweepAt = facts.sweepAt;
  configureGate(gate, settings);
  return gate;
}

function setTokenWindows(gate: Gate): void {
  const { tokens } = gate.settings;
  for (const limit of TOKEN_LIMITS) {
    const sum = gate.tokens.get(limit);
    if (tokens[limit] === null) gate.tokens.delete(limit);
    else if (sum === undefined || sum instanceof FixedSum !== (tokens.kind === "fixed")) {
      gate.tokens.set(limit, newTokenSum(limit, tokens.kind));
    }
  }
}

function newTokenSum(limit: TokenLimit, kind: "sliding" | "fixed"): UsageSum {
  const windowMs = TOKEN_WINDOW_MS[limit];
  if (kind === "fixed") return new FixedSum(windowMs);
  return new RollingSum(windowMs, limit === "perMinute" ? null : BUCKETS_OF_LONG_WINDOWS);
}
