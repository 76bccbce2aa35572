/**
 * A plan with a task that a person must approve: the run says so and ends, and --approve goes on.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { planDirectory } from "../../../test/kits/cli/plan-directory.ts";

test("a plan waits for its approval, says what to do, and goes on with --approve", { timeout: 60_000 }, async () => {
  using place = planDirectory(`tasks:
  build: echo built
  ship: { run: echo shipped > ship.txt && cat ship.txt, needs: build, approval: { question: Ship it? } }`);
  const first = await place.run(["--output"]);
  assert.notEqual(first.code, 0);
  assert.match(first.out, /parked +ship +Ship it\?/);
  assert.match(first.out, /It waits for approval of ship: .*run plan.yml --approve ship, or .*approve plan\/ship$/m);
  assert.doesNotMatch(first.out, /shipped/);
  const second = await place.run(["--output", "--approve", "ship"]);
  assert.equal(second.code, 0, second.out);
  assert.match(second.out, /ship \| shipped/);
});
