/**
 * May a call go out now; if not, what holds it, and until when.
 *
 * Every limit is asked here and nowhere else, for every admission. In order: the provider said stop (`blocked`),
 * the request window, the token windows, then room: one `probe`, the `slow-start` limit, `concurrency`. All of it
 * only reads.
 *
 * Tokens: a call fits if what was used in the window, what is in flight (by estimate) and its own estimate
 * stay within the limit. A call whose estimate alone exceeds the limit goes out when it would be the only one in
 * the window; otherwise it would wait for ever. The one next in line is waited for: no call overtakes it because
 * it is smaller.
 */

import type { GrantedPermit, ReadonlyGate, TokenLimit } from "./state.ts";
import { TOKEN_LIMITS } from "./state.ts";
import { bestTicket, nextAging, positionOf, type Ticket, ticketsInOrder } from "./waiting-line.ts";

type GateRateLimit = "blocked" | "requests" | `tokens-${TokenLimit}`;
type GateRoomLimit = "probe" | "slow-start" | "concurrency";
type GateLimit = GateRateLimit | GateRoomLimit;

/** How a gate stands at an instant. */
export type GateStanding = {
  /** How many are out. */
  readonly running: number;
  /** How many wait for their turn. */
  readonly queued: number;
  /** How many may run now: maxConcurrent, or less while recovering. */
  readonly limit: number;
  /** How many may be out at once. */
  readonly maxConcurrent: number;
  /** The provider said 429 or 529: nothing goes out until then, in milliseconds since 1970. */
  readonly blockedUntil: number | null;
  /** Episodes of 429 in a row. */
  readonly throttles: number;
  /** How many may be out while it recovers from a 429; null: it has recovered. */
  readonly slowStart: number | null;
  /** How many calls may start in any window. */
  readonly requests: number;
  /** How many calls started in the window that ends now. */
  readonly requestsUsed: number;
  /** How long the window of requests is. */
  readonly windowMs: number;
  /** What was used of each token window. */
  readonly tokensUsed: Readonly<Record<TokenLimit, { readonly limit: number; readonly used: number } | null>>;
  /** Tokens set aside for calls that are out or wait. */
  readonly tokensReserved: number;
  /** What holds the next call, if anything, and the instant at which time alone may lift it. */
  readonly held: GateLimit | null;
  /** When time alone may let the next call go, in milliseconds since 1970. */
  readonly heldUntil: number | null;
};

const TOKEN_LIMIT_NAME: Readonly<Record<TokenLimit, GateRateLimit>> = {
  perMinute: "tokens-perMinute",
  perHour: "tokens-perHour",
  perDay: "tokens-perDay",
};

/** The ticket that may be granted now. */
export function nextGrant(gate: ReadonlyGate, now: number): Ticket | null {
  if (gate.queue.entries.size === 0 || roomLimit(gate) !== null) return null;
  if (isHeld(gate, now) || areRequestsFull(gate, now)) return null;
  const ticket = bestTicket(gate.queue, now, gate.settings.agingPerClassMs);
  return ticket !== null && tokenLimit(gate, ticket.tokens, now) === null ? ticket : null;
}

/** Whether a call of this estimate could go out at once; true only if no call waits. */
export function isOpen(gate: ReadonlyGate, tokens: number, now: number): boolean {
  return gate.queue.entries.size === 0 && roomLimit(gate) === null && rateLimit(gate, tokens, now) === null;
}

/** The provider said stop: tasks that need it are passed over. */
export function isHeld(gate: ReadonlyGate, now: number): boolean {
  return gate.blockedUntil !== null && now < gate.blockedUntil;
}

/** The first limit of rate that holds a call of this estimate. */
export function rateLimit(gate: ReadonlyGate, tokens: number, now: number): GateRateLimit | null {
  if (isHeld(gate, now)) return "blocked";
  if (areRequestsFull(gate, now)) return "requests";
  const limit = tokenLimit(gate, tokens, now);
  return limit === null ? null : TOKEN_LIMIT_NAME[limit];
}

/** The instant at which time alone may lift that limit; null if only the end of a call can. */
export function rateLimitedUntil(gate: ReadonlyGate, tokens: number, now: number): number | null {
  if (isHeld(gate, now)) return gate.blockedUntil;
  if (areRequestsFull(gate, now)) return gate.requests.belowAt(gate.settings.requests, now);
  const limit = tokenLimit(gate, tokens, now);
  return limit === null ? null : tokensUntil(gate, limit, tokens, now);
}

/** How a gate stands: what is out, what waits, and what holds it up. */
export function gateStanding(gate: ReadonlyGate, now: number): GateStanding {
  const { settings, slowStart } = gate;
  const tokens = bestTicket(gate.queue, now, settings.agingPerClassMs)?.tokens ?? 0;
  const perLimit = (limit: TokenLimit): { limit: number; used: number } | null => {
    const most = settings.tokens[limit];
    return most === null ? null : { limit: most, used: gate.tokens.get(limit)?.total(now) ?? 0 };
  };
  return {
    running: gate.held.size,
    queued: gate.queue.entries.size,
    limit: Math.min(slowStart ?? settings.maxConcurrent, settings.maxConcurrent),
    maxConcurrent: settings.maxConcurrent,
    blockedUntil: isHeld(gate, now) ? gate.blockedUntil : null,
    throttles: gate.throttles,
    slowStart,
    requests: settings.requests,
    requestsUsed: gate.requests.total(now),
    windowMs: settings.windowMs,
    tokensUsed: { perMinute: perLimit("perMinute"), perHour: perLimit("perHour"), perDay: perLimit("perDay") },
    tokensReserved: gate.reserved,
    held: rateLimit(gate, tokens, now) ?? roomLimit(gate),
    heldUntil: rateLimitedUntil(gate, tokens, now),
  };
}

