/**
 * One call to the server and its answer, however often that takes.
 *
 * A call is made again when that is safe: it was refused for now and nothing happened; it never left this machine; or
 * its answer was lost and the same request twice is as good as once (the table of calls says which those are). Tries
 * are bounded, and rests double up to a bound and are spread, so that callers that failed together do not come back
 * together; where the server says how long to wait, that counts, unless it is longer than anybody waits for. A wait for
 * an end is not counted in tries: it goes on while its time lasts and the server has answered in the last minutes. An
 * AbortSignal that is given ends it with its own reason; nothing else ends a call early.
 *
 * Where there are several nodes, a try is one at each of them until one takes the call: the next is asked at once. And
 * while they choose another leader, which takes some seconds, a call is tried for longer than its tries would last.
 */
import { setTimeout as elapse } from "node:timers/promises";
import type { Answered, Asked, BulkItem, CallName } from "../protocol/index.ts";
import {
  BULK_CALLS,
  BULK_HEADER,
  type BulkName,
  codeOfStatus,
  ENDPOINTS,
  type Endpoint,
  PROTOCOL_HEADER,
  PROTOCOL_VERSION,
  WAIT_MS_MAX,
  WIRE_CODES,
  type WireCode,
} from "../protocol/wire/index.ts";
import { kindInWords } from "../std/plain-json.ts";
import { readRetryAfter } from "../std/retry-after.ts";
import { type Addresses, DEFAULT_URL, targetOf } from "./addresses.ts";
import { type CallOptions, checkCall } from "./call-options.ts";
import { ClientError } from "./client-error.ts";
import type { Fetch, Fetched, FetchedHeaders } from "./fetch.ts";
import { bodyText } from "./request-body.ts";
import { idsIn, type Turns } from "./turns.ts";

export type Wiring = {
  readonly addresses: Addresses;
  readonly fetch: Fetch;
  readonly timeoutMs: number;
  readonly retries: number;
  /** Whether waits go on without an answer for longer than `retries` tries: nobody has said how many. */
  readonly isPatient: boolean;
  readonly rest: Rest;
  /** One try of a call that may travel with others. */
  readonly gather: Gather;
  readonly turns: Turns;
};
/** A try of a call that may travel with others; `alone` is the same try by itself. */
export type Gathered = {
  readonly name: BulkName;
  readonly asked: Told;
  readonly signal: AbortSignal | undefined;
  readonly alone: () => Promise<unknown>;
};
export type Gather = (call: Gathered) => Promise<unknown>;
/** What a refusal means that meets a repeat of a call whose first answer was lost: perhaps that it had worked. */
export type AfterLoss<Answer> = (refusal: ClientError) => Answer | undefined;

type Parts = { readonly params?: object | undefined; readonly query?: object | undefined; readonly body?: unknown };
export type Told = Parts & { readonly text: string | undefined };
type Answer = {
  readonly status: number;
  readonly headers: FetchedHeaders;
  readonly text: string;
  /** Ends the connection over which it came. */
  readonly close?: () => void;
  /** The same was asked of another node before, and the answer was lost. */
  readonly isAfterLoss?: boolean;
};
/** Failures in which an answer was lost, or before which one was: the call has perhaps worked. */
const lossy = new WeakSet<ClientError>();
/** The same failure, and an answer to the call was lost before. */
function afterLost(failure: ClientError, isAfterLoss: boolean | undefined): ClientError {
  if (isAfterLoss === true) lossy.add(failure);
  return failure;
}
/** Errors of a connection that never was: whatever was to be said has not been. */
const NEVER_SENT = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
  "CONNECT_TIMEOUT",
]);

/** What is wrong with the body or the options is thrown; all else is a refusal of the promise. */
export function exchange<Name extends CallName>(
  wiring: Wiring,
  name: Name,
  asked: Asked<Name>,
  options: CallOptions = {},
  afterLoss?: AfterLoss<Answered<Name>>,
): Promise<Answered<Name>> {
  checkCall(options);
  const call = ENDPOINTS[name];
  const { params, query, body } = asked as Parts;
  const told: Told = { params, query, body, text: "body" in asked ? bodyText(name, body) : undefined };
  const alone = async (): Promise<unknown> =>
    answerOf(call, await fetchOnce(wiring, call, told, options), options.parse);
  const { signal } = options;
  const once = travels(name, told, options) ? () => wiring.gather({ name, asked: told, signal, alone }) : alone;
  return wiring.turns(idsIn(name, params, body), signal, () =>
    retried(wiring, options, once as () => Promise<Answered<Name>>, afterLoss),
  );
}

