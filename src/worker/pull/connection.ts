/**
 * The connection of one pull worker: it joins, keeps one long poll open, renews the lease, comes back, leaves.
 *
 * It is the only one that knows the wire and the time; what is said and what an answer means is `session.ts`.
 * All it does is done by `step`, which looks at what is due and is called after everything that happens, so there is
 * no order of events that it would have to foresee.
 *
 * - A sync without results waits at the server for news, a quarter of a lease at most; that is what renews the lease.
 *   When there is something to say meanwhile, a newer sync goes out at once and the server ends the one that waits.
 * - A sync that is not answered in time is not given up, only doubted: another goes out beside it, and whichever
 *   answer comes first counts. So a connection that died silently is noticed within the lease, and a slow server is
 *   not mistaken for a dead one.
 * - While the server is away the rests double up to 10 s; with work at stake they stay short until the lease is over.
 * - Who is thrown out because another has joined under its id joins again once: it may have been its own join that
 *   came late, or a server that was set back. If it happens again soon, two have the same id, and instead of throwing
 *   each other out for ever the one that was there first gives up.
 * - A server that answers at once and says nothing new is not asked in a tight loop.
 */
import type { JoinBody, Joined, SyncAnswer } from "../../protocol/index.ts";
import type { Clock } from "../../std/index.ts";
import type { LeaseCell } from "./lease-cell.ts";
import type { FromCrew, Stop, ToCrew } from "./messages.ts";
import { createPullSession } from "./session.ts";
import { failureKind, fatalOf, fieldOf, isJoinHopeless, isTaken, messageOf, type Wire } from "./wire.ts";

export type ConnectionSettings = {
  readonly join: JoinBody & { readonly id: string; readonly slots: number };
  /** How long the server may be away before the worker gives up; null: for ever. */
  readonly giveUpMs: number | null;
  /** How many it runs at once to begin with; as many as it has slots if absent. */
  readonly limit?: number | undefined;
  /** Where it keeps its logs, if it does. */
  readonly logPlace?: string | undefined;
};
export type ConnectionDeps = ConnectionSettings & {
  readonly wire: Wire;
  readonly clock: Clock;
  /** From 0 to 1. */
  readonly chance: () => number;
  readonly cell: LeaseCell;
  readonly tell: (message: ToCrew) => void;
};
export type Connection = { receive(message: FromCrew): void };

/** News that can wait does so for a moment: a quick handler then never costs a sync of its own. */
const SOON_MS = 30;
/** A server that has nothing new to say is not asked more often than this. */
const PACE_MS = 500;
const POLL_MS_MAX = 20_000;
const REST_MS = { first: 100, max: 10_000 };
const JOIN_TIMEOUT_MS = 10_000;
/** How long leaving may take: for the last results, and for saying goodbye. */
const LEAVE_MS = 5000;
/** A session that is lost sooner was perhaps taken by somebody with the same id: not so fast then. */
const SHORT_LIFE_MS = 60_000;
/** Taken by another so often, each time soon: there are two of the same id, and the other one may have it. */
const TAKEN_MAX = 2;
const FAILURES_TOLD = 3;

type Current = {
  readonly n: number;
  readonly sentAt: number;
  readonly waitMs: number;
  /** Carries no results, so the server may hold it. */
  readonly isQuiet: boolean;
  readonly overdueAt: number;
};
const NEVER = Number.POSITIVE_INFINITY;
const AT_ONCE = Number.NEGATIVE_INFINITY;

