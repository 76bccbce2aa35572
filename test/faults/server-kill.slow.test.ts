/**
 * The server is killed in the middle of its work, again and again: every task that was acknowledged is there and
 * finishes exactly once in the log.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { openDrover } from "../../src/engine/drover.ts";
import { standBy } from "../kits/faults/standing-server.ts";
import { clientOf } from "../kits/test-server.ts";
import { within } from "../kits/waits.ts";
import { submitUntilAcknowledged, type Whereabouts, workUntilOver } from "../kits/wire-workers.ts";

const KILLS = process.env.DROVER_QUICK === undefined ? 50 : 5;
const LANES = 6;
const WORKERS = 3;
/** So many tasks are acknowledged in one life, by turns: some die young, some in the thick of it. */
const LIVES = [1, 2, 3, 5, 8, 13, 21];

test(`a server killed ${KILLS} times loses nothing it acknowledged and finishes nothing twice`, async () => {
  const directory = await mkdtemp(join(tmpdir(), "drover-kill-"));
  const acknowledged = new Set<string>();
  let now = Promise.withResolvers<string>();
  let isOver = false;
  let hasEnough = (): void => {};
  const at: Whereabouts = { url: () => now.promise, isOver: () => isOver };

  async function submitInLane(lane: number, isLast: () => boolean): Promise<void> {
    for (let count = 0; !isLast(); count++) {
      await submitUntilAcknowledged(at, `t${lane}-${count}`);
      acknowledged.add(`t${lane}-${count}`);
      hasEnough();
    }
  }

  let kills = 0;
  const workers = Array.from({ length: WORKERS }, (_, index) => workUntilOver(at, `w${index}`, 4));
  const lanes = Array.from({ length: LANES }, (_, lane) => submitInLane(lane, () => kills >= KILLS));
  let next = standBy(directory);
  for (; kills < KILLS; kills++) {
    const life = next;
    const url = await life.begin();
    next = standBy(directory);
    const enough = acknowledged.size + (LIVES[kills % LIVES.length] ?? 1);
    const lived = new Promise<void>((resolve) => {
      hasEnough = () => void (acknowledged.size >= enough && resolve());
    });
    now.resolve(url);
    await within("enough that is acknowledged", lived);
    now = Promise.withResolvers();
    life.child.kill("SIGKILL");
    await within("the end of a killed server", once(life.child, "exit"));
  }
  const url = await next.begin();
  now.resolve(url);
  await Promise.all(lanes);
  const { ask } = clientOf(url);
  for (const id of acknowledged) {
    const ended = await ask("wait", { params: { id }, query: { timeoutMs: 60_000 } });
    assert.deepEqual([ended.json.state, ended.json.result], ["done", `result of ${id}`], id);
  }
  isOver = true;
  const accepted = await Promise.all(workers);
  next.child.stdin?.end();
  await within("the end of the last server", once(next.child, "exit"));
  await checkLog(directory, acknowledged);
  for (const id of acknowledged) {
    // An acceptance may have been lost on the wire, and its repetition is no second one.
    const times = accepted.reduce((sum, worker) => sum + (worker.get(id) ?? 0), 0);
    assert.ok(times <= 1, `${id} was accepted ${times} times`);
  }
  await rm(directory, { recursive: true });
});

async function checkLog(directory: string, acknowledged: ReadonlySet<string>): Promise<void> {
  await using drover = await openDrover({ data: directory });
  const report = await drover.verify();
  assert.deepEqual([report.ok, report.problems], [true, []]);
  const counts = new Map<string, number>();
  for await (const { kind, task } of drover.events()) {
    if (kind === "task-submitted" || kind === "task-done")
      counts.set(`${kind} ${task}`, (counts.get(`${kind} ${task}`) ?? 0) + 1);
  }
  for (const id of acknowledged)
    for (const kind of ["task-submitted", "task-done"]) assert.equal(counts.get(`${kind} ${id}`), 1, `${kind} ${id}`);
}
