/**
 * A small client of etcd: the calls that a journal needs, over the JSON gateway, to the members of one cluster.
 *
 * A call goes to the member that answered last; where that one fails, to the next, each at most once. What may have
 * been done is sent again only if doing it twice is the same as doing it once (`isRepeatable`); else the fault is the
 * caller's to judge. With a user, a token is fetched before the first call and again when etcd no longer knows it.
 * Keys are text, values bytes, revisions numbers; the id of a lease has 63 bits and stays text.
 */
import type { HostAndPort } from "../journal/address.ts";
import type { EtcdAddress } from "./address.ts";
import {
  type KeyValue,
  objectOf,
  type RangeAnswer,
  rangeOf,
  revisionOf,
  type TxnAnswer,
  textOf,
  txnOf,
  wholeOf,
} from "./answers.ts";
import { type Ask, createWire, type Wire } from "./exchange.ts";
import { EtcdFault, isAuthOff, isTokenFault, unlessFault } from "./fault.ts";

/** How long a member has for an answer, unless the caller says otherwise. */
const ANSWER_MS = 3000;

export type Range = {
  readonly key: string;
  /** All keys from `key` up to this one, without it. */
  readonly end?: string;
  readonly limit?: number;
  readonly isDescending?: boolean;
  readonly keysOnly?: boolean;
};
export type Compare =
  | { readonly key: string; readonly value: Uint8Array }
  /** 0: there is no such key. */
  | { readonly key: string; readonly modRevision: number };
export type Operation =
  | { readonly put: string; readonly value: Uint8Array; readonly lease?: string }
  | { readonly range: Range }
  | { readonly remove: string; readonly end?: string };
export type Txn = {
  readonly compare: readonly Compare[];
  readonly success: readonly Operation[];
  readonly failure?: readonly Operation[];
};
export type Status = {
  readonly version: string;
  readonly dbBytes: number;
  /** The member's own id, and that of the leader it knows; "0" if it knows none. */
  readonly member: string;
  readonly leader: string;
};
export type Alarm = { readonly member: string; readonly name: string };

/** How long a member has for its answer, and what ends the wait for it sooner. */
export type Limits = { readonly limitMs?: number; readonly signal?: AbortSignal };
type CallOptions = Limits & { readonly isRepeatable?: boolean };

export type EtcdClient = {
  readonly endpoints: readonly HostAndPort[];
  range(range: Range, limits?: Limits): Promise<RangeAnswer>;
  /** The value of one key, or null. */
  get(key: string, limits?: Limits): Promise<KeyValue | null>;
  /** Never sent twice: what compares may be told `no` by its own first try. */
  txn(txn: Txn): Promise<TxnAnswer>;
  /** Answers the revision of the write. */
  put(key: string, value: Uint8Array, lease?: string): Promise<number>;
  /** Forgets all history up to a revision. What was already forgotten is no fault. */
  compact(revision: number): Promise<void>;
  grantLease(seconds: number, limits?: Limits): Promise<string>;
  /** Whether the lease still was there to be renewed. */
  keepAlive(lease: string, limits?: Limits): Promise<boolean>;
  revokeLease(lease: string): Promise<void>;
  /** How many seconds are left of a lease, and how many it was given; null if it is gone. */
  timeToLive(lease: string): Promise<{ readonly left: number; readonly granted: number } | null>;
  status(endpoint: HostAndPort, limits?: Limits): Promise<Status>;
  alarms(): Promise<readonly Alarm[]>;
  /** Changes of one key from a revision on. */
  watch(key: string, fromRevision: number, signal: AbortSignal): Promise<AsyncIterable<unknown>>;
  /** Another member is asked next: this one is silent or knows nothing new. */
  turnAway(): void;
  /** The member that leads is asked next, if one says that it does: what others are asked to write, they ask of it. */
  seekLeader(limits?: Limits): Promise<void>;
  close(): void;
};

