/**
 * The viewers of `bench/viewers.ts`, in a process of their own: each looks at the server as `drover top` does on a wide
 * screen, over a client of its own. They begin when they are told to, and end with the process.
 */
import { setTimeout as elapse } from "node:timers/promises";
import { keepLooking, lookOnce } from "../src/cli/top/look.ts";
import { createClient } from "../src/client/index.ts";

const [url = "", count = "1"] = process.argv.slice(2);
const WANTED = { tab: "scheduler", rows: 50, isWide: true, filter: "" } as const;

let stop = new AbortController();
let looks = 0;

async function view(signal: AbortSignal): Promise<void> {
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

process.on("message", async (order: "begin" | "rest") => {
  if (order === "begin") {
    stop = new AbortController();
    looks = 0;
    for (let viewer = 0; viewer < Number(count); viewer++) void view(stop.signal);
  } else stop.abort();
  process.send?.({ looks });
});
process.send?.({ looks });
