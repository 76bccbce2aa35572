/**
 * The server is killed in the middle of its work, again and again: every task that was acknowledged is there and
 * finishes exactly once in the log.
 */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { openDrover } from "../../src/engine/drover.ts";
import { killedAgainAndAgain } from "../kits/faults/standing-server.ts";
import { clientOf } from "../kits/test-server.ts";
import { submitUntilAcknowledged, type Whereabouts, workUntilOver } from "../kits/wire-workers.ts";

const KILLS = process.env.DROVER_QUICK === undefined ? 50 : 5;
const LANES = 6;
const WORKERS = 3;
/** So many tasks are acknowledged in one life, by turns. */
const LIVES = [1, 2, 3, 5, 8, 13, 21];

test(`a server killed ${KILLS} times loses nothing it acknowledged and finishes nothing twice`, async () => {
  const directory = await mkdtemp(join(tmpdir(), "drover-kill-"));
  const server = killedAgainAndAgain(directory, KILLS, LIVES);
  const { acknowledged } = server;
  let isOver = false;
  const at: Whereabouts = { url: server.url, isOver: () => isOver };

  async function submitInLane(lane: number): Promise<void> {
    for (let count = 0; !server.isLast(); count++) {
      await submitUntilAcknowledged(at, `t${lane}-${count}`);
      server.acknowledge(`t${lane}-${count}`);
    }
  }

  const workers = Array.from({ length: WORKERS }, (_, index) => workUntilOver(at, `w${index}`, 4));
  const lanes = Array.from({ length: LANES }, (_, lane) => submitInLane(lane));
  await server.end(async (url) => {
    await Promise.all(lanes);
    const { ask } = clientOf(url);
    for (const id of acknowledged) {
      const ended = await ask("wait", { params: { id }, query: { timeoutMs: 60_000 } });
      assert.deepEqual([ended.json.state, ended.json.result], ["done", `result of ${id}`], id);
    }
    isOver = true;
    await Promise.all(workers);
  });
  const accepted = await Promise.all(workers);
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
