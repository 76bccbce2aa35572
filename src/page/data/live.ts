/**
 * The connection that says when to look again.
 *
 * One stream of pulses for the whole page. It comes back by itself, however it was lost, and the page says so
 * meanwhile. Whoever shows something listens here and asks again when the number of the last event has moved.
 */
import { createParser } from "eventsource-parser";
import type { Pulse } from "../../protocol/generated/index.ts";
import { knowOf, open, Refused, session, turnAway } from "./ask.ts";
import { createStore, type Store } from "./store.ts";

export type Live = {
  readonly state: "connecting" | "live" | "lost";
  /** What a server says that is there and cannot answer now; empty if it says nothing. */
  readonly why: string;
  readonly pulse: Pulse | null;
  /** How far the server's clock is ahead of this machine's. */
  readonly aheadMs: number;
  /** How often it was found again: what was shown before may be of another start of the server. */
  readonly found: number;
};
export const live: Store<Live> = createStore<Live>({ state: "connecting", why: "", pulse: null, aheadMs: 0, found: 0 });

const REST_MS = [500, 1000, 2000, 5000];
/** A stream beats every 15 s; one that is silent for longer is dead. */
const SILENCE_MS = 40_000;

function hear(pulse: Pulse): void {
  const aheadMs = Date.parse(pulse.at) - Date.now();
  knowOf(pulse.seq);
  live.set({ ...live.now(), state: "live", pulse, aheadMs });
}

async function follow(signal: AbortSignal): Promise<void> {
  const silence = new AbortController();
  let timer = 0;
  const heard = (): void => {
    clearTimeout(timer);
    timer = window.setTimeout(() => silence.abort(), SILENCE_MS);
  };
  try {
    const either = AbortSignal.any([signal, silence.signal]);
    const answer = await open("/pulse", { headers: { accept: "text/event-stream" }, signal: either });
    live.set({ ...live.now(), state: "live", why: "", found: live.now().found + 1 });
    const parser = createParser({ onEvent: ({ data }) => hear(JSON.parse(data) as Pulse) });
    const reader = (answer.body as ReadableStream<BufferSource>).pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      heard();
      const { done, value } = await reader.read();
      if (done) return;
      parser.feed(value);
    }
  } finally {
    clearTimeout(timer);
  }
}

/** Follows until it is stopped. */
export function startLive(): () => void {
  const controller = new AbortController();
  const { signal } = controller;
  async function run(): Promise<void> {
    for (let failures = 0; !signal.aborted; failures++) {
      const { found } = live.now();
      let why = "";
      try {
        await follow(signal);
      } catch (error) {
        if (error instanceof Refused) why = error.message.replace(/\.$/, "");
        // Another token is waited for, and whoever brings it starts this anew.
        if (error instanceof Refused && error.status === 403) turnAway(error.message);
        if (error instanceof Refused && (error.status === 401 || error.status === 403)) return;
      }
      if (signal.aborted) return;
      live.set({ ...live.now(), state: "lost", why });
      if (live.now().found > found) failures = 0;
      await rest(REST_MS[Math.min(failures, REST_MS.length - 1)] as number, signal);
    }
  }
  void run();
  return () => controller.abort();
}

/** Ends early when the machine is back on the network. */
const rest = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const over = (): void => {
      clearTimeout(timer);
      window.removeEventListener("online", over);
      signal.removeEventListener("abort", over);
      resolve();
    };
    const timer = window.setTimeout(over, ms);
    window.addEventListener("online", over);
    signal.addEventListener("abort", over);
  });

/**
 * A new token starts the stream anew. A tab that nobody sees has none: a browser has six connections to a server for
 * all of its tabs, and each stream takes one.
 */
export function keepLive(): () => void {
  let stop = (): void => {};
  const again = (): void => {
    stop();
    stop = session.now().isRefused || document.hidden ? () => {} : startLive();
  };
  again();
  const stopHearing = session.listen(again);
  document.addEventListener("visibilitychange", again);
  return () => {
    stop();
    stopHearing();
    document.removeEventListener("visibilitychange", again);
  };
}