const TRAVELS: ReadonlySet<CallName> = new Set(BULK_CALLS);

/** What has a time of its own, or holds its answer back, goes by itself: no other must wait for it. */
function travels(name: CallName, asked: Told, { timeoutMs }: CallOptions): name is BulkName {
  return TRAVELS.has(name) && timeoutMs === undefined && heldBackMs(ENDPOINTS[name], asked) === 0;
}

/** Once, and again as long as that is safe and of use. */
export async function retried<Value>(
  wiring: Wiring,
  options: CallOptions,
  once: () => Promise<Value>,
  afterLoss?: AfterLoss<Value>,
  wait?: Wait,
): Promise<Value> {
  const { retries = wiring.retries, signal } = options;
  let isLost = false;
  let hasNoLeader = false;
  let awayMs = 0;
  for (let tries = 1; ; tries++) {
    signal?.throwIfAborted();
    const begunAt = performance.now();
    try {
      return await once();
    } catch (error) {
      if (!(error instanceof ClientError)) throw error;
      isLost ||= lossy.has(error);
      const known = isLost ? afterLoss?.(error) : undefined;
      if (known !== undefined) return known;
      awayMs += performance.now() - begunAt;
      hasNoLeader ||= error.code === "no_leader";
      const ms = restAfter(tries, error.retryAfterMs, chanceOf(error));
      if (!error.retryable || ms === null) throw error;
      const isElecting = hasNoLeader ? retries > 0 : isPatient(wiring, options) && wiring.addresses.isCluster();
      const electionMs = isElecting && isAway(error) && awayMs < ELECTION_MS_MAX ? Math.min(ms, ELECTION_REST_MS) : 0;
      const wantedMs = tries <= retries ? ms : lastingMs(wait, awayMs, ms) || electionMs;
      const restMs = wait?.isAnsweredLate === true ? wantedMs : Math.min(wantedMs, wait?.leftMs() ?? wantedMs);
      if (restMs === 0) {
        if (error.code === "behind") wiring.addresses.forgetWrites();
        throw error;
      }
      awayMs += restMs;
      await restUnless(wiring.rest, restMs, signal);
    }
  }
}

/** Nobody has said how often it is tried. */
const isPatient = (wiring: Wiring, { retries }: CallOptions): boolean => wiring.isPatient && retries === undefined;

const isAway = ({ status, code }: ClientError): boolean => status === 0 || ELSEWHERE.has(code);

/** A call that waits for an end. */
export type Wait = {
  /** Whether it goes on without an answer after its tries: not if its caller has said how many. */
  readonly isPatient: boolean;
  /** What is left of its time. */
  readonly leftMs: () => number;
  /** Whether what is left of its tries goes on when its time is over. */
  readonly isAnsweredLate?: boolean;
};

export function waitFor(wiring: Wiring, options: CallOptions, withinMs: number = Number.POSITIVE_INFINITY): Wait {
  checkCall({ ...options, withinMs });
  const until = performance.now() + withinMs;
  const leftMs = (): number => Math.max(0, until - performance.now());
  return { isPatient: isPatient(wiring, options), leftMs };
}

/** So long after its time a wait may still be answered. */
const LATE_MS = 1000;
export const TIMER_MS_MAX: number = 2 ** 31 - 1;

/** Whatever a wait is at is given up a moment after its time: a server that says nothing cannot hold it longer. */
export async function inTime<Value>(
  wait: Wait,
  options: CallOptions,
  work: (options: CallOptions) => Promise<Value>,
): Promise<Value> {
  const leftMs = wait.leftMs();
  if (leftMs + LATE_MS > TIMER_MS_MAX) return work(options);
  const late = new AbortController();
  const said = `the server has not answered within ${Math.round(leftMs)} ms`;
  const giveUp = (): void => late.abort(new ClientError("timeout", said, { retryable: true }));
  const timer = setTimeout(giveUp, leftMs + LATE_MS);
  try {
    return await work({ ...options, signal: anyOf(late.signal, options.signal) });
  } finally {
    clearTimeout(timer);
  }
}

