/**
 * The server is killed while calls of one client travel together: whatever a caller was told is there is there, and
 * nothing is there twice.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createClient, type Fetch } from "../../src/client/index.ts";
import { openDrover } from "../../src/engine/drover.ts";
import { standBy } from "../kits/faults/standing-server.ts";
import { within } from "../kits/waits.ts";

const KILLS = process.env.DROVER_QUICK === undefined ? 12 : 3;
const CALLERS = 48;
/** So many tasks are acknowledged in one life, by turns. */
const LIVES = [1, 40, 90, 200];
/** What the client is told; requests go to the server that lives. */
const ADDRESS = "http://127.0.0.1:1";

test(`a server killed ${KILLS} times under calls that travel together keeps what it acknowledged, once`, async () => {
  const directory = await mkdtemp(join(tmpdir(), "drover-bulk-kill-"));
  const acknowledged = new Set<string>();
  const paths: string[] = [];
  let now = Promise.withResolvers<string>();
  let kills = 0;
  let hasEnough = (): void => {};
  const fetch: Fetch = async (url, request) => {
    const { pathname } = new URL(url);
    paths.push(pathname);
    return globalThis.fetch(`${await now.promise}${pathname}`, request);
  };
  const client = createClient({ url: ADDRESS, fetch, retries: Number.POSITIVE_INFINITY, rest: async () => {} });
  async function call(caller: number): Promise<void> {
    for (let count = 0; kills < KILLS; count++) {
      const id = `t${caller}-${count}`;
      const { taskId } = await client.submit({ id, agentId: `agent-${caller % 5}`, action: "x" });
      assert.equal(taskId, id);
      acknowledged.add(id);
      hasEnough();
    }
  }

  const callers = Array.from({ length: CALLERS }, (_, caller) => call(caller));
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
  now.resolve(await next.begin());
  await within("the end of all calls", Promise.all(callers));
  await client.close();
  next.child.stdin?.end();
  await within("the end of the last server", once(next.child, "exit"));
  assert.ok(paths.filter((path) => path === "/bulk").length >= KILLS, "they have travelled together");
  await checkLog(directory, acknowledged);
  await rm(directory, { recursive: true });
});

async function checkLog(directory: string, acknowledged: ReadonlySet<string>): Promise<void> {
  await using drover = await openDrover({ data: directory });
  assert.equal((await drover.verify()).ok, true);
  const submitted: string[] = [];
  for await (const { kind, task } of drover.events()) if (kind === "task-submitted") submitted.push(String(task));
  assert.equal(new Set(submitted).size, submitted.length, "a task is in the log twice");
  const there = new Set(submitted);
  assert.deepEqual(
    [...acknowledged].filter((id) => !there.has(id)),
    [],
  );
}
