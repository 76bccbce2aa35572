/**
 * What `why` says of the workers: what they say of themselves, and what each of them lacks.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { join, kitWith } from "../../../test/kits/hand-worker.ts";

test("a worker that takes less than it could says why, once it is full", async () => {
  await using kit = await kitWith();
  const ann = await join(kit, { slots: 4 });
  await ann.sync({ want: 2, note: "laptop is hot" });
  const submit = async (id: string): Promise<string> => {
    await kit.drover.submit({ id, agentId: "a", action: "build" });
    await kit.settle();
    const { conditions } = await kit.drover.why(id);
    return conditions.find(({ code }) => code === "worker-room")?.detail ?? "";
  };
  assert.equal(await submit("t1"), "");
  assert.equal(await submit("t2"), "");
  assert.match(await submit("t3"), /without a free slot; worker ann: laptop is hot$/);
  await ann.sync({ want: 4, note: "no git here" });
  assert.equal(await submit("t4"), "", "it has all its slots again");
  await submit("t5");
  assert.doesNotMatch(await submit("t6"), /git/, "what it says while it is merely full is not why");
});
