/**
 * Permits for callers in other processes: asked for, settled and given back by their id.
 *
 * A ticket keeps its position however often its caller asks again under the same id, so a call over a wire that breaks
 * loses nothing; one that its caller has not asked for in a minute is given up. A grant that no caller has heard of
 * comes back much sooner, since it keeps others out; whoever asks for it later takes the position it had. A grant is
 * answered when it is applied, like any (permits are logged behind): one that its leader took along is unknown to the
 * next, and the call that went out under it is none the worse. Which ids were settled is a fact of the log. An id that
 * Drover chooses is never chosen again, also if what was granted under it is forgotten. A permit that is never settled
 * comes back by itself when its time is over. A caller never gets at the permits of callers in this process, whatever
 * id it names.
 */
import type { Fields, GateId, Instant, PermitId, ProjectId, TaskId } from "../../core/base/index.ts";
import { flag, name, whole } from "../../core/base/index.ts";
import { settledOf, waitingOf } from "../../core/gate/index.ts";
import { THROTTLED_MS_MAX } from "../../core/lifecycle/index.ts";
import type { Event, State } from "../../core/model/index.ts";
import type { PermitBody, PermitView, SettleBody } from "../../protocol/index.ts";
import { permitBody, settleBody } from "../../protocol/shapes/index.ts";
import { type Clock, isoTime, remember } from "../../std/index.ts";
import { abortSignal, readBody, readOptions } from "../base/call-options.ts";
import { countTokens, detailsOf } from "../base/charged-tokens.ts";
import { accepted, badInput, type DroverError, refused } from "../base/drover-error.ts";
import { notify, type Writer } from "../writer/writer.ts";

const GIVE_UP_MS = 60_000;
/** A grant is heard at once by who waits for it, and by who asks now and then after a few seconds. */
const UNHEARD_MS = 15_000;
const IDS_KEPT_MAX = 10_000;
/** Ids of this form are those of callers in the process. */
const OWN_ID = /^p\d+$/;

/** A position in the queue of a gate: older calls go first. */
type Position = { readonly gate: string; readonly project: string; readonly askedAt: Instant; readonly order: number };
type DropOptions = { readonly ifUnheard?: boolean };
type SettleOptions = { readonly retryAfterMsMax?: number };
type AskOptions = {
  readonly signal?: AbortSignal;
  /** By default yes: a call takes the position it had before its 429. */
  readonly keepsPosition?: boolean;
};
/** Permits for callers in other processes. */
export type RemotePermits = {
  /** Asks for the right to make one call. */
  ask(body: PermitBody, options?: AskOptions): Promise<PermitView>;
  /** A block is never longer than `retryAfterMsMax`, by default a day, whatever the body says. */
  settle(permit: string, body?: SettleBody, options?: SettleOptions): Promise<void>;
  /** Gives a ticket up, or a permit back unused; with `ifUnheard` not one whose grant somebody has heard of. */
  drop(permit: string, options?: DropOptions): Promise<void>;
  /** Whether its ticket waits in line, for a caller in another process. */
  isWaiting(permit: string): boolean;
  /** Resolves when one of these waits no more; meanwhile all are kept in line. */
  firstDecided(permits: readonly string[], options?: Pick<AskOptions, "signal">): Promise<void>;
};
type RemotePermitsService = RemotePermits & { onApplied(event: Event): void; stop(error: DroverError): void };

