import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { answering } from "../../../test/kits/loopback.ts";
import { inbox, until } from "../../../test/kits/waits.ts";
import { SETTINGS } from "../../../test/kits/webhook-world.ts";
import { type Drover, openDrover } from "../../engine/drover.ts";
import { createHandClock, type HandClock } from "../../std/hand-clock.ts";
import { startWebhooks, type WebhookOutcome, type Webhooks } from "./dispatcher.ts";
import { verifySignature } from "./signature.ts";

const LIMIT = { timeout: 60_000 };
type Received = { readonly headers: IncomingHttpHeaders; readonly body: string };
type Target = AsyncDisposable & { url: string; received: Received[]; count: (wanted: number) => Promise<void> };

/** A receiver on loopback; `count` resolves when it has had so many. */
async function target(answer: (response: ServerResponse, count: number) => void): Promise<Target> {
  const received: Received[] = [];
  const server = await answering(async (request, response) => {
    received.push({ headers: request.headers, body: await text(request) });
    answer(response, received.length);
  });
  const count = (wanted: number): Promise<void> => until(`${wanted} deliveries`, () => received.length >= wanted);
  return { ...server, url: `${server.url}/hook`, received, count };
}

type Life = AsyncDisposable &
  Pick<HandClock, "settle"> & {
    clock: HandClock;
    drover: Drover;
    webhooks: Webhooks;
    /** Resolves with the next outcome that nobody has asked for yet. */
    outcome: () => Promise<WebhookOutcome>;
  };

/** One life of a server on a data directory: the real engine, the real webhooks, a clock turned by hand. */
async function live(data: string, at: number, config: object = {}): Promise<Life> {
  const clock = createHandClock({ at });
  const { settle } = clock;
  const drover = await openDrover({ data, clock, config });
  const outcomes = inbox<WebhookOutcome>("an outcome of a webhook");
  const webhooks = startWebhooks({
    ...{ drover, clock, version: "0.0.0", settings: { ...SETTINGS, secret: "s3cret" } },
    onOutcome: outcomes.put,
    onProblem: assert.ifError,
  });
  const close = async (): Promise<void> => {
    await webhooks.stop();
    await drover.close();
  };
  return { drover, webhooks, clock, settle, outcome: outcomes.next, [Symbol.asyncDispose]: close };
}

async function directory(): Promise<{ data: string } & AsyncDisposable> {
  const data = await mkdtemp(join(tmpdir(), "drover-webhooks-"));
  return { data, [Symbol.asyncDispose]: () => rm(data, { recursive: true, force: true }) };
}

const AT = Date.parse("2026-01-31T12:00:00Z");
const events = ({ received }: Target): unknown[] =>
  received.map(({ headers }) => `${headers["x-drover-delivery"]} ${headers["x-drover-event"]}`);

test("a finished task is told as it is, signed, once, and a restart does not tell it again", LIMIT, async () => {
  await using place = await directory();
  await using hook = await target((response) => void response.end());
  {
    await using first = await live(place.data, AT);
    await first.drover.worker({}, () => ({ pages: 3 }));
    await first.drover.submit({ id: "t", agentId: "ann", action: "read", params: { x: 1 }, callbackUrl: hook.url });
    await first.drover.submit({ id: "silent", agentId: "ann", action: "read" });
    assert.equal((await first.outcome()).kind, "delivered");
    const { headers, body } = hook.received[0] as Received;
    assert.deepEqual(JSON.parse(body), JSON.parse(JSON.stringify(await first.drover.task("t"))));
    assert.deepEqual(JSON.parse(body).result, { pages: 3 });
    const header = String(headers["x-drover-signature"]);
    assert.ok(verifySignature({ secret: "s3cret", header, body, now: AT }));
    await first.settle();
    assert.deepEqual([...first.drover.callbacks.pending()], []);
  }
  await using second = await live(place.data, AT + 60_000);
  await second.clock.advance(3_600_000);
  assert.equal(hook.received.length, 1);
});

