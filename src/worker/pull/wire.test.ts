import assert from "node:assert/strict";
import { test } from "node:test";
import { createClient } from "../../client/index.ts";
import { wireOf } from "./wire.ts";

const SYNC = { assignments: [], cancel: [], results: [], leaseUntil: "2026-01-01T00:00:00.000Z", leaseMs: 1000 };

/** What a sync is that is answered so. */
function heard(answer: unknown): Promise<unknown> {
  const fetch = async (): Promise<Response> => Response.json(answer);
  return wireOf(createClient({ url: "http://127.0.0.1:1", fetch })).sync("ann", "{}", 1000, 500);
}

test("an answer whose attempts have no proper name is no answer: nothing is begun or named by it", async () => {
  const right = { taskId: "a", attempt: 1 };
  for (const list of ["assignments", "cancel", "results"] as const) {
    await heard({ ...SYNC, [list]: [right] });
    for (const wrong of [null, 1, { taskId: "a" }, { attempt: 1 }, { ...right, taskId: 7 }, { ...right, attempt: "1" }])
      await assert.rejects(heard({ ...SYNC, [list]: [right, wrong] }), { code: "bad_answer" }, JSON.stringify(wrong));
    await assert.rejects(heard({ ...SYNC, [list]: {} }), { code: "bad_answer" });
  }
  for (const wrong of [null, [], { ...SYNC, logs: 1 }]) await assert.rejects(heard(wrong), { code: "bad_answer" });
});
