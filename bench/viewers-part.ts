/**
 * The viewers of `bench/viewers.ts`, in a process of their own: half of them look as `drover top` does on a wide
 * screen, over a client of their own; half as a page does that shows the Overview. They begin when they are told to,
 * and end with the process.
 */
import { setTimeout as elapse } from "node:timers/promises";
import { createParser } from "eventsource-parser";
import { keepLooking, lookOnce } from "../src/cli/top/look.ts";
import { createClient } from "../src/client/index.ts";
import type { Pulse } from "../src/protocol/index.ts";

const [url = "", count = "2"] = process.argv.slice(2);
const WANTED = { tab: "scheduler", rows: 50, isWide: true, filter: "" } as const;
/** What the Overview asks for when a pulse comes, and how often at most. */
const OVERVIEW = [
  ["/stats/history?projects=false", 5000],
  ["/projects", 2000],
  ["/workers", 2000],
  ["/gates", 2000],
  ["/tasks?state=parked&order=newest&limit=20", 2000],
  ["/scheduler/stuck", 5000],
] as const;

let stop = new AbortController();
let looks = 0;

async function viewInTerminal(signal: AbortSignal): Promise<void> {
  const client = createClient({ url });
  const looking = keepLooking(await lookOnce(client, WANTED, Date.now), {
    client,
    now: Date.now,
    rest: (ms, until) => elapse(ms, undefined, { signal: until }).catch(() => {}),
    wanted: () => WANTED,
    onPicture: () => {
      looks += 1;
    },
    signal,
  });
  await looking.ended;
}

/** As src/page/data looks: with each pulse that says that something has happened, one look of each at a time. */
async function viewInPage(signal: AbortSignal): Promise<void> {
  const lastAt = new Map<string, number>();
  async function look(path: string, seq: number): Promise<void> {
    const headers = { "cache-control": "max-age=1", "x-drover-after": String(seq) };
    const answer = await fetch(`${url}${path}`, { headers, signal });
    if (!answer.ok) throw new Error(`${path} was answered ${answer.status}: ${await answer.text()}`);
    await answer.text();
    looks += 1;
  }
  function hear({ seq }: Pulse): void {
    for (const [path, everyMs] of OVERVIEW) {
      // A page that is between two beats waits for its time; here it is the next beat.
      if (performance.now() < (lastAt.get(path) ?? Number.NEGATIVE_INFINITY) + everyMs - 500) continue;
      lastAt.set(path, performance.now());
      look(path, seq).catch(failUnless(signal));
    }
  }
  const stream = await fetch(`${url}/pulse`, { headers: { accept: "text/event-stream" }, signal });
  const parser = createParser({ onEvent: ({ data }) => hear(JSON.parse(data) as Pulse) });
  for await (const text of (stream.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()))
    parser.feed(text);
}

/** A viewer that sees nothing costs nothing, and would make the figure wrong. */
function failUnless(stopped: AbortSignal): (error: unknown) => void {
  return (error) => {
    if (!stopped.aborted) throw error;
  };
}

process.on("message", async (order: "begin" | "rest") => {
  if (order === "begin") {
    stop = new AbortController();
    looks = 0;
    const { signal } = stop;
    for (let viewer = 0; viewer < Number(count); viewer++)
      (viewer % 2 === 0 ? viewInPage : viewInTerminal)(signal).catch(failUnless(signal));
  } else stop.abort();
  process.send?.({ looks });
});
process.send?.({ looks });
