/**
 * Webhooks: every end of a task with a callbackUrl is sent to it once the end is durable, from the log.
 *
 * What is due is in the log: such an end stays due until an event says what came of sending it. So this holds nothing
 * that a crash could lose. It takes what is due, in order (due-queue.ts), tries (delivery.ts), and settles; a process
 * that dies between a delivery and its settling delivers once more, under the same delivery id. A failure is tried
 * again after a rest (backoff.ts); after `attempts` tries, or at 410 Gone, it is given up, and that too is in the log.
 * Nothing that happens here changes a task: a webhook that fails leaves a finished task finished.
 *
 * Which host's turn it is, is host-queues.ts; the log names the host of each, and the task is read when its turn comes.
 * It is read as it had ended, so every try of one delivery has the same body. The count of tries is in memory: a
 * restart begins anew. Rejected tasks are in no log; theirs are tried the same way and are lost with the process.
 */
import { DroverError, isStop } from "../../engine/base/index.ts";
import type { WebhookSettings } from "../../protocol/index.ts";
import { type Clock, present, realClock, ringAfter } from "../../std/index.ts";
import { restAfterTry } from "./backoff.ts";
import { deliver, eventOf, type Outside, outside, type Snapshot, type Verdict } from "./delivery.ts";
import { createDue, type DueEnd, type DueSource, type Unlogged } from "./due-queue.ts";
import { createHostQueues } from "./host-queues.ts";
import { createRejectedStore, type RejectedStore } from "./rejected.ts";

