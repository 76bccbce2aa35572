/**
 * A push worker that leaves and registers again in the same moment, as one that is restarted does: whoever has the name
 * in the end is spoken for. A click that the server has not made yet when the worker leaves, registers anew or loses
 * the server is made later, once.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { answering } from "../kits/loopback.ts";
import { slowLog } from "../kits/slow-log.ts";
import { openServer, type TestServer } from "../kits/test-server.ts";
import { until, within } from "../kits/waits.ts";

const TIMES = 30;
const WAIT_MS = 60_000;

for (const isOwnWord of [false, true])
  test(`a push worker that registers beside its ${isOwnWord ? "own " : ""}leave is given work`, async () => {
    await using target = await answering((_, response) => void response.writeHead(200).end("{}"));
    await using at = await openServer();
    const names = Array.from({ length: TIMES }, (_, index) => `p${index}`);
    for (const id of names) {
      const body = { id, endpoint: target.url, capabilities: [id] };
      const { session } = (await at.ask("joinWorker", { body })).json;
      const query = isOwnWord ? { session } : {};
      const [left, joined] = await Promise.all([
        at.ask("leaveWorker", { params: { id }, query }),
        at.ask("joinWorker", { body }),
      ]);
      assert.ok(joined.status < 300 && (left.status === 200 || isOwnWord), `${joined.text} ${left.text}`);
    }
    const there = (await at.drover.workers()).map(({ id }) => id);
    assert.ok(there.length > 0, "none registered after its leave");
    for (const id of there)
      await at.ask("submit", { body: { id: `t-${id}`, agentId: "ann", action: "x", capabilities: [id] } });
    const ends = there.map((id) => at.ask("wait", { params: { id: `t-${id}` }, query: { timeoutMs: WAIT_MS } }));
    const states = (await Promise.all(ends)).map(({ json }) => json.state);
    assert.deepEqual(
      states,
      there.map(() => "done"),
    );
  });

const close = ({ server }: TestServer): Promise<void> => server.close();
type Way = { readonly name: string; readonly act: (at: TestServer, body: object) => Promise<unknown> };
const WAYS: readonly Way[] = [
  { name: "registers anew", act: (at, body) => at.ask("joinWorker", { body }) },
  { name: "registers as a pull worker", act: (at) => at.ask("joinWorker", { body: { id: "b" } }) },
  { name: "leaves", act: (at) => at.ask("leaveWorker", { params: { id: "b" }, query: {} }) },
  { name: "loses its server", act: close },
];
for (const { name, act } of WAYS)
  test(`a click that was not made when its worker ${name} is made later, once`, async () => {
    const clicks: unknown[] = [];
    await using browser = await answering(({ method, headers }, response) => {
      if (method === "POST") clicks.push(headers["x-drover-attempt"]);
      response.writeHead(200).end("{}");
    });
    const body = { id: "b", endpoint: browser.url, capabilities: ["tab:a"] };
    const slow = slowLog("attempt-started");
    const first = await openServer({ open: { log: slow.log } });
    await first.ask("joinWorker", { body });
    await first.ask("submit", { body: { id: "t", agentId: "ann", action: "click", tabId: "a" } });
    await within("a batch with the start of the attempt", slow.isWaiting);
    const acted = act(first, body);
    // A server that ends has said its word by now; what is asked for over HTTP takes a while to be heard.
    const isHeard = (): boolean => act === close || first.drover.state.tasks.get("t" as never)?.phase !== "running";
    await until("the end of the attempt", isHeard, () => first.ask("health", {}));
    slow.letGo();
    await within("an answer", acted);
    await within("the end of the first server", close(first));
    await using second = await openServer({ open: { log: slow.log } });
    await second.ask("joinWorker", { body });
    const { json } = await second.ask("wait", { params: { id: "t" }, query: { timeoutMs: WAIT_MS } });
    assert.deepEqual([json.state, clicks.length], ["done", 1], json.error);
  });
