/**
 * Calls of the protocol from the page: as any stranger makes them, with the token of this tab.
 *
 * The token stays in the tab: a new tab asks for it again, and closing this one forgets it.
 *
 * Lists may be a second old, so that the server makes one for all who look. But what this page was told of by a pulse
 * is in them, and so is what it did itself: a fleet that falls silent is shown as it is, and an act shows at once.
 */
import type { Answered, Asked } from "../../protocol/index.ts";
import {
  AFTER_HEADER,
  type CallName,
  ENDPOINTS,
  LOOK_MS,
  SEQ_HEADER,
  type WireError,
} from "../../protocol/wire/index.ts";
import { createStore, type Store } from "./store.ts";

const KEY = "drover-token";

/** What the server has said to the token of this tab: it wants one, or another one. */
export type Session = { readonly token: string | null; readonly isRefused: boolean; readonly why: string };
export const session: Store<Session> = createStore<Session>({
  token: sessionStorage.getItem(KEY),
  isRefused: false,
  why: "",
});

export function logIn(token: string): void {
  sessionStorage.setItem(KEY, token);
  session.set({ token, isRefused: false, why: "" });
}

export function logOut(): void {
  sessionStorage.removeItem(KEY);
  session.set({ token: null, isRefused: true, why: "" });
}

/** The token is known, but nothing here is for whoever has it. */
export function turnAway(why: string): void {
  session.set({
    token: session.now().token,
    isRefused: true,
    why: `This page has nothing to show to that token: ${why}`,
  });
}

/** An answer that is an error, in the server's words. */
export class Refused extends Error {
  readonly status: number;
  readonly code: string;
  readonly details: Readonly<Record<string, unknown>>;
  constructor(status: number, { error, code, details = {} }: Partial<WireError>) {
    super(error ?? `the server answered ${status}`);
    this.status = status;
    this.code = code ?? "";
    this.details = details;
  }
}

/** The server could not be reached at all. */
export class Unreachable extends Error {}

type Parts = {
  readonly params?: Readonly<Record<string, unknown>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
};

export function pathOf(name: CallName, { params = {}, query = {} }: Parts): string {
  const path = ENDPOINTS[name].path.replaceAll(/\{(\w+)\}/g, (_, key: string) =>
    encodeURIComponent(String(params[key])),
  );
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(query))
    if (value !== undefined && value !== "") search.set(key, `${value}`);
  return search.size === 0 ? path : `${path}?${search}`;
}

export async function open(path: string, given: RequestInit = {}): Promise<Response> {
  const { token } = session.now();
  const headers = new Headers(given.headers);
  if (token !== null) headers.set("authorization", `Bearer ${token}`);
  let answer: Response;
  try {
    answer = await fetch(path, { ...given, headers });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Unreachable("the server cannot be reached");
  }
  if (answer.ok) return answer;
  const said = (await answer.json().catch((error: unknown) => {
    // Whoever asked has left in the middle of the answer: it says nothing.
    if (given.signal?.aborted === true) throw error;
    return {};
  })) as Partial<WireError>;
  // An answer to a request of before says nothing about the token of now.
  if (answer.status === 401 && token === session.now().token)
    session.set({ token, isRefused: true, why: token === null ? "" : (said.error ?? "") });
  throw new Refused(answer.status, said);
}

/** The event of the last write of this page: what is shown is looked at again when it moves. */
export const wrote: Store<number> = createStore(0);
/** The event of the last pulse. */
let heard = 0;

/** No answer from now on is older than this event. */
export function knowOf(seq: number): void {
  heard = seq;
}
export const knownSeq = (): number => heard;

const MAX_AGE = { "cache-control": `max-age=${LOOK_MS / 1000}` };
const lookHeaders = (): Record<string, string> => {
  const after = Math.max(heard, wrote.now());
  return after === 0 ? MAX_AGE : { ...MAX_AGE, [AFTER_HEADER]: String(after) };
};

export async function ask<Name extends CallName>(
  name: Name,
  asked: Asked<Name>,
  signal?: AbortSignal,
): Promise<Answered<Name>> {
  const parts = asked as Parts;
  const { method } = ENDPOINTS[name];
  const body = parts.body === undefined ? null : JSON.stringify(parts.body);
  const until = signal === undefined ? {} : { signal };
  if (method === "GET") return (await look(pathOf(name, parts), until)).json();
  const headers = body === null ? {} : { "content-type": "application/json" };
  const answer = await open(pathOf(name, parts), { method, body, headers, ...until });
  const answered = (await answer.json()) as Answered<Name>;
  wrote.set(Math.max(wrote.now(), Number(answer.headers.get(SEQ_HEADER) ?? 0)));
  return answered;
}

/** A log that was begun anew never comes to what this page knows of: that is forgotten then. */
async function look(path: string, until: RequestInit): Promise<Response> {
  try {
    return await open(path, { ...until, headers: lookHeaders() });
  } catch (error) {
    if (!(error instanceof Refused) || error.code !== "behind") throw error;
    heard = 0;
    wrote.set(0);
    return open(path, { ...until, headers: lookHeaders() });
  }
}
