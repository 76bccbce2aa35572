/**
 * The connection of one pull worker: it joins, keeps one long poll open, renews the lease, comes back, leaves.
 *
 * It is the only one that knows the wire and the time; what is said and what an answer means is `session.ts`.
 * All it does is done by `step`, which looks at what is due and is called after everything that happens, so there is
 * no order of events that it would have to foresee.
 *
 * - A sync without results waits at the server, a quarter of a lease at most; that is what renews the lease.
 *   When there is something to say meanwhile, a newer sync goes out and the server ends the one that waits: at once,
 *   or within a millisecond if what was given just before may end in a moment too.
 * - A sync that is not answered in time is not given up, only doubted: another goes out beside it, and whichever
 *   answer comes first counts. So a connection that died silently is noticed within the lease, and a slow server is
 *   not mistaken for a dead one.
 * - While the server is away the rests double up to 10 s; with work at stake they stay short until the lease is over.
 *   A join that was not answered in time has more time when it is made again: a server that a thousand workers join at
 *   once would otherwise do in vain what it was asked, again and again.
 * - Who is thrown out because another has joined under its id joins again once: it may have been its own join that
 *   came late, or a server that was set back. If it happens again soon, two have the same id, and instead of throwing
 *   each other out for ever the one that was there first gives up.
 * - A server that answers at once and says nothing new is not asked in a tight loop.
 */
import { ClientError } from "../../client/index.ts";
import { errorText } from "../../core/base/index.ts";
import type { JoinBody, Joined } from "../../protocol/index.ts";
import { type Clock, present } from "../../std/index.ts";
import type { FromHandlers, LeaseCell, Stop, Terms, ToHandlers } from "./messages.ts";
import { DONE } from "./outcome.ts";
import * as pull from "./session.ts";
import type { HeardSync } from "./unread-tasks.ts";
import { failureKind, fatalOf, fieldOf, isJoinHopeless, isTaken, restMs, type Wire } from "./wire.ts";

export type ConnectionSettings = {
  readonly join: JoinBody & { readonly id: string; readonly slots: number };
  /** How long the server may be away before the worker gives up; null: for ever. */
  readonly giveUpMs: number | null;
  /** How many it runs at once to begin with; as many as it has slots if absent. */
  readonly limit?: number | undefined;
  /** How many it fetches ahead at most while its tasks are short; none if absent. */
  readonly aheadMax?: number | undefined;
  /** Where it keeps its logs, if it does. */
  readonly logPlace?: string | undefined;
};
export type ConnectionDeps = ConnectionSettings & {
  readonly wire: Wire;
  readonly clock: Clock;
  /** From 0 to 1. */
  readonly chance: () => number;
  readonly cell: LeaseCell;
  readonly tell: (message: ToHandlers) => void;
};
export type Connection = { receive(message: FromHandlers): void };

/** News that can wait does so for a moment: a quick handler then never costs a sync of its own. */
const SOON_MS = 30;
/** A result waits so long for those of tasks that were given just before, if there are any. */
const GATHER_MS = 1;
/** More is asked for so long after something was given: by then there is perhaps a result to tell. */
const ASK_MORE_MS = 3;
/** A server that has nothing new to say is not asked more often than this. */
const PACE_MS = 500;
const POLL_MS_MAX = 20_000;
/** How long a join may take. One given up is work for the server all the same: each has longer than the last. */
const JOIN_TIMEOUT_MS = { first: 10_000, max: 60_000 };
/** How long leaving may take: for the last results, and for saying goodbye. */
const LEAVE_MS = 5000;
/** A session that is lost sooner was perhaps taken by somebody with the same id: not so fast then. */
const SHORT_LIFE_MS = 60_000;
/** Taken by another so often, each time soon: there are two of the same id, and the other one may have it. */
const TAKEN_MAX = 2;
const FAILURES_TOLD = 3;
/** So many failures count at most while something is at stake. */
const SHORT_RESTS = 4;
/** Of the time in which a sync is due. */
const DOUBTED_AFTER = 0.9;

type Current = {
  readonly n: number;
  readonly sentAt: number;
  readonly waitMs: number;
  /** The server may hold it. */
  readonly isQuiet: boolean;
  readonly answerDueBy: number;
};
const NEVER = Number.POSITIVE_INFINITY;
const AT_ONCE = Number.NEGATIVE_INFINITY;

