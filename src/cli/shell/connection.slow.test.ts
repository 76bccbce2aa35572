import assert from "node:assert/strict";
import { test } from "node:test";
import { drover, Refusal } from "../../../test/kits/cli/canned-server.ts";

/** A server that has no leader at first. */
function electing(times: number): () => unknown {
  let left = times;
  const refusal = new Refusal(503, "no_leader", "no node leads: the journal has been out of reach for 9 s: refused.");
  Object.assign(refusal.body, { retryable: true });
  return () => (left-- > 0 ? refusal : { taskId: "t", state: "queued", position: 1, warnings: [] });
}

test("a call that is tried again because nobody leads says why, once in a while, on standard error", async () => {
  const { code, err } = await drover(["submit", "build", "--id", "t"], { "POST /tasks": electing(2) });
  assert.equal(code, 0, err);
  assert.equal(err, "still trying: no node leads: the journal has been out of reach for 9 s: refused.\n");
  const quiet = await drover(["submit", "build", "--id", "t", "--json"], { "POST /tasks": electing(1) });
  assert.deepEqual([quiet.code, quiet.err], [0, ""]);
});

test("what to do next fits why no node leads", async () => {
  for (const [details, code, hint] of [
    [{ journal: "full" }, 5, /^hint: {2}make room in the journal/m],
    [{ journal: "away" }, 3, /^hint: {2}bring the journal back; nodes go on by themselves/m],
    [undefined, 3, /^hint: {2}no node leads the cluster at the moment; try again in a few seconds/m],
  ] as const) {
    const refusal = new Refusal(503, "no_leader", "it is so", details);
    const told = await drover(["submit", "build", "--id", "t"], { "POST /tasks": refusal });
    assert.equal(told.code, code, told.err);
    assert.match(told.err, hint);
  }
});
