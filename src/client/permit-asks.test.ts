/**
 * What is asked for one permit: over an outage for what is left of its wait, and not at all when its caller is gone.
 */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { answers, type Heard, neverAnswers, type Step, startScript } from "../../test/kits/script-server.ts";
import { fewTurns, until } from "../../test/kits/waits.ts";
import type { BulkBody, PermitBody } from "../protocol/index.ts";
import { type Client, createClient } from "./client.ts";
// Loaded when calls first meet: here that is to take a few turns only.
import "./gather.ts";
import "./permit-waits.ts";

const GATE = "g";
const isDrop = ({ method }: Heard): boolean => method === "DELETE";
const dropped = answers(200, { status: "dropped", permitId: "p" });
const givesUp = (): { signal: AbortSignal; giveUp: () => void } => {
  const controller = new AbortController();
  return { signal: controller.signal, giveUp: () => controller.abort(new Error("enough")) };
};

async function dropStory(
  told: (at: {
    client: Client;
    heard: readonly Heard[];
    drops(): string[];
    out(count: number): Promise<void>;
  }) => unknown,
  onDrop: Step = dropped,
): Promise<void> {
  await using server = await startScript((response, heard) => (isDrop(heard) ? onDrop : neverAnswers)(response, heard));
  const client = createClient({ url: server.url, rest: async () => {} });
  const { heard } = server;
  await told({
    client,
    heard,
    drops: () => heard.filter(isDrop).map(({ url }) => url),
    out: (count) => until(`${count} are out`, () => heard.length === count),
  });
}

for (const waitMs of [0, 60_000])
  test(`a caller that gives up leaves no ticket in line, and its client is closed behind that (waitMs ${waitMs})`, () =>
    dropStory(async ({ client, drops, out }) => {
      const { signal, giveUp } = givesUp();
      const asked = client.askPermit({ gate: GATE, id: "p/1", session: "s", waitMs }, { signal });
      await out(1);
      giveUp();
      await assert.rejects(asked, /^Error: enough$/);
      await client.close();
      assert.deepEqual(drops(), ["/permits/p%2F1?session=s&unheard=true"]);
    }));

test("a ticket that its client named is dropped by that name", () =>
  dropStory(async ({ client, heard, drops, out }) => {
    const { signal, giveUp } = givesUp();
    const asked = client.askPermit({ gate: GATE, waitMs: 60_000 }, { signal });
    await out(1);
    giveUp();
    await assert.rejects(asked, /^Error: enough$/);
    await client.close();
    assert.deepEqual(drops(), [`/permits/${((heard[0] as Heard).body as PermitBody).id}?unheard=true`]);
  }));

for (const [how, onDrop] of Object.entries({
  refused: answers(404, { error: "gone", code: "not_found" }),
  "not answered": ((response) => response.destroy()) as Step,
  "refused for now": answers(503, { error: "no", code: "closed", retryable: true }),
}))
  test(`a drop is tried once, and nobody hears that it was ${how}`, () =>
    dropStory(async ({ client, drops, out }) => {
      const { signal, giveUp } = givesUp();
      const asked = client.askPermit({ gate: GATE, id: "p", waitMs: 60_000 }, { signal });
      await out(1);
      giveUp();
      await assert.rejects(asked, /^Error: enough$/);
      await client.close();
      assert.equal(drops().length, 1);
    }, onDrop));

const kept: { name: string; ask: (client: Client, signal: AbortSignal, giveUp: () => void) => Promise<unknown> }[] = [
  {
    name: "was to be kept",
    ask: (client, signal) => client.askPermit({ gate: GATE, id: "p", waitMs: 60_000 }, { signal, keepTicket: true }),
  },
  {
    name: "was given up before it was asked for",
    ask: (client, signal, giveUp) => {
      giveUp();
      return client.askPermit({ gate: GATE, id: "p", waitMs: 60_000 }, { signal });
    },
  },
];
for (const { name, ask } of kept)
  test(`a ticket that ${name} is not dropped`, () =>
    dropStory(async ({ client, heard, drops }) => {
      const { signal, giveUp } = givesUp();
      const asked = ask(client, signal, giveUp);
      await until("it is out, or over", () => heard.length === 1 || signal.aborted);
      giveUp();
      await assert.rejects(asked, /^Error: enough$/);
      await client.close();
      assert.deepEqual(drops(), []);
    }));

test("a refusal drops nothing, though its caller gives up: the ticket of that id may be another's", async () => {
  const { signal, giveUp } = givesUp();
  const heard: string[] = [];
  const client = createClient({
    url: "http://here",
    fetch: async (_, { method = "" }) => {
      heard.push(method);
      const text = async (): Promise<string> => {
        giveUp();
        return '{"error":"no","code":"conflict"}';
      };
      return Object.assign(new Response(null, { status: 409 }), { text });
    },
  });
  await assert.rejects(client.askPermit({ gate: GATE, id: "p", waitMs: 60_000 }, { signal }), { code: "conflict" });
  await client.close();
  assert.deepEqual(heard, ["POST"]);
});

