import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { callsIn, idIn, names, serves, story, submitted, task, together } from "../../test/kits/gather-story.ts";
import {
  answers,
  type Heard,
  losesTheAnswer,
  neverAnswers,
  type Step,
  startScript,
} from "../../test/kits/script-server.ts";
import { fewTurns, until } from "../../test/kits/waits.ts";
import type { BulkCall } from "../protocol/index.ts";
import { createClient } from "./client.ts";
import { ClientError } from "./client-error.ts";
// Loaded by clients when calls first meet: here that is to take a few turns only.
import "./gather.ts";

const refusal = (status: number, code: string, more: object = {}): object => ({
  status,
  body: { error: `no: ${code}`, code, ...more },
});

const pathsOf = (heard: readonly Heard[]): string[] => heard.map(({ url }) => url);
const failed = (promise: Promise<unknown>): Promise<ClientError> =>
  promise.then(
    () => assert.fail("it did not fail"),
    (error: ClientError) => error,
  );

test("one call alone is the request it is, and what comes while it is out goes together and in order", () =>
  story([serves()], async ({ client, heard }) => {
    const ids = names(50);
    assert.deepEqual(await together(client, ids), ids.map(submitted));
    assert.deepEqual(pathsOf(heard), ["/tasks", "/bulk"]);
    assert.deepEqual(heard.flatMap(callsIn).map(idIn), ids);
    await client.submit({ ...task, id: "alone" });
    assert.equal(heard.at(-1)?.url, "/tasks");
  }));

test("calls of every kind that may travel do, each as it would go alone", () =>
  story([serves()], async ({ client, heard }) => {
    await Promise.all([
      client.submit({ ...task, id: "first" }),
      client.submit({ ...task, id: "t" }),
      client.submitBatch({ agentId: "bob", tasks: [{ action: "a", id: "b" }] }),
      client.cancel("é/1", { reason: "no" }),
      client.askPermit({ gate: "g", id: "p" }),
      client.settlePermit("p", { ok: false }),
      client.dropPermit("p", { session: "s" }),
      client.task("t"),
      client.askPermit({ gate: "g", id: "held", waitMs: 5 }),
      client.cancel("timed", { timeoutMs: 5000 }),
    ]);
    const bulk = heard.find(({ url }) => url === "/bulk") as Heard;
    assert.deepEqual(callsIn(bulk), [
      { call: "submit", body: { ...task, id: "t" } },
      { call: "submitBatch", body: { agentId: "bob", tasks: [{ action: "a", id: "b" }] } },
      { call: "cancel", id: "é/1", body: { reason: "no" } },
      { call: "askPermit", body: { gate: "g", id: "p" } },
      { call: "settlePermit", id: "p", body: { ok: false } },
      { call: "dropPermit", id: "p", query: { session: "s" } },
    ]);
    assert.deepEqual(pathsOf(heard).toSorted(), ["/bulk", "/permits", "/tasks", "/tasks/t", "/tasks/timed/cancel"]);
  }));

test("one that is refused among many is refused alone, in the server's words", () =>
  story(
    [serves((call) => (idIn(call) === "t3" ? refusal(409, "conflict", { details: { taskId: "t3" } }) : undefined))],
    async ({ client, heard }) => {
      const ended = await Promise.allSettled(names(6).map((id) => client.submit({ ...task, id })));
      assert.deepEqual(
        ended.map(({ status }) => status === "fulfilled"),
        [true, true, true, false, true, true],
      );
      const { reason } = ended[3] as PromiseRejectedResult;
      assert.ok(reason instanceof ClientError);
      assert.deepEqual([reason.status, reason.code, reason.message], [409, "conflict", "no: conflict"]);
      assert.deepEqual(reason.details, { taskId: "t3" });
      assert.equal(heard.length, 2);
    },
  ));

