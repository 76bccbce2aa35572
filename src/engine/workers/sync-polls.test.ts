import { test } from "node:test";
import type { WorkerId } from "../../core/base/brand.ts";
import { createHandClock } from "../../std/hand-clock.ts";
import { createSyncPolls } from "./sync-polls.ts";

const ann = "ann" as WorkerId;

test("a poll ends when its time is over, though the wall clock was set back meanwhile", async () => {
  const clock = createHandClock({ at: 10_000_000 });
  const polls = createSyncPolls(clock);
  const poll = polls.wait(ann, { waitMs: 5000, signal: undefined, hasChanges: () => false });
  clock.setWall(6_400_000);
  await clock.advance(5000);
  await poll;
});
