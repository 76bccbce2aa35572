/**
 * What was done while a look was under way is in the picture of the next.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client } from "../../client/index.ts";
import { keepLooking, lookOnce } from "./look.ts";

test("lists that were asked for before something was done are asked for again at once", async () => {
  let state = "queued";
  let held: Promise<void> | null = null;
  const isAsked = Promise.withResolvers<void>();
  const client = {
    line: async () => ({ seq: 1 }),
    ready: async () => ({}),
    tasks: async () => {
      const tasks = [{ taskId: "t", state }];
      if (held !== null) isAsked.resolve();
      await held;
      return { tasks };
    },
    async *events() {
      yield await Promise.withResolvers<void>().promise;
    },
  } as unknown as Client;
  const wanted = () => ({ tab: "tasks", rows: 10, isWide: false, filter: "" }) as const;
  const over = new AbortController();
  const shown: unknown[] = [];
  const first = await lookOnce(client, wanted(), () => 0);
  const answered = Promise.withResolvers<void>();
  held = answered.promise;
  const { poke } = keepLooking(first, {
    client,
    wanted,
    now: () => 0,
    rest: (_, signal) =>
      new Promise((resolve) => {
        if (signal.aborted) resolve();
        signal.addEventListener("abort", () => resolve(), { once: true });
      }),
    onPicture: ({ tasks }) => shown.push(tasks?.[0]?.state),
    signal: over.signal,
  });
  await isAsked.promise;
  state = "cancelled";
  const looked = poke();
  held = null;
  answered.resolve();
  await looked;
  assert.deepEqual(shown, ["queued", "cancelled"]);
  over.abort();
});