test("a ticket that is asked for again elsewhere, or right after it was given up, is dropped with the last", () =>
  dropStory(async ({ client, drops, out }) => {
    const all = [givesUp(), givesUp(), givesUp()];
    const ask = (index: number) =>
      client.askPermit({ gate: GATE, id: "p", waitMs: 60_000 }, { signal: all[index]?.signal, timeoutMs: 60_000 });
    const [first, second] = [ask(0), ask(1)];
    await out(2);
    all[0]?.giveUp();
    await assert.rejects(first, /^Error: enough$/);
    await fewTurns();
    all[1]?.giveUp();
    await assert.rejects(second, /^Error: enough$/);
    const third = ask(2);
    await out(3);
    assert.deepEqual(drops(), []);
    all[2]?.giveUp();
    await assert.rejects(third, /^Error: enough$/);
    await client.close();
    assert.equal(drops().length, 1);
  }));

test("what asks for a ticket that is being dropped comes behind that", async () => {
  const dropping = Promise.withResolvers<() => void>();
  await dropStory(
    async ({ client, heard, out }) => {
      const { signal, giveUp } = givesUp();
      const asked = client.askPermit({ gate: GATE, id: "p", waitMs: 60_000 }, { signal });
      await out(1);
      giveUp();
      await assert.rejects(asked, /^Error: enough$/);
      const answerIt = await dropping.promise;
      const again = client.askPermit({ gate: GATE, id: "p", waitMs: 60_000 });
      again.catch(() => {});
      await fewTurns();
      assert.equal(heard.length, 2);
      answerIt();
      await out(3);
    },
    (response, heard) => dropping.resolve(() => dropped(response, heard)),
  );
});

/** Time passes with the rests; the server is away until then, and no ticket is granted. */
function outage(t: TestContext, backAtMs: number, given: { retries?: number }) {
  let now = 0;
  t.mock.method(performance, "now", () => now);
  const tries: { at: number; waitMs: number }[] = [];
  const queued = ({ id = "", waitMs = 0 }: PermitBody): object => {
    tries.push({ at: now, waitMs });
    if (now >= backAtMs) now += waitMs;
    return { permitId: id, status: "queued" };
  };
  const answerTo = (path: string, body: unknown): object => {
    if (path === "/permits") return queued(body as PermitBody);
    if (path !== "/bulk") return { ids: (body as { ids: string[] }).ids };
    return {
      answers: (body as BulkBody).calls.map((call) => ({ status: 200, body: queued(call.body as PermitBody) })),
    };
  };
  const client = createClient({
    ...given,
    url: "http://away",
    rest: async (ms) => {
      now += ms;
    },
    fetch: async (url, { body }) => {
      const path = new URL(url).pathname;
      const answer = answerTo(path, JSON.parse(String(body)));
      if (now < backAtMs) throw Object.assign(new Error("away"), { code: "ECONNREFUSED" });
      // What is waited for together is answered when the time of all is over.
      if (path === "/permits/wait") now += 10_000;
      return Response.json(answer);
    },
  });
  return { client, tries, now: () => now };
}

const outages = [
  { name: "is over before the wait is", backAtMs: 8000, given: {} },
  { name: "is over before the wait is, with tries as told", backAtMs: 8000, given: { retries: 12 } },
  { name: "goes on behind the end of the wait", backAtMs: 11_000, given: { retries: 12 } },
];
for (const { name, backAtMs, given } of outages)
  for (const count of [1, 3])
    test(`${count} permits over an outage that ${name} are asked for what is left, and answered`, async (t) => {
      const { client, tries } = outage(t, backAtMs, given);
      const asked = Array.from({ length: count }, (_, index) =>
        client.askPermit({ gate: GATE, id: `p${index}`, waitMs: 10_000 }),
      );
      assert.deepEqual(
        (await Promise.all(asked)).map(({ status }) => status),
        asked.map(() => "queued"),
      );
      for (const { at, waitMs } of tries)
        assert.ok(waitMs <= Math.max(0, Math.ceil(10_000 - at)), `${waitMs} at ${at}`);
      assert.ok(tries.length > count);
    });

test("an outage that outlasts the wait and its tries is told as that", async (t) => {
  const { client, now } = outage(t, Number.POSITIVE_INFINITY, {});
  await assert.rejects(client.askPermit({ gate: GATE, waitMs: 10_000 }), { code: "network" });
  assert.ok(now() >= 10_000);
});