export function createRemotePermits(writer: Writer, clock: Clock, newId: () => string): RemotePermitsService {
  const { state } = writer;
  const waits = createWaits(clock);
  /** Tickets that their callers gave up. */
  const dropped = new Map<string, true>();
  /** The positions in the queue of calls that may come back, by their permits: they met a 429, or heard of no grant. */
  const positions = new Map<string, Position>();
  const { keep, giveUpLater, takeBackLater, takeBackNow, stop } = createLettingGo(writer, clock, {
    waits,
    keepPosition,
  });

  async function ask(body: PermitBody, options?: AskOptions): Promise<PermitView> {
    const { signal, keepsPosition = true } = readOptions<AskOptions>(ASK_OPTIONS, options);
    signal?.throwIfAborted();
    const call = readBody(permitBody, body);
    const id =
      call.id !== undefined && state.permits.has(call.id as PermitId)
        ? again(call.id, call)
        : enqueue(call, keepsPosition);
    keep(id);
    try {
      if (!isHeld(state, id)) await waits.wait([id], call.waitMs ?? 0, signal);
      keep(id);
    } finally {
      if (!isHeld(state, id)) giveUpLater(id);
    }
    if (!isRemote(state, id)) throw refused({ type: "permit-unknown", permit: id });
    return viewOf(writer, id, call.gate as GateId);
  }

  function enqueue(call: PermitBody, keepsPosition: boolean): string {
    const { id = `permit_${newId()}` } = call;
    if (OWN_ID.test(id)) throw badInput("id", id, "an id not of the form p<number>, which Drover makes itself");
    const position = keepsPosition ? positionOf(call) : null;
    const asked = writer.execute({
      type: "ask-permit",
      permit: id as PermitId,
      gate: call.gate as GateId,
      task: (call.taskId ?? null) as TaskId | null,
      attempt: call.attempt ?? null,
      taskSeq: call.taskSeq ?? null,
      project: (call.project ?? "default") as ProjectId,
      class: call.class ?? null,
      tokens: call.tokens ?? 0,
      askedAt: position?.askedAt ?? null,
      order: position?.order ?? null,
      remote: true,
    });
    accepted(asked);
    if (position !== null) positions.delete((call.again ?? call.id) as string);
    return id;
  }

  /** The position the same call had before; that of another gate or payer is not this one's. */
  function positionOf({ gate, project, taskId, again: before, id }: PermitBody): Position | null {
    const position = positions.get(before ?? id ?? "");
    if (position === undefined || position.gate !== gate) return null;
    const task = taskId === undefined ? undefined : state.tasks.get(taskId as TaskId);
    const payer = task?.project.id ?? project ?? "default";
    return position.project === payer ? position : null;
  }

  /** The same ticket, if it is the same call. */
  function again(id: string, { gate }: PermitBody): string {
    if (state.permits.get(id as PermitId) !== gate || !isRemote(state, id))
      throw refused({ type: "permit-exists", permit: id });
    return id;
  }

  const isWaiting = (id: string): boolean => isRemote(state, id) && !isHeld(state, id);

  async function settle(permit: string, body: SettleBody = {}, options?: SettleOptions): Promise<void> {
    const id = readId(permit);
    const { retryAfterMsMax = THROTTLED_MS_MAX } = readOptions<SettleOptions>(SETTLE_OPTIONS, options);
    const { ok: went = true, usage, rateLimited } = readBody(settleBody, body);
    if (isRepeated(id)) return writer.settled();
    if (!isHeld(state, id))
      throw badInput("permit", id, "a permit that was granted; this one still waits: drop it instead");
    const tokens = usage === undefined ? null : countTokens(usage);
    const gate = state.permits.get(id) as GateId;
    if (rateLimited !== undefined) {
      const retryAfterMs = Math.min(Math.ceil(rateLimited.retryAfterMs), retryAfterMsMax);
      keepPosition(gate, id);
      writer.execute({ type: "throttle-gate", gate, permit: id, retryAfterMs });
    }
    // A call that was turned away used nothing; what any other used is charged at its estimate if it does not say.
    const used = rateLimited === undefined ? tokens : (tokens ?? 0);
    const details = usage === undefined ? null : detailsOf(usage);
    const ok = went && rateLimited === undefined;
    writer.execute({ type: "settle-permit", permit: id, ok, tokens: used, usage: details });
    await writer.settled();
  }

  function keepPosition(gate: GateId, id: PermitId): void {
    const held = state.gates.get(gate)?.held.get(id);
    if (held === undefined) return;
    const { askedAt, order, project } = held;
    remember(positions, id, { gate, askedAt: askedAt as Instant, order, project }, IDS_KEPT_MAX);
  }

  async function drop(permit: string, options?: DropOptions): Promise<void> {
    const id = readId(permit);
    const { ifUnheard = false } = readOptions<DropOptions>(DROP_OPTIONS, options);
    if (isRepeated(id)) return writer.settled();
    if (ifUnheard && isHeld(state, id)) {
      takeBackNow(id);
      return writer.settled();
    }
    writer.execute({ type: "drop-permit", permit: id });
    remember(dropped, id, true, IDS_KEPT_MAX);
    await writer.settled();
  }

  /** Saying it twice is no fault, also to another leader; saying it of what never was is. */
  function isRepeated(id: PermitId): boolean {
    if (isRemote(state, id)) return false;
    if (dropped.has(id) || settledOf(state.settled, id, writer.now()) !== undefined) return true;
    throw refused({ type: "permit-unknown", permit: id });
  }

  return {
    ask,
    settle,
    drop,
    isWaiting,
    firstDecided: createFirstDecided({ waits, isWaiting, keep, giveUpLater }),
    onApplied(event) {
      if (event.kind !== "permit-granted" && event.kind !== "permit-dropped") return;
      if (event.kind === "permit-granted" && isRemote(state, event.permit)) takeBackLater(event.permit);
      waits.end(event.permit);
    },
    stop(error) {
      stop();
      waits.stop(error);
    },
  };
}

