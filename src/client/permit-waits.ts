/**
 * Permits that are waited for at the same time share their requests.
 *
 * Each is asked for as it always is, without waiting, and travels with what else is asked for (gather.ts). Those that
 * are not granted wait together (watch.ts); the answer says which of them wait no more, and these are asked for again,
 * which says what became of them. So each is granted or refused by its own call, keeps its place by its id, and whoever
 * gives one up gives up that one. A server that does not know such waits is asked for each permit for a while.
 */
import type { PermitBody, PermitView, WaitAnyItem, WaitPermitsAnswer } from "../protocol/index.ts";
import { ENDPOINTS } from "../protocol/wire/index.ts";
import type { CallOptions } from "./call-options.ts";
import { ClientError } from "./client-error.ts";
import { answerOf, fetchOnce, retried, type Wait, type Wiring } from "./exchange.ts";
import { createKnown, UNKNOWN } from "./known.ts";
import { createJoin, type Join } from "./watch.ts";

type NamedPermit = PermitBody & { readonly id: string };
/** A permit that is waited for. */
type Wanted = { readonly body: NamedPermit; readonly options: CallOptions; readonly wait: Wait };
/** Asks for it until there is an answer; that is held back for what is left of the wait, or not at all. */
export type AskLeft = (wanted: Wanted, isHeld: boolean) => Promise<PermitView>;

export function createPermitWaits(wiring: Wiring, ask: AskLeft) {
  /** By the session they are asked for under, with how many wait. */
  const sessions = new Map<string, { readonly join: Join<true>; waiting: number }>();
  const known = createKnown();

  async function waitWith(session: string, wait: (join: Join<true>) => Promise<unknown>): Promise<void> {
    const shared = sessions.get(session) ?? { join: createJoin(wiring, permitsOf(session)), waiting: 0 };
    sessions.set(session, shared);
    shared.waiting++;
    try {
      await wait(shared.join);
    } catch (error) {
      if (!UNKNOWN.has((error as Partial<ClientError>).status ?? 0)) throw error;
      known.isNot();
    } finally {
      if (--shared.waiting === 0) sessions.delete(session);
    }
  }

  return async (wanted: Wanted): Promise<PermitView> => {
    const { body, options, wait } = wanted;
    for (;;) {
      const view = await ask(wanted, !known.isSo());
      if (view.status === "granted" || wait.leftMs() <= 0) return view;
      await waitWith(body.session ?? "", (join) =>
        retried(wiring, options, () => join(body.id, options.signal, wait.leftMs()), undefined, wait),
      );
    }
  };
}

const permitsOf = (session: string) => ({
  async ask(
    wiring: Wiring,
    ids: readonly string[],
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<readonly WaitAnyItem[]> {
    const body = { ids, timeoutMs, ...(session === "" ? {} : { session }) };
    const asked = { body, text: JSON.stringify(body) };
    const read = answerOf(ENDPOINTS.waitPermits, await fetchOnce(wiring, ENDPOINTS.waitPermits, asked, { signal }));
    const { ids: decided } = (read ?? {}) as Partial<WaitPermitsAnswer>;
    if (!Array.isArray(decided)) throw new ClientError("bad_answer", "the permits are missing", { status: 200 });
    return (decided as readonly string[]).map((id) => ({ id, status: 200, body: true }));
  },
  read: (body: unknown): true | undefined => (body === true ? true : undefined),
});