type State = ConnectionDeps & ReturnType<typeof begin>;

/** Nothing is joined yet, nothing is said. */
const begin = ({ join: { slots }, limit, aheadMax, logPlace, cell }: ConnectionDeps) => ({
  session: pull.createPullSession({
    slots,
    limit,
    aheadMax,
    logPlace,
    begunSoFar: cell.begun,
    revoke: cell.revoke,
    disown: cell.disown,
  }),
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
  /** That it was away was told, and that it is back was not yet. */
  isBackUntold: false,
  retryAt: AT_ONCE,
  dueAt: AT_ONCE,
  mildAt: NEVER,
  /** What is urgent goes out by then. */
  gatherUntil: NEVER,
  isAskedToLeave: false,
  leaveBy: NEVER,
  /** As they were told last. */
  terms: { leaseMs: 0, maxWorktrees: null, tokenKey: null } as Terms,
  isStepDue: false,
  alarmAt: NEVER,
  cancelAlarm: () => {},
});

export function startConnection(deps: ConnectionDeps): Connection {
  const state: State = { ...deps, ...begin(deps) };
  stepSoon(state);
  return { receive: (message) => guard(state, () => receive(state, message)) };
}

/** A mistake of ours ends this worker and says what it was, and not the thread with all other workers. */
function guard(state: State, act: () => void): void {
  try {
    act();
  } catch (error) {
    stop(state, error);
  }
}

/** Everything that has arrived by then is said in one. */
function stepSoon(state: State): void {
  if (state.isStepDue) return;
  state.isStepDue = true;
  state.clock.defer(() => {
    state.isStepDue = false;
    guard(state, () => step(state));
  });
}

function step(state: State): void {
  if (state.phase === "over") return;
  const now = state.clock.elapsed();
  if (pull.isAtWork(state.session) && now >= state.session.leaseEnd) expire(state);
  pull.endAhead(state.session, now);
  const back = pull.takeBack(state.session, now);
  if (back.length > 0) state.tell({ type: "give-back", attempts: back });
  if (state.phase === "joining") stepJoining(state, now);
  else if (state.phase === "joined") stepJoined(state, now);
  else if (!state.isCalling && now >= state.retryAt) leave(state, now);
  lookAgain(state);
}

function stepJoining(state: State, now: number): void {
  // Its session, if the server has made one, ends with its lease.
  if (state.isCalling && now >= state.leaveBy) finish(state);
  if (state.isCalling) return;
  if (state.isAskedToLeave || (state.session.isDraining && pull.isEmpty(state.session))) finish(state);
  else if (now >= state.retryAt && !state.session.isDraining) join(state, now);
}

function stepJoined(state: State, now: number): void {
  const late = pull.disownLate(state.session, now);
  tellStops(state, late);
  // They are named no more: the server is to hear that soon.
  if (late.length > 0) state.dueAt = now;
  if (mayLeave(state, now)) {
    state.phase = "leaving";
    state.leaveBy = now + LEAVE_MS;
    return leave(state, now);
  }
  if (state.current !== null && now >= state.current.answerDueBy) {
    onSilence(state, state.current, now);
    if (hasEnded(state)) return;
  }
  const unsaid = pull.unsaid(state.session, now);
  state.mildAt = unsaid === "mild" ? Math.min(state.mildAt, now + SOON_MS) : NEVER;
  if (unsaid !== "urgent") state.gatherUntil = NEVER;
  const isUrgent = (unsaid === "urgent" && isGathered(state, now)) || now >= state.mildAt;
  if (
    state.current === null
      ? now >= state.retryAt && (isUrgent || now >= state.dueAt)
      : state.current.isQuiet && isUrgent
  )
    sync(state, now);
}

/** Tasks that were given together mostly end together, and are reported in one sync. */
function isGathered(state: State, now: number): boolean {
  state.gatherUntil = Math.min(state.gatherUntil, now + GATHER_MS);
  return now >= state.gatherUntil || !pull.isFresh(state.session, now);
}

function mayLeave(state: State, now: number): boolean {
  if (state.isAskedToLeave) return !pull.hasWord(state.session) || now >= state.leaveBy;
  return state.session.isDraining && pull.isEmpty(state.session);
}