/** How long a wait rests that has been without an answer for so long; 0: it is given up. */
function lastingMs(wait: Wait | undefined, awayMs: number, ms: number): number {
  return wait?.isPatient !== true || awayMs >= AWAY_MS_MAX ? 0 : Math.min(ms, wait.leftMs());
}

const chances = new WeakMap<ClientError, number>();

/** Calls that one failure has met come back together, in their order and as one request. */
function chanceOf(failure: ClientError): number {
  const chance = chances.get(failure) ?? Math.random();
  chances.set(failure, chance);
  return chance;
}

async function restUnless(rest: Rest, ms: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await rest(ms, signal);
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  }
}

export function headersFor({ token }: Addresses, more: Readonly<Record<string, string>> = {}): Record<string, string> {
  return {
    accept: "application/json",
    [PROTOCOL_HEADER]: String(PROTOCOL_VERSION),
    ...(token === null ? {} : { authorization: `Bearer ${token}` }),
    ...more,
  };
}

/** How long the call itself may hold its answer back. */
function heldBackMs({ waits }: Endpoint, { query, body }: Parts): number {
  if (!waits) return 0;
  const { timeoutMs } = (query ?? {}) as { readonly timeoutMs?: unknown };
  const { waitMs, timeoutMs: bodyMs } = (body ?? {}) as { readonly waitMs?: unknown; readonly timeoutMs?: unknown };
  return waitOf(timeoutMs) + waitOf(waitMs) + waitOf(bodyMs);
}

/** What no server takes is none: the server says what is wrong with it. */
export const waitOf = (ms: unknown): number =>
  Number.isSafeInteger(ms) && Number(ms) > 0 && Number(ms) <= WAIT_MS_MAX ? Number(ms) : 0;

/** What a node answers that cannot do it now, when another perhaps can. */
const ELSEWHERE: ReadonlySet<string> = new Set(["no_leader", "behind", "deposed", "closed"] satisfies WireCode[]);

/** One try: at each node, if none takes it, within the time of one. */
export async function fetchOnce(
  wiring: Wiring,
  call: Endpoint,
  asked: Told,
  options: CallOptions,
  more: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const { text: body } = asked;
  const headers = body === undefined ? NO_HEADERS : { "content-type": "application/json", ...more };
  const deadline = createDeadline(limitOf(wiring, call, asked, options));
  const sent: Sent = { late: deadline.signal, body, headers, isWhole: true };
  try {
    return await fetchAtEach(wiring, call, asked, options, sent);
  } finally {
    deadline.end();
  }
}

type Deadline = { readonly signal: AbortSignal; end(): void };

/**
 * `AbortSignal.timeout` cannot be ended: each request would leave a timer behind for as long as it might have taken,
 * and with it what the collector of garbage has to look after. As with that one, it keeps no process alive.
 */
function createDeadline(ms: number): Deadline {
  const given = new AbortController();
  const isLate = (): void => given.abort(new DOMException("The operation was aborted due to timeout", "TimeoutError"));
  const timer = setTimeout(isLate, ms).unref();
  return { signal: given.signal, end: () => clearTimeout(timer) };
}

async function fetchAtEach(
  wiring: Wiring,
  call: Endpoint,
  asked: Told,
  options: CallOptions,
  sent: Sent,
): Promise<Answer> {
  let refusal: ClientError | null = null;
  let isAfterLoss = false;
  for (let left = wiring.addresses.count - 1; ; left--)
    try {
      const answer = await send(wiring, call, asked, options, sent, readAnswer);
      return isAfterLoss ? { ...answer, isAfterLoss } : answer;
    } catch (error) {
      if (!(error instanceof ClientError)) throw error;
      isAfterLoss ||= lossy.has(error);
      if (!isForAnother(error)) throw afterLost(error, isAfterLoss);
      if (ELSEWHERE.has(error.code)) refusal = error;
      if (left <= 0)
        throw afterLost(wiring.addresses.count === 1 ? error : (refusal ?? ofAll(wiring, error)), isAfterLoss);
    }
}

/** What went wrong at the last, as that of all of them: none has answered. One that has says more of what is wrong. */
function ofAll({ addresses }: Wiring, error: ClientError): ClientError {
  const said = `none of ${addresses.text.replaceAll(",", ", ")} answers: ${error.message}`;
  return new ClientError(error.code, said, { retryable: error.retryable, cause: error.cause });
}

