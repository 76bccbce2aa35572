/**
 * Every end of a task that somebody wants to hear of, told once it is durable, from the log.
 *
 * What is due is in the log: an end of a task with a callbackUrl stays due until an event says what came of
 * telling it. So this holds nothing that a crash could lose. It takes what is due, in order (due-queue.ts), tries
 * (delivery.ts), and settles; a process that dies between a delivery and its settling delivers once more,
 * under the same delivery id. A failure is tried again after a rest (backoff.ts); after `attempts` tries, or at
 * 410 Gone, it is given up, and that too is in the log. Nothing that happens here changes a task: a webhook
 * that fails leaves a finished task finished.
 *
 * Which host's turn it is, is host-queues.ts. To know a webhook's host its task has to be read, so a task is read
 * when its end is taken, and again when its turn comes, unless that is at once. It is read as it had ended, so every
 * try of one delivery has the same body. The count of tries is in memory: a restart begins anew. Rejected tasks are in
 * no log; theirs are tried the same way and are lost with the process.
 */

import { type Fifo, fifo, push, shift } from "../../core/collections/index.ts";
import { DroverError, isStop } from "../../engine/writer/index.ts";
import type { WebhookSettings } from "../../protocol/index.ts";
import { type Clock, realClock } from "../../std/index.ts";
import { restAfterTry } from "./backoff.ts";
import { deliver, type Outside, outside, type Snapshot, type Verdict } from "./delivery.ts";
import { createDue, type DueEnd, type DueSource, type Unlogged } from "./due-queue.ts";
import { createLines } from "./host-queues.ts";
import { createRejectedStore } from "./rejected.ts";

/** Tasks that are being read at once, to learn where their webhooks go. */
const READS_MAX = 32;

/** What is used of the engine. */
export type WebhookEngine = {
  readonly callbacks: DueSource & {
    /** The task as it had ended; null if nothing is to be told of it any more. */
    snapshot(seq: number): Promise<Snapshot | null>;
    settle(seq: number, outcome: { ok: boolean; status?: number; attempts: number }): Promise<void>;
  };
};
/** For logs and metrics. It names the host only, and `reason` no more: the rest of a URL may be a secret. */
export type WebhookOutcome = {
  readonly kind: "delivered" | "retried" | "failed";
  readonly taskId: string;
  readonly deliveryId: string;
  readonly event: string;
  readonly host: string;
  readonly attempt: number;
  readonly ms: number;
  readonly status?: number;
  readonly reason?: string;
  readonly restMs?: number;
};
export type WebhookOptions = {
  readonly drover: WebhookEngine;
  readonly settings: WebhookSettings;
  /** Of Drover, for the User-Agent. */
  readonly version: string;
  readonly onOutcome?: (outcome: WebhookOutcome) => void;
  /** Hears of what should never happen; webhooks go on. By default a warning of the process. */
  readonly onProblem?: (error: unknown) => void;
  readonly clock?: Clock;
  readonly resolve?: Outside["resolve"];
  readonly exchange?: Outside["exchange"];
};
export type Webhooks = AsyncDisposable & {
  /** A task was turned away: its webhook is sent if it has a callbackUrl, as far as that goes without a log. */
  rejected(task: Snapshot): void;
  /** New settings hold from the next try on. */
  change(settings: WebhookSettings): void;
  standing(): { readonly due: number; readonly underWay: number; readonly waiting: number; readonly resting: number };
  /** Begins nothing more, waits for what is under way up to the grace, then cuts it off. The rest stays due. */
  stop(options?: { readonly graceMs?: number }): Promise<void>;
};

type Delivery = {
  readonly id: string;
  readonly end: DueEnd | Unlogged;
  /** The task as it is to be sent: kept for one that is in no log, else only from the reading to the sending. */
  snapshot: Snapshot | null;
  host: string;
  project: string;
  tries: number;
};

