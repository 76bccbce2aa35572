/**
 * Nodes over real replicas: a directory each, one journal, real time.
 */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { until, within } from "../../../test/kits/waits.ts";
import { snapshotLines } from "../../core/snapshot/snapshot.ts";
import { createMemoryJournal, createMemoryJournalStore, expireLead } from "../../log/journal/memory-journal.ts";
import { openSharedLog } from "../../log/shared/index.ts";
import { realClock } from "../../std/clock.ts";
import { DroverError } from "../base/drover-error.ts";
import { type DroverNode, openNode } from "./node.ts";

const task = (id: string, more: object = {}) => ({ id, agentId: "ann", action: "build", ...more });

function cluster(context: TestContext) {
  const store = createMemoryJournalStore();
  const directories: string[] = [];
  const opened: DroverNode[] = [];
  context.after(async () => {
    for (const node of opened) await node.close();
    for (const directory of directories) rmSync(directory, { recursive: true, force: true });
  });
  async function open(id: string, data = mkdtempSync(join(tmpdir(), "drover-node-"))) {
    directories.push(data);
    const journal = createMemoryJournal({ store });
    const log = await openSharedLog({ journal, directory: data });
    const node = await openNode({
      id,
      log,
      data,
      config: () => null,
      leaseMs: 1000,
      advertise: () => `http://${id}.test`,
      publicKey: id,
      clock: realClock,
      newId: randomUUID,
      onWarning: () => {},
    });
    opened.push(node);
    return { ...node, journal, log, data };
  }
  return { store, open };
}

type Open = Awaited<ReturnType<ReturnType<typeof cluster>["open"]>>;
const leads = (node: Open): Promise<void> => until(`${node.id} to lead`, () => node.life().leads());
const linesOf = ({ drover }: Open): string => [...snapshotLines(drover.state as never)].join("\n");
const together = async (...nodes: [Open, Open]): Promise<void> => {
  const [one, other] = nodes;
  await until("the same event", () => one.applied().seq === other.applied().seq);
  assert.equal(one.applied().hash, other.applied().hash);
  assert.equal(linesOf({ ...one, drover: one.life().drover }), linesOf({ ...other, drover: other.life().drover }));
};

test("the lead goes over, with replicas in directories: nothing acknowledged is lost, all verify", async (context) => {
  const { open, store } = cluster(context);
  const a = await open("a");
  await leads(a);
  const b = await open("b");
  await a.drover.worker({ slots: 4 }, ({ taskId }) => ({ made: taskId }));
  for (let count = 0; count < 40; count++) await a.drover.submit(task(`t${count}`));
  await within("the last task", b.reached(a.applied().seq));
  for (let count = 0; count < 40; count++) await a.drover.wait(`t${count}`);
  await within("the end of it", b.reached(a.applied().seq));
  assert.deepEqual((await b.drover.task("t39")).result, { made: "t39" });
  await together(a, b);

  // The lead is taken behind its back; what it had not committed is gone, and it follows by itself.
  const held = Promise.withResolvers<void>();
  a.journal.fault({ hold: held.promise });
  const late = a.drover.submit(task("late")).catch((error: unknown) => error);
  expireLead(store);
  await leads(b);
  a.journal.fault({ hold: null });
  held.resolve();
  const outcome = await late;
  assert.ok(outcome instanceof DroverError && outcome.retryable, String(outcome));
  await until("a to follow", () => a.life().role === "follower" && !a.life().signal.aborted);
  await b.drover.submit(task("late"));
  await within("it on a", a.reached(b.applied().seq));
  await together(a, b);

  // It closes, and comes back over its directory.
  await b.drover.snapshot();
  await b.close();
  await leads(a);
  await a.drover.submit(task("last"));
  const again = await open("b", b.data);
  await within("it on b", again.reached(a.applied().seq));
  assert.equal((await again.drover.task("last")).state, "queued");
  await together(a, again);
  for (const node of [a, again]) {
    const { ok, problems } = await node.drover.verify({ expect: a.applied() });
    assert.deepEqual([ok, problems], [true, []]);
  }
});