/**
 * The next instant at which time alone could change a decision: the block ends, a window frees room for the one next
 * in line, another becomes next in line (which matters only to one held by tokens), a permit runs out.
 */
export function nextGateInstant(gate: ReadonlyGate, now: number): number | null {
  let next = isHeld(gate, now) ? gate.blockedUntil : null;
  const sooner = (at: number | null): void => {
    if (at !== null && (next === null || at < next)) next = at;
  };
  const ticket = next === null ? bestTicket(gate.queue, now, gate.settings.agingPerClassMs) : null;
  if (ticket !== null) {
    sooner(rateLimitedUntil(gate, ticket.tokens, now));
    const isContested = gate.queue.active.length > 1;
    if (isContested && tokenLimit(gate, ticket.tokens, now) !== null)
      sooner(nextAging(gate.queue, now, gate.settings.agingPerClassMs));
  }
  sooner(nextPermitExpiry(gate));
  return next;
}

/** Permits are held in the order of their expiry, so the first one tells. */
export function nextPermitExpiry(gate: ReadonlyGate): number | null {
  return gate.held.first()?.expiresAt ?? null;
}

export function expiredPermits(gate: ReadonlyGate, now: number): GrantedPermit[] {
  const expired: GrantedPermit[] = [];
  for (const permit of gate.held.values()) {
    if (now < permit.expiresAt) break;
    expired.push(permit);
  }
  return expired;
}

export function ticketPosition(gate: ReadonlyGate, id: string, now: number): number | null {
  return positionOf(gate.queue, id, now, gate.settings.agingPerClassMs);
}

/** Those that wait, next first: all, or so many at most. */
export function queuedTickets(gate: ReadonlyGate, now: number, most: number = Number.POSITIVE_INFINITY): Ticket[] {
  return ticketsInOrder(gate.queue, now, gate.settings.agingPerClassMs, most);
}

const SERVICE_MS_UNTIL_KNOWN = 30_000;

/** Why one waits, and for how long: a window or a block that time lifts, or others before it. */
export type Waiting =
  | { readonly status: "queued"; readonly position: number; readonly estimatedWaitMs: number }
  | { readonly status: "rate-limited"; readonly position: number; readonly retryAfterMs: number };

export function waitingOf(gate: ReadonlyGate, id: string, now: number): Waiting | null {
  const ticket = gate.queue.entries.get(id)?.ticket;
  const position = ticketPosition(gate, id, now);
  if (ticket === undefined || position === null) return null;
  const until = rateLimitedUntil(gate, ticket.tokens, now);
  if (until !== null) return { status: "rate-limited", position, retryAfterMs: until - now };
  // It waits so long if calls go on to take what they took so far.
  const { completed, serviceMs } = gate.totals;
  const meanMs = completed === 0 ? SERVICE_MS_UNTIL_KNOWN : Math.floor(serviceMs / completed);
  const estimatedWaitMs = Math.floor((position * meanMs) / gate.settings.maxConcurrent);
  return { status: "queued", position, estimatedWaitMs };
}

/** How many of those that wait could go out at once, as far as is known without looking at each. */
export function admissible(gate: ReadonlyGate, tokens: number, now: number): number {
  const { held, slowStart, fresh, settings } = gate;
  if (rateLimit(gate, tokens, now) !== null) return 0;
  const room = settings.maxConcurrent - held.size;
  const mayGo = slowStart === null ? room : Math.min(room, slowStart - fresh);
  return Math.max(0, Math.min(mayGo, settings.requests - gate.requests.total(now)));
}

/** Calls that began before the episode still count against maxConcurrent, but are no reason to put off the probe. */
export function roomLimit(gate: ReadonlyGate): GateRoomLimit | null {
  const { slowStart } = gate;
  if (slowStart !== null && gate.fresh >= slowStart) return slowStart === 1 ? "probe" : "slow-start";
  return gate.held.size >= gate.settings.maxConcurrent ? "concurrency" : null;
}

function areRequestsFull(gate: ReadonlyGate, now: number): boolean {
  return gate.requests.total(now) >= gate.settings.requests;
}

function tokenLimit(gate: ReadonlyGate, tokens: number, now: number): TokenLimit | null {
  if (gate.tokens.size === 0) return null;
  for (const limit of TOKEN_LIMITS) {
    const sum = gate.tokens.get(limit);
    if (sum === undefined) continue;
    const used = sum.total(now) + gate.reserved;
    if (used > 0 && used + Math.max(1, tokens) > (gate.settings.tokens[limit] as number)) return limit;
  }
  return null;
}

function tokensUntil(gate: ReadonlyGate, limit: TokenLimit, tokens: number, now: number): number | null {
  const sum = gate.tokens.get(limit);
  if (sum === undefined) return null;
  const room = (gate.settings.tokens[limit] as number) - gate.reserved - Math.max(1, tokens);
  if (room >= 0) return sum.belowAt(room + 1, now);
  return gate.reserved === 0 ? sum.belowAt(1, now) : null;
}
