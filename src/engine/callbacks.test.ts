import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createTestDrover } from "../testing/index.ts";

const callbackUrl = "https://example.com/done";

test("every end of a task that wants it is due once, until it is settled, also after a restart", async () => {
  const data = await mkdtemp(join(tmpdir(), "drover-callbacks-"));
  const first = await createTestDrover({ data });
  const { drover } = first;
  let heard = 0;
  drover.callbacks.onDue(() => heard++);
  await drover.submit({ agentId: "a", action: "x", id: "quiet" });
  await drover.submitBatch({
    agentId: "a",
    callbackUrl,
    tasks: [
      { action: "x", id: "loud" },
      { action: "x", id: "other" },
    ],
  });
  for (const id of ["quiet", "loud", "other"]) await drover.cancel(id);
  await first.settle();
  const due = [...drover.callbacks.pending()];
  assert.deepEqual(
    due.map(({ taskId, state }) => [taskId, state]),
    [
      ["loud", "cancelled"],
      ["other", "cancelled"],
    ],
  );
  assert.equal(heard > 0, true);
  await drover.callbacks.settle(due[0]?.seq as number, { ok: true, status: 200, attempts: 1 });
  await drover.callbacks.settle(due[0]?.seq as number, { ok: true, status: 200, attempts: 1 });
  await drover.snapshot();
  await drover.close();
  const second = await createTestDrover({ data, at: first.clock.now() });
  assert.deepEqual(
    Array.from(second.drover.callbacks.pending(), ({ taskId }) => taskId),
    ["other"],
  );
  await second.drover.retry("other");
  await second.drover.cancel("other");
  assert.deepEqual(
    Array.from(second.drover.callbacks.pending(), ({ taskId }) => taskId),
    ["other", "other"],
  );
  // Its record expires; what is due stays due.
  await second.clock.advance(301_000);
  assert.equal([...second.drover.callbacks.pending()].length, 2);
  assert.equal((await second.drover.task("other")).callbackUrl, callbackUrl);
  await second.drover.close();
  await rm(data, { recursive: true });
});
