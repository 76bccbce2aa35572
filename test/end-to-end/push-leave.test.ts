/**
 * A push worker that leaves and registers again in the same moment, as one that is restarted does: whoever has the name
 * in the end is spoken for.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { openServer } from "../kits/server-kit.ts";

const TIMES = 30;
const WAIT_MS = 60_000;

for (const isOwnWord of [false, true])
  test(`a push worker that registers beside its ${isOwnWord ? "own " : ""}leave is given work`, async (t) => {
    const target = createServer((_, response) => void response.writeHead(200).end("{}"));
    await once(target.listen(0, "127.0.0.1"), "listening");
    t.after(() => {
      target.closeAllConnections();
      target.close();
    });
    const endpoint = `http://127.0.0.1:${(target.address() as AddressInfo).port}`;
    await using at = await openServer();
    const names = Array.from({ length: TIMES }, (_, index) => `p${index}`);
    for (const id of names) {
      const body = { id, endpoint, capabilities: [id] };
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
