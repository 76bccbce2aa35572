/**
 * The server is killed while calls of one client travel together: whatever a caller was told is there is there, nothing
 * is there twice, and whoever waits for the end of a task hears of it.
 */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { type Client, createClient, type Fetch } from "../../src/client/index.ts";
import { openDrover } from "../../src/engine/drover.ts";
import { killedAgainAndAgain } from "../kits/faults/standing-server.ts";
import { within } from "../kits/waits.ts";

const KILLS = process.env.DROVER_QUICK === undefined ? 12 : 3;
const CALLERS = 48;
/** So many tasks are acknowledged in one life, by turns. */
const LIVES = [1, 40, 90, 200];
/** What the client is told; requests go to the server that lives. */
const ADDRESS = "http://127.0.0.1:1";

test(`a server killed ${KILLS} times under calls that travel together keeps what it acknowledged, once`, async () => {
  const directory = await mkdtemp(join(tmpdir(), "drover-bulk-kill-"));
  const server = killedAgainAndAgain(directory, KILLS, LIVES);
  const paths: string[] = [];
  const fetch: Fetch = async (url, request) => {
    const { pathname } = new URL(url);
    paths.push(pathname);
    return globalThis.fetch(`${await server.url()}${pathname}`, request);
  };
  const connect = (): Client =>
    createClient({ url: ADDRESS, fetch, retries: Number.POSITIVE_INFINITY, rest: async () => {} });
  const client = connect();
  async function call(caller: number): Promise<void> {
    for (let count = 0; !server.isLast(); count++) {
      const id = `t${caller}-${count}`;
      const { taskId } = await client.submit({ id, agentId: `agent-${caller % 5}`, action: "x" });
      assert.equal(taskId, id);
      server.acknowledge(id);
      const ended = client.wait(id);
      await client.cancel(id);
      assert.deepEqual([(await ended).taskId, (await ended).state], [id, "cancelled"]);
    }
  }

  /** Clients that are closed as soon as they were asked: what they were asked is in when they are. */
  async function callAndClose(): Promise<void> {
    for (let count = 0; !server.isLast(); count++) {
      const hasty = connect();
      const ids = Array.from({ length: 8 }, (_, index) => `hasty${count}-${index}`);
      let answered = 0;
      for (const id of ids) void hasty.submit({ id, agentId: "hasty", action: "x" }).then(() => answered++);
      await hasty.close();
      assert.equal(answered, ids.length);
      for (const id of ids) server.acknowledge(id);
      await client.cancelWhere({ agentId: "hasty" });
    }
  }

  const callers = [callAndClose(), ...Array.from({ length: CALLERS }, (_, caller) => call(caller))];
  await server.end(async () => {
    await within("the end of all calls", Promise.all(callers));
    await client.close();
  });
  for (const shared of ["/bulk", "/tasks/wait"])
    assert.ok(paths.filter((path) => path === shared).length >= KILLS, `they have travelled together by ${shared}`);
  await checkLog(directory, server.acknowledged);
  await rm(directory, { recursive: true });
});

async function checkLog(directory: string, acknowledged: ReadonlySet<string>): Promise<void> {
  await using drover = await openDrover({ data: directory });
  assert.equal((await drover.verify()).ok, true);
  const submitted: string[] = [];
  const cancelled: string[] = [];
  for await (const { kind, task } of drover.events()) {
    if (kind === "task-submitted") submitted.push(String(task));
    if (kind === "task-cancelled") cancelled.push(String(task));
  }
  assert.equal(new Set(submitted).size, submitted.length, "a task is in the log twice");
  assert.equal(new Set(cancelled).size, cancelled.length, "a task has ended twice");
  const there = new Set(submitted);
  assert.deepEqual(
    [...acknowledged].filter((id) => !there.has(id)),
    [],
  );
}
