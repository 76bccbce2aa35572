/**
 * Approvals over HTTP: who may answer, what is answered, and who is called.
 */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { openServer } from "../kits/test-server.ts";

const tokenOf = (name: string): string => `token-of-${name}-0123456789`;
const tokens = [
  { role: "admin", token: tokenOf("admin") },
  { role: "agent", token: tokenOf("ann"), agentId: "ann" },
  { role: "agent", token: tokenOf("site"), project: "site" },
  { role: "viewer", token: tokenOf("viewer") },
];

test("an admin and a project may approve, an agent may not, and the callback tells what is asked", async () => {
  const heard: { event: unknown; body: Record<string, unknown> }[] = [];
  const called = Promise.withResolvers<void>();
  const hook = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      heard.push({ event: request.headers["x-drover-event"], body: JSON.parse(Buffer.concat(chunks).toString()) });
      response.end();
      called.resolve();
    });
  });
  await new Promise<void>((resolve) => hook.listen(0, "127.0.0.1", resolve));
  const callbackUrl = `http://127.0.0.1:${(hook.address() as AddressInfo).port}/`;
  await using at = await openServer({ settings: { server: { tokens }, webhooks: { allowPrivate: true } } });
  const as = (name: string): { token: string } => ({ token: tokenOf(name) });
  const submit = (id: string, more: object = {}) =>
    at.ask(
      "submit",
      { body: { id, agentId: "ann", action: "ship", approval: { question: "ship it?" }, ...more } },
      as("admin"),
    );
  assert.equal((await submit("a", { callbackUrl })).json.state, "parked");
  await submit("b", { project: "site" });
  const approve = (id: string, name: string, body = {}) => at.ask("approve", { params: { id }, body }, as(name));
  assert.match((await approve("a", "ann")).text, /agent ann, which may not approve/);
  assert.deepEqual([(await approve("a", "viewer")).status, (await approve("a", "site")).status], [403, 404]);
  assert.equal((await approve("b", "site", { note: "yes" })).json.state, "queued");
  await called.promise;
  assert.equal(heard[0]?.event, "task.approval");
  assert.match(JSON.stringify(heard[0]?.body), /"state":"parked".*ship it\?|ship it\?.*"state":"parked"/);
  assert.equal((await approve("a", "admin", { deny: true, note: "no" })).status, 202);
  const again = await approve("a", "admin");
  assert.equal(again.status, 409);
  assert.match(again.text, /first answer counts/);
  assert.equal((await at.ask("task", { params: { id: "a" } }, as("admin"))).json.error, "denied: no");
  assert.equal((await approve("nobody-knows-it", "admin")).status, 404);
  assert.equal((await approve("b", "admin", { note: "x".repeat(1 << 20) })).status, 413);
  assert.equal((await approve("b", "admin", { note: "x".repeat(4097) })).status, 400);
  hook.close();
});