test("back-pressure in the middle: what found no room rests as long as it is told, and goes again under its id", () => {
  let isFull = true;
  const told = (call: BulkCall): object | undefined => {
    if (!isFull || !["t2", "t4"].includes(idIn(call))) return undefined;
    if (idIn(call) === "t4") isFull = false;
    return { ...refusal(429, "queue_full", { retryable: true }), retryAfterS: 7 };
  };
  return story([serves(told)], async ({ client, heard, rests }) => {
    const ids = names(6);
    assert.deepEqual(await together(client, ids), ids.map(submitted));
    assert.deepEqual(rests, [7000, 7000]);
    assert.deepEqual(heard.slice(2).flatMap(callsIn).map(idIn), ["t2", "t4"]);
  });
});

test("a bulk whose answer was lost is made again after one rest, in its order and each call under the same id", () =>
  story([serves(), losesTheAnswer, serves()], async ({ client, heard, rests }) => {
    const answered = await Promise.all(Array.from({ length: 20 }, () => client.submit(task)));
    const [, lost, ...again] = heard;
    const ids = callsIn(lost as Heard).map(idIn);
    assert.equal(new Set(ids).size, 19);
    assert.deepEqual(
      again.map((one) => callsIn(one).map(idIn)),
      [ids],
    );
    assert.deepEqual(answered.slice(1), ids.map(submitted));
    assert.equal(rests.length, 19);
    assert.equal(new Set(rests).size, 1);
  }));

test("a cancel whose answer was lost in a bulk has worked, if the task is cancelled when it is asked again", () => {
  const isCancelled = refusal(409, "conflict", { details: { state: "cancelled" } });
  const step: Step = (response, heard) =>
    heard.url === "/bulk"
      ? serves(() => isCancelled)(response, heard)
      : answers(409, (isCancelled as { body: object }).body)(response, heard);
  return story([serves(), losesTheAnswer, step], async ({ client }) => {
    const [, ...ended] = await Promise.all([client.submit(task), client.cancel("a"), client.cancel("b")]);
    assert.deepEqual(ended, [
      { status: "cancelled", taskId: "a" },
      { status: "cancelled", taskId: "b" },
    ]);
  });
});

for (const status of [404, 405])
  test(`a server that does not know bulk (${status}) is asked one by one, and not for it again`, () => {
    const step: Step = (response, heard) =>
      heard.url === "/bulk"
        ? answers(status, { error: "nothing is there", code: "x" })(response, heard)
        : serves()(response, heard);
    return story([step], async ({ client, heard }) => {
      const ids = names(5);
      assert.deepEqual(await together(client, ids), ids.map(submitted));
      assert.deepEqual(await together(client, ids), ids.map(submitted));
      assert.equal(pathsOf(heard).filter((url) => url === "/bulk").length, 1);
      assert.equal(heard.length, 11);
    });
  });

const late = [
  { how: "the first of a client", isWarm: false, knowsBulk: true },
  { how: "one whose answer is late", isWarm: true, knowsBulk: true },
  { how: "one of a server that does not know bulk", isWarm: true, knowsBulk: false },
];
for (const { how, isWarm, knowsBulk } of late)
  test(`a call waits for the answer of one that it names, and no other does for long: ${how}`, (t) => {
    const held = Promise.withResolvers<() => void>();
    const step: Step = (response, heard) => {
      if (heard.url === "/bulk" && !knowsBulk) answers(404, { error: "nothing is there", code: "x" })(response, heard);
      else if (callsIn(heard).some((call) => idIn(call) === "A")) held.resolve(() => serves()(response, heard));
      else serves()(response, heard);
    };
    return story([step], async ({ client, heard }) => {
      if (isWarm) await together(client, names(3));
      const first = client.submit({ ...task, id: "A" });
      const answerA = await held.promise;
      t.mock.timers.enable({ apis: ["setTimeout"] });
      const enough = new AbortController();
      const made = [
        first,
        client.submit({ ...task, id: "B", needs: { first: "A" } }),
        client.submitBatch({ agentId: "bob", tasks: [{ action: "x", id: "C", parent: "B" }, { action: "y" }] }),
        client.cancel("A", { timeoutMs: 5000 }),
      ];
      const given = client.submit({ ...task, id: "D", needs: ["A"] }, { signal: enough.signal });
      const other = client.submit({ ...task, id: "other" });
      await fewTurns();
      t.mock.timers.tick(1000);
      await other;
      const sent = (): string => JSON.stringify(heard.map(({ url, body }) => [url, body]));
      assert.doesNotMatch(sent(), /"B"|"C"|cancel/);
      enough.abort(new Error("enough"));
      await assert.rejects(given, /^Error: enough$/);
      answerA();
      await Promise.all(made);
      assert.match(sent(), /"B".*"C"/);
      assert.match(sent(), /cancel/);
      assert.doesNotMatch(sent(), /"D"/);
    });
  });