/** Of what nobody asks for any more, perhaps only for now. */
function createLettingGo(
  writer: Writer,
  clock: Clock,
  deps: {
    readonly waits: Pick<ReturnType<typeof createWaits>, "has">;
    readonly keepPosition: (gate: GateId, id: PermitId) => void;
  },
) {
  const { state } = writer;
  const alarms = new Map<string, () => void>();

  function keep(id: string): void {
    alarms.get(id)?.();
    alarms.delete(id);
  }
  function later(id: string, ms: number, letGo: (id: PermitId) => void): void {
    const ring = (): void => {
      alarms.delete(id);
      letGo(id as PermitId);
    };
    keep(id);
    alarms.set(id, clock.ringAt(clock.elapsed() + ms, ring, { keepAlive: false }));
  }
  function giveUp(permit: PermitId): void {
    if (state.permits.has(permit) && !isHeld(state, permit)) notify(writer, { type: "drop-permit", permit });
  }
  function takeBack(permit: PermitId): void {
    const gate = state.permits.get(permit);
    if (gate === undefined || !isHeld(state, permit)) return;
    deps.keepPosition(gate, permit);
    notify(writer, { type: "drop-permit", permit, isUnheard: true });
  }
  return {
    keep,
    /** While another waits for the same ticket, it is asked for. */
    giveUpLater(id: string): void {
      if (!deps.waits.has(id)) later(id, GIVE_UP_MS, giveUp);
    },
    /** Nobody may have heard of the grant: whoever waited has gone, or has been told so in an answer that is lost. */
    takeBackLater: (id: string): void => later(id, UNHEARD_MS, takeBack),
    /** Of a permit; one that was heard of since has no alarm any more. */
    takeBackNow(id: PermitId): void {
      if (!alarms.has(id)) return;
      keep(id);
      takeBack(id);
    },
    stop(): void {
      for (const cancel of alarms.values()) cancel();
      alarms.clear();
    },
  };
}

