/**
 * A server process that is killed. It loads everything, waits to be told to begin, and then serves until it dies:
 *
 *     node server-process.ts DIRECTORY [CONFIG]      (a line on stdin begins, the end of stdin ends in peace)
 *
 * From then on every line on stdin asks how much memory it holds (by itself alone under --expose-gc) and has had at
 * most, in bytes.
 *
 * So the next one can stand ready while the last one still serves. It prints its URL once it is up.
 */
import { once } from "node:events";
import { flushCompileCache } from "node:module";
import { openDrover } from "../../../src/engine/drover.ts";
import { readSettings } from "../../../src/protocol/index.ts";
import { startServer } from "../../../src/server/start-server.ts";

const [directory = "", given = "{}"] = process.argv.slice(2);
const { server: own, ...config } = JSON.parse(given) as { server?: object };
const settings = readSettings({ server: { port: 0, shutdownGrace: 0, ...own } });
if (!settings.ok) throw new Error(JSON.stringify(settings.failure));
// What is killed writes no cache of compiled files at its end, so it is written now.
flushCompileCache();
await once(process.stdin, "data");
const drover = await openDrover({ data: directory, config: { log: { snapshotEvery: 2000 }, ...config } });
const server = await startServer({ drover, settings: settings.value });
console.log(server.url);
process.stdin.on("end", () => void server.close());
process.stdin.on("data", () => {
  // Bytes that a collection frees are given back in the background, which the next one waits for.
  globalThis.gc?.();
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  console.log(JSON.stringify({ held: heapUsed + external, peak: process.resourceUsage().maxRSS * 1024 }));
});
