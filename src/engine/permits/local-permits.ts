/**
 * Permits for callers in this process.
 *
 * A call asks once and keeps its position: its ticket is in the gate's queue, and the moment the gate
 * grants it the waiting promise resolves, before the grant is durable (a grant costs no fsync). Giving up
 * takes the ticket out. `withPermit` releases on every path; a 429 or 529 throttles the gate, and
 * the call goes back into the queue with its age, a bounded number of times.
 */
import type { Fields, GateId, Instant, PermitId, ProjectId, TaskId } from "../../core/base/index.ts";
import { name, oneOf, whole } from "../../core/base/index.ts";
import type { Event, UsageTotals } from "../../core/model/index.ts";
import type { HeldPermit, PermitOptions } from "../../protocol/index.ts";
import { type Clock, rateLimitOf } from "../../std/index.ts";
import { abortSignal, readOptions } from "../base/call-options.ts";
import { detailsOf, tokensOf } from "../base/charged-tokens.ts";
import { accepted, badInput, type DroverError, refused } from "../base/drover-error.ts";
import { notify, type Writer } from "../writer/writer.ts";

const TRIES_MAX = 10;
const TOKENS_MAX = 1_000_000_000_000;

export type LocalPermits = {
  withPermit<Value>(
    gate: string,
    call: (permit: HeldPermit) => Promise<Value> | Value,
    options?: PermitOptions,
    holder?: Holder,
  ): Promise<Value>;
  onApplied(event: Event): void;
  stop(error: DroverError): void;
};
/** The attempt on whose reservation a call draws. */
type Holder = {
  readonly task: TaskId;
  readonly attempt: number;
  readonly taskSeq: number;
  readonly signal: AbortSignal;
};

/** The position a call has in the queue, and keeps when it is put back after a 429. */
type Position = { readonly askedAt: Instant; readonly order: number | null };

type Waiting = { resolve(): void; reject(reason: unknown): void };

export function createLocalPermits(writer: Writer, clock: Pick<Clock, "now">): LocalPermits {
  const waiting = new Map<string, Waiting>();

  function acquire(gate: GateId, options: PermitOptions, holder: Holder | null, position: Position): Promise<PermitId> {
    const { signal } = options;
    signal?.throwIfAborted();
    const asked = writer.execute({
      type: "ask-permit",
      permit: null,
      gate,
      task: holder?.task ?? null,
      attempt: holder?.attempt ?? null,
      taskSeq: holder?.taskSeq ?? null,
      project: (options.project ?? "default") as ProjectId,
      class: options.class ?? null,
      tokens: options.tokens ?? 0,
      ...position,
    });
    const id = accepted(asked).id as PermitId;
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        if (!waiting.delete(id)) return;
        notify(writer, { type: "drop-permit", permit: id });
        reject(signal?.reason);
      };
      const end = (): void => signal?.removeEventListener("abort", giveUp);
      waiting.set(id, {
        resolve: () => {
          end();
          resolve(id);
        },
        reject: (reason) => {
          end();
          reject(reason);
        },
      });
      signal?.addEventListener("abort", giveUp, { once: true });
    });
  }

  /** What became of a call is the caller's to know, also when the engine has stopped: permits run out by themselves. */
  function settle(permit: PermitId, ok: boolean, tokens: number | null, usage: UsageTotals | null = null): void {
    notify(writer, { type: "settle-permit", permit, ok, tokens, usage });
  }

  async function withPermit<Value>(
    gateName: string,
    call: (permit: HeldPermit) => Promise<Value> | Value,
    given?: PermitOptions,
    holder?: Holder,
  ): Promise<Value> {
    const gate = readGateName(gateName);
    if (typeof call !== "function") throw badInput("call", call, "a function that makes the call");
    const options = untilEither(readOptions<PermitOptions>(OPTIONS, given), holder?.signal);
    const askedAt = writer.now();
    let order: number | null = null;
    for (let tries = 1; ; tries++) {
      const id = await acquire(gate, options, holder ?? null, { askedAt, order });
      order ??= writer.state.gates.get(gate)?.held.get(id)?.order ?? null;
      if (options.signal?.aborted === true) {
        // It fired between the grant and here: the caller does not want the call any more.
        settle(id, false, 0);
        throw options.signal.reason;
      }
      let used: number | null = null;
      let details: UsageTotals | null = null;
      const permit: HeldPermit = {
        id,
        usage: (usage) => {
          const tokens = tokensOf(usage);
          if (tokens >= (used ?? 0)) details = detailsOf(usage);
          used = Math.max(used ?? 0, tokens);
        },
      };
      try {
        const value = await call(permit);
        settle(id, true, used, details);
        return value;
      } catch (error) {
        const retryAfterMs = rateLimitOf(error, clock.now());
        if (retryAfterMs === null) {
          settle(id, false, used, details);
          throw error;
        }
        notify(writer, { type: "throttle-gate", gate, permit: id, retryAfterMs });
        settle(id, false, used ?? 0, details);
        if (tries >= TRIES_MAX) throw error;
      }
    }
  }

  return {
    withPermit,
    onApplied(event) {
      if (event.kind !== "permit-granted" && event.kind !== "permit-dropped") return;
      const waiter = waiting.get(event.permit);
      waiting.delete(event.permit);
      if (event.kind === "permit-granted") waiter?.resolve();
      // Its caller has not given up: the attempt is over for which it asked.
      else waiter?.reject(refused({ type: "permit-unknown", permit: event.permit }));
    },
    stop(error) {
      for (const waiter of waiting.values()) waiter.reject(error);
      waiting.clear();
    },
  };
}

const OPTIONS: Fields<Required<PermitOptions>> = {
  project: name(),
  class: oneOf("critical", "high", "normal", "low"),
  tokens: whole(0, TOKENS_MAX),
  signal: abortSignal,
};

export const readGateName = (gate: unknown): GateId => accepted(name()(gate, "gate")) as GateId;

/** A call in a task gives up when the caller's signal fires or the attempt must stop, whichever is first. */
function untilEither(options: PermitOptions, stopped: AbortSignal | undefined): PermitOptions {
  if (stopped === undefined) return options;
  const { signal } = options;
  return { ...options, signal: signal === undefined ? stopped : AbortSignal.any([signal, stopped]) };
}