test("a task does not come before the one it needs, whichever of them rests for longer", async () => {
  await using server = await startScript(serves(), losesTheAnswer, serves());
  const resting: (() => void)[] = [];
  const rest = (): Promise<void> => new Promise((resolve) => resting.push(resolve));
  const client = createClient({ url: server.url, rest });
  const made = together(client, ["first", "A", "other"]);
  const last = client.submit({ ...task, id: "B", needs: ["A"] });
  await until("they rest", () => resting.length >= 2);
  for (const goOn of resting.toReversed()) goOn();
  await Promise.all([made, last]);
  const ids = server.heard.slice(2).flatMap(callsIn).map(idIn);
  assert.ok(ids.indexOf("A") < ids.indexOf("B"), ids.join());
});

test("a bulk that is too large as a whole is asked for one by one, and the next are smaller", () => {
  const isLarge = ({ url, body }: Heard): boolean => url === "/bulk" && JSON.stringify(body).length > 150_000;
  const step: Step = (response, heard) =>
    (isLarge(heard) ? answers(413, { error: "large", code: "too_large" }) : serves())(response, heard);
  return story([step], async ({ client, heard }) => {
    const large = (id: string): Promise<unknown> =>
      client.submit({ ...task, id, params: { text: "x".repeat(60_000) } });
    for (const ids of [names(5), names(5)]) assert.equal((await Promise.all(ids.map(large))).length, 5);
    assert.equal(heard.filter(isLarge).length, 1);
  });
});

const largestOf = (heard: readonly Heard[]): number => Math.max(...heard.map((one) => callsIn(one).length));
const refused = answers(413, { error: "large", code: "too_large" });

test("a call that is too large by itself makes no bulk smaller", () => {
  const step: Step = (response, heard) =>
    (JSON.stringify(heard.body).length > 150_000 ? refused : serves())(response, heard);
  return story([step], async ({ client, heard }) => {
    const large = { ...task, params: { text: "x".repeat(200_000) } };
    for (let round = 0; round < 8; round++) {
      const [, , alone] = [client.submit(task), client.submit(task), client.submit(large)];
      assert.equal((await failed(alone)).code, "too_large");
    }
    const before = heard.length;
    await together(client, names(257));
    assert.equal(largestOf(heard.slice(before)), 256);
  });
});

test("however often bulks were too large, what is small goes together once they are taken", () => {
  let isStrict = true;
  const step: Step = (response, heard) => (isStrict && heard.url === "/bulk" ? refused : serves())(response, heard);
  return story([step], async ({ client, heard }) => {
    for (let round = 0; round < 20; round++) await together(client, names(4));
    isStrict = false;
    const before = heard.length;
    await together(client, names(9));
    assert.ok(largestOf(heard.slice(before)) >= 8);
  });
});

test("what refuses or breaks the whole is told to each, and is tried again where that helps", () =>
  story(
    [
      serves(),
      answers(401, { error: "no: unauthorized", code: "unauthorized" }),
      answers(200, { answers: [] }),
      answers(200, null),
    ],
    async ({ client, rests }) => {
      const [first, ...others] = names(4).map((id) => client.submit({ ...task, id }));
      await first;
      for (const other of others) assert.equal((await failed(other)).code, "unauthorized");
      for (const _ of ["no answers", "null"]) {
        const more = names(3).map((id) => client.submit({ ...task, id }));
        for (const one of more) assert.equal((await failed(one)).code, "bad_answer");
      }
      assert.deepEqual(rests, []);
    },
  ));