export function createClient(address: EtcdAddress): EtcdClient {
  const calls = createCalls(address, createWire(address.tls));
  const { call } = calls;
  const reading = { isRepeatable: true };
  const range = async (wanted: Range, limits?: Limits): Promise<RangeAnswer> =>
    rangeOf(await call("kv/range", rangeBody(wanted), { ...reading, ...limits }));
  const status = async (endpoint: HostAndPort, limits?: Limits): Promise<Status> =>
    statusOf(await calls.callAt(endpoint, "maintenance/status", {}, limits));
  return {
    endpoints: address.endpoints,
    range,
    get: async (key, limits) => (await range({ key }, limits)).found[0] ?? null,
    txn: async ({ compare, success, failure = [] }) =>
      txnOf(
        await call("kv/txn", {
          compare: compare.map(compareBody),
          success: success.map(operationBody),
          failure: failure.map(operationBody),
        }),
      ),
    put: async (key, value, lease) =>
      revisionOf(
        await call("kv/put", putBody({ put: key, value, ...(lease === undefined ? {} : { lease }) }), reading),
      ),
    compact: async (revision) => {
      await call("kv/compaction", { revision: String(revision) }, reading).catch(unlessCompacted);
    },
    grantLease: async (seconds, limits) =>
      textOf(await call("lease/grant", { TTL: String(seconds) }, { ...reading, ...limits }), "ID"),
    keepAlive: async (ID, limits) => {
      const { result } = objectOf(await call("lease/keepalive", { ID }, { ...reading, ...limits }));
      return wholeOf(result, "TTL") > 0;
    },
    revokeLease: async (ID) => void (await call("lease/revoke", { ID }, reading)),
    timeToLive: async (ID) => {
      const answer = await call("lease/timetolive", { ID }, reading);
      const left = wholeOf(answer, "TTL");
      return left < 0 ? null : { left, granted: wholeOf(answer, "grantedTTL") };
    },
    status,
    seekLeader: async (limits) => {
      const statuses = await Promise.all(address.endpoints.map((each) => status(each, limits).catch(unlessFault)));
      const leading = statuses.findIndex((each) => each !== undefined && each.member === each.leader);
      if (leading >= 0) calls.turnTo(leading);
    },
    alarms: async () => alarmsOf(await call("maintenance/alarm", { action: "GET" }, reading)),
    watch: (key, fromRevision, signal) => calls.stream("watch", watchBody(key, fromRevision), signal),
    turnAway: calls.turnAway,
    close: calls.close,
  };
}

type Calls = {
  call(path: string, body: object, options?: CallOptions): Promise<unknown>;
  callAt(endpoint: HostAndPort, path: string, body: object, limits?: Limits): Promise<unknown>;
  stream(path: string, body: object, signal: AbortSignal): Promise<AsyncIterable<unknown>>;
  turnAway(): void;
  turnTo(index: number): void;
  close(): void;
};

