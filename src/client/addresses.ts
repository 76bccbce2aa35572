/**
 * Where the server is: one address, or those of several nodes of a cluster, and which of them the next try goes to.
 *
 * Every node takes every call, and a call is quickest at the node that leads. So the client goes to the leader once a
 * node has named it, and to one of the addresses it was given before that and whenever the leader does not answer. A
 * name is a word of the node, and the token goes where it points: it is believed only in an answer to a call that was
 * taken, from an address that was given, and for the same scheme; what a node that is only named says of others is not.
 * What was not given is asked first, without a token, whether it leads: behind a proxy the names of nodes mean nothing,
 * or something else, and then the addresses that were given do all of it.
 *
 * What nodes have said of the log is here too: a read asks for all that the writes of this client have been told.
 */
import { AFTER_HEADER, ENDPOINTS, LEADER_HEADER, SEQ_HEADER } from "../protocol/wire/index.ts";
import { isLoopback } from "../std/loopback.ts";
import { ClientError } from "./client-error.ts";
import type { Fetch, FetchedHeaders } from "./fetch.ts";

/** Where a server is that was told nothing else. */
export const DEFAULT_URL = "http://127.0.0.1:4747";
/** More nodes than any cluster has. */
const ADDRESSES_MAX = 32;
const NAME_LENGTH_MAX = 2048;

/** An address that did not answer is not taken for the leader's for so long, twice as long each time. */
const AVOIDED_MS = { first: 2000, max: 60_000 };

export type Addresses = {
  /** As they were given, separated by commas. */
  readonly text: string;
  readonly token: string | null;
  /** How many tries it takes to have asked at each. */
  readonly count: number;
  /** Whether it is known to be a cluster. */
  isCluster(): boolean;
  /** Where the next try goes. */
  next(): string;
  /** A node has answered. */
  answered(base: string, answer: { readonly status: number; readonly headers: FetchedHeaders }, isWrite: boolean): void;
  /** Whether the node there, which owes an answer, is to be left: another leads, and it led before or is mute. */
  isReplaced(base: string): Promise<boolean>;
  /** The next try goes elsewhere, if there is another address. */
  failed(base: string, how: "silent" | "cannot"): void;
  /** What a read asks for: all that writes were told of, and this at least. */
  afterOwnWrites(least?: number): Readonly<Record<string, string>>;
  /** No node has what was told of: it was perhaps another log. */
  forgetWrites(): void;
};
/** Whether a node that leads answers there; rejects if none answers. */
export type Leads = (base: string) => Promise<boolean>;

/** The environment is read here and nowhere else: `DROVER_URL` and `DROVER_TOKEN`. An empty variable is none. */
export function addressFromEnv(env: Readonly<Record<string, string | undefined>>): { url?: string; token?: string } {
  const { DROVER_URL: url = "", DROVER_TOKEN: token = "" } = env;
  return { ...(url === "" ? {} : { url }), ...(token === "" ? {} : { token }) };
}

export function createAddresses(
  { url, token }: { readonly url: string | readonly string[]; readonly token: string | undefined },
  leads: Leads,
  now: () => number = () => performance.now(),
): Addresses {
  const given = readAddresses(url);
  checkToken(token);
  const silent = new Map<string, { readonly times: number; readonly until: number }>();
  let at = 0;
  let leader: string | null = null;
  /** One that was named and not asked yet. */
  let candidate: string | null = null;
  let isAsking = false;
  let isNamed = false;
  let seq = 0;

  const isAvoided = (base: string): boolean => (silent.get(base)?.until ?? Number.NEGATIVE_INFINITY) > now();

  function avoid(base: string): void {
    const times = (silent.get(base)?.times ?? 0) + 1;
    if (silent.size >= ADDRESSES_MAX) silent.clear();
    silent.set(base, { times, until: now() + Math.min(AVOIDED_MS.max, AVOIDED_MS.first * 2 ** (times - 1)) });
  }

  /** On the side: the call that comes next goes where one is known to answer. */
  async function askCandidate(base: string): Promise<void> {
    isAsking = true;
    const isRight = await leads(base).catch(() => false);
    isAsking = false;
    if (!isRight) avoid(base);
    else if (candidate === base) leader = base;
    if (candidate === base) candidate = null;
  }

  /** However many calls wonder. */
  const wondering = new Map<string, Promise<boolean>>();

  async function askOthers(base: string): Promise<boolean> {
    const others = given.filter((other) => other !== base);
    const oneLeads = others.map(async (other) => (await leads(other)) || Promise.reject());
    const hasAnother = await Promise.any(oneLeads).catch(() => false);
    if (!hasAnother || base === leader) return hasAnother;
    const isMute = leads(base).then(
      () => false,
      () => true,
    );
    return isMute;
  }

  function hear(base: string, name: string): void {
    isNamed = true;
    if (name === leader) return;
    // It does not lead any more: who does is for those to say that were given.
    if (!given.includes(base)) leader = null;
    else {
      const named = readName(name, base);
      if (named === null || named === leader || isAvoided(named)) return;
      if (given.includes(named)) leader = named;
      else candidate = named;
    }
  }

  return {
    text: given.join(","),
    token: token ?? null,
    get count() {
      return given.length + (leader === null || given.includes(leader) ? 0 : 1);
    },
    isCluster: () => isNamed || given.length > 1,
    next() {
      if (candidate !== null && !isAsking && candidate !== leader) void askCandidate(candidate);
      return leader ?? (given[at] as string);
    },
    answered(base, { status, headers }, isWrite) {
      silent.delete(base);
      if (status < 200 || status >= 300) return;
      const name = headers.get(LEADER_HEADER);
      if (name !== null) hear(base, name);
      if (isWrite) seq = Math.max(seq, readSeq(headers.get(SEQ_HEADER)));
    },
    isReplaced(base) {
      const asked = wondering.get(base) ?? askOthers(base).finally(() => wondering.delete(base));
      wondering.set(base, asked);
      return asked;
    },
    failed(base, how) {
      if (how === "silent") avoid(base);
      if (base === leader) leader = null;
      if (base === given[at]) at = (at + 1) % given.length;
    },
    afterOwnWrites(least = 0) {
      const after = Math.max(least, seq);
      return after === 0 ? {} : { [AFTER_HEADER]: String(after) };
    },
    forgetWrites() {
      seq = 0;
    },
  };
}