/** An alarm that rings earlier than need be is left as it is: to set one for every step costs more. */
function lookAgain(state: State): void {
  const next = nextDue(state);
  if (state.alarmAt <= next) return;
  state.cancelAlarm();
  state.alarmAt = next;
  state.cancelAlarm = state.clock.ringAt(Math.max(next, state.clock.elapsed()), () => {
    state.alarmAt = NEVER;
    guard(state, () => step(state));
  });
}

function nextDue(state: State): number {
  const { session } = state;
  const due = [pull.endAheadAt(session)];
  if (pull.isAtWork(session)) due.push(session.leaseEnd, pull.takeBackAt(session));
  if (state.phase === "joined") {
    const { current, retryAt, dueAt, mildAt, gatherUntil } = state;
    if (current === null) due.push(Math.max(retryAt, Math.min(dueAt, mildAt, gatherUntil)));
    else due.push(current.answerDueBy, ...(current.isQuiet ? [mildAt, gatherUntil] : []));
    due.push(session.lateAt);
    if (state.isAskedToLeave) due.push(state.leaveBy);
  } else if (state.phase !== "over" && !state.isCalling && !(state.phase === "joining" && state.session.isDraining))
    due.push(state.retryAt);
  else if (state.phase === "joining") due.push(state.leaveBy);
  return Math.min(...due);
}

function join(state: State, now: number): void {
  state.isCalling = true;
  const { first, max } = JOIN_TIMEOUT_MS;
  state.wire.join(state.join, Math.min(max, first * 2 ** state.failures)).then(
    (joined) => guard(state, () => onJoined(state, joined, now)),
    (error: unknown) => guard(state, () => onJoinFailed(state, error)),
  );
}

function onJoined(state: State, joined: Joined, sentAt: number): void {
  if (state.phase === "over") return;
  state.isCalling = false;
  pull.join(state.session, joined, sentAt);
  state.cell.write(state.session.leaseEnd);
  state.phase = "joined";
  state.hasJoined = true;
  state.joinedAt = state.clock.elapsed();
  state.current = null;
  onAnswer(state);
  state.dueAt = AT_ONCE;
  const { workerId, session: name, leaseMs, maxWorktrees = null, tokenKey = null } = joined;
  state.terms = { leaseMs, maxWorktrees, tokenKey };
  state.tell({ type: "joined", workerId, session: name, leaseMs, maxWorktrees, tokenKey });
  stepSoon(state);
}

function onJoinFailed(state: State, error: unknown): void {
  if (state.phase === "over") return;
  state.isCalling = false;
  if (isJoinHopeless(error, !state.hasJoined)) stop(state, error);
  else onAway(state, error);
  stepSoon(state);
}

function sync(state: State, now: number): void {
  const mayWaitMs = mayBeHeld(state, now) ? pollMs(state.session.leaseMs) : 0;
  const { n, workerId, waitMs, isQuiet, text } = pull.compose(state.session, now, mayWaitMs);
  const dueMs = (isQuiet ? waitMs : 0) + state.session.leaseMs / 4;
  const answerDueBy = now + dueMs;
  state.current = { n, sentAt: now, waitMs, isQuiet, answerDueBy };
  state.mildAt = NEVER;
  state.gatherUntil = NEVER;
  // A moment before: the sync that is sent then goes to another node, if there is one.
  state.wire.sync(workerId, text, waitMs + state.session.leaseMs, dueMs * DOUBTED_AFTER, n).then(
    (answer) => guard(state, () => onHeard(state, n, answer)),
    (error: unknown) => guard(state, () => onSyncFailed(state, n, error)),
  );
}

/** One with results too, if nothing else could end meanwhile: then it is the next poll as well. */
function mayBeHeld({ session, failures }: State, now: number): boolean {
  if (failures > 0 || pull.isNaming(session, now)) return false;
  return !session.isBrief || !pull.hasResults(session) || (pull.isIdle(session) && !session.isDraining);
}

