import assert from "node:assert/strict";
import type { IncomingMessage, ServerResponse } from "node:http";
import { test } from "node:test";
import { DroverError } from "../engine/base/index.ts";
import { type Caller, ServerRefusal } from "../http/index.ts";
import type { BulkAnswer, BulkBody, BulkItem } from "../protocol/index.ts";
import { createHandClock, nextTurn } from "../std/index.ts";
import { type BulkParts, bulkHandler } from "./bulk.ts";
import { createBulkOrder } from "./bulk-order.ts";
import { Decided } from "./handlers/handler.ts";
import { problemOf } from "./problem.ts";

const admin: Caller = { role: "admin", projects: null, agentId: null };
const exchange = {
  caller: admin,
  request: { headers: {} } as IncomingMessage,
  response: {} as ServerResponse,
  headers: [] as string[],
};
const submit = (id: string): object => ({ call: "submit", body: { id, agentId: "a", action: "x" } });
const cancel = (id: string): object => ({ call: "cancel", id });

/** Handlers that note what they are asked; the rest of the server is as the story needs it. */
async function answersOf(
  calls: readonly object[],
  parts: Partial<BulkParts> = {},
  handlers: Readonly<Record<string, unknown>> = {},
): Promise<readonly BulkItem[]> {
  const done = { submit: async () => ({}), cancel: async () => ({}), ...handlers };
  const { bulk } = bulkHandler({
    handlers: done as unknown as BulkParts["handlers"],
    phase: { check: () => {}, turnover: () => 0 },
    problemOf,
    onBug: () => assert.fail("a bug"),
    elapsed: () => 0,
    load: () => ({ queued: 0, inFlight: 0 }),
    rest: () => nextTurn(),
    order: { turn: async () => () => {} },
    ...parts,
  });
  const told = (await bulk({ body: { calls } as unknown as BulkBody }, exchange)) as BulkAnswer;
  return told.answers;
}

test("while the server shuts down what begins something is refused, and what ends something is done", async () => {
  const closed = new ServerRefusal("closed", "the server is shutting down", undefined, 4000);
  const check = (name: string): void => {
    if (name === "submit") throw closed;
  };
  const [begun, ended] = await answersOf([submit("a"), cancel("b")], { phase: { check, turnover: () => 0 } });
  assert.deepEqual([begun?.status, begun?.retryAfterS, ended?.status], [503, 4, 200]);
});

test("a bug in one call is told as one, is in the log, and fails no other", async () => {
  const bugs: unknown[] = [];
  const onBug = (error: unknown, route: string): void => void bugs.push([String(error), route]);
  const broken = async (): Promise<never> => {
    throw new Error("secret");
  };
  const [bad, good] = await answersOf([submit("a"), cancel("b")], { onBug }, { submit: broken });
  assert.deepEqual([bad?.status, good?.status], [500, 200]);
  assert.doesNotMatch(JSON.stringify(bad), /secret/);
  assert.deepEqual(bugs, [["Error: secret", "/bulk submit"]]);
});

test("the headers of one call are not those of the whole", async () => {
  const push = async (_: unknown, { headers: own }: typeof exchange): Promise<object> => {
    own.push("retry-after", "1");
    return {};
  };
  await answersOf([submit("a")], {}, { submit: push });
  assert.deepEqual(exchange.headers, []);
});

test("what names something that an earlier call is still making waits for it, and nothing else waits", async () => {
  let made = Promise.withResolvers<object>();
  const begun: string[] = [];
  const begin = (id: string): void => void begun.push(id);
  const handlers = {
    submit({ body: { id } }: { body: { id: string } }): object {
      begin(id);
      return id === "a" ? made.promise : {};
    },
    submitBatch({ body: { tasks } }: { body: { tasks: { id: string }[] } }): void {
      for (const { id } of tasks) begin(id);
    },
    cancel: ({ params: { id } }: { params: { id: string } }) => begin(`cancel ${id}`),
  };
  const batch = (task: object): object => ({ call: "submitBatch", body: { agentId: "a", tasks: [task] } });
  const leaning: Readonly<Record<string, object>> = {
    "cancel a": cancel("a"),
    list: { call: "submit", body: { id: "list", agentId: "a", action: "x", needs: ["a"] } },
    named: { call: "submit", body: { id: "named", agentId: "a", action: "x", needs: { before: "a" } } },
    child: { call: "submit", body: { id: "child", agentId: "a", action: "x", parent: "a" } },
    item: batch({ id: "item", action: "x", needs: ["a"] }),
  };
  for (const [name, call] of Object.entries(leaning)) {
    begun.length = 0;
    made = Promise.withResolvers<object>();
    const answering = answersOf([submit("a"), submit("free"), call], {}, handlers);
    await new Promise(setImmediate);
    assert.deepEqual(begun, ["a", "free"], name);
    made.resolve({});
    await answering;
    assert.deepEqual(begun, ["a", "free", name]);
  }
});

test("a call of a bulk may not wait for its grant: all the others would wait with it", async () => {
  const ask = (waitMs: number): object => ({ call: "askPermit", body: { gate: "g", id: "p", waitMs } });
  const [waits, asks] = await answersOf([ask(1), ask(0)], {}, { askPermit: () => ({}) });
  assert.deepEqual([waits?.status, asks?.status], [400, 200]);
  assert.match(JSON.stringify(waits), /waitMs/);
});