for (const body of [null, undefined, "yes", 7])
  test(`an item of a bulk that is no answer (${String(body)}) is a bad one, as it is of a call alone`, () =>
    story([serves(() => ({ status: 202, body }))], async ({ client }) => {
      const wait = { gate: "g", waitMs: 5000 };
      const alone = [client.submit(task), client.askPermit(wait)];
      const others = [client.submit(task), client.submit(task), client.askPermit(wait)].map(failed);
      await Promise.all(alone);
      for (const other of others) assert.equal((await other).code, "bad_answer");
    }));

test("two bulks may be out, the second names the first, and a third waits; nothing follows what is no bulk", (t) => {
  const held: (() => void)[] = [];
  const holds: Step = (response, heard) => void held.push(() => serves()(response, heard));
  return story([serves(), serves(), holds], async ({ client, heard: all }) => {
    await together(client, ["x", "y", "z"]);
    const heard = (): readonly Heard[] => all.slice(2);
    const calls: Promise<unknown>[] = [];
    const make = async (...ids: string[]): Promise<void> => {
      calls.push(...ids.map((id) => client.submit({ ...task, id })));
      await fewTurns();
    };
    const areOut = (count: number): Promise<unknown> => until(`${count} have left`, () => heard().length === count);
    // What is late goes without an answer: no timer rings here.
    t.mock.timers.enable({ apis: ["setTimeout"] });
    await make("alone");
    await areOut(1);
    await make("a", "b");
    assert.deepEqual(pathsOf(heard()), ["/tasks"]);
    held.shift()?.();
    await areOut(2);
    await make("c");
    await areOut(3);
    await make("d");
    await make("e");
    assert.deepEqual(pathsOf(heard()), ["/tasks", "/bulk", "/bulk"]);
    held.shift()?.();
    await areOut(4);
    for (const release of held) release();
    await Promise.all(calls);
    const places = heard().map(({ headers }) => String(headers["drover-bulk"] ?? "").split(" "));
    const [name] = places[1] as [string];
    assert.match(name, /^[0-9a-f-]{36}$/);
    assert.deepEqual(places, [[""], [name, "5"], [name, "6", "5"], [name, "8", "6"]]);
    assert.deepEqual(
      heard().map((one) => callsIn(one).map(idIn)),
      [["alone"], ["a", "b"], ["c"], ["d", "e"]],
    );
  });
});

test("two bulks whose answers were lost are made again, each of their calls once", () =>
  story([serves(), losesTheAnswer, losesTheAnswer, serves()], async ({ client, heard }) => {
    await together(client, names(300));
    const sent = heard.slice(3).flatMap(callsIn).map(idIn);
    assert.deepEqual(sent.toSorted(), names(300).slice(1).toSorted());
  }));

test("a bulk is bounded in calls and in size", () =>
  story([serves()], async ({ client, heard }) => {
    const ids = names(600);
    assert.equal((await together(client, ids)).length, 600);
    const numberOf = ({ headers }: Heard): number => Number(String(headers["drover-bulk"] ?? "").split(" ")[1] ?? 0);
    const inOrder = heard.toSorted((left, right) => numberOf(left) - numberOf(right));
    assert.deepEqual(
      inOrder.map((one) => callsIn(one).length),
      [1, 256, 256, 87],
    );
    assert.deepEqual(inOrder.flatMap(callsIn).map(idIn), ids);
    const text = "x".repeat(100_000);
    await Promise.all(names(6).map((id) => client.submit({ ...task, id, params: { text } })));
    assert.deepEqual(
      heard.slice(4).map((one) => callsIn(one).length),
      [2, 2, 2],
    );
  }));

test("a request without an answer holds up what comes while it is new, and nothing later", (t) =>
  story([serves(), serves(), neverAnswers, serves()], async ({ client, heard }) => {
    await together(client, names(3));
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const enough = new AbortController();
    const stuck = client.submit({ ...task, id: "stuck" }, { signal: enough.signal });
    await until("it is out", () => heard.length === 3);
    const next = client.submit({ ...task, id: "next" });
    await fewTurns();
    t.mock.timers.tick(999);
    await fewTurns();
    assert.equal(heard.length, 3, "it went alone, and has no number that the next could name");
    t.mock.timers.tick(1);
    await next;
    // No timer rings any more.
    assert.deepEqual(await client.submit({ ...task, id: "later" }), submitted("later"));
    enough.abort();
    await assert.rejects(stuck);
  }));

