/**
 * What the watcher of a plan says of a server that is away, and of one that is there and refuses; and how it waits.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { testTerminal } from "../../../test/kits/cli/test-terminal.ts";
import { ClientError } from "../../client/index.ts";
import { createLink, type Link } from "./link.ts";

const URL = "http://127.0.0.1:1";
type Linked = { readonly link: Link; readonly notes: readonly string[]; readonly rests: readonly number[] };

/** The server is ready from the given look on. */
function linked(readyAt = 1): Linked {
  const [notes, rests]: [string[], number[]] = [[], []];
  let looks = 0;
  const fetch = async (): Promise<Response> => {
    if (++looks < readyAt) throw new TypeError("no way there");
    return Response.json({ status: "ready" }, { headers: { "drover-protocol": "1" } });
  };
  const link = createLink({
    call: { flags: {}, terminal: testTerminal({ env: {}, fetch }) },
    server: { url: URL, by: "flag", directory: null },
    noted: (text) => notes.push(text),
    rest: async (ms) => void rests.push(ms),
    signal: new AbortController().signal,
  });
  return { link, notes, rests };
}

/** A call that fails so often. */
function failing(error: ClientError, times: number): () => Promise<string> {
  let left = times;
  return async () => {
    if (left-- > 0) throw error;
    return "answered";
  };
}

test("a server that does not answer is waited for, which is told once", async () => {
  const { link, notes, rests } = linked(4);
  assert.equal(await link.call(failing(new ClientError("network", "gone"), 1)), "answered");
  assert.deepEqual(notes, [
    `the server at ${URL} does not answer; the plan is safe there, and this waits for it`,
    `the server answers again, at ${URL}`,
  ]);
  assert.deepEqual(rests, [500, 500, 500, 500]);
});

test("one that is ready and refuses is left alone for longer each time, or as long as it asks; told once", async () => {
  const { link, notes, rests } = linked();
  const full = { status: 503, retryable: true };
  assert.equal(await link.call(failing(new ClientError("overloaded", "it is full", full), 7)), "answered");
  assert.deepEqual(rests, [500, 1000, 2000, 4000, 8000, 10_000, 10_000]);
  const later = new ClientError("overloaded", "it is full", { ...full, retryAfterMs: 30_000 });
  assert.equal(await link.call(failing(later, 1)), "answered");
  assert.deepEqual(rests.slice(7), [30_000]);
  assert.deepEqual(notes, ["the server refuses for now: it is full; the plan is safe there, and this goes on trying"]);
});

test("an answer that makes no sense again, from a server that is ready, is the end", async () => {
  const { link, notes } = linked();
  const wrong = (): ClientError => new ClientError("bad_answer", "the answer is not JSON", { status: 200 });
  assert.equal(await link.call(failing(wrong(), 1)), "answered");
  assert.match(notes.join(), /^the server says what makes no sense: the answer is not JSON; the plan is safe there,/);
  await assert.rejects(link.call(failing(wrong(), 2)), { code: "bad_answer" });
});

test("one such answer soon after a restart is looked into again, as any other trouble", async () => {
  const { link } = linked();
  assert.equal(await link.call(failing(new ClientError("network", "gone"), 1)), "answered");
  assert.equal(await link.call(failing(new ClientError("bad_answer", "no JSON", { status: 200 }), 1)), "answered");
});
