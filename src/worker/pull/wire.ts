/**
 * The calls of a pull worker's connection, and what their failures mean to it.
 */
import { type Client, ClientError } from "../../client/index.ts";
import { errorText, isRecord } from "../../core/base/index.ts";
import type { JoinBody, Joined, SyncBody } from "../../protocol/index.ts";
import { JsonText } from "../../std/index.ts";
import type { Fatal } from "./messages.ts";
import { type HeardSync, parseNames } from "./unread-tasks.ts";

export type Wire = {
  join(body: JoinBody, timeoutMs: number): Promise<Joined>;
  /** The body is JSON already, with this number; the times are with what the server may hold it. */
  sync(workerId: string, text: string, timeoutMs: number, doubtMs: number, n: number): Promise<HeardSync>;
  leave(workerId: string, session: string, timeoutMs: number): Promise<void>;
};

/** A timer takes 2^31 ms, and a client leaves room for what a call itself waits. */
export const TIMER_MS_MAX = 2_000_000_000;

/** The connection itself decides when to try again, so each call is one try. A timer takes whole milliseconds only. */
const once = (ms: number): { timeoutMs: number; retries: 0 } => ({
  timeoutMs: Math.min(TIMER_MS_MAX, Math.ceil(ms)),
  retries: 0,
});

export const wireOf = (client: Client): Wire => ({
  join: async (body, timeoutMs) => {
    const joined = await client.joinWorker(body, once(timeoutMs));
    return typeof joined?.workerId === "string" && joined.leaseMs > 0 ? joined : notDrover();
  },
  sync: async (workerId, text, timeoutMs, doubtMs, n) => {
    const doubt = Math.min(TIMER_MS_MAX, Math.floor(doubtMs));
    const parse = (answer: string): unknown => ofSync(parseNames(answer), n);
    const options = { ...once(timeoutMs), doubtMs: doubt, parse };
    const answer: HeardSync = await client.sync(workerId, new JsonText<SyncBody>(text).asBody(), options);
    const lists: readonly unknown[] = [answer?.assignments, answer?.cancel, answer?.results];
    return lists.every(namesAttempts) && Array.isArray(answer.logs ?? []) ? answer : notDrover();
  },
  leave: async (workerId, session, timeoutMs) =>
    void (await client.leaveWorker(workerId, { session }, once(timeoutMs))),
});

/** One that came twice would be taken for that to the next sync, and so on: what cannot be read ends its connection. */
function ofSync(answer: unknown, asked: number): unknown {
  const { n = asked } = (answer ?? {}) as { readonly n?: unknown };
  if (n !== asked) throw new SyntaxError("the answer is that to another sync");
  return answer;
}

/** What would be begun, or named, under another name than the server's is not taken on. */
const namesAttempts = (list: unknown): boolean =>
  Array.isArray(list) &&
  list.every((one) => isRecord(one) && typeof one.taskId === "string" && Number.isSafeInteger(one.attempt));

function notDrover(): never {
  throw new ClientError("bad_answer", "the answer is not Drover's; is this a Drover server?", { status: 200 });
}

/**
 * `away`: no server answered, or not now; `lost`: this session is not known any more; `refused`: what this very request
 * says will never be taken; `denied`: no request of this worker will; `late`: another sync has overtaken this one.
 */
type FailureKind = "away" | "lost" | "refused" | "denied" | "late";

const KINDS: Readonly<Record<string, FailureKind>> = {
  session_lost: "lost",
  not_found: "lost",
  stale_sync: "late",
  bad_request: "refused",
  too_large: "refused",
  unauthorized: "denied",
  forbidden: "denied",
  unsupported_protocol: "denied",
};

/** Other statuses are of the request around it: that it came too slowly, or that its headers are too long. */
const OF_THE_BODY: ReadonlySet<unknown> = new Set([400, 413]);

/** Only the server says what becomes of a session and of its results. What stands between is a server that is away. */
export function failureKind(error: unknown): FailureKind {
  const { code, status, isForeign } = error as { code?: unknown; status?: unknown; isForeign?: unknown };
  const kind = (typeof code === "string" && Object.hasOwn(KINDS, code) ? KINDS[code] : undefined) ?? "away";
  if (kind === "denied") return kind;
  return isForeign === true || (kind === "refused" && !OF_THE_BODY.has(status)) ? "away" : kind;
}

/** Whether the session is lost because another has joined under the same id. A server that has forgotten says else. */
export const isTaken = (error: unknown): boolean => (error as { code?: unknown }).code === "session_lost";

/** A worker that may not join, or says of itself what is not so, will not by trying again. */
const NO_JOIN: ReadonlySet<unknown> = new Set(["bad_request", "conflict", "too_large", "unsupported_media_type"]);
/** At the very first join these say that the address is wrong. */
const NO_DROVER: ReadonlySet<unknown> = new Set(["not_found", "method_not_allowed", "bad_answer"]);

export function isJoinHopeless(error: unknown, isFirst: boolean): boolean {
  const { code, isForeign } = error as { code?: unknown; isForeign?: unknown };
  const isItsWord = isFirst || isForeign !== true;
  return failureKind(error) === "denied" || (isItsWord && NO_JOIN.has(code)) || (isFirst && NO_DROVER.has(code));
}

export function fatalOf(error: unknown): Fatal {
  const { code, status } = error as { code?: unknown; status?: unknown };
  return {
    code: typeof code === "string" ? code : "internal",
    message: errorText(error),
    status: typeof status === "number" ? status : 0,
  };
}

/** The field of a request that the server named as wrong. */
export function fieldOf(error: unknown): string | null {
  const { details } = error as { details?: { field?: unknown } };
  return typeof details?.field === "string" ? details.field : null;
}

export const errorOf = ({ code, message, status }: Fatal): ClientError =>
  new ClientError(code as ClientError["code"], message, { status });

const REST_MS = { first: 100, max: 10_000 };

/** Before the next try: twice as long each time, up to a limit, and not the same for all. */
export function restMs(failures: number, chance: number, max: number = REST_MS.max): number {
  return Math.min(REST_MS.max, max, REST_MS.first * 2 ** Math.min(failures - 1, 20)) * (0.5 + chance / 2);
}
