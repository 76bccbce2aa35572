/**
 * Answers that never end: streams of messages (SSE).
 *
 * A reader reads at its own pace. Messages are made one by one, and the next is made only when the last has left for
 * the network, so nothing piles up here for a reader that is slow. One that takes nothing at all for a while is cut
 * off: it may come back and go on where it was, by the last id it saw. Comments in between keep the connection alive
 * through proxies, and show both sides that the other is there. There may be so many readers at once and no more, and
 * they share the slots (shared-slots.ts).
 */
import type { ServerResponse } from "node:http";
import { type Clock, ringAfter, ringEvery } from "../std/index.ts";
import { ServerRefusal } from "./problem.ts";
import { SAFE_HEADERS } from "./send-answer.ts";
import { createSharedSlots } from "./shared-slots.ts";
import type { Holder } from "./tokens.ts";
import type { UnreadAnswers } from "./unread-answers.ts";

export type StreamLimits = {
  /** Readers at once. */
  readonly streamsMax: number;
  readonly heartbeatMs: number;
  /** A reader that takes nothing for so long is cut off. */
  readonly stallMs: number;
};
type Reader = { readonly response: ServerResponse; readonly holder: Holder };
type Feed<Item> = {
  /** What it is made of, until the signal fires. */
  items(signal: AbortSignal): AsyncIterable<Item>;
  /** The frame of a message, or null for what this reader does not want. */
  frame(item: Item): string | null;
};
export type Streams = {
  /** Answers with a stream; nothing, if the caller has hung up. */
  open<Item>(reader: Reader, feed: Feed<Item>): void;
  count(): number;
  /** Every stream ends with a comment that says why. */
  close(): Promise<void>;
};

const GOODBYE = ": this stream ends here; come back with Last-Event-ID\n\n";

/** A message as it is sent; many readers may be sent the same. */
export const frameOf = (id: number, event: string, data: unknown): string =>
  `id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`;

export function createStreams(deps: {
  readonly limits: StreamLimits;
  readonly clock: Clock;
  readonly unread: UnreadAnswers;
  readonly onProblem: (error: unknown) => void;
}): Streams {
  const { limits, clock, unread, onProblem } = deps;
  const open = new Map<AbortController, Promise<void>>();
  const slots = createSharedSlots(limits.streamsMax);

  async function run<Item>(response: ServerResponse, signal: AbortSignal, feed: Feed<Item>): Promise<void> {
    const beat = (): void => {
      if (!response.writableNeedDrain && !response.destroyed) response.write(":\n\n");
    };
    const stopBeating = ringEvery(clock, limits.heartbeatMs, beat, { keepAlive: false });
    try {
      for await (const item of feed.items(signal)) {
        if (signal.aborted) break;
        const frame = feed.frame(item);
        if (frame !== null && !response.write(frame)) await roomIn(response, signal);
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
      const cutOff = (): void => {
        response.destroy();
        over();
      };
      const callOff = ringAfter(clock, limits.stallMs, cutOff, { keepAlive: false });
      response.once("drain", over);
      response.once("close", over);
      signal.addEventListener("abort", over, { once: true });
    });
  }

  return {
    open({ response, holder }, feed) {
      // One that hung up while its turn came closes no more, so nothing would ever end its stream.
      if (response.destroyed) return;
      const giveBack = slots.take(holder);
      if (giveBack === null)
        throw new ServerRefusal("overloaded", `${open.size} readers follow the events already; try again later`);
      const controller = new AbortController();
      response.once("close", () => controller.abort());
      response.on("error", () => controller.abort());
      response.writeHead(200, { ...SAFE_HEADERS, ...STREAM_HEADERS });
      response.write("retry: 1000\n\n");
      const running = run(response, controller.signal, feed).finally(() => {
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

const STREAM_HEADERS = { "content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no" };
