/**
 * A permit is asked for as long as its caller wants it, over as many tries as that takes.
 *
 * Each try asks for what is left of `waitMs`, be it alone or with others (permit-waits.ts): a server that was away does
 * not make the wait longer. It ends with an answer, as far as its tries reach: where there is none when its time is
 * over, what is left of them goes on, without waiting. A caller that gives up by its signal leaves no ticket in line,
 * which would hold up those behind it: it is dropped on the side, once, unless the same id is asked for again.
 */
import type { PermitBody, PermitView } from "../protocol/index.ts";
import { kindInWords, present } from "../std/plain-json.ts";
import { type CallOptions, checkCall, wrong } from "./call-options.ts";
import { retried, type Wiring, waitFor, waitOf } from "./exchange.ts";
import type { AskLeft } from "./permit-waits.ts";
import { namedPermit } from "./request-body.ts";
import type { Ask } from "./waited.ts";
import { whenMet } from "./when-met.ts";

export type PermitAskOptions = CallOptions & {
  /** Whether the ticket stays in line for a minute when the call is given up by its signal. */
  readonly keepTicket?: boolean;
};
type AskPermit = (body: PermitBody, options: CallOptions) => Promise<PermitView>;

/** `beside` is told what goes on when the call is over. */
export function createPermitAsks(wiring: Wiring, ask: Ask, beside: (work: Promise<unknown>) => void) {
  const asked = asksWith(wiring, ask);
  /** How many calls ask for a permit, and what drops its ticket, by its id. */
  const asking = new Map<string, number>();
  const dropping = new Map<string, Promise<unknown>>();

  async function drop(id: string, session: string | undefined): Promise<void> {
    // Whoever asks for the same again as soon as it has heard of this does so by then.
    await new Promise(setImmediate);
    if (asking.has(id)) return;
    // An earlier call for the same may have got the permit, and be out with it.
    const query = present({ session, unheard: true });
    const over = ask("dropPermit", { params: { id }, query }, { retries: 0 }).catch(() => {});
    dropping.set(id, over);
    await over;
    if (dropping.get(id) === over) dropping.delete(id);
  }

  async function counted<Value>(id: string, call: () => Promise<Value>): Promise<Value> {
    asking.set(id, (asking.get(id) ?? 0) + 1);
    try {
      // What asks for it again comes behind.
      if (dropping.has(id)) await dropping.get(id);
      return await call();
    } finally {
      const others = (asking.get(id) ?? 0) - 1;
      if (others > 0) asking.set(id, others);
      else asking.delete(id);
    }
  }

  return async (given: PermitBody, more: PermitAskOptions = {}): Promise<PermitView> => {
    if (typeof more !== "object" || more === null) checkCall(more);
    const { keepTicket = false, ...options } = more;
    if (typeof keepTicket !== "boolean") throw wrong("keepTicket", kindInWords(keepTicket), "true or false");
    const { signal } = options;
    const body = signal === undefined ? given : namedPermit(given);
    const { id, session } = body ?? {};
    if (typeof id !== "string") return asked(body, options);
    const isAsked = signal?.aborted === false;
    try {
      return await counted(id, () => asked(body, options));
    } catch (error) {
      if (isAsked && signal.aborted && error === signal.reason && !keepTicket) beside(drop(id, session));
      throw error;
    }
  };
}

function asksWith(wiring: Wiring, ask: Ask): AskPermit {
  const askOnce: AskPermit = (body, options) => ask("askPermit", { body }, options);
  const askLeft: AskLeft = ({ body, options, wait }, isHeld) => {
    const once = (): Promise<PermitView> =>
      askOnce({ ...body, waitMs: isHeld ? Math.ceil(wait.leftMs()) : 0 }, { ...options, retries: 0 });
    return retried(wiring, options, once, undefined, wait);
  };
  const met = whenMet(async () => (await import("./permit-waits.ts")).createPermitWaits(wiring, askLeft));
  return (body, options) => {
    // What the server is to refuse is asked as it is.
    if (waitOf(body?.waitMs) === 0) return askOnce(body, options);
    const wait = { ...waitFor(wiring, options, body.waitMs), isAnsweredLate: true };
    const wanted = { body: namedPermit(body), options, wait };
    const alone = (): Promise<PermitView> => askLeft(wanted, true);
    // What has a time of its own for each try goes by itself.
    return options.timeoutMs === undefined ? met(alone, (shared) => shared(wanted)) : alone();
  };
}
