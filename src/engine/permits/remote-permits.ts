/**
 * Permits for callers in other processes: asked for, settled and given back by their id.
 *
 * A ticket keeps its place however often its caller asks again under the same id, so a call over a wire that breaks
 * loses nothing; one that nobody has asked for in a minute is given up. A grant is answered when it is applied, like
 * any (permits are logged behind). A permit that is never settled comes back by itself when its time is over. Permits
 * of this process's own callers are none of their business, whatever id they name.
 */

import {
  flag,
  type GateId,
  type Instant,
  name,
  type PermitId,
  type ProjectId,
  type TaskId,
  whole,
} from "../../core/base/index.ts";
import { waitingOf } from "../../core/gate/index.ts";
import type { Event } from "../../core/model/index.ts";
import { THROTTLED_MS_MAX } from "../../core/task/index.ts";
import type { PermitBody, PermitView, SettleBody } from "../../protocol/index.ts";
import { permitBody, settleBody } from "../../protocol/shapes/index.ts";
import { type Clock, isoTime, remember } from "../../std/index.ts";
import { abortSignal, readBody, readOptions } from "../writer/call-options.ts";
import { badInput, type DroverError, refused } from "../writer/drover-error.ts";
import type { Writer } from "../writer/writer.ts";
import { countTokens } from "./local-permits.ts";

const GIVE_UP_MS = 60_000;
const IDS_KEPT_MAX = 10_000;
/** Ids of this form are Drover's own. */
const OWN_ID = /^p\d+$/;

type Place = { readonly gate: string; readonly project: string; readonly askedAt: Instant; readonly order: number };
export type SettleOptions = { readonly retryAfterMsMax?: number };
export type AskOptions = {
  readonly signal?: AbortSignal;
  /** By default yes: a call takes the place it had before its 429. */
  readonly keepsPlace?: boolean;
};
export type RemotePermits = {
  ask(body: PermitBody, options?: AskOptions): Promise<PermitView>;
  /** A block is never longer than `retryAfterMsMax`, by default a day, whatever the body says. */
  settle(permit: string, body?: SettleBody, options?: SettleOptions): Promise<void>;
  /** Gives a ticket up, or a permit back unused. */
  drop(permit: string): Promise<void>;
};
export type RemotePermitsService = RemotePermits & { onApplied(event: Event): void; stop(error: DroverError): void };

