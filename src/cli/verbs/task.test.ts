/**
 * Who watches a task hears of each change once, and of its end at once.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { cannedServer, Refusal } from "../../../test/kits/cli/canned-server.ts";
import { fewTurns } from "../../../test/kits/waits.ts";
import { createClient } from "../../client/index.ts";
import { watchTask } from "./watch-task.ts";

const task = (state: string, more: object = {}): object => ({ taskId: "t", state, attempt: 0, ...more });
const signal = new AbortController().signal;

test("each change is told once", async () => {
  const states = [
    ...[task("queued", { position: 2 }), task("queued", { position: 2 }), task("queued", { position: 1 })],
    ...[task("running", { attempt: 1 }), task("running", { attempt: 1, progress: "half" }), task("done")],
  ];
  const now = (): object | undefined => states[0];
  const { fetch } = cannedServer({
    "GET /tasks/t": () => (states.length > 1 ? states.shift() : now()),
    "GET /tasks/t/wait": now,
  });
  const told: unknown[] = [];
  const ended = await watchTask(createClient({ fetch }), "t", {
    signal,
    momentMs: 1,
    onChange: ({ state, position, progress }) => told.push(progress ?? position ?? state),
  });
  assert.equal(ended.state, "done");
  assert.deepEqual(told, [2, 1, "running", "half", "done"]);
});

test("a task that is not there is refused", async () => {
  const { fetch } = cannedServer({ "GET /tasks/t": new Refusal(404, "not_found", "no task has the id t") });
  const watched = watchTask(createClient({ fetch }), "t", { signal, onChange: () => assert.fail() });
  await assert.rejects(watched, { code: "not_found" });
});

test("a server that is restarted is waited for: one that refuses the connection, and one that shuts down", async () => {
  const away: (() => Response)[] = [
    () => {
      throw Object.assign(new TypeError("fetch failed"), { cause: { code: "ECONNREFUSED" } });
    },
    () => Response.json({ error: "it shuts down", code: "closed", retryable: true }, { status: 503 }),
  ];
  for (const refuses of away) {
    let looks = 0;
    const states: object[] = [task("running", { attempt: 1 }), task("done")];
    const { fetch: answers } = cannedServer({
      "GET /tasks/t": () => states.shift(),
      "GET /tasks/t/wait": () => task("running", { attempt: 1 }),
    });
    const fetch: typeof globalThis.fetch = async (url, request) => {
      looks++;
      return looks > 1 && looks < 8 ? refuses() : answers(url, request);
    };
    const rest = async (): Promise<void> => {};
    const { state } = await watchTask(createClient({ fetch, rest }), "t", { signal, momentMs: 0, onChange: () => {} });
    assert.equal(state, "done");
  }
});

test("one that says nothing for longer than a moment is waited for", async (t) => {
  let isAway = false;
  const { fetch: answers } = cannedServer({
    "GET /tasks/t": () => task(isAway ? "done" : "running", { attempt: 1 }),
    "GET /tasks/t/wait": () => task("running", { attempt: 1 }),
  });
  const silence = Promise.withResolvers<void>();
  const fetch: typeof globalThis.fetch = async (url, request) => {
    if (!isAway) return answers(url, request);
    const { promise, reject } = Promise.withResolvers<never>();
    request?.signal?.addEventListener("abort", () => reject(new TypeError("fetch failed")));
    return Promise.race([promise, silence.promise.then(() => answers(url, request))]);
  };
  const told: string[] = [];
  const onChange = ({ state }: { state: string }): void => {
    isAway = true;
    told.push(state);
  };
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const watched = watchTask(createClient({ fetch }), "t", { signal, momentMs: 1, onChange });
  for (let second = 0; second < 5; second++) {
    await fewTurns();
    t.mock.timers.tick(1001);
  }
  silence.resolve();
  t.mock.timers.reset();
  assert.equal((await watched).state, "done");
  assert.deepEqual(told, ["running", "done"]);
});
