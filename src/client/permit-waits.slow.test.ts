/**
 * Permits that are waited for together: few connections, and each with an answer and a place of its own.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { openServer, type TestServer } from "../../test/kits/test-server.ts";
import { isPending, until } from "../../test/kits/waits.ts";
import { type Client, createClient } from "./client.ts";

type Fetch = typeof globalThis.fetch;
type Story = { readonly at: TestServer; readonly client: Client; readonly asked: string[]; readonly out: () => number };
const GATE = "g";
const WAIT_MS = 60_000;
const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `c${index}`);

/** A gate that lets one call out, which is taken; and a client whose requests are seen. */
async function story(told: (story: Story) => Promise<void>, change: (send: Fetch) => Fetch = (send) => send) {
  await using at = await openServer({ settings: { gates: { default: { maxConcurrent: 1, requests: 100_000 } } } });
  const asked: string[] = [];
  let out = 0;
  const seen: Fetch = async (input, init) => {
    asked.push(new URL(String(input)).pathname);
    out++;
    try {
      const answer = await fetch(input, init);
      const text = await answer.text();
      return new Response(text, answer);
    } finally {
      out--;
    }
  };
  const client = createClient({ url: at.url, fetch: change(seen) as never, rest: async () => {} });
  await client.askPermit({ gate: GATE, id: "first" });
  await told({ at, client, asked, out: () => out });
}
const ask = (client: Client, id: string, more: object = {}) =>
  client.askPermit({ gate: GATE, id, waitMs: WAIT_MS }, more);
const inLine = ({ at }: Story, count: number): Promise<void> =>
  until(`${count} in line`, () => at.drover.state.gates.get(GATE as never)?.queue.entries.size === count);
/** The first is alone and goes by itself, over a connection of its own; from then on they share. */
async function inTurn<Call>(told: Story, ids: readonly string[], call: (id: string) => Call): Promise<Call[]> {
  const calls: Call[] = [];
  for (const id of ids) {
    calls.push(call(id));
    if (calls.length === 1) await inLine(told, 1);
  }
  await inLine(told, ids.length);
  return calls;
}
const isShared = (paths: readonly string[]): boolean => paths.includes("/permits/wait");

test("calls that wait at a gate share a few requests, and are granted in their order", () =>
  story(async (told) => {
    const { client, asked, out } = told;
    const ids = names(200);
    const granted: string[] = [];
    const calls = await inTurn(told, ids, async (id) => {
      const { permitId, status } = await ask(client, id);
      assert.deepEqual([permitId, status], [id, "granted"]);
      granted.push(id);
      await client.settlePermit(id);
    });
    await until("a shared wait", () => isShared(asked));
    assert.ok(out() <= 10, `${out()} requests are out`);
    await client.settlePermit("first");
    await Promise.all(calls);
    assert.deepEqual(granted, ids);
  }));

test("whoever gives one up gives up that one", () =>
  story(async (told) => {
    const { client, asked } = told;
    const controller = new AbortController();
    const signals: Record<string, object> = { b: { signal: controller.signal } };
    const [a, b, c] = await inTurn(told, ["a", "b", "c"], (id) => ask(client, id, signals[id]));
    assert.ok(a && b && c);
    await until("a shared wait", () => isShared(asked));
    controller.abort(new Error("enough"));
    await assert.rejects(b, /enough/);
    await client.dropPermit("b");
    await client.settlePermit("first");
    assert.equal((await a).status, "granted");
    assert.equal(await isPending(c), true);
    await client.settlePermit("a");
    assert.equal((await c).status, "granted");
    await inLine(told, 0);
  }));

test("one that is refused, or whose time is over, is so by itself", () =>
  story(async (told) => {
    const { client } = told;
    const waits = await inTurn(told, ["a", "b"], (id) => ask(client, id));
    await assert.rejects(client.askPermit({ gate: "other", id: "a", waitMs: WAIT_MS }), { code: "conflict" });
    const tooLong = client.askPermit({ gate: GATE, id: "d", waitMs: 600_000 });
    await assert.rejects(tooLong, { code: "bad_request" });
    const { status, position } = await client.askPermit({ gate: GATE, id: "c", waitMs: 20 });
    assert.deepEqual([status, position], ["queued", 3]);
    await client.dropPermit("c");
    for (const id of ["first", "a"]) await client.settlePermit(id);
    await Promise.all(waits);
  }));

test("an answer that is lost, and a server that is away, cost nobody its place", () => {
  let lose = 0;
  const change =
    (send: Fetch): Fetch =>
    async (input, init) => {
      const answer = await send(input, init);
      if (!String(input).endsWith("/permits/wait") || lose++ % 2 === 1) return answer;
      throw Object.assign(new TypeError("fetch failed"), {
        cause: Object.assign(new Error("x"), { code: "ECONNRESET" }),
      });
    };
  return story(async (told) => {
    const { client } = told;
    const granted: string[] = [];
    const calls = await inTurn(told, names(20), async (id) => {
      await ask(client, id);
      granted.push(id);
      await client.settlePermit(id);
    });
    await client.settlePermit("first");
    await Promise.all(calls);
    assert.deepEqual(granted, names(20));
    assert.ok(lose > 1);
  }, change);
});

test("a server that does not know such waits is asked for each permit, for a minute", (t) => {
  let knows = false;
  let shared = 0;
  const change =
    (send: Fetch): Fetch =>
    async (input, init) =>
      String(input).endsWith("/permits/wait") && ++shared > 0 && !knows
        ? Response.json({ error: "nothing is there", code: "not_found" }, { status: 404 })
        : send(input, init);
  return story(async (told) => {
    const { client, out } = told;
    const { setTimeout } = globalThis;
    const minutes: (() => void)[] = [];
    t.mock.method(globalThis, "setTimeout", (act: () => void, ms: number) => {
      if (ms !== 60_000) return setTimeout(act, ms);
      minutes.push(act);
      return { unref: () => {} };
    });
    const calls = await inTurn(told, ["a", "b", "c"], (id) => ask(client, id));
    await until("a request for each", () => out() === 3);
    for (const id of ["first", "a", "b"]) await client.settlePermit(id);
    assert.deepEqual(
      (await Promise.all(calls)).map(({ status }) => status),
      ["granted", "granted", "granted"],
    );
    const before = shared;
    knows = true;
    for (const pass of minutes) pass();
    const later = await inTurn(told, ["d", "e"], (id) => ask(client, id));
    await until("they wait together", () => shared > before);
    await client.settlePermit("c");
    await later[0];
    await client.settlePermit("d");
    await later[1];
  }, change);
});

test("a client that closes waits for those that wait", () =>
  story(async (told) => {
    const { at, client } = told;
    const calls = await inTurn(told, ["a", "b", "c"], (id) => ask(client, id));
    const closed = client.close();
    await assert.rejects(ask(client, "d"), { code: "closed" });
    assert.equal(await isPending(closed), true);
    for (const [index, id] of ["first", "a", "b"].entries()) {
      await at.drover.permits.settle(id);
      assert.equal((await calls[index])?.status, "granted");
    }
    await closed;
  }));
