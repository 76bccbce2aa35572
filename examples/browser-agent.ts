/**
 * A browser with tabs as a push worker: Drover posts each action to the tab it is for.
 *
 *     node examples/browser-agent.ts
 *
 * The browser here is a small HTTP server that answers `POST /tabs/{tabId}/action` and knows nothing of Drover. Each
 * tab it has open is a capability `tab:<id>`. Two agents share it; actions on one tab go one after another, because
 * they hold a lock on it; a click that fails is not repeated; and a tab that no worker has makes its task fail with the
 * reason.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { createClient } from "../src/client/index.ts";
import { startLocalServer } from "./kit/local-server.ts";

type Action = { readonly kind: string; readonly ref?: string; readonly text?: string };
const log: string[] = [];

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const [, tab] = /^\/tabs\/([^/]+)\/action$/.exec(request.url ?? "") ?? [];
  if (request.method !== "POST" || tab === undefined) return void response.writeHead(404).end();
  const { kind, ref, text } = (await json(request)) as Action;
  log.push([tab, kind, ref, text].filter(Boolean).join(" "));
  response.setHeader("content-type", "application/json");
  if (ref === "e404") return void response.writeHead(422).end('{"error":"no element e404"}');
  response.end(JSON.stringify({ success: true, kind }));
}

const browser = createServer((request, response) => void answer(request, response));
browser.listen(0, "127.0.0.1");
await once(browser, "listening");
const endpoint = `http://127.0.0.1:${(browser.address() as AddressInfo).port}`;

{
  await using server = await startLocalServer("--no-worker", "--set", "scheduler.placement.unresolvedAfter=1s");
  const drover = createClient({ url: server.url });
  await drover.joinWorker({ id: "chrome-1", slots: 2, endpoint, capabilities: ["tab:t1", "tab:t2"] });

  const onTab = (tabId: string, action: string, more: object = {}) => ({
    tabId,
    action,
    locks: [`tab:${tabId}`],
    ...more,
  });
  await drover.submitBatch({
    agentId: "ann",
    tasks: [
      { id: "open", ...onTab("t1", "navigate", { params: { text: "https://shop.example" } }) },
      { id: "fill", ...onTab("t1", "fill", { ref: "e3", params: { text: "boots" }, needs: ["open"] }) },
      { id: "click", ...onTab("t1", "click", { ref: "e5", needs: ["fill"] }) },
    ],
  });
  await drover.submit({ id: "miss", agentId: "bob", ...onTab("t2", "click", { ref: "e404" }) });
  await drover.submit({ id: "lost", agentId: "bob", ...onTab("t9", "click", { ref: "e1" }) });

  for (const id of ["open", "fill", "click", "miss", "lost"]) {
    const { state, attempt, result, error } = await drover.wait(id, { withinMs: 30_000 });
    console.log([id, state, attempt, result === undefined ? error : JSON.stringify(result)].join(" "));
    assert.equal(state, id === "miss" || id === "lost" ? "failed" : "done");
  }
  assert.match((await drover.task("miss")).error ?? "", /^HTTP 422: .*no element e404/);
  assert.equal((await drover.task("lost")).error, "no worker owns tab t9");
}
browser.close();
browser.closeAllConnections();
console.log(`the browser saw: ${log.join(", ")}`);
assert.deepEqual(
  log.filter((line) => line.startsWith("t1")),
  ["t1 navigate https://shop.example", "t1 fill e3 boots", "t1 click e5"],
);
assert.equal(log.filter((line) => line.includes("e404")).length, 1, "a click is not repeated");
