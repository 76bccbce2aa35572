/**
 * The end of a server, in the order in which nothing is lost.
 *
 *     stop admitting ─► tell workers ─► wait for what runs, up to the grace ─► send readers away ─► close the engine
 *
 * While it waits the server goes on answering: workers bring their results, people look. What still runs when the grace
 * is over stays in the log as running; its worker keeps its lease with the next server.
 */
import type { State } from "../../core/model/index.ts";
import { isStop } from "../../engine/base/index.ts";
import type { Drover } from "../../engine/index.ts";
import type { DroverNode } from "../../engine/node/index.ts";
import { type Listener, type LongPolls, ServerRefusal, type Streams } from "../../http/index.ts";
import { type Clock, restFor, ringAfter, ringEvery } from "../../std/index.ts";
import type { Acting } from "../cluster/acting.ts";
import type { ClusterSide } from "../cluster/side.ts";
import type { ServerPhase } from "./phase.ts";

/** How often it looks whether everything has ended. */
const LOOK_MS = 20;
/** What is under way on a connection when the engine has closed may take so long to reach its caller. */
const FLUSH_MS = 1000;
/** A lead that cannot be given up by then runs out by itself. */
const HAND_OVER_MS = 2000;

export type Ending = {
  readonly listener: Listener;
  readonly drover: Drover;
  readonly node: DroverNode | undefined;
  readonly phase: ServerPhase;
  readonly polls: LongPolls;
  readonly streams: Streams;
  readonly acting: Acting;
  /** Null where the server is no node of a cluster. */
  readonly cluster: Pick<ClusterSide, "stop"> | null;
  readonly clock: Clock;
  readonly graceMs: number;
};

export async function shutDown(ending: Ending): Promise<void> {
  const { listener, drover, clock } = ending;
  try {
    await letEnd(ending);
  } finally {
    // Whatever went wrong on the way: the log is left in good order, and nothing stays behind that listens for ever.
    try {
      await drover.close();
    } finally {
      await stopListening(listener, clock);
    }
  }
}

/** What runs ends, or its time is over; those that wait are answered. */
async function letEnd(ending: Ending): Promise<void> {
  const { phase, polls, streams, cluster, clock } = ending;
  await (ending.node === undefined ? letRunningEnd(ending) : leaveCluster(ending, ending.node));
  polls.end(new ServerRefusal("closed", "the server is shutting down; try again later"));
  await cluster?.stop();
  await streams.close();
  // A caller that waited for what has just ended still reads it.
  await until(() => phase.failure() !== null || phase.underWay() === 0, clock, clock.elapsed() + FLUSH_MS);
}

async function letRunningEnd({ drover, phase, polls, acting, clock, graceMs }: Ending): Promise<void> {
  const end = clock.elapsed() + graceMs;
  phase.close(end);
  polls.letWorkersGo();
  const isIdle = (): boolean => phase.failure() !== null || !isAnythingRunning(drover.state);
  await Promise.all([acting.push.stop({ graceMs }), until(isIdle, clock, end)]);
  await durable(drover, phase);
  await acting.webhooks.stop({ graceMs: Math.max(0, end - clock.elapsed()) });
}

/** The fleet goes on with the next leader: nothing is waited for, and what acts here ends with the lead. */
async function leaveCluster({ phase, acting, clock }: Ending, node: DroverNode): Promise<void> {
  if (!node.life().signal.aborted)
    await Promise.race([node.handOver(), restFor(clock, HAND_OVER_MS, { keepAlive: false })]);
  phase.close(clock.elapsed());
  await Promise.all([acting.push.stop(), acting.webhooks.stop()]);
}

/** A read answers when all before it is on disk; so a caller that waits for an end gets it before the wait is cut. */
async function durable(drover: Drover, phase: ServerPhase): Promise<void> {
  try {
    await drover.workers();
  } catch (error) {
    if (!isStop(error) && phase.failure() === null) throw error;
  }
}

/** Resolves when it is so, or when the time is over. */
function until(isSo: () => boolean, clock: Clock, end: number): Promise<void> {
  const isOver = (): boolean => isSo() || clock.elapsed() >= end;
  if (isOver()) return Promise.resolve();
  return new Promise((resolve) => {
    const look = (): void => {
      if (!isOver()) return;
      stop();
      resolve();
    };
    const stop = ringEvery(clock, LOOK_MS, look, { keepAlive: false });
  });
}

/** What was assigned and never taken up does not run; nor does what a worker held that is out of reach. */
function isAnythingRunning({ fleet }: State): boolean {
  return fleet.order.some(
    ({ status, attempts }) =>
      status !== "unreachable" && [...attempts].some(({ state }) => state === "running" || state === "stopping"),
  );
}

async function stopListening(listener: Listener, clock: Clock): Promise<void> {
  const cut = ringAfter(clock, FLUSH_MS, listener.closeAllConnections, { keepAlive: false });
  try {
    await listener.close();
  } finally {
    cut();
  }
}