export function createRemotePermits(writer: Writer, clock: Clock): RemotePermitsService {
  const { state } = writer;
  const waiting = new Map<string, Set<() => void>>();
  const givingUp = new Map<string, () => void>();
  const settled = new Set<string>();
  /** Ids of Drover's own that were given out and are over. */
  const gone = new Set<string>();
  /** The places of calls that met a 429, by their permits: they may come back. */
  const turnedAway = new Map<string, Place>();
  const begunAt = state.seq;
  let stopped: DroverError | null = null;

  async function ask(body: PermitBody, options?: AskOptions): Promise<PermitView> {
    const { signal, keepsPlace = true } = readOptions<AskOptions>({ signal: abortSignal, keepsPlace: flag }, options);
    signal?.throwIfAborted();
    const call = readBody(permitBody, body);
    const id =
      call.id !== undefined && state.permits.has(call.id as PermitId)
        ? again(call.id, call)
        : enqueue(call, keepsPlace);
    givingUp.get(id)?.();
    givingUp.delete(id);
    try {
      if (!isGranted(id)) await untilGranted(id, call.waitMs ?? 0, signal);
    } finally {
      if (!isGranted(id)) giveUpLater(id);
    }
    if (!isOurs(id)) throw refused({ type: "permit-unknown", permit: id });
    return viewOf(id, call.gate as GateId);
  }

  function enqueue(call: PermitBody, keepsPlace: boolean): string {
    if (call.id !== undefined && OWN_ID.test(call.id)) throw notToBeChosen(call.id);
    const place = keepsPlace ? placeOf(call) : null;
    const decided = writer.execute({
      type: "ask-permit",
      permit: (call.id ?? null) as PermitId | null,
      gate: call.gate as GateId,
      task: (call.taskId ?? null) as TaskId | null,
      attempt: call.attempt ?? null,
      project: (call.project ?? "default") as ProjectId,
      class: call.class ?? null,
      tokens: call.tokens ?? 0,
      askedAt: place?.askedAt ?? null,
      order: place?.order ?? null,
      remote: true,
    });
    if (!decided.ok) throw refused(decided.failure);
    if (place !== null) turnedAway.delete((call.again ?? call.id) as string);
    return decided.value.id as string;
  }

  /** The place the same call had before its 429; of another gate or payer it is none of this one's. */
  function placeOf({ gate, project, taskId, again: before, id }: PermitBody): Place | null {
    const place = turnedAway.get(before ?? id ?? "");
    if (place === undefined || place.gate !== gate) return null;
    const task = taskId === undefined ? undefined : state.tasks.get(taskId as TaskId);
    const payer = task?.project.id ?? project ?? "default";
    return place.project === payer ? place : null;
  }

  /** It was given out and is gone, perhaps before this engine began; or the caller has made it up. */
  function notToBeChosen(id: string): DroverError {
    if (gone.has(id) || Number(id.slice(1)) <= begunAt) return refused({ type: "permit-unknown", permit: id });
    return badInput("id", id, "an id not of the form p<number>, which Drover makes itself");
  }

  /** The same ticket, if it is the same call. */
  function again(id: string, { gate }: PermitBody): string {
    if (state.permits.get(id as PermitId) !== gate || !isOurs(id)) throw refused({ type: "permit-exists", permit: id });
    return id;
  }

  /** Whether it is queued or held for a caller in another process. */
  function isOurs(id: string): boolean {
    const gate = state.gates.get(state.permits.get(id as PermitId) as GateId);
    return (gate?.held.get(id) ?? gate?.queue.entries.get(id)?.ticket)?.remote === true;
  }

  function isGranted(id: string): boolean {
    const gate = state.permits.get(id as PermitId);
    return gate !== undefined && state.gates.get(gate)?.held.has(id) === true;
  }

  function untilGranted(id: string, waitMs: number, signal: AbortSignal | undefined): Promise<void> {
    // The pump has its turn first even if nobody waits: most calls are let out at once.
    return new Promise((resolve, reject) => {
      const over = (): void => {
        cancel();
        signal?.removeEventListener("abort", over);
        const others = waiting.get(id);
        others?.delete(over);
        if (others?.size === 0) waiting.delete(id);
        if (stopped !== null) reject(stopped);
        else if (signal?.aborted === true) reject(signal.reason);
        else resolve();
      };
      const cancel = waitMs > 0 ? clock.ringAt(clock.elapsed() + waitMs, over, { keepAlive: false }) : afterTurn(over);
      signal?.addEventListener("abort", over, { once: true });
      waiting.set(id, (waiting.get(id) ?? new Set()).add(over));
    });
  }

  function afterTurn(over: () => void): () => void {
    clock.defer(() => clock.defer(over));
    return () => {};
  }

  /** Whoever asked has stopped asking, perhaps only for now. */
  function giveUpLater(id: string): void {
    const drop = (): void => {
      givingUp.delete(id);
      if (stopped === null && state.permits.has(id as PermitId) && !isGranted(id))
        writer.execute({ type: "drop-permit", permit: id as PermitId });
    };
    givingUp.get(id)?.();
    givingUp.set(id, clock.ringAt(clock.elapsed() + GIVE_UP_MS, drop, { keepAlive: false }));
  }

  function viewOf(permitId: string, gate: GateId): PermitView {
    const queue = state.gates.get(gate);
    const held = queue?.held.get(permitId);
    if (held !== undefined) return { permitId, gate, status: "granted", expiresAt: isoTime(held.expiresAt) };
    const waiting = queue === undefined ? null : waitingOf(queue, permitId, writer.now());
    return { permitId, gate, ...(waiting ?? { status: "queued" }) };
  }

  async function settle(permit: string, body: SettleBody = {}, options?: SettleOptions): Promise<void> {
    const id = readId(permit);
    const { retryAfterMsMax = THROTTLED_MS_MAX } = readOptions<SettleOptions>(
      { retryAfterMsMax: whole(0, THROTTLED_MS_MAX) },
      options,
    );
    const { ok: went = true, usage, rateLimited } = readBody(settleBody, body);
    if (isRepeated(id)) return;
    if (!isGranted(id))
      throw badInput("permit", id, "a permit that was granted; this one still waits: drop it instead");
    const tokens = usage === undefined ? null : countTokens(usage);
    const gate = state.permits.get(id) as GateId;
    if (rateLimited !== undefined) {
      const retryAfterMs = Math.min(Math.ceil(rateLimited.retryAfterMs), retryAfterMsMax);
      keepPlace(gate, id);
      writer.execute({ type: "throttle-gate", gate, permit: id, retryAfterMs });
    }
    // A call that was turned away used nothing; what any other used is charged at its estimate if it does not say.
    const used = rateLimited === undefined ? tokens : (tokens ?? 0);
    writer.execute({ type: "settle-permit", permit: id, ok: went && rateLimited === undefined, tokens: used });
    keep(settled, id);
    await writer.settled();
  }

  function keepPlace(gate: GateId, id: PermitId): void {
    const held = state.gates.get(gate)?.held.get(id);
    if (held === undefined) return;
    const { askedAt, order, project } = held;
    remember(turnedAway, id, { gate, askedAt: askedAt as Instant, order, project }, IDS_KEPT_MAX);
  }

  async function drop(permit: string): Promise<void> {
    const id = readId(permit);
    if (isRepeated(id)) return;
    writer.execute({ type: "drop-permit", permit: id });
    keep(settled, id);
    await writer.settled();
  }

  /** Saying it twice is no fault; saying it of what never was is. */
  function isRepeated(id: PermitId): boolean {
    if (isOurs(id)) return false;
    if (settled.has(id)) return true;
    throw refused({ type: "permit-unknown", permit: id });
  }

  return {
    ask,
    settle,
    drop,
    onApplied(event) {
      if ((event.kind === "permit-dropped" || event.kind === "permit-settled") && OWN_ID.test(event.permit))
        keep(gone, event.permit);
      if (event.kind !== "permit-granted" && event.kind !== "permit-dropped") return;
      for (const over of [...(waiting.get(event.permit) ?? [])]) over();
    },
    stop(error) {
      stopped = error;
      for (const cancel of givingUp.values()) cancel();
      for (const waiters of [...waiting.values()]) for (const over of [...waiters]) over();
    },
  };
}

/** The last so many. */
function keep(ids: Set<string>, id: string): void {
  ids.add(id);
  if (ids.size > IDS_KEPT_MAX) ids.delete(ids.values().next().value as string);
}

function readId(permit: unknown): PermitId {
  const read = name()(permit, "permit");
  if (!read.ok) throw refused(read.failure);
  return read.value as PermitId;
}