async function readAnswer(response: Fetched): Promise<Answer> {
  const { status, headers } = response;
  const text = await response.text();
  const refusal = status === 503 ? refusalOf(status, headers, text) : null;
  if (refusal !== null && ELSEWHERE.has(refusal.code)) throw refusal;
  return { status, headers, text, close: () => response.close?.() };
}

/** Whether another node may be asked the same at once. One that did not answer in time has taken all of the time. */
const isForAnother = ({ code, retryable }: ClientError): boolean =>
  ELSEWHERE.has(code) || (code === "network" && retryable);

/** As long as an overloaded node may take, and much less than a call has. */
const DOUBT_MS = 10_000;
/** After so long it is looked whether another node leads by now, and again every so often. */
const WONDER_MS = { first: 2000, again: 1000 };

/** Fires when a node that does not answer is to be left for another; what has a time of its own is not cut short. */
function doubtOf({ addresses }: Wiring, base: string, asked: Parts, call: Endpoint, options: CallOptions): Doubt {
  const { doubtMs = options.timeoutMs === undefined ? DOUBT_MS : null } = options;
  if (addresses.count === 1 || doubtMs === null) return null;
  const given = new AbortController();
  const heldMs = heldBackMs(call, asked);
  const leave = (): void => {
    end();
    addresses.failed(base, "silent");
    if (options.doubtMs === undefined && isRepeatable(call, asked)) given.abort();
  };
  let isOver = false;
  let wonder: NodeJS.Timeout | undefined;
  const wonderAfter = (ms: number): void => {
    wonder = setTimeout(async () => {
      const isReplaced = await addresses.isReplaced(base);
      if (isOver) return;
      if (isReplaced) leave();
      else wonderAfter(WONDER_MS.again);
    }, ms);
  };
  const timer = setTimeout(leave, doubtMs + heldMs);
  if (options.doubtMs === undefined) wonderAfter(WONDER_MS.first + heldMs);
  function end(): void {
    isOver = true;
    clearTimeout(timer);
    clearTimeout(wonder);
  }
  return { signal: given.signal, end };
}
type Doubt = { readonly signal: AbortSignal; end(): void } | null;

const isRepeatable = ({ repeatable, onceWith = "" }: Endpoint, { query = {} }: Parts): boolean =>
  repeatable && (query as Readonly<Record<string, unknown>>)[onceWith] !== true;

function limitOf(wiring: Wiring, call: Endpoint, asked: Parts, { timeoutMs = wiring.timeoutMs }: CallOptions): number {
  return timeoutMs + heldBackMs(call, asked);
}

/** What is sent, with its headers; and what ends the try in place of a time for the whole of it. */
type Sent = {
  readonly late: AbortSignal;
  readonly body?: string | AsyncIterable<Uint8Array> | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  /** The answer is read by `text()`, never as a stream. */
  readonly isWhole?: true;
};
const NO_HEADERS: Readonly<Record<string, string>> = {};

/** One try at one node; whatever goes wrong until the answer has been read is an error of this client. */
export async function send<Value>(
  wiring: Wiring,
  call: Endpoint,
  asked: Parts,
  options: CallOptions,
  { late, body, headers: more = NO_HEADERS, isWhole }: Sent,
  read: (response: Fetched) => Promise<Value>,
): Promise<Value> {
  const { addresses } = wiring;
  const { params = {}, query = {} } = asked;
  const { signal } = options;
  const base = addresses.next();
  const doubt = doubtOf(wiring, base, asked, call, options);
  try {
    const response = await wiring.fetch(`${base}${targetOf(call.path, params, query)}`, {
      method: call.method,
      headers: headersFor(
        addresses,
        isRead(call) ? { ...more, ...agedBy(options), ...addresses.afterOwnWrites() } : more,
      ),
      redirect: "manual",
      signal: anyOf(late, signal, doubt?.signal),
      ...(body === undefined ? {} : { body }),
      ...(typeof body === "object" ? { duplex: "half" } : {}),
      ...(isWhole === undefined ? {} : { isWhole }),
    });
    checkWhose(response, more);
    addresses.answered(base, response, !isRead(call));
    if (response.status === TOO_SLOW) throw await refusalOfSlow(response, isRepeatable(call, asked));
    return await read(response);
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof ClientError) {
      if (ELSEWHERE.has(error.code)) addresses.failed(base, "cannot");
      // What it had under way when it lost the lead may have been stored all the same.
      throw afterLost(error, error.code === "deposed");
    }
    addresses.failed(base, "silent");
    const retryable = isRepeatable(call, asked);
    if (!late.aborted)
      throw afterLost(networkError(base, error, retryable, addresses.count > 1), !NEVER_SENT.has(codeIn(error)));
    const said = `no answer from ${base} within ${limitOf(wiring, call, asked, options)} ms`;
    throw afterLost(new ClientError("timeout", said, { retryable, cause: error }), true);
  } finally {
    doubt?.end();
  }
}

