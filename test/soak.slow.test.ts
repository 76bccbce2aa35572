/**
 * `npm run soak` as people see it who wait for it.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { within } from "./kits/waits.ts";

test("a soak says how far it is, how fast it goes and how long it takes yet", async () => {
  const soak = spawn(process.execPath, [resolve("bench/soak.ts"), "--minutes", "0.3"], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  const ended = once(soak, "exit");
  const said: string[] = [];
  createInterface(soak.stderr).on("line", (line) => void said.push(line));
  await within("the end of the soak", ended);
  assert.match(said.join("\n"), /^soak: \d+%, \d+ of \d+ samples, [\d.]+\/(?:min|s)/m);
});