/** What is used of the engine. */
export type WebhookEngine = {
  readonly callbacks: DueSource & {
    /** The task as it had ended; null if nothing is to be sent any more. */
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
  /** Hears of what should never happen; webhooks go on. */
  readonly onProblem: (error: unknown) => void;
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

type End = DueEnd | Unlogged;
type Delivery = { readonly id: string; readonly end: End; tries: number };

export function startWebhooks(options: WebhookOptions): Webhooks {
  const { drover, onProblem, clock = realClock } = options;
  const world = { ...outside(clock, options.version), ...options, clock };
  const rejected = createRejectedStore();
  const resting = new Set<() => void>();
  const underWay = new Set<Promise<void>>();
  const cutOff = new AbortController();
  let { settings } = options;
  let stopping: Promise<void> | null = null;

  const queues = createHostQueues<Delivery>({
    limit: () => settings.concurrency,
    start(delivery) {
      const work = tryOnce(delivery);
      underWay.add(work);
      void work.finally(() => underWay.delete(work));
    },
  });
  const due = createDue({
    source: drover.callbacks,
    clock,
    hand: (end) => enqueue({ id: deliveryId(end, rejected.get(end.taskId)), end, tries: 0 }),
  });
  const enqueue = (delivery: Delivery): void => queues.add(delivery.end.host, delivery.end.project, delivery);

  /** An observer that fails changes nothing: what was delivered is settled, what was not is tried again. */
  function notify(outcome: WebhookOutcome): void {
    try {
      options.onOutcome?.(outcome);
    } catch (error) {
      onProblem(error);
    }
  }

  async function tryOnce(delivery: Delivery): Promise<void> {
    const startedAt = clock.elapsed();
    const { host, project } = delivery.end;
    const task = await load(delivery.end, drover.callbacks, rejected);
    const isRead = task !== null && "taskId" in task;
    const verdict = isRead ? await send(task, delivery.id) : task;
    // What could not be read says nothing about its host.
    queues.release(host, project, isRead && verdict !== null ? verdict.status !== undefined : null);
    // One that was cut off stays due, and the next process takes it up.
    if (verdict === null || (!verdict.ok && cutOff.signal.aborted)) return;
    delivery.tries++;
    await conclude(delivery, verdict, clock.elapsed() - startedAt);
  }

  async function send(snapshot: Snapshot, deliveryId: string): Promise<Verdict> {
    try {
      const webhook = { snapshot, url: snapshot.callbackUrl ?? "", deliveryId };
      return await deliver(webhook, settings, world, cutOff.signal);
    } catch (error) {
      onProblem(error);
      return { ok: false, reason: `a bug: ${kindOf(error)}` };
    }
  }

  async function conclude(delivery: Delivery, verdict: Verdict, ms: number): Promise<void> {
    const { id, end, tries } = delivery;
    const isOver = verdict.ok || verdict.isFinal === true || tries >= settings.attempts;
    const restMs = isOver ? 0 : restAfterTry(id, tries, verdict.retryAfterMs);
    notify({
      kind: verdict.ok ? "delivered" : isOver ? "failed" : "retried",
      taskId: end.taskId,
      deliveryId: id,
      event: eventOf(end.state),
      host: end.host,
      attempt: tries,
      ms,
      ...present({ status: verdict.status }),
      ...(verdict.ok ? {} : { reason: verdict.reason }),
      ...(isOver ? {} : { restMs }),
    });
    if (isOver) await settle(delivery, verdict);
    else if (stopping === null) rest(delivery, restMs);
  }

  function rest(delivery: Delivery, restMs: number): void {
    const ring = (): void => {
      resting.delete(cancel);
      enqueue(delivery);
    };
    const cancel = ringAfter(clock, restMs, ring, { keepAlive: false });
    resting.add(cancel);
  }

  async function settle({ end, tries }: Delivery, { ok, status }: Verdict): Promise<void> {
    try {
      if (end.seq === null) rejected.forget(end.taskId);
      else await drover.callbacks.settle(end.seq, { ok, attempts: tries, ...present({ status }) });
    } catch (error) {
      if (!isStop(error)) onProblem(error);
    }
    due.over(end.taskId);
  }

  async function shut(graceMs: number): Promise<void> {
    due.stop();
    queues.close();
    for (const cancel of resting) cancel();
    if (graceMs > 0) {
      const over = Promise.withResolvers<void>();
      const cancel = ringAfter(clock, graceMs, over.resolve, { keepAlive: true });
      await Promise.race([Promise.all(underWay), over.promise]);
      cancel();
    }
    cutOff.abort(new Error("the server stops"));
    await Promise.all(underWay);
  }

  function stop({ graceMs = 0 }: { readonly graceMs?: number } = {}): Promise<void> {
    // Set before anything of it runs, so that what runs meanwhile finds that it is stopping.
    const shutting = Promise.withResolvers<void>();
    if (stopping !== null) return stopping;
    stopping = shutting.promise;
    shut(graceMs).then(shutting.resolve, shutting.reject);
    return stopping;
  }

  function reject(task: Snapshot): void {
    const { taskId, state, project = "", callbackUrl } = task;
    if (stopping !== null || callbackUrl === undefined || rejected.get(taskId) !== null) return;
    const end: Unlogged = { taskId, seq: null, state, project, host: URL.parse(callbackUrl)?.host ?? "" };
    if (rejected.keep(task)) return due.add(end);
    const event = `task.${state}`;
    const reason = "too many rejected tasks wait already";
    notify({ kind: "failed", taskId, deliveryId: deliveryId(end, task), event, host: "", attempt: 0, ms: 0, reason });
  }

  return {
    rejected: reject,
    change(next) {
      settings = next;
      queues.serve();
    },
    standing: () => ({
      due: due.known(),
      underWay: queues.underWay(),
      waiting: queues.waiting(),
      resting: resting.size,
    }),
    stop,
    [Symbol.asyncDispose]: () => stop(),
  };
}

/** The task as it is to be sent, or why it cannot be; null if the engine has stopped. */
async function load(
  { seq, taskId }: End,
  callbacks: WebhookEngine["callbacks"],
  rejected: RejectedStore,
): Promise<Snapshot | Verdict | null> {
  if (seq === null) return rejected.get(taskId);
  try {
    const task = await callbacks.snapshot(seq);
    if (task === null) return giveUp("its task is no longer in the log");
    return typeof task.callbackUrl === "string" ? task : giveUp("its task has no callbackUrl");
  } catch (error) {
    if (isStop(error)) return null;
    if (error instanceof DroverError && error.code === "not_found") return giveUp("its task is no longer in the log");
    return { ok: false, reason: `its task cannot be read: ${kindOf(error)}` };
  }
}

/** An id that its caller chose may be rejected again and again. */
function deliveryId({ taskId, seq }: End, task: Snapshot | null): string {
  if (seq !== null) return `${taskId}:${seq}`;
  return `${taskId}:${task?.completedAt === undefined ? "rejected" : `rejected:${task.completedAt}`}`;
}
/** Which error, without its text, which may hold anything. */
const kindOf = (error: unknown): string =>
  error instanceof DroverError ? error.code : error instanceof Error ? error.name : "unknown";
const giveUp = (reason: string): Verdict => ({ ok: false, reason, isFinal: true });
