/**
 * A scoped token's schedule waits for nothing: a name that is nobody's when it is put may be another's at an instant.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { openServer, type Reply } from "../kits/test-server.ts";

const token = "token-of-site-0123456789";
const admin = { token: "token-of-admin-0123456789" };
const tokens = [
  { role: "admin", ...admin },
  { role: "agent", token, project: "site" },
];

test("a schedule of a scoped token may not name what its tasks wait for, also where that is nowhere yet", async () => {
  await using at = await openServer({ settings: { server: { tokens } } });
  const put = (more: object, who: { token: string }): Promise<Reply> => {
    const body = { cron: "@hourly", task: { agentId: "ann", action: "x", ...more } };
    return at.ask("putSchedule", { params: { id: "mine" }, body }, who);
  };
  for (const [field, more] of Object.entries({
    "task.needs": { needs: ["of-somebody"] },
    "task.parent": { parent: "of-somebody" },
  })) {
    const { status, problem } = await put(more, { token });
    assert.deepEqual([status, problem.details?.field], [403, field]);
    assert.equal((await put(more, admin)).status, 200, "an admin's own is no secret to it");
    await at.ask("removeSchedule", { params: { id: "mine" } }, admin);
  }
  assert.equal((await put({ needs: { by: "of-somebody" } }, { token })).status, 403);
  assert.equal((await put({ needs: [] }, { token })).status, 200);
});
