/**
 * The feed of events as a stream (SSE): each message has the event's number as its id, so a reader that lost its
 * connection goes on where it was by saying the last id it saw.
 *
 * A reader reads at its own pace. Events are taken from the log one by one, and the next is taken only when the last
 * has left for the network, so nothing piles up here for a reader that is slow. One that takes nothing at all for a
 * while is cut off: it may come back and go on. Comments in between keep the connection alive through proxies, and show
 * both sides that the other is there. There may be so many readers at once and no more, and they
 * share the places (shared-places.ts).
 */

import type { ServerResponse } from "node:http";
import type { Drover, FeedEvent } from "../../engine/index.ts";
import { isoTime } from "../../engine/tasks/index.ts";
import { createSharedPlaces, type Holder, SAFE_HEADERS, ServerRefusal, type UnreadAnswers } from "../../http/index.ts";
import type { EventJson } from "../../protocol/index.ts";
import type { Timers } from "../../std/index.ts";

export type StreamLimits = {
  /** Readers at once. */
  readonly streamsMax: number;
  readonly heartbeatMs: number;
  /** A reader that takes nothing for so long is cut off. */
  readonly stallMs: number;
};
type Reader = { readonly response: ServerResponse; readonly holder: Holder };
export type EventStreams = {
  /** Answers with the stream of events behind `after`; nothing, if the caller has hung up. */
  open(reader: Reader, after: number, wants: (event: FeedEvent) => boolean): void;
  count(): number;
  /** Every stream ends with a comment that says why. */
  close(): Promise<void>;
};

const GOODBYE = ": the server stops; come back with Last-Event-ID\n\n";

export const eventJson = ({ at, ...event }: FeedEvent): EventJson => ({ ...event, at: isoTime(at) }) as EventJson;

const messageOf = (event: FeedEvent): string =>
  `id: ${event.seq}\nevent: ${event.kind}\ndata: ${JSON.stringify(eventJson(event))}\n\n`;

export function createEventStreams(deps: {
  readonly drover: Pick<Drover, "events">;
  readonly limits: StreamLimits;
  readonly timers: Timers;
  readonly unread: UnreadAnswers;
  readonly onProblem: (error: unknown) => void;
}): EventStreams {
  const { drover, limits, timers, unread, onProblem } = deps;
  const open = new Map<AbortController, Promise<void>>();
  const places = createSharedPlaces(limits.streamsMax);

  async function run(response: ServerResponse, signal: AbortSignal, after: number, wants: Wants): Promise<void> {
    const stopBeating = timers.every(limits.heartbeatMs, () => {
      if (!response.writableNeedDrain && !response.destroyed) response.write(":\n\n");
    });
    try {
      for await (const event of drover.events({ after, follow: true, signal })) {
        if (signal.aborted) break;
        if (wants(event) && !response.write(messageOf(event))) await roomIn(response, signal);
      }
      if (!response.destroyed) response.end(GOODBYE);
    } catch (error) {
      if (!signal.aborted && !response.destroyed) onProblem(error);
      response.destroy();
    } finally {
      stopBeating();
    }
  }

  /** Waits until the reader has taken what it was sent; destroys a connection whose reader takes nothing. */
  function roomIn(response: ServerResponse, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const letGo = unread.hold(response, response.writableLength);
      const over = (): void => {
        callOff();
        letGo();
        response.removeListener("drain", over);
        response.removeListener("close", over);
        signal.removeEventListener("abort", over);
        resolve();
      };
      const callOff = timers.after(limits.stallMs, () => {
        response.destroy();
        over();
      });
      response.once("drain", over);
      response.once("close", over);
      signal.addEventListener("abort", over, { once: true });
    });
  }

  return {
    open({ response, holder }, after, wants) {
      // One that hung up while its turn came closes no more, so nothing would ever end its stream.
      if (response.destroyed) return;
      const giveBack = places.take(holder);
      if (giveBack === null)
        throw new ServerRefusal("overloaded", `${open.size} readers follow the events already; try again later`);
      const controller = new AbortController();
      response.once("close", () => controller.abort());
      response.on("error", () => controller.abort());
      response.writeHead(200, { ...SAFE_HEADERS, ...STREAM_HEADERS });
      response.write("retry: 1000\n\n");
      const running = run(response, controller.signal, after, wants).finally(() => {
        open.delete(controller);
        giveBack();
      });
      open.set(controller, running);
    },
    count: () => open.size,
    async close() {
      const all = [...open];
      for (const [controller] of all) controller.abort();
      await Promise.all(all.map(([, running]) => running));
    },
  };
}

type Wants = (event: FeedEvent) => boolean;
const STREAM_HEADERS = { "content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no" };