test("what is decided is told when it is durable, and refused each by itself if it never is", async () => {
  const full = new DroverError("queue_full", "no room");
  const durable = Promise.withResolvers<void>();
  const submitted =
    (settled: () => Promise<void>) =>
    ({ body: { id } }: { body: { id: string } }): Decided<object> =>
      new Decided(id === "b" ? full : { id }, settled);
  const calls = [submit("a"), submit("b"), cancel("c")];
  let isTold = false;
  const telling = answersOf(calls, {}, { submit: submitted(() => durable.promise) }).then((answers) => {
    isTold = true;
    return answers;
  });
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(isTold, false);
  durable.resolve();
  const told = (await telling).map(({ status, body }) => [status, (body as { id?: string }).id]);
  assert.deepEqual(told, [
    [202, "a"],
    [429, undefined],
    [200, undefined],
  ]);
  const never = (): Promise<void> => Promise.reject(new DroverError("log_failed", "the disk is gone"));
  const refused = (await answersOf(calls, {}, { submit: submitted(never) })).map(({ status }) => status);
  assert.deepEqual(refused, [503, 503, 200]);
});

test("calls are begun in their order, and others get a turn between them when that takes long", async () => {
  const begun: string[] = [];
  const note = async ({ body: { id } }: { body: { id: string } }): Promise<object> => {
    begun.push(id);
    return {};
  };
  let now = 0;
  setImmediate(() => begun.push("another request"));
  const ids = ["a", "b", "c", "d", "e", "f"];
  await answersOf(ids.map(submit), { elapsed: () => now++ }, { submit: note });
  assert.deepEqual(
    begun.filter((id) => ids.includes(id)),
    ids,
  );
  const at = begun.indexOf("another request");
  assert.ok(at > 0 && at < begun.length - 1, begun.join());
});

test("between its slices a bulk lets others go first while there are any, though not for ever", async () => {
  /** After how many turns the second call is begun, if in so many of them another request was begun or answered. */
  async function turnsUntilNext(busyTurns: number, queued = 0): Promise<number> {
    let [now, turns, isOver] = [0, 0, false];
    const count = (): void => {
      turns++;
      now++;
      if (!isOver) setImmediate(count);
    };
    const begunAt: number[] = [];
    await answersOf(
      [submit("a"), submit("b")],
      {
        elapsed: () => now,
        phase: { check: () => {}, turnover: () => Math.min(turns, busyTurns) },
        load: () => ({ queued, inFlight: 500 }),
      },
      {
        submit: () => {
          if (begunAt.push(turns) === 1) setImmediate(count);
          // The first takes a whole slice.
          now += 5;
          return {};
        },
      },
    );
    isOver = true;
    return (begunAt[1] ?? 0) - (begunAt[0] ?? 0);
  }
  assert.equal(await turnsUntilNext(0), 1, "nobody else is there");
  assert.equal(await turnsUntilNext(4), 5, "one turn behind the last in which there was somebody");
  assert.equal(await turnsUntilNext(1000), 10, "somebody is there all the time: it has waited long enough");
  assert.equal(await turnsUntilNext(4, 2000), 5, "so much is begun in a moment");
  assert.equal(await turnsUntilNext(4, 2001), 10, "the workers have enough to do, and all of the time is theirs");
  assert.equal(await turnsUntilNext(0, 2001), 1, "unless they do not ask for any of it");
});

test("a bulk that names another is begun behind all calls of that one, whichever comes first", async () => {
  const begun: string[] = [];
  const order = createBulkOrder(createHandClock({ at: 0 }));
  let elapsed = 0;
  const { bulk } = bulkHandler({
    handlers: { submit: ({ body }: { body: { id: string } }) => void begun.push(body.id) } as never,
    ...{ phase: { check: () => {}, turnover: () => 0 }, problemOf, onBug: () => assert.fail("a bug"), order },
    // Others have a turn after each call.
    elapsed: () => (elapsed += 10),
    load: () => ({ queued: 0, inFlight: 0 }),
    rest: () => assert.fail("nobody has enough to do"),
  });
  const send = (place: string, ...ids: string[]): unknown =>
    bulk(
      { body: { calls: ids.map(submit) } as unknown as BulkBody },
      {
        ...exchange,
        request: { headers: { "drover-bulk": place } } as unknown as IncomingMessage,
      },
    );
  await Promise.all([send("ann 2 1", "c", "d"), send("ann 1", "a", "b"), send("ann 3 2", "e")]);
  assert.deepEqual(begun, ["a", "b", "c", "d", "e"]);
});

test("an answer says which bulk it is for, if that said it", async () => {
  for (const place of [undefined, "ann 2 1"]) {
    const headers: string[] = [];
    const { bulk } = bulkHandler({
      ...{ handlers: {}, phase: { check: () => {}, turnover: () => 0 }, problemOf, onBug: () => {} },
      ...{ elapsed: () => 0, load: () => ({ queued: 0, inFlight: 0 }), rest: () => nextTurn() },
      order: { turn: async () => () => {} },
    } as never);
    const request = { headers: place === undefined ? {} : { "drover-bulk": place } } as unknown as IncomingMessage;
    await bulk({ body: { calls: [] } as unknown as BulkBody }, { ...exchange, request, headers });
    assert.deepEqual(headers, place === undefined ? [] : ["drover-bulk", place]);
  }
});

test("what a life decided that was over before it was durable is not told as done by the next", async () => {
  const over = async (): Promise<never> => {
    throw new DroverError("deposed", "another node leads; try again");
  };
  const lives = [over, async () => {}];
  const decide = (): Decided<object> => new Decided({}, lives.shift() as () => Promise<void>);
  const [lost, kept] = await answersOf([submit("a"), submit("b")], {}, { submit: decide });
  assert.deepEqual([lost?.status, kept?.status], [503, 202]);
});