function createCalls({ endpoints, credentials }: EtcdAddress, wire: Wire): Calls {
  const closing = new AbortController();
  let current = 0;
  let token: string | null = null;
  let fetching: Promise<void> | null = null;

  const askFor = (
    endpoint: HostAndPort,
    path: string,
    body: object,
    { limitMs = ANSWER_MS, signal }: Limits = {},
  ): Ask => ({
    endpoint,
    path: `/v3/${path}`,
    body: JSON.stringify(body),
    token,
    limitMs,
    signal: signal === undefined ? closing.signal : AbortSignal.any([signal, closing.signal]),
  });

  async function authenticate(endpoint: HostAndPort): Promise<void> {
    if (credentials === null) return;
    const body = { name: credentials.user, password: credentials.password };
    try {
      token = textOf(await wire.ask({ ...askFor(endpoint, "auth/authenticate", body), token: null }), "token");
    } catch (error) {
      // Nobody is asked for a name: then none is given.
      if (!(error instanceof EtcdFault && isAuthOff(error))) throw error;
      token = "";
    }
  }
  /** Those who find the token gone at the same time fetch one together. */
  function newToken(endpoint: HostAndPort): Promise<void> {
    fetching ??= authenticate(endpoint).finally(() => {
      fetching = null;
    });
    return fetching;
  }
  /** Asks with a token; where etcd does not know it any more, with a new one, once. */
  async function withToken<Answer>(endpoint: HostAndPort, ask: () => Promise<Answer>): Promise<Answer> {
    if (credentials === null) return ask();
    if (token === null) await newToken(endpoint).catch(asUnsent);
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof EtcdFault && isTokenFault(error))) throw error;
      await newToken(endpoint).catch(asUnsent);
      return ask();
    }
  }

  const callAt: Calls["callAt"] = (endpoint, path, body, limits) =>
    withToken(endpoint, () => wire.ask(askFor(endpoint, path, body, limits)));

  function turnFrom(endpoint: HostAndPort): void {
    if (endpoints[current] === endpoint) current = (current + 1) % endpoints.length;
  }
  const currentEndpoint = (): HostAndPort => endpoints[current] as HostAndPort;

  async function call(path: string, body: object, { isRepeatable = false, ...limits }: CallOptions = {}) {
    const isEnded = (): boolean => closing.signal.aborted || limits.signal?.aborted === true;
    const failed: string[] = [];
    for (let tried = 0; tried < endpoints.length; tried++) {
      const endpoint = currentEndpoint();
      try {
        return await callAt(endpoint, path, body, limits);
      } catch (error) {
        if (!(error instanceof EtcdFault) || error.type === "answered" || isEnded()) throw error;
        turnFrom(endpoint);
        failed.push(`${endpoint.name}: ${error.message}`);
        if (error.type === "lost" && !isRepeatable) throw new EtcdFault("lost", failed.join("; "), error.code);
      }
    }
    throw new EtcdFault("unsent", failed.join("; "));
  }

  return {
    call,
    callAt,
    stream: (path, body, signal) => {
      const endpoint = currentEndpoint();
      return withToken(endpoint, () => wire.stream(askFor(endpoint, path, body, { signal })));
    },
    turnAway: () => turnFrom(currentEndpoint()),
    turnTo: (index) => {
      current = index;
    },
    close: () => {
      closing.abort();
      wire.close();
    },
  };
}

/** What the token was for has not been sent: it is not in doubt. */
function asUnsent(error: unknown): never {
  if (error instanceof EtcdFault && error.type === "lost") throw new EtcdFault("unsent", error.message, error.code);
  throw error;
}

const base64 = (text: string): string => Buffer.from(text, "utf8").toString("base64");
const bytes64 = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");

function rangeBody({ key, end, limit, isDescending = false, keysOnly = false }: Range): object {
  return {
    key: base64(key),
    ...(end === undefined ? {} : { range_end: base64(end) }),
    ...(limit === undefined ? {} : { limit: String(limit) }),
    ...(isDescending ? { sort_order: "DESCEND", sort_target: "KEY" } : {}),
    ...(keysOnly ? { keys_only: true } : {}),
  };
}

function compareBody(compare: Compare): object {
  const key = base64(compare.key);
  if ("value" in compare) return { key, target: "VALUE", result: "EQUAL", value: bytes64(compare.value) };
  return { key, target: "MOD", result: "EQUAL", mod_revision: String(compare.modRevision) };
}

const putBody = ({ put, value, lease }: Extract<Operation, { put: string }>): object => ({
  key: base64(put),
  value: bytes64(value),
  ...(lease === undefined ? {} : { lease }),
});

function operationBody(operation: Operation): object {
  if ("put" in operation) return { request_put: putBody(operation) };
  if ("range" in operation) return { request_range: rangeBody(operation.range) };
  const { remove, end } = operation;
  return {
    request_delete_range: { key: base64(remove), ...(end === undefined ? {} : { range_end: base64(end) }) },
  };
}

const watchBody = (key: string, fromRevision: number): object => ({
  create_request: { key: base64(key), start_revision: String(fromRevision) },
});

function statusOf(answer: unknown): Status {
  const { header } = objectOf(answer);
  return {
    version: textOf(answer, "version"),
    dbBytes: wholeOf(answer, "dbSize"),
    member: textOf(header, "member_id"),
    leader: textOf(answer, "leader", "0"),
  };
}

function alarmsOf(answer: unknown): Alarm[] {
  const { alarms = [] } = objectOf(answer);
  if (!Array.isArray(alarms)) return [];
  return alarms.map((each: unknown) => ({ member: textOf(each, "memberID", ""), name: textOf(each, "alarm", "") }));
}

function unlessCompacted(error: unknown): void {
  if (!(error instanceof EtcdFault && /has been compacted/.test(error.message))) throw error;
}