/** An answer that came twice shifts its connection: every later call would get that of the one before it. */
function checkWhose(response: Fetched, sent: Readonly<Record<string, string>>): void {
  const place = response.headers.get(BULK_HEADER);
  if (place === null || place === sent[BULK_HEADER]) return;
  endUnread(response).catch(() => {});
  throw new Error("the answer is that to another request");
}

/** It may have gone on to the server all the same. */
async function refusalOfSlow(response: Fetched, isRepeatable: boolean): Promise<ClientError> {
  return afterLost(refusalOf(response.status, response.headers, await response.text(), isRepeatable), true);
}

/** Where a `fetch` cannot close its connection, that ends with an answer that is begun to be read, and left. */
async function endUnread(response: Fetched): Promise<void> {
  if (response.close !== undefined) return response.close();
  for await (const _ of response.body ?? []) return;
}

const agedBy = ({ maxAgeMs = 0 }: CallOptions): Readonly<Record<string, string>> =>
  maxAgeMs < 1000 ? NO_HEADERS : { "cache-control": `max-age=${Math.floor(maxAgeMs / 1000)}` };

function anyOf(late: AbortSignal, ...more: readonly (AbortSignal | undefined)[]): AbortSignal {
  const given = more.filter((signal) => signal !== undefined);
  return given.length === 0 ? late : AbortSignal.any([late, ...given]);
}

const isRead = (call: Endpoint): boolean => call.method === "GET" || call === ENDPOINTS.waitAny;

/** The global fetch wraps what went wrong. */
const causeOf = (error: unknown): unknown => (error as { cause?: unknown }).cause ?? error;

function codeIn(error: unknown): string {
  const { code } = causeOf(error) as { code?: unknown };
  return typeof code === "string" ? code : "";
}

export function networkError(base: string, error: unknown, isRepeatable: boolean, isOneOfSeveral = false): ClientError {
  const code = codeIn(error);
  const { message } = causeOf(error) as { message?: unknown };
  const reason = code === "" ? String(message ?? (error as Error).message) : code;
  const hint = hintFor(code, base, isOneOfSeveral);
  const retryable = isRepeatable || NEVER_SENT.has(code);
  return new ClientError("network", `cannot reach ${base} (${reason})${hint}`, { retryable, cause: error });
}

/** Every answer that is JSON is an object. */
export function answerOf(
  { produces }: Pick<Endpoint, "produces">,
  answer: Answer,
  parse?: (text: string) => unknown,
): unknown {
  const { status, headers, text } = answer;
  const version = saidOnce(headers.get(PROTOCOL_HEADER));
  if (version !== null && version !== String(PROTOCOL_VERSION)) {
    const said = `the server speaks version ${version} of the protocol, this client ${PROTOCOL_VERSION}`;
    throw new ClientError("unsupported_protocol", `${said}; use the client of that version`, { status });
  }
  if (status >= 300 && status < 400) {
    const place = headers.get("location") ?? "another address";
    throw new ClientError("bad_answer", `the server points to ${place}; use that address`, { status });
  }
  if (status >= 400) throw afterLost(refusalOf(status, headers, text), answer.isAfterLoss);
  if (produces[0] !== "application/json") return text;
  const read = parsed(text, parse);
  // What comes over that connection next may be out of step as well.
  if (read === undefined) answer.close?.();
  return objectOf(read, status);
}

/** Undefined is what was not JSON, or not there. */
export function objectOf(read: unknown, status: number): object {
  if (typeof read === "object" && read !== null) return read;
  const said = read === undefined ? "not JSON" : `${kindInWords(read)}, and must be an object`;
  throw new ClientError("bad_answer", `the answer is ${said}; is this a Drover server?`, { status });
}

/** That a request took too long to arrive says nothing of it, whoever says so; the server has no code for it. */
const TOO_SLOW = 408;