test("what leaves without waiting for an answer names the last bulk all the same, and is begun behind it", (t) => {
  const held: (() => void)[] = [];
  const holds: Step = (response, heard) => void held.push(() => serves()(response, heard));
  return story([serves(), serves(), holds], async ({ client, heard: all }) => {
    await together(client, ["x", "y", "z"]);
    const bulks = (): readonly Heard[] => all.slice(2);
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const calls: Promise<unknown>[] = [];
    for (let count = 1; count <= 5; count++) {
      calls.push(client.submit({ ...task, id: `a${count}` }), client.submit({ ...task, id: `b${count}` }));
      await fewTurns();
      t.mock.timers.tick(100);
      await until(`${count} have left`, () => bulks().length === count);
    }
    for (const release of held) release();
    await Promise.all(calls);
    const places = bulks().map(({ headers }) => String(headers["drover-bulk"]).split(" ").slice(1).join(" after "));
    assert.deepEqual(places, ["4", "6 after 4", "8 after 6", "10 after 8", "12 after 10"]);
  });
});

test("a server that did not know a bulk is asked for one again after a minute", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const lost = answers(404, { error: "no: not_found", code: "not_found" });
  return story([serves(), lost, serves()], async ({ client, heard }) => {
    await together(client, names(4));
    assert.deepEqual(pathsOf(heard), ["/tasks", "/bulk", "/tasks", "/tasks", "/tasks"]);
    t.mock.timers.tick(59_999);
    await together(client, names(4));
    assert.ok(!pathsOf(heard).slice(2).includes("/bulk"));
    t.mock.timers.tick(1);
    const before = heard.length;
    await together(client, names(4));
    assert.deepEqual(pathsOf(heard).slice(before), ["/bulk"]);
  });
});

test("of a call that is over nothing is left on the signal it was given, and what was given up is not sent", () =>
  story([serves()], async ({ client, heard }) => {
    const [given, enough] = [new AbortController(), new AbortController()];
    const { signal } = given;
    await Promise.all([...names(3), "x"].map((id) => client.submit({ ...task, id }, { signal })));
    const last = [client.submit(task, { signal }), client.submit(task, { signal })];
    const gone = client.submit({ ...task, id: "gone" }, { signal: enough.signal });
    enough.abort(new Error("enough"));
    await assert.rejects(gone, /^Error: enough$/);
    await Promise.all(last);
    assert.ok(!heard.flatMap(callsIn).map(idIn).includes("gone"));
    for (const one of [given, enough]) assert.deepEqual(getEventListeners(one.signal, "abort"), []);
  }));

test("a caller that gives up ends its own call: what had not left is not sent, and no other is touched", () =>
  story([serves(), neverAnswers, serves()], async ({ client, heard, rests }) => {
    const [early, late] = [new AbortController(), new AbortController()];
    const reason = new Error("enough");
    const first = client.submit({ ...task, id: "first" });
    const gone = client.submit({ ...task, id: "gone" }, { signal: early.signal });
    const left = client.submit({ ...task, id: "left" }, { signal: late.signal });
    const other = client.submit({ ...task, id: "other" });
    early.abort(reason);
    await assert.rejects(gone, reason);
    await first;
    await until("the bulk is out", () => heard.length === 2);
    late.abort(reason);
    await assert.rejects(left, reason);
    // The bulk gets no answer. What comes now does not wait for it for long.
    assert.deepEqual(await client.submit({ ...task, id: "next" }), submitted("next"));
    assert.deepEqual(rests, [], "no call of the bulk has been given up by then");
    assert.deepEqual(callsIn(heard[1] as Heard).map(idIn), ["left", "other"]);
    void other.catch(() => {});
  }));