export function startWebhooks(options: WebhookOptions): Webhooks {
  const { drover, clock = realClock } = options;
  const onProblem = options.onProblem ?? ((error) => process.emitWarning(String(error), "DroverWarning"));
  const world: Outside = {
    ...outside(clock, options.version),
    ...(options.resolve === undefined ? {} : { resolve: options.resolve }),
    ...(options.exchange === undefined ? {} : { exchange: options.exchange }),
  };
  const unread: Fifo<Delivery> = fifo();
  const rejected = createRejectedStore();
  const resting = new Set<() => void>();
  const underWay = new Set<Promise<void>>();
  const cutOff = new AbortController();
  let { settings } = options;
  let reading = 0;
  let stopping: Promise<void> | null = null;

  const lines = createLines<Delivery>({
    limit: () => settings.concurrency,
    start: (delivery) => track(tryOnce(delivery)),
  });
  const due = createDue({ source: drover.callbacks, clock, hand });

  /** Whoever looks on and fails at it changes nothing: what was delivered is settled, what was not is tried again. */
  function tell(outcome: WebhookOutcome): void {
    try {
      options.onOutcome?.(outcome);
    } catch (error) {
      onProblem(error);
    }
  }

  function track(work: Promise<void>): void {
    underWay.add(work);
    void work.finally(() => underWay.delete(work));
  }

  function hand(end: DueEnd | Unlogged): void {
    const snapshot = end.seq === null ? rejected.get(end.taskId) : null;
    // An id that its caller chose may be turned away again and again.
    const id = `${end.taskId}:${end.seq ?? rejectionOf(snapshot)}`;
    push(unread, { id, end, snapshot, host: "", project: "", tries: 0 });
    readNext();
  }

  function readNext(): void {
    while (reading < READS_MAX && stopping === null) {
      const delivery = shift(unread);
      if (delivery === undefined) return;
      reading++;
      track(locate(delivery));
    }
  }

  /** Finds out which host it is for and whose it is, and stands it in that host's line. */
  async function locate(delivery: Delivery): Promise<void> {
    const snapshot = await load(delivery);
    reading--;
    readNext();
    if (snapshot === null || stopping !== null) return;
    if (!isSnapshot(snapshot)) {
      delivery.tries++;
      return conclude(delivery, snapshot, 0);
    }
    delivery.snapshot = snapshot;
    delivery.host = URL.parse(snapshot.callbackUrl ?? "")?.host ?? "";
    delivery.project = snapshot.project ?? "";
    const { tries } = delivery;
    lines.add(delivery.host, delivery.project, delivery);
    // If it waits for its turn, its task need not wait in memory with it.
    if (delivery.tries === tries && delivery.end.seq !== null) delivery.snapshot = null;
  }

  /** The task as it is to be sent, or why it cannot be; null if the engine has stopped. */
  async function load({ end, snapshot }: Delivery): Promise<Snapshot | Verdict | null> {
    if (snapshot !== null || end.seq === null) return snapshot;
    try {
      const task = await drover.callbacks.snapshot(end.seq);
      if (task === null) return giveUp("its task is no longer in the log");
      return typeof task.callbackUrl === "string" ? task : giveUp("its task has no callbackUrl");
    } catch (error) {
      if (isStop(error)) return null;
      if (error instanceof DroverError && error.code === "not_found") return giveUp("its task is no longer in the log");
      return { ok: false, reason: `its task cannot be read: ${kindOf(error)}` };
    }
  }

  async function tryOnce(delivery: Delivery): Promise<void> {
    const startedAt = clock.elapsed();
    delivery.tries++;
    const verdict = await verdictOn(delivery);
    if (delivery.end.seq !== null) delivery.snapshot = null;
    lines.release(delivery.host, delivery.project, verdict === null || verdict.ok || verdict.status !== undefined);
    // One that was cut off stays due, and the next process takes it up.
    if (verdict === null || (!verdict.ok && cutOff.signal.aborted)) return;
    await conclude(delivery, verdict, clock.elapsed() - startedAt);
  }

  async function verdictOn(delivery: Delivery): Promise<Verdict | null> {
    const snapshot = await load(delivery);
    if (snapshot === null || !isSnapshot(snapshot)) return snapshot;
    try {
      const webhook = { snapshot, url: snapshot.callbackUrl ?? "", deliveryId: delivery.id };
      return await deliver(webhook, settings, world, cutOff.signal);
    } catch (error) {
      onProblem(error);
      return { ok: false, reason: `a bug: ${kindOf(error)}` };
    }
  }

  async function conclude(delivery: Delivery, verdict: Verdict, ms: number): Promise<void> {
    const isOver = verdict.ok || verdict.isFinal === true || delivery.tries >= settings.attempts;
    const restMs = isOver ? 0 : restAfterTry(delivery.id, delivery.tries, askedBy(verdict));
    const kind = verdict.ok ? "delivered" : isOver ? "failed" : "retried";
    tell({
      kind,
      taskId: delivery.end.taskId,
      deliveryId: delivery.id,
      event: `task.${delivery.end.state}`,
      host: delivery.host,
      attempt: delivery.tries,
      ms,
      ...(verdict.status === undefined ? {} : { status: verdict.status }),
      ...(verdict.ok ? {} : { reason: verdict.reason }),
      ...(isOver ? {} : { restMs }),
    });
    if (isOver) await settle(delivery, verdict);
    else rest(delivery, restMs);
  }

  function rest(delivery: Delivery, restMs: number): void {
    if (stopping !== null) return;
    const ring = (): void => {
      resting.delete(cancel);
      if (delivery.host !== "") return lines.add(delivery.host, delivery.project, delivery);
      push(unread, delivery);
      readNext();
    };
    const cancel = clock.ringAt(clock.elapsed() + restMs, ring, { keepAlive: false });
    resting.add(cancel);
  }

  async function settle({ end, tries }: Delivery, { ok, status }: Verdict): Promise<void> {
    try {
      if (end.seq === null) rejected.forget(end.taskId);
      else await drover.callbacks.settle(end.seq, { ok, attempts: tries, ...(status === undefined ? {} : { status }) });
    } catch (error) {
      if (!isStop(error)) onProblem(error);
    }
    due.over(end.taskId);
  }

  async function shut(graceMs: number): Promise<void> {
    due.stop();
    lines.close();
    for (const cancel of resting) cancel();
    if (graceMs > 0) {
      const over = Promise.withResolvers<void>();
      const cancel = clock.ringAt(clock.elapsed() + graceMs, over.resolve, { keepAlive: true });
      await Promise.race([Promise.all(underWay), over.promise]);
      cancel();
    }
    cutOff.abort(new Error("the server stops"));
    await Promise.all(underWay);
  }

  function stop({ graceMs = 0 }: { readonly graceMs?: number } = {}): Promise<void> {
    // Set before anything of it runs: whoever looks meanwhile finds that it is stopping.
    const shutting = Promise.withResolvers<void>();
    if (stopping !== null) return stopping;
    stopping = shutting.promise;
    shut(graceMs).then(shutting.resolve, shutting.reject);
    return stopping;
  }

  function reject(task: Snapshot): void {
    const { taskId, state, callbackUrl } = task;
    if (stopping !== null || callbackUrl === undefined || rejected.get(taskId) !== null) return;
    const tooMany = {
      kind: "failed",
      taskId,
      deliveryId: `${taskId}:${rejectionOf(task)}`,
      event: `task.${state}`,
    } as const;
    if (!rejected.keep(task))
      return tell({ ...tooMany, host: "", attempt: 0, ms: 0, reason: "too many rejected tasks wait already" });
    due.add({ taskId, seq: null, state });
  }

  return {
    rejected: reject,
    change(next) {
      settings = next;
      lines.serve();
    },
    standing: () => ({
      due: due.known(),
      underWay: lines.underWay(),
      waiting: lines.waiting(),
      resting: resting.size,
    }),
    stop,
    [Symbol.asyncDispose]: () => stop(),
  };
}

const rejectionOf = (task: Snapshot | null): string =>
  task?.completedAt === undefined ? "rejected" : `rejected:${task.completedAt}`;
/** Which error, without its text, which may hold anything. */
const kindOf = (error: unknown): string =>
  error instanceof DroverError ? error.code : error instanceof Error ? error.name : "unknown";
const giveUp = (reason: string): Verdict => ({ ok: false, reason, isFinal: true });
const askedBy = (verdict: Verdict): number => (verdict.ok ? 0 : (verdict.retryAfterMs ?? 0));
const isSnapshot = (found: Snapshot | Verdict): found is Snapshot => "taskId" in found;