function onHeard(state: State, n: number, answer: HeardSync): void {
  if (state.phase !== "joined" || !pull.isOpen(state.session, n)) return;
  const now = state.clock.elapsed();
  const heard = pull.hear(state.session, n, answer, now);
  const { start, unread, unreadable, stop: stops, refused, drain, lost, wanted, over, isNew, isWhole } = heard;
  if (unreadable !== null) warn(state, `an answer of the server cannot be read: ${unreadable}`);
  if (over.length > 0) state.tell({ type: "over", tasks: over });
  state.cell.write(state.session.leaseEnd);
  tellTerms(state, answer);
  tellStops(state, stops);
  if (start.length > 0)
    state.tell(unread === null ? { type: "start", assignments: start } : { type: "start-unread", ...unread });
  if (wanted !== null) state.tell({ type: "logs", wanted });
  for (const { taskId, attempt, code } of refused)
    warn(state, `the result of task ${taskId}, attempt ${attempt}, was not taken: ${code ?? "refused"}`);
  if (lost.length > 0) warn(state, `another worker has taken over ${lost.join(", ")}: not this one's any more`);
  if (drain && !state.session.isDraining) {
    pull.drain(state.session);
    state.tell({ type: "draining" });
  }
  const { failures } = state;
  onAnswer(state);
  // What was refused before is perhaps refused again: until it is heard the rests go on growing.
  if (!isWhole) state.failures = failures;
  if (state.current?.n === n) {
    const { sentAt, waitMs } = state.current;
    state.current = null;
    if (!isNew) state.dueAt = sentAt + Math.min(PACE_MS, waitMs);
    else if (start.length === 0) state.dueAt = now;
    else state.dueAt = now + (pull.free(state.session, now) === 0 ? SOON_MS : ASK_MORE_MS);
  }
  stepSoon(state);
}

function onSyncFailed(state: State, n: number, error: unknown): void {
  if (state.phase !== "joined" || !pull.isOpen(state.session, n)) return;
  const isCurrent = state.current?.n === n;
  const kind = failureKind(error);
  if (kind === "denied") stop(state, error);
  else if (kind === "lost") lose(state, error);
  else if (kind === "refused") onRefused(state, n, error);
  else pull.fail(state.session, n);
  if (isCurrent && state.phase === "joined") {
    state.current = null;
    onAway(state, error);
  }
  stepSoon(state);
}

function onRefused(state: State, n: number, error: unknown): void {
  warn(state, `a sync was refused: ${errorText(error)}`);
  pull.refuse(state.session, n, fieldOf(error), `the server would not take its result: ${errorText(error)}`);
}

function onAnswer(state: State): void {
  if (state.isBackUntold) warn(state, "the server answers now");
  state.failures = 0;
  state.awaySince = NEVER;
  state.isAwayTold = state.isBackUntold = false;
  state.retryAt = AT_ONCE;
}

/** The next sync goes beside the one that is doubted. What the server was free to hold it for is no silence. */
function onSilence(state: State, { n, sentAt, waitMs, isQuiet }: Current, now: number): void {
  pull.doubt(state.session, n);
  state.current = null;
  const since = isQuiet ? sentAt + waitMs : sentAt;
  noteAway(state, since, new ClientError("timeout", `no answer from the server for ${Math.round(now - since)} ms`));
}

function onAway(state: State, error: unknown): void {
  const now = state.clock.elapsed();
  noteAway(state, now, error);
  const longest = isAtStake(state, now) ? state.session.leaseMs / 10 : undefined;
  state.retryAt = now + restMs(state.failures, state.chance(), longest);
}

const isAtStake = ({ session }: State, now: number): boolean =>
  pull.isAtWork(session) || (pull.hasResults(session) && now < session.leaseEnd);

const hasEnded = ({ phase }: State): boolean => phase === "over";

function noteAway(state: State, since: number, error: unknown): void {
  const now = state.clock.elapsed();
  state.awaySince = Math.min(state.awaySince, since);
  // The rests behind the lease would begin with the longest, if all the short ones of before counted.
  state.failures = isAtStake(state, now) ? Math.min(state.failures + 1, SHORT_RESTS) : state.failures + 1;
  if (state.failures >= FAILURES_TOLD && !state.isAwayTold) {
    state.isAwayTold = state.isBackUntold = true;
    warn(state, `${errorText(error)}; trying again until it answers`);
  }
  if (state.giveUpMs !== null && now - state.awaySince >= state.giveUpMs) stop(state, error);
}

/** No other worker may begin what runs here while it runs: it is stopped before the server gives it away. */
function expire(state: State): void {
  const stops = pull.expire(state.session);
  state.isBackUntold = true;
  warn(
    state,
    `no answer from the server for a whole lease (${state.session.leaseMs} ms): ${stops.length} attempts are stopped`,
  );
  tellStops(state, stops);
}

