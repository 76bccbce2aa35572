/**
 * Many calls in one request, each as if it had come alone: who may make it, what it takes, what it answers or refuses.
 *
 * They are begun in their order, and one that names what an earlier one makes or ends waits until that one is
 * answered, if it could not be decided at once. What else a call waits for, such as the disk, all wait for together;
 * so none of them may wait for a grant. Between them other requests get their turn: a thousand submits take longer
 * than anybody else should wait. They even go first for a while: workers that wait behind submits stand idle, while
 * tasks that are queued a moment later wait no longer for it. The more so where much is queued already: then whoever
 * submits goes at the pace of the workers, instead of filling the memory faster than they can empty it. The next bulk
 * of the same client is begun behind them (bulk-order.ts).
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { badField, isRecord } from "../core/base/index.ts";
import { refused } from "../engine/base/index.ts";
import type { Problem } from "../http/index.ts";
import type { BulkCalls } from "../protocol/calls/index.ts";
import { type BulkItem, bulkCall, CALLS, type Call, type CallName, readShape } from "../protocol/index.ts";
import { BULK_CALLS, BULK_HEADER, type BulkName } from "../protocol/wire/index.ts";
import { bodyOf, checkCaller, orThrow, withAgent } from "./answer-call.ts";
import type { BulkOrder } from "./bulk-order.ts";
import { Decided, type Exchange, type Handlers } from "./handlers/handler.ts";
import type { ServerPhase } from "./life/phase.ts";

export type BulkParts = {
  readonly handlers: Omit<Handlers, keyof BulkCalls>;
  readonly phase: Pick<ServerPhase, "check" | "turnover">;
  readonly problemOf: (error: unknown) => Problem;
  readonly onBug: (error: unknown, route: string) => void;
  readonly order: BulkOrder;
  /** How many tasks are queued, and how many run. */
  readonly load: () => Load;
  /** Milliseconds, of any beginning. */
  readonly elapsed: () => number;
  readonly rest: (ms: number) => Promise<unknown>;
};

/** How long calls are begun one after the other without a turn for others. */
const SLICE_MS = 1.5;
/** For so long others may go first between two slices. */
const PATIENCE_MS = 10;
const REST_MS = 2;
type Load = { readonly queued: number; readonly inFlight: number };
/** So much is queued that the workers have enough to do for as long, even with tasks that take no time. */
const isEnough = ({ queued, inFlight }: Load): boolean => queued > 1000 + 2 * inFlight;
const STATUS = Object.fromEntries(
  BULK_CALLS.map((name) => [name, Number(Object.keys(CALLS[name].answers)[0])]),
) as Readonly<Record<BulkName, number>>;
type AnyHandler = (asked: unknown, exchange: Exchange) => unknown;

export function bulkHandler(parts: BulkParts): Handlers<"bulk"> {
  return {
    async bulk({ body: { calls } }, given) {
      const place = given.request.headers[BULK_HEADER];
      const begun = await parts.order.turn(place);
      // Whoever sent it sees by this that the answer is its own.
      if (place !== undefined) given.headers.push(BULK_HEADER, String(place));
      const answers = await beginAll(parts, calls, given).finally(begun);
      return { answers: await toldTogether(parts, answers) };
    },
  };
}

async function beginAll(parts: BulkParts, calls: readonly unknown[], given: Exchange): Promise<Begun[]> {
  // The headers of the whole answer are not for its calls to add to.
  const exchange = { ...given, headers: [] };
  const answers: Begun[] = [];
  /** What is being made or ended, by its id. */
  const underWay = new Map<string, Promise<BulkItem>>();
  let until = parts.elapsed() + SLICE_MS;
  let turnover = parts.phase.turnover();
  for (let index = 0; index < calls.length; index++) {
    const call = calls[index];
    if (underWay.size > 0) await Promise.all(namedBy(call).map((id) => underWay.get(id)));
    const answer = answerOne(parts, call, `calls[${index}]`, exchange);
    answers.push(answer);
    if (answer instanceof Promise) for (const id of idsOf(call)) underWay.set(id, answer);
    if (parts.elapsed() < until) continue;
    await untilQuiet(parts, turnover);
    turnover = parts.phase.turnover();
    until = parts.elapsed() + SLICE_MS;
  }
  return answers;
}

/**
 * Until a turn has passed in which no other request was begun or answered, or there was no such turn for long. Where
 * more waits than the workers can begin meanwhile, all of that time is theirs, if they are there: `before` is what the
 * turnover was a slice ago.
 */
async function untilQuiet({ phase, elapsed, load, rest }: BulkParts, before: number): Promise<void> {
  const until = elapsed() + PATIENCE_MS;
  for (let seen = Number.NaN; elapsed() < until; ) {
    const now = phase.turnover();
    const isTheirs = isEnough(load()) && now !== before;
    if (now === seen && !isTheirs) return;
    seen = now;
    // A loop that only waits would take a core from the very workers it waits for.
    await (isTheirs ? rest(REST_MS) : nextTurn());
  }
}

type Begun = BulkItem | Later | Promise<BulkItem>;

