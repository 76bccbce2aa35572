/**
 * What is asked of a server for permits that are waited for together.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { answers, type Heard, type Step, startScript } from "../../test/kits/script-server.ts";
import type { BulkBody, PermitBody, WaitPermitsBody } from "../protocol/index.ts";
import { WAIT_MS_DEFAULT } from "../protocol/wire/index.ts";
import { createClient } from "./client.ts";

const BAD = "bad";
const refused = { error: "no: bad_request", code: "bad_request" };

/** Permits are granted once a wait for them was answered; a wait that names the bad one is refused as a whole. */
function gate(): Step {
  const granted = new Set<string>();
  const viewOf = ({ id = "" }: PermitBody): object => ({
    permitId: id,
    status: granted.has(id) ? "granted" : "queued",
  });
  const waited = ({ ids, timeoutMs = WAIT_MS_DEFAULT }: WaitPermitsBody): Step => {
    if (ids.includes(BAD)) return answers(400, refused);
    if (timeoutMs === 0) return answers(200, { ids: [] });
    for (const id of ids) granted.add(id);
    return answers(200, { ids });
  };
  const asked = ({ calls }: BulkBody): object[] =>
    calls.map(({ body }) => ({ status: 200, body: viewOf(body as PermitBody) }));
  const stepFor = ({ url, body }: Heard): Step => {
    if (url === "/permits/wait") return waited(body as WaitPermitsBody);
    return answers(200, url === "/bulk" ? { answers: asked(body as BulkBody) } : viewOf(body as PermitBody));
  };
  return (response, heard) => stepFor(heard)(response, heard);
}

test("a wait for permits that is refused is looked into without waiting, and only then waits again", async () => {
  await using server = await startScript(gate());
  const client = createClient({ url: server.url, rest: async () => {} });
  const ids = ["a", BAD, "b", "c"];
  await client.askPermit({ gate: "g", id: "first" });
  const alone = client.askPermit({ gate: "g", id: "alone", waitMs: 60_000 });
  const ended = await Promise.allSettled(ids.map((id) => client.askPermit({ gate: "g", id, waitMs: 60_000 })));
  await alone;
  assert.deepEqual(
    ended.map((one) => (one.status === "rejected" ? one.reason.code : one.value.status)),
    ["granted", "bad_request", "granted", "granted"],
  );
  const waits = server.heard.filter(({ url }) => url === "/permits/wait").map(({ body }) => body as WaitPermitsBody);
  const [whole, ...others] = waits.slice(waits.findIndex(({ ids }) => ids.includes(BAD)));
  assert.ok(whole !== undefined && whole.ids.length > 1, "they waited together");
  const looked = others.filter(({ timeoutMs }) => timeoutMs === 0).flatMap(({ ids }) => ids);
  assert.deepEqual([...new Set(looked)].toSorted(), whole.ids.toSorted());
  const waiting = others.filter(({ timeoutMs }) => timeoutMs !== 0);
  assert.ok(!waiting.some(({ ids }) => ids.includes(BAD)));
});