test("what all callers of a bulk give it up with is no word of the server", () =>
  story([serves(), neverAnswers, serves()], async ({ client, heard }) => {
    const enough = new AbortController();
    const first = client.submit({ ...task, id: "first" });
    const given = names(2).map((id) => failed(client.submit({ ...task, id }, { signal: enough.signal })));
    await first;
    await until("the bulk is out", () => heard.length === 2);
    enough.abort(new ClientError("not_found", "another task is not there", { status: 404 }));
    for (const one of given) assert.equal((await one).message, "another task is not there");
    await together(client, names(4));
    assert.deepEqual(
      heard.slice(2).map(({ url }) => url),
      ["/bulk"],
    );
  }));

test("a client that is closed sends what has gathered, waits for its answers, and takes no more", () =>
  story([serves()], async ({ client, heard }) => {
    const made = together(client, names(10));
    const closed = client.close();
    const refused = await failed(client.submit(task));
    assert.deepEqual([refused.code, refused.status, refused.retryable], ["closed", 0, false]);
    await closed;
    assert.equal(heard.flatMap(callsIn).length, 10);
    assert.equal((await made).length, 10);
    await client.close();
  }));

test("a client that is closed while answers are lost asks again, and is closed when all are in", () =>
  story([serves(), losesTheAnswer, losesTheAnswer, serves()], async ({ client, heard }) => {
    const ids = names(10);
    const made = together(client, ids);
    await client.close();
    assert.deepEqual(await made, ids.map(submitted));
    assert.deepEqual([...new Set(heard.flatMap(callsIn).map(idIn))].toSorted(), ids);
  }));

test("a client that is closed when no server is left tells each of its calls so, and is closed then", async () => {
  const server = await startScript(losesTheAnswer);
  const client = createClient({ url: server.url, rest: async () => {} });
  const made = Promise.allSettled(names(10).map((id) => client.submit({ ...task, id })));
  const closed = client.close();
  await server[Symbol.asyncDispose]();
  await closed;
  const codes = (await made).map((one) => (one.status === "rejected" ? (one.reason as ClientError).code : "in"));
  assert.deepEqual(
    codes,
    names(10).map(() => "network"),
  );
});

test("a program's own fetch carries what travels together", async () => {
  const seen: string[] = [];
  await using server = await startScript(serves());
  const client = createClient({
    url: server.url,
    fetch: (url, request) => {
      seen.push(new URL(url).pathname);
      return globalThis.fetch(url, request);
    },
  });
  await together(client, names(3));
  assert.deepEqual(seen, ["/tasks", "/bulk"]);
});

test("a fetch that took the place of the global one before the first call is used until it is taken back", async () => {
  await using server = await startScript(answers(200, {}));
  const own = globalThis.fetch;
  let count = 0;
  globalThis.fetch = (...given) => {
    count++;
    return own(...given);
  };
  try {
    const another = "./http-fetch.ts?loaded-late";
    const { usualFetch } = (await import(another)) as typeof import("./http-fetch.ts");
    const ask = async () =>
      (await usualFetch(server.url, { headers: {}, redirect: "manual", signal: new AbortController().signal })).text();
    await ask();
    assert.equal(count, 1);
    globalThis.fetch = own;
    const carried: unknown[] = [];
    const onRequest = process.getBuiltinModule("node:diagnostics_channel").channel("http.client.request.start");
    const note = (message: unknown): void => void carried.push(message);
    onRequest.subscribe(note);
    await ask();
    onRequest.unsubscribe(note);
    assert.deepEqual([count, carried.length], [1, 1], "that of Node itself is known when it is back");
  } finally {
    globalThis.fetch = own;
  }
});

test("a fetch that is put in the place of the global one is used from then on", async () => {
  await using server = await startScript(serves());
  const client = createClient({ url: server.url });
  await client.submit(task);
  const own = globalThis.fetch;
  let count = 0;
  globalThis.fetch = (...given) => {
    count++;
    return own(...given);
  };
  try {
    await client.submit(task);
  } finally {
    globalThis.fetch = own;
  }
  await client.submit(task);
  assert.equal(count, 1);
});