/** What is decided waits for the disk once, and not each of them by itself. */
async function toldTogether(parts: BulkParts, answers: readonly Begun[]): Promise<BulkItem[]> {
  // Nearly always one: a node of a cluster that lost the lead in between, and has it again, is in another life.
  const lives = new Set(answers.map((answer) => (answer instanceof Later ? answer.decided.settled : NOTHING)));
  const stopped = new Map<Settled, { readonly why: unknown }>();
  // All that a life has decided by now is durable when it says so.
  for (const settled of lives) await settled().catch((why: unknown) => void stopped.set(settled, { why }));
  const told: BulkItem[] = [];
  for (const answer of answers) {
    if (answer instanceof Later) told.push(answer.told(parts, stopped.get(answer.decided.settled)));
    else told.push(answer instanceof Promise ? await answer : answer);
  }
  return told;
}

type Settled = Decided<unknown>["settled"];
const NOTHING: Settled = async () => {};

/** The answer of a call that is decided. */
class Later {
  private readonly name: CallName;
  private readonly status: number;
  readonly decided: Decided<unknown>;

  constructor(name: CallName, status: number, decided: Decided<unknown>) {
    this.name = name;
    this.status = status;
    this.decided = decided;
  }

  told(parts: BulkParts, stopped: { readonly why: unknown } | undefined): BulkItem {
    try {
      if (stopped !== undefined) throw stopped.why;
      return { status: this.status, body: this.decided.told() };
    } catch (error) {
      return refusalOf(parts, error, this.name);
    }
  }
}

/** The bodies of tasks and permits in a call, and it itself: nothing of it is checked yet. */
function* recordsIn(given: unknown): Generator<Readonly<Record<string, unknown>>> {
  const body: unknown = isRecord(given) ? given.body : undefined;
  const tasks: unknown = isRecord(body) ? body.tasks : undefined;
  for (const one of [body, ...(Array.isArray(tasks) ? tasks : [])]) if (isRecord(one)) yield one;
}
const strings = (values: readonly unknown[]): string[] => values.filter((value) => typeof value === "string");

/** What a call makes or ends. */
const idsOf = (given: unknown): string[] =>
  strings([isRecord(given) ? given.id : undefined, ...[...recordsIn(given)].map(({ id }) => id)]);

/** That, and what has to be there by then. */
function namedBy(given: unknown): string[] {
  const named: unknown[] = idsOf(given);
  for (const { needs, parent } of recordsIn(given))
    named.push(parent, ...(typeof needs === "object" && needs !== null ? Object.values(needs) : []));
  return strings(named);
}

function answerOne(parts: BulkParts, given: unknown, at: string, exchange: Exchange): Begun {
  try {
    const read = orThrow(readShape(bulkCall, given, at));
    const call = CALLS[read.call] as unknown as Call;
    checkCaller(read.call, call.roles ?? [], exchange.caller);
    parts.phase.check(read.call);
    const handle = parts.handlers[read.call] as unknown as AnyHandler;
    const answered = handle(askedBy(call, read, exchange), exchange);
    const status = STATUS[read.call];
    if (answered instanceof Decided) return new Later(read.call, status, answered);
    if (!(answered instanceof Promise)) return { status, body: answered };
    return answered.then(
      (body: unknown) => ({ status, body }),
      (error: unknown) => refusalOf(parts, error, read.call),
    );
  } catch (error) {
    return refusalOf(parts, error, "bulk");
  }
}

/** A refused body is named as it is alone: by its own fields. */
function askedBy(
  call: Call,
  { id, query, body }: { id?: unknown; query?: unknown; body?: unknown },
  exchange: Exchange,
): unknown {
  refuseGiven(call.params === null ? id : undefined, "id", call);
  refuseGiven(call.query === null ? query : undefined, "query", call);
  refuseGiven(call.body === null ? body : undefined, "body", call);
  if (isRecord(body) && typeof body.waitMs === "number" && body.waitMs > 0)
    throw refused(badField("waitMs", body.waitMs, "0 or absent in a bulk, where everybody waits for everybody"));
  return {
    params: call.params === null ? undefined : orThrow(readShape(call.params, { id })),
    query: call.query === null ? undefined : orThrow(readShape(call.query, query ?? {})),
    body: call.body === null ? undefined : bodyOf(call, withAgent(call, exchange.caller, body)),
  };
}

function refuseGiven(given: unknown, field: string, { params, query, body }: Call): void {
  if (given === undefined) return;
  const known = Object.entries({ id: params, query, body }).flatMap(([name, shape]) => (shape === null ? [] : [name]));
  throw refused({ type: "unknown-field", field, known: ["call", ...known] });
}

export function refusalOf(
  { problemOf, onBug }: Pick<BulkParts, "problemOf" | "onBug">,
  error: unknown,
  name: CallName,
): BulkItem {
  const { status, body, retryAfterS, isBug } = problemOf(error);
  if (isBug) onBug(error, `/bulk ${name}`);
  return { status, body, ...(retryAfterS === undefined ? {} : { retryAfterS }) };
}