function lose(state: State, error: unknown): void {
  const now = state.clock.elapsed();
  const isShort = now - state.joinedAt < SHORT_LIFE_MS;
  state.shortLives = isShort ? state.shortLives + 1 : 0;
  state.taken = isTaken(error) ? (isShort ? state.taken : 0) + 1 : 0;
  if (state.taken >= TAKEN_MAX) return stop(state, takenFrom(state.join.id, error));
  tellStops(state, pull.lose(state.session));
  state.cell.write(0);
  warn(
    state,
    state.taken > 0
      ? `another worker has joined as ${state.join.id}: give each its own id; joining again`
      : `the server does not know this worker any more (${errorText(error)}): joining again`,
  );
  const rest = state.shortLives === 0 ? 0 : restMs(state.shortLives, state.chance());
  state.phase = "joining";
  state.current = null;
  state.failures = 0;
  state.retryAt = now + rest;
}

function leave(state: State, now: number): void {
  state.isCalling = true;
  const gone = (): void => finish(state);
  state.wire
    .leave(state.session.workerId ?? "", state.session.session, Math.max(1, state.leaveBy - now))
    .then(gone, (error: unknown) => {
      state.isCalling = false;
      const isOver = failureKind(error) !== "away" || state.clock.elapsed() >= state.leaveBy;
      if (isOver) return finish(state);
      onAway(state, error);
      state.retryAt = Math.min(state.retryAt, state.leaveBy);
      stepSoon(state);
    });
}

function finish(state: State): void {
  if (state.phase === "over") return;
  end(state);
  state.tell({ type: "left" });
}

function stop(state: State, error: unknown): void {
  if (state.phase === "over") return;
  const stops = pull.lose(state.session);
  end(state);
  tellStops(state, stops);
  state.tell({ type: "failed", error: fatalOf(error) });
}

function end(state: State): void {
  state.phase = "over";
  state.cancelAlarm();
  state.cell.write(0);
}

function tellStops(state: State, stops: readonly Stop[]): void {
  if (stops.length > 0) state.tell({ type: "stop", stops });
}

/** Limits that the server may change while this worker is here; one that does not say has not changed them. */
function tellTerms(state: State, answer: HeardSync): void {
  const { terms } = state;
  const { maxWorktrees = terms.maxWorktrees, tokenKey = terms.tokenKey } = answer;
  const { leaseMs } = state.session;
  if (leaseMs === terms.leaseMs && maxWorktrees === terms.maxWorktrees && tokenKey === terms.tokenKey) return;
  state.terms = { leaseMs, maxWorktrees, tokenKey };
  state.tell({ type: "terms", leaseMs, maxWorktrees, tokenKey });
}

function warn(state: State, message: string): void {
  state.tell({ type: "warning", message });
}

function receive(state: State, message: FromHandlers): void {
  switch (message.type) {
    case "began":
      pull.began(state.session, message);
      break;
    case "ended":
      pull.end(state.session, message, message.report);
      break;
    case "all-done":
      for (let index = 0; index < message.names.length; index += 2) {
        const attempt = { taskId: message.names[index] as string, attempt: message.names[index + 1] as number };
        pull.end(state.session, attempt, DONE);
      }
      break;
    case "progress":
      for (const { progress, usage, ...attempt } of message.items)
        pull.tell(state.session, attempt, present({ progress, usage }));
      break;
    case "limit":
      pull.limit(state.session, message.count, message.note);
      break;
    case "limit-worktrees":
      pull.limitWorktrees(state.session, message.count, message.note);
      break;
    case "drain":
      pull.drain(state.session);
      break;
    case "closing":
      pull.close(state.session);
      break;
    case "leave":
      if (state.isAskedToLeave) break;
      state.isAskedToLeave = true;
      state.leaveBy = state.clock.elapsed() + LEAVE_MS;
      break;
    default:
      message satisfies never;
  }
  stepSoon(state);
}

const takenFrom = (id: string, error: unknown): Error => {
  const { code, status } = fatalOf(error);
  return Object.assign(new Error(`another worker has joined as ${id}: give each its own id`), { code, status });
};

/** How long the server may hold a sync: short enough that one that got lost is mended within the lease. */
const pollMs = (leaseMs: number): number => Math.max(1, Math.min(POLL_MS_MAX, Math.floor(leaseMs / 4)));