/** For whoever waits for many at once. */
function createFirstDecided(deps: {
  readonly waits: Pick<ReturnType<typeof createWaits>, "wait">;
  readonly isWaiting: (id: string) => boolean;
  readonly keep: (id: string) => void;
  readonly giveUpLater: (id: string) => void;
}): RemotePermits["firstDecided"] {
  const { waits, isWaiting, keep, giveUpLater } = deps;
  return async (permits, options) => {
    const { signal } = readOptions<AskOptions>(ASK_OPTIONS, options);
    signal?.throwIfAborted();
    if (!permits.every(isWaiting)) return;
    for (const id of permits) keep(id);
    try {
      await waits.wait(permits, Number.POSITIVE_INFINITY, signal);
    } finally {
      for (const id of permits) if (isWaiting(id)) giveUpLater(id);
    }
  };
}

const ASK_OPTIONS: Fields<Required<AskOptions>> = { signal: abortSignal, keepsPosition: flag };
const DROP_OPTIONS: Fields<Required<DropOptions>> = { ifUnheard: flag };
const SETTLE_OPTIONS: Fields<Required<SettleOptions>> = { retryAfterMsMax: whole(0, THROTTLED_MS_MAX) };

/** Whether it is queued or held for a caller in another process. */
function isRemote(state: State, id: string): boolean {
  const gate = state.gates.get(state.permits.get(id as PermitId) as GateId);
  return (gate?.held.get(id) ?? gate?.queue.entries.get(id)?.ticket)?.remote === true;
}

function isHeld(state: State, id: string): boolean {
  const gate = state.permits.get(id as PermitId);
  return gate !== undefined && state.gates.get(gate)?.held.has(id) === true;
}

function viewOf({ state, now }: Writer, permitId: string, gate: GateId): PermitView {
  const queue = state.gates.get(gate);
  const held = queue?.held.get(permitId);
  if (held !== undefined) return { permitId, gate, status: "granted", expiresAt: isoTime(held.expiresAt) };
  const waiting = queue === undefined ? null : waitingOf(queue, permitId, now());
  return { permitId, gate, ...(waiting ?? { status: "queued" }) };
}

const readId = (permit: unknown): PermitId => accepted(name()(permit, "permit")) as PermitId;

/** Callers that wait until a permit is granted, by its id; several may wait for the same one. */
function createWaits(clock: Clock) {
  const waiting = new Map<string, Set<() => void>>();
  let stopped: DroverError | null = null;

  /** Also a call that does not want to wait: the pump has its turn first, and lets most calls out at once. */
  function afterTurn(over: () => void): () => void {
    clock.defer(() => clock.defer(over));
    return () => {};
  }

  function ringAfterWait(waitMs: number, over: () => void): () => void {
    if (waitMs === Number.POSITIVE_INFINITY) return () => {};
    return waitMs > 0 ? clock.ringAt(clock.elapsed() + waitMs, over, { keepAlive: false }) : afterTurn(over);
  }

  /** The permit was granted or dropped: every wait for it ends. */
  function end(id: string): void {
    for (const over of [...(waiting.get(id) ?? [])]) over();
  }

  return {
    /** Resolves when the wait is ended or its time is over; rejects when its signal fires or the engine stops. */
    wait: (ids: readonly string[], waitMs: number, signal: AbortSignal | undefined): Promise<void> =>
      new Promise((resolve, reject) => {
        if (stopped !== null) return reject(stopped);
        const over = (): void => {
          cancel();
          signal?.removeEventListener("abort", over);
          for (const id of ids) {
            const others = waiting.get(id);
            others?.delete(over);
            if (others?.size === 0) waiting.delete(id);
          }
          if (stopped !== null) reject(stopped);
          else if (signal?.aborted === true) reject(signal.reason);
          else resolve();
        };
        const cancel = ringAfterWait(waitMs, over);
        signal?.addEventListener("abort", over, { once: true });
        for (const id of ids) waiting.set(id, (waiting.get(id) ?? new Set()).add(over));
      }),
    end,
    /** Whether somebody waits for it. */
    has: (id: string): boolean => waiting.has(id),
    stop(error: DroverError): void {
      stopped = error;
      for (const id of [...waiting.keys()]) end(id);
    },
  };
}