/** One address, several separated by commas, or a list of such. */
function readAddresses(url: string | readonly string[]): readonly string[] {
  const texts = [url].flat().flatMap((text) => text.split(","));
  const bases = new Set(texts.map((text) => readAddress(text.trim(), texts.length > 1)));
  if (bases.size === 0 || bases.size > ADDRESSES_MAX)
    throw new ClientError("bad_request", `url has ${bases.size} addresses, and must have 1 to ${ADDRESSES_MAX}`);
  return [...bases];
}

function readAddress(text: string, isOneOfSeveral: boolean): string {
  const field = isOneOfSeveral ? "an address in url" : "url";
  const parsed = URL.parse(text);
  if (parsed === null || !/^https?:$/.test(parsed.protocol))
    throw new ClientError("bad_request", `${field} is ${JSON.stringify(text)}, and must be an http or https URL`);
  if (parsed.username !== "" || parsed.password !== "")
    throw new ClientError("bad_request", `${field} must not hold a user or password; give the token as token`);
  return baseOf(parsed);
}

const baseOf = ({ origin, pathname }: URL): string => `${origin}${pathname.replace(/\/+$/, "")}`;

// What a header cannot hold would come back as an error that shows the token.
function checkToken(token: string | undefined): void {
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token))
    throw new ClientError("bad_request", "token must be printable ASCII without blanks");
}

/** The leader's address as the node there has named it; null for what is not followed. */
function readName(name: string, from: string): string | null {
  const named = name.length > NAME_LENGTH_MAX ? null : URL.parse(name);
  const { protocol, hostname } = new URL(from);
  if (named === null || named.protocol !== protocol || named.username !== "" || named.password !== "") return null;
  // This machine is another one there.
  return isLoopback(named.hostname) && !isLoopback(hostname) ? null : baseOf(named);
}

const LEADS_MS = 2000;

/** Without a token: it is not known yet who answers. */
export const leadsBy =
  (fetch: Fetch): Leads =>
  async (base) => {
    const signal = AbortSignal.timeout(LEADS_MS);
    const answer = await fetch(`${base}${ENDPOINTS.ready.path}`, { headers: {}, redirect: "manual", signal });
    const { role } = JSON.parse(await answer.text()) as { readonly role?: unknown };
    return answer.status === 200 && role === "leader";
  };

/** 0 for what is not the number of an event. */
function readSeq(text: string | null): number {
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : 0;
}

/** The path of a call with its parameters, and the query behind it. A list is its parameter several times. */
export function targetOf(path: string, params: object, query: object): string {
  const values = params as Readonly<Record<string, unknown>>;
  let target = path.replaceAll(/\{(\w+)\}/g, (_, key: string) => encodeURIComponent(String(values[key])));
  let mark = "?";
  for (const [key, value] of Object.entries(query)) {
    for (const one of value === undefined ? [] : [value].flat()) {
      target += `${mark}${encodeURIComponent(key)}=${encodeURIComponent(String(one))}`;
      mark = "&";
    }
  }
  return target;
}