/** `isRepeatable`: the same request twice is as good as once. */
export function refusalOf(status: number, headers: FetchedHeaders, text: string, isRepeatable = false): ClientError {
  const after = readRetryAfter(headers.get("retry-after"), Date.now()) ?? undefined;
  return refusalFrom(status, parsed(text), after, isRepeatable);
}

/** The server's refusal as an error; what stands between may refuse too, in words that are not Drover's. */
function refusalFrom(status: number, body: unknown, retryAfterMs?: number, isRepeatable = false): ClientError {
  const { error, code, retryable, details } = (body ?? {}) as {
    [Key in "error" | "code" | "retryable" | "details"]?: unknown;
  };
  const isLate = status === TOO_SLOW;
  const mayRepeat = isLate && isRepeatable;
  const ofStatus = isLate ? "timeout" : codeOfStatus(status);
  if (typeof error === "string" && typeof code === "string") {
    const isKnown = Object.hasOwn(WIRE_CODES, code);
    return new ClientError(isKnown && !isLate ? (code as WireCode) : ofStatus, error, {
      status,
      retryable: retryable === true || mayRepeat,
      details: typeof details === "object" && details !== null ? (details as Record<string, unknown>) : {},
      retryAfterMs,
      isForeign: !isKnown,
    });
  }
  const isPassing = status === 429 || (status >= 502 && status <= 504);
  const said = `the server answered ${status} without saying why; is this a Drover server?`;
  return new ClientError(ofStatus, said, { status, retryable: isPassing || mayRepeat, retryAfterMs, isForeign: true });
}

/** Undefined where it is no JSON; null is JSON. */
function parsed(text: string, parse: (text: string) => unknown = JSON.parse): unknown {
  try {
    return parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** A header that something on the way has doubled is there as a list: the same value twice is that value. */
function saidOnce(header: string | null): string | null {
  if (header?.includes(",") !== true) return header;
  const values = new Set(header.split(",").map((value) => value.trim()));
  return values.size === 1 ? [...values].join() : header;
}

export const refusalOfOne = ({ status, body, retryAfterS }: BulkItem, isAfterLoss?: boolean): ClientError =>
  afterLost(refusalFrom(status, body, retryAfterS === undefined ? undefined : retryAfterS * 1000), isAfterLoss);

/** TLS answered by something that is not TLS. */
const NOT_TLS: ReadonlySet<string> = new Set([
  "ERR_SSL_WRONG_VERSION_NUMBER",
  "ERR_SSL_PACKET_LENGTH_TOO_LONG",
  "EPROTO",
]);

const DEFAULT_PORT = new URL(DEFAULT_URL).port;

/** A node of a cluster is started with its log and its name: only whoever runs it knows how. */
function hintFor(code: string, base: string, isOneOfSeveral: boolean): string {
  if (code === "ECONNREFUSED" && isOneOfSeveral) return "";
  if (code === "ECONNREFUSED") return `; is it running? Start it with: drover serve${portFlag(base)}`;
  if (!NOT_TLS.has(code) || !base.startsWith("https:")) return "";
  return `; it does not speak https: try http${base.slice("https".length)}`;
}

function portFlag(base: string): string {
  const { port } = new URL(base);
  return port === "" || port === DEFAULT_PORT ? "" : ` --port ${port}`;
}

export type Rest = (ms: number, signal?: AbortSignal) => Promise<void>;

const FIRST_MS = 200;
const LONGEST_MS = 10_000;
const ASKED_LONGEST_MS = 60_000;
/** So long a wait goes on without an answer. */
const AWAY_MS_MAX = 300_000;
/** So long a call goes on while there is no leader; another is there after five seconds, as a rule. */
const ELECTION_MS_MAX = 15_000;
const ELECTION_REST_MS = 1000;

/** The rest before try number `tries` + 1; null: longer than it makes sense to wait. */
export function restAfter(tries: number, askedMs: number | undefined, chance: number): number | null {
  const own = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(tries - 1, 20)) * (0.5 + chance / 2);
  if (askedMs === undefined) return Math.round(own);
  return askedMs > ASKED_LONGEST_MS ? null : Math.round(Math.max(own, askedMs));
}

export const restFor: Rest = async (ms, signal) => {
  await elapse(ms, undefined, signal === undefined ? {} : { signal });
};
