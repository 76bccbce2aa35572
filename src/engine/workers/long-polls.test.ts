import { test } from "node:test";
import type { WorkerId } from "../../core/base/brand.ts";
import { createHandClock } from "../../std/hand-clock.ts";
import { createPollLine } from "./long-polls.ts";

const ann = "ann" as WorkerId;

test("a poll ends when its time is over, though the wall clock was set back meanwhile", async () => {
  const clock = createHandClock({ at: 10_000_000 });
  const line = createPollLine(clock);
  const poll = line.wait(ann, { waitMs: 5000, signal: undefined, hasNews: () => false });
  clock.setWall(6_400_000);
  await clock.advance(5000);
  await poll;
});
