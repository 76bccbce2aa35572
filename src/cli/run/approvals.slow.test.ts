/**
 * A plan with a task that a person must approve: the run says so and ends, and --approve goes on.
 */
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { planDirectory } from "../../../test/kits/cli/plan-directory.ts";
import { served } from "../../../test/kits/cli/served.ts";

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

test("what it says to type reaches it, wherever its file and its log are", { timeout: 60_000 }, async () => {
  using place = planDirectory("tasks: { h: { run: echo h >> ran, approval: { question: Well? } } }");
  mkdirSync(join(place.directory, "sub"));
  place.write("sub/p.yml", place.read("plan.yml"));
  const below = await place.run(["sub/p.yml"]);
  assert.match(below.out, /It waits for approval of h: .*run sub\/p\.yml --approve h$/m);
  const elsewhere = await place.run(["--data", "dd"]);
  assert.match(elsewhere.out, /It waits for approval of h: .*run plan\.yml --data dd --approve h$/m);
  await place.run();
  assert.match((await place.drover(["why", "plan/h"])).out, /^\S+ is parked\. .*approve plan\/h\): Well\?\n/);
  const unknown = await place.drover(["task", "plan/something"]);
  assert.match(unknown.err, /its tasks: h\n/);
  const plans = await place.drover(["plans"]);
  assert.match(plans.err, /hint: +these have run alone: plan; .*drover plan NAME shows one of them\n/);
  const named = await place.drover(["plans", "--url", "http://127.0.0.1:9"]);
  assert.doesNotMatch(named.err, /have run alone/);
});

test("a plan on a server that --fail-fast has paused says how it goes on by its name", {
  timeout: 60_000,
}, async () => {
  using place = planDirectory(
    "tasks: { a: { run: exit 1, attempts: 1 }, b: { run: echo b >> ran, needs: c }, c: sleep 0 }",
  );
  await using server = await served(["--slots", "1"], { directory: place.directory });
  assert.match((await place.run(["--fail-fast"])).out, /\(--fail-fast\)\. Run the same command again to go on/);
  const { out } = await place.drover(["plan", "plan"]);
  assert.match(out, /\(--fail-fast\)\. .*drover plan plan --resume goes on without it, .*--retry tries it again/);
  await server.stop();
});

test("a task that must be approved from the start is told of while others run, alone and on a server", {
  timeout: 60_000,
}, async () => {
  using place = planDirectory(`tasks:
  slow: { run: echo slow }
  ask: { run: echo hi, approval: { question: Which colour? } }`);
  const order = /parked +ask +Which colour\?\n[\s\S]*done +slow/;
  assert.match((await place.run()).out, order);
  using other = planDirectory(place.read("plan.yml"));
  await using server = await served(["--slots", "1"], { directory: other.directory });
  const { out } = await other.run(["--approve", "ask"]);
  assert.match(out, order);
  assert.match(out, /parked +ask[\s\S]*approved +ask\n[\s\S]*done +ask/);
  await server.stop();
});
