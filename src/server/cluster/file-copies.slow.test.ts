/**
 * A node that cannot keep what it copies says so in one line for all of it, and again with the next look.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { answering } from "../../../test/kits/loopback.ts";
import { until } from "../../../test/kits/waits.ts";
import { createHandClock } from "../../std/hand-clock.ts";
import { startFileCopies } from "./file-copies.ts";

test("files that no room is left for are one line in the log for each look", async () => {
  await using other = await answering((_request, response) => void response.writeHead(200).end("content"));
  const clock = createHandClock({ at: 0 });
  const warnings: string[] = [];
  const drover = {
    state: { files: new Map(["a1", "b2", "c3"].map((hash) => [hash, {}])) },
    files: {
      has: () => false,
      counted: async () => {},
      put: async () => Promise.reject(new Error("no room")),
    },
    watch: () => () => {},
  };
  const copies = startFileCopies({
    node: {
      id: "a",
      peers: () => [{ id: "b", url: other.url }],
      onLife: (listener: (life: never) => void) => {
        listener(undefined as never);
        return () => {};
      },
    },
    drover,
    doors: { tokenFor: async () => "token", answered: () => {} },
    clock,
    onWarning: (message: string) => void warnings.push(message),
  } as unknown as Parameters<typeof startFileCopies>[0]);
  await until("a line", () => warnings.length > 0);
  assert.match(warnings.join("\n"), /^the file a1 could not be copied from node b: .*no room; and 2 more .*$/);
  await clock.advance(60_000);
  await until("the next look", () => warnings.length === 2);
  assert.equal(await copies.fetch("a1"), false);
  assert.match(warnings[2] ?? "", /^the file a1 could not be copied from node b: Error: no room$/);
  await copies.stop();
});