export function startConnection(deps: ConnectionDeps): Connection {
  const { wire, clock, cell, tell } = deps;
  const session = createPullSession({ slots: deps.join.slots, limit: deps.limit, logPlace: deps.logPlace });
  const at = {
    phase: "joining" as "joining" | "joined" | "leaving" | "over",
    isCalling: false,
    hasJoined: false,
    joinedAt: AT_ONCE,
    shortLives: 0,
    taken: 0,
    current: null as Current | null,
    failures: 0,
    awaySince: NEVER,
    isAwayTold: false,
    retryAt: AT_ONCE,
    dueAt: AT_ONCE,
    mildAt: NEVER,
    isAskedToLeave: false,
    leaveBy: NEVER,
    leaseMs: 0,
    maxWorktrees: null as number | null,
    isStepDue: false,
    cancelAlarm: () => {},
  };

  /** Everything that has arrived by then is said in one. */
  function stepSoon(): void {
    if (at.isStepDue) return;
    at.isStepDue = true;
    clock.defer(() => {
      at.isStepDue = false;
      step();
    });
  }

  function step(): void {
    if (at.phase === "over") return;
    const now = clock.elapsed();
    if (session.isAtWork && now >= session.leaseEnd) expire();
    if (at.phase === "joining") stepJoining(now);
    else if (at.phase === "joined") stepJoined(now);
    else if (!at.isCalling && now >= at.retryAt) leave(now);
    lookAgain();
  }

  function stepJoining(now: number): void {
    if (at.isCalling) return;
    if (at.isAskedToLeave || (session.isDraining && session.isEmpty)) finish();
    else if (now >= at.retryAt && !session.isDraining) join(now);
  }

  function stepJoined(now: number): void {
    if (mayLeave(now)) {
      at.phase = "leaving";
      at.leaveBy = now + LEAVE_MS;
      return leave(now);
    }
    if (at.current !== null && now >= at.current.overdueAt) {
      session.doubt(at.current.n);
      at.current = null;
      at.failures++;
    }
    const unsaid = session.unsaid(now);
    at.mildAt = unsaid === "mild" ? Math.min(at.mildAt, now + SOON_MS) : NEVER;
    const isUrgent = unsaid === "urgent" || now >= at.mildAt;
    if (at.current === null ? now >= at.retryAt && (isUrgent || now >= at.dueAt) : at.current.isQuiet && isUrgent)
      sync(now);
  }

  function mayLeave(now: number): boolean {
    if (at.isAskedToLeave) return !session.hasResults || now >= at.leaveBy;
    return session.isDraining && session.isEmpty;
  }

  function lookAgain(): void {
    at.cancelAlarm();
    at.cancelAlarm = () => {};
    const due = session.isAtWork ? [session.leaseEnd] : [];
    if (at.phase === "joined") {
      const { current, retryAt, dueAt, mildAt } = at;
      if (current === null) due.push(Math.max(retryAt, Math.min(dueAt, mildAt)));
      else due.push(current.overdueAt, ...(current.isQuiet ? [mildAt] : []));
      if (at.isAskedToLeave) due.push(at.leaveBy);
    } else if (at.phase !== "over" && !at.isCalling && !(at.phase === "joining" && session.isDraining))
      due.push(at.retryAt);
    const next = Math.min(...due);
    if (next < NEVER) at.cancelAlarm = clock.ringAt(Math.max(next, clock.elapsed()), step);
  }

  function join(now: number): void {
    at.isCalling = true;
    wire.join(deps.join, JOIN_TIMEOUT_MS).then(
      (joined) => onJoined(joined, now),
      (error: unknown) => onJoinFailed(error),
    );
  }

  function onJoined(joined: Joined, sentAt: number): void {
    at.isCalling = false;
    session.join(joined, sentAt);
    cell.write(session.leaseEnd);
    Object.assign(at, { phase: "joined", hasJoined: true, joinedAt: clock.elapsed(), current: null });
    onAnswer();
    at.dueAt = AT_ONCE;
    const { workerId, session: name, leaseMs, maxWorktrees = null } = joined;
    Object.assign(at, { leaseMs, maxWorktrees });
    tell({ type: "joined", workerId, session: name, leaseMs, maxWorktrees });
    stepSoon();
  }

  function onJoinFailed(error: unknown): void {
    at.isCalling = false;
    if (isJoinHopeless(error, !at.hasJoined)) stop(error);
    else onAway(error);
    stepSoon();
  }

  function sync(now: number): void {
    const waitMs = at.failures > 0 || session.isNaming(now) ? 0 : pollMs(session.leaseMs);
    const { n, workerId, body } = session.compose(now, waitMs);
    const isQuiet = body.results === undefined;
    const overdueAt = now + (isQuiet ? waitMs : 0) + session.leaseMs / 4;
    at.current = { n, sentAt: now, waitMs, isQuiet, overdueAt };
    at.mildAt = NEVER;
    wire.sync(workerId, body, session.leaseMs).then(
      (answer) => onHeard(n, answer),
      (error: unknown) => onSyncFailed(n, error),
    );
  }

  function onHeard(n: number, answer: SyncAnswer): void {
    if (at.phase !== "joined" || !session.isOpen(n)) return;
    const now = clock.elapsed();
    const { start, stop: stops, refused, drain, lost, wanted, isNews } = session.hear(n, answer, now);
    cell.write(session.leaseEnd);
    tellTerms(answer);
    tellStops(stops);
    if (start.length > 0) tell({ type: "start", assignments: start });
    if (wanted !== null) tell({ type: "logs", wanted });
    for (const { taskId, attempt, code } of refused)
      warn(`the result of task ${taskId}, attempt ${attempt}, was not taken: ${code ?? "refused"}`);
    if (lost.length > 0) warn(`another worker has taken over ${lost.join(", ")}: not this one's any more`);
    if (drain && !session.isDraining) {
      session.drain();
      tell({ type: "draining" });
    }
    onAnswer();
    if (at.current?.n === n) {
      const { sentAt, waitMs } = at.current;
      at.current = null;
      if (!isNews) at.dueAt = sentAt + Math.min(PACE_MS, waitMs);
      else at.dueAt = start.length > 0 && session.free(now) === 0 ? now + SOON_MS : now;
    }
    stepSoon();
  }

  function onSyncFailed(n: number, error: unknown): void {
    if (at.phase !== "joined" || !session.isOpen(n)) return;
    const isCurrent = at.current?.n === n;
    const kind = failureKind(error);
    if (kind === "denied") stop(error);
    else if (kind === "lost") lose(error);
    else if (kind === "refused") onRefused(n, error);
    else session.fail(n);
    if (isCurrent && at.phase === "joined") {
      at.current = null;
      onAway(error);
    }
    stepSoon();
  }

  function onRefused(n: number, error: unknown): void {
    warn(`a sync was refused: ${messageOf(error)}`);
    session.refuse(n, fieldOf(error), `the server would not take its result: ${messageOf(error)}`);
  }

  function onAnswer(): void {
    Object.assign(at, { failures: 0, awaySince: NEVER, isAwayTold: false, retryAt: AT_ONCE });
  }

  function onAway(error: unknown): void {
    const now = clock.elapsed();
    at.failures++;
    at.awaySince = Math.min(at.awaySince, now);
    at.retryAt = now + restMs(at.failures, deps.chance(), session.isAtWork ? session.leaseMs / 10 : REST_MS.max);
    if (at.failures >= FAILURES_TOLD && !at.isAwayTold) {
      at.isAwayTold = true;
      warn(`${messageOf(error)}; trying again until it answers`);
    }
    if (deps.giveUpMs !== null && now - at.awaySince >= deps.giveUpMs) stop(error);
  }

  /** Nobody else may begin what runs here while it runs: it is stopped before the server gives it away. */
  function expire(): void {
    const stops = session.expire();
    warn(`no answer from the server for a whole lease (${session.leaseMs} ms): ${stops.length} attempts are stopped`);
    tellStops(stops);
  }

  function lose(error: unknown): void {
    const now = clock.elapsed();
    const isShort = now - at.joinedAt < SHORT_LIFE_MS;
    at.shortLives = isShort ? at.shortLives + 1 : 0;
    at.taken = isTaken(error) ? (isShort ? at.taken : 0) + 1 : 0;
    if (at.taken >= TAKEN_MAX) return stop(takenFrom(deps.join.id, error));
    tellStops(session.lose());
    cell.write(0);
    warn(
      at.taken > 0
        ? `another worker has joined as ${deps.join.id}: give each its own id; joining again`
        : `the server does not know this worker any more (${messageOf(error)}): joining again`,
    );
    const rest = at.shortLives === 0 ? 0 : restMs(at.shortLives, deps.chance(), REST_MS.max);
    Object.assign(at, { phase: "joining", current: null, failures: 0, retryAt: now + rest });
  }

  function leave(now: number): void {
    at.isCalling = true;
    const gone = (): void => finish();
    wire.leave(session.workerId ?? "", session.session, Math.max(1, at.leaveBy - now)).then(gone, (error: unknown) => {
      at.isCalling = false;
      const isOver = failureKind(error) !== "away" || clock.elapsed() >= at.leaveBy;
      if (isOver) return finish();
      onAway(error);
      at.retryAt = Math.min(at.retryAt, at.leaveBy);
      stepSoon();
    });
  }

  function finish(): void {
    if (at.phase === "over") return;
    end();
    tell({ type: "left" });
  }

  function stop(error: unknown): void {
    if (at.phase === "over") return;
    const stops = session.lose();
    end();
    tellStops(stops);
    tell({ type: "failed", error: fatalOf(error) });
  }

  function end(): void {
    at.phase = "over";
    at.cancelAlarm();
    cell.write(0);
  }

  function tellStops(stops: readonly Stop[]): void {
    if (stops.length > 0) tell({ type: "stop", stops });
  }

  /** Limits that the server may change while this worker is here; one that does not say has not changed them. */
  function tellTerms({ maxWorktrees = at.maxWorktrees }: { readonly maxWorktrees?: number | null }): void {
    const { leaseMs } = session;
    if (leaseMs === at.leaseMs && maxWorktrees === at.maxWorktrees) return;
    Object.assign(at, { leaseMs, maxWorktrees });
    tell({ type: "terms", leaseMs, maxWorktrees });
  }

  function warn(message: string): void {
    tell({ type: "warning", message });
  }

  function receive(message: FromCrew): void {
    switch (message.type) {
      case "began":
        session.began(message);
        break;
      case "ended":
        session.end(message, message.report);
        break;
      case "news":
        for (const { progress, usage, ...attempt } of message.items)
          session.tell(attempt, {
            ...(progress === undefined ? {} : { progress }),
            ...(usage === undefined ? {} : { usage }),
          });
        break;
      case "limit":
        session.limit(message.count, message.note);
        break;
      case "drain":
        session.drain();
        break;
      case "closing":
        session.close();
        break;
      case "leave":
        if (!at.isAskedToLeave) Object.assign(at, { isAskedToLeave: true, leaveBy: clock.elapsed() + LEAVE_MS });
        break;
      default:
        message satisfies never;
    }
    stepSoon();
  }

  stepSoon();
  return { receive };
}

const takenFrom = (id: string, error: unknown): Error =>
  Object.assign(new Error(`another worker has joined as ${id}: give each its own id`), {
    code: fatalOf(error).code,
    status: fatalOf(error).status,
  });

/** How long the server may hold a sync: short enough that one that got lost is mended within the lease. */
const pollMs = (leaseMs: number): number => Math.max(1, Math.min(POLL_MS_MAX, Math.floor(leaseMs / 4)));

function restMs(failures: number, chance: number, max: number): number {
  const rest = Math.min(REST_MS.max, max, REST_MS.first * 2 ** Math.min(failures - 1, 20));
  return rest * (0.5 + chance / 2);
}
