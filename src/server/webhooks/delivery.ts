/**
 * One try to deliver one webhook.
 *
 * The task's snapshot is posted as JSON. Everything about where it goes is judged here and now, by the rules of this
 * moment: the URL again, then every address its name has. One bad address among them is enough to refuse, since the
 * owner of the name chose to mix them; and the connection is made to the addresses that were judged, so that a name
 * which leads elsewhere a millisecond later (DNS rebinding) leads nowhere.
 *
 * The status decides, and nothing else: 2xx is delivered, a redirect is not followed and is a failure like a 500. The
 * body of the answer is read a little way, out of politeness, and dropped. One limit of time holds for all of it:
 * resolving, connecting, the head and the body; a receiver that has said 200 and then hangs has received it.
 */
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { type Exchange, ExchangeFailure, exchange, headerText, type ResolvedAddress } from "../../http/index.ts";
import type { WebhookSettings } from "../../protocol/index.ts";
import { type Clock, present, readRetryAfter, ringAfter } from "../../std/index.ts";
import { hostOf, readCallbackUrl, specialRangeOf } from "./address.ts";
import { signatureOf } from "./signature.ts";

const ANSWER_BYTES_READ = 16 * 1024;
const GONE = 410;

/** What is sent: a task as callers see it. */
export type Snapshot = {
  readonly taskId: string;
  readonly state: string;
  readonly project?: string;
  readonly callbackUrl?: string;
  readonly completedAt?: string;
};
type Webhook = { readonly snapshot: Snapshot; readonly url: string; readonly deliveryId: string };
type Resolve = (name: string) => Promise<readonly ResolvedAddress[]>;
/** The world outside, which a test replaces. */
export type Outside = {
  readonly clock: Clock;
  readonly resolve: Resolve;
  readonly exchange: Exchange;
  /** Of Drover, for the User-Agent. */
  readonly version: string;
};

export type Verdict =
  | { readonly ok: true; readonly status: number }
  | {
      readonly ok: false;
      readonly reason: string;
      /** Absent where no answer came. */
      readonly status?: number;
      /** No later try would do better. */
      readonly isFinal?: true;
      readonly retryAfterMs?: number;
    };

const resolveName: Resolve = (name) => lookup(name, { all: true });
export const outside = (clock: Clock, version: string): Outside => ({ clock, version, resolve: resolveName, exchange });

export async function deliver(
  webhook: Webhook,
  settings: WebhookSettings,
  outside: Outside,
  stop: AbortSignal,
): Promise<Verdict> {
  const url = readCallbackUrl(webhook.url, settings);
  if (!url.ok) return { ok: false, reason: `its callbackUrl must be ${url.failure}`, isFinal: true };
  const late = new AbortController();
  const ring = (): void => late.abort(new Error(`no answer in ${settings.timeout} ms`));
  const cancelAlarm = ringAfter(outside.clock, settings.timeout, ring, { keepAlive: true });
  try {
    return await attempt(url.value, webhook, settings, outside, AbortSignal.any([late.signal, stop]));
  } finally {
    cancelAlarm();
  }
}

async function attempt(
  url: URL,
  webhook: Webhook,
  settings: WebhookSettings,
  { clock, resolve, exchange, version }: Outside,
  signal: AbortSignal,
): Promise<Verdict> {
  try {
    const addresses = await addressesOf(hostOf(url), resolve, signal);
    const bad = settings.allowPrivate ? undefined : addresses.find(({ address }) => specialRangeOf(address) !== null);
    if (bad !== undefined) return { ok: false, reason: `its name leads to a ${specialRangeOf(bad.address)} address` };
    const body = JSON.stringify(webhook.snapshot);
    const headers = headersOf(webhook, body, { secret: settings.secret, version, now: clock.now() });
    const answer = await exchange({ url, method: "POST", headers, body, addresses, signal });
    await answer.read(ANSWER_BYTES_READ).catch(passFailure);
    return verdictOf(answer.status, answer.headers["retry-after"], clock.now());
  } catch (error) {
    return { ok: false, reason: passFailure(error).message };
  }
}

/** An address is where it says; a name is where its resolver says, if it says so in time. */
async function addressesOf(host: string, resolve: Resolve, signal: AbortSignal): Promise<readonly ResolvedAddress[]> {
  if (isIP(host) !== 0) return [{ address: host, family: isIP(host) }];
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = (): void => reject(new ExchangeFailure("none", signal.reason));
  signal.addEventListener("abort", abort, { once: true });
  if (signal.aborted) abort();
  try {
    return await Promise.race([resolve(host), aborted]);
  } catch (error) {
    throw error instanceof ExchangeFailure ? error : new ExchangeFailure("none", error);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

function passFailure(error: unknown): ExchangeFailure {
  if (error instanceof ExchangeFailure) return error;
  throw error;
}

/** A task that is parked is one that asks. */
export const eventOf = (state: string): string => `task.${state === "parked" ? "approval" : state}`;

export function headersOf(
  { snapshot, deliveryId }: Webhook,
  body: string,
  { secret, version, now }: { readonly secret: string | null; readonly version: string; readonly now: number },
): Record<string, string> {
  return {
    "Content-Type": "application/json",
    "User-Agent": `drover/${version}`,
    "X-Drover-Event": eventOf(snapshot.state),
    "X-Drover-Task-ID": headerText(snapshot.taskId),
    "X-Drover-Delivery": headerText(deliveryId),
    ...(secret === null ? {} : { "X-Drover-Signature": signatureOf(secret, body, now) }),
  };
}

function verdictOf(status: number, retryAfter: string | undefined, now: number): Verdict {
  if (status >= 200 && status <= 299) return { ok: true, status };
  const retryAfterMs = readRetryAfter(retryAfter, now);
  return {
    ok: false,
    status,
    reason: status >= 300 && status <= 399 ? `HTTP ${status}; redirects are not followed` : `HTTP ${status}`,
    ...(status === GONE ? { isFinal: true } : {}),
    ...present({ retryAfterMs }),
  };
}