test("P2 Q19 each end of a task is told once: cancelled while it runs, retried, failed", LIMIT, async () => {
  await using place = await directory();
  await using hook = await target((response, count) => void response.writeHead(count === 1 ? 410 : 200).end());
  await using life = await live(place.data, AT);
  const begun = Promise.withResolvers<void>();
  let runs = 0;
  await life.drover.worker({}, async (_task, { signal }) => {
    if (++runs > 1) throw Object.assign(new Error("broken"), { permanent: true });
    begun.resolve();
    await once(signal, "abort");
    throw new Error("stopped");
  });
  await life.drover.submit({ id: "t", agentId: "ann", action: "read", callbackUrl: hook.url });
  await begun.promise;
  await life.drover.cancel("t");
  assert.equal((await life.outcome()).kind, "failed");
  assert.equal((await life.drover.task("t")).state, "cancelled", "a webhook that is refused changes nothing");
  await life.settle();
  await life.drover.retry("t");
  assert.equal((await life.outcome()).kind, "delivered");
  await life.clock.advance(3_600_000);
  assert.equal(hook.received.length, 2);
  assert.match(events(hook).join(), /^t:\d+ task\.cancelled,t:\d+ task\.failed$/);
  assert.equal(new Set(events(hook)).size, 2);
});

test("what was not delivered when the server stopped is delivered by the next", LIMIT, async () => {
  await using place = await directory();
  let isUp = false;
  await using hook = await target((response) => void (isUp && response.end()));
  {
    await using first = await live(place.data, AT);
    await first.drover.worker({ slots: 10 }, () => "done");
    for (let index = 0; index < 5; index++)
      await first.drover.submit({ id: `t${index}`, agentId: "ann", action: "x", callbackUrl: hook.url });
    await hook.count(4);
    // The fifth has its turn only when one of the others was answered: that it is over, its webhook does not tell.
    await first.drover.wait("t4");
    await first.webhooks.stop();
    assert.equal([...first.drover.callbacks.pending()].length, 5);
  }
  isUp = true;
  const before = hook.received.length;
  await using second = await live(place.data, AT + 1000);
  for (let index = 0; index < 5; index++) assert.equal((await second.outcome()).kind, "delivered");
  const again = events(hook).slice(before) as string[];
  assert.deepEqual(
    again.map((event) => event.replace(/:\d+/, "")),
    [0, 1, 2, 3, 4].map((index) => `t${index} task.done`),
  );
  assert.ok(
    events(hook)
      .slice(0, before)
      .every((event) => again.includes(event as string)),
    "under the same ids",
  );
  await second.settle();
  assert.deepEqual([...second.drover.callbacks.pending()], []);
});

test("a target that fails three times gets it at the fourth; one that hangs holds up nobody", LIMIT, async () => {
  await using place = await directory();
  await using flaky = await target((response, count) => void response.writeHead(count <= 3 ? 500 : 200).end());
  await using hangs = await target(() => {});
  await using life = await live(place.data, AT);
  await life.drover.worker({ slots: 50 }, () => "done");
  for (let index = 0; index < 30; index++)
    await life.drover.submit({ id: `h${index}`, agentId: "ann", action: "x", callbackUrl: hangs.url });
  await hangs.count(4);
  await life.drover.submit({ id: "flaky", agentId: "ann", action: "x", callbackUrl: flaky.url });
  for (const kind of ["retried", "retried", "retried", "delivered"]) {
    let outcome = await life.outcome();
    while (outcome.taskId !== "flaky") outcome = await life.outcome();
    assert.equal(outcome.kind, kind);
    await life.clock.advance(outcome.restMs ?? 0);
  }
  assert.equal(new Set(events(flaky)).size, 1);
  assert.equal((await life.drover.task("h0")).state, "done");
});

test("P18 a rejected task is told too", LIMIT, async () => {
  await using place = await directory();
  await using hook = await target((response) => void response.end());
  await using life = await live(place.data, AT, { scheduler: { maxQueue: 1 } });
  await life.drover.submit({ id: "first", agentId: "ann", action: "x", callbackUrl: hook.url });
  const body = { id: "second", agentId: "ann", action: "x", callbackUrl: hook.url };
  await assert.rejects(life.drover.submit(body), { code: "queue_full" });
  life.webhooks.rejected({ ...(await life.drover.task("second")), callbackUrl: hook.url });
  assert.equal((await life.outcome()).event, "task.rejected");
  assert.deepEqual(events(hook), ["second:rejected:2026-01-31T12:00:00.000Z task.rejected"]);
});
