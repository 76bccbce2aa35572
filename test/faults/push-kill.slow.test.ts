/**
 * The server dies, or is told to end, while a click is out: the next server does not click again.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { answering } from "../kits/loopback.ts";
import { clientOf } from "../kits/test-server.ts";
import { within } from "../kits/waits.ts";

async function serve(directory: string) {
  const path = join(import.meta.dirname, "../kits/faults/server-process.ts");
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", path, directory], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const line = once(createInterface({ input: child.stdout }), "line");
  child.stdin.write("begin\n");
  const [url] = (await line) as [string];
  return { child, ...clientOf(url) };
}

for (const end of ["SIGKILL", "in good order"] as const) {
  test(`a click that is out when the server ends (${end}) is made once`, async () => {
    const directory = await mkdtemp(join(tmpdir(), "drover-click-"));
    const clicked = Promise.withResolvers<void>();
    let clicks = 0;
    await using browser = await answering((request, response) => {
      if (request.method !== "POST") return void response.end();
      clicks++;
      clicked.resolve();
    });
    const endpoint = browser.url;
    const first = await serve(directory);
    await first.ask("joinWorker", { body: { id: "b", endpoint, capabilities: ["tab:a"] } });
    await first.ask("submit", { body: { id: "t", agentId: "ann", action: "click", tabId: "a" } });
    await within("a click", clicked.promise);
    if (end === "SIGKILL") first.child.kill("SIGKILL");
    else first.child.stdin.end();
    await within("the end of the first server", once(first.child, "exit"));
    const second = await serve(directory);
    const { json } = await second.ask("wait", { params: { id: "t" }, query: { timeoutMs: 60_000 } });
    assert.deepEqual([json.state, clicks], ["failed", 1]);
    assert.match(json.error ?? "", /^its outcome is unknown/);
    second.child.stdin.end();
    await within("the end of the second server", once(second.child, "exit"));
    await rm(directory, { recursive: true });
  });
}
