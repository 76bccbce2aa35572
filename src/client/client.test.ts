import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import {
  answers,
  answersHalf,
  losesTheAnswer,
  neverAnswers,
  type ScriptServer,
  type Step,
  startScript,
} from "../../test/kits/script-server.ts";
import { until } from "../../test/kits/waits.ts";
import { type Answered, CALLS, type CallName } from "../protocol/index.ts";
import { createHandClock, restFor } from "../std/index.ts";
import { type Client, createClient, type WaitOptions } from "./client.ts";
import { ClientError } from "./client-error.ts";
import { restAfter } from "./exchange.ts";
import type { Fetch } from "./fetch.ts";

const task = { agentId: "ann", action: "build" };
const submitted: Answered<"submit"> = {
  taskId: "t1",
  state: "queued",
  createdAt: "2026-01-31T12:00:00.000Z",
  position: 1,
};
const refusal = (code: string, more: object = {}): object => ({ error: `no: ${code}`, code, ...more });

type Story = { readonly client: Client; readonly server: ScriptServer; readonly rests: number[] };
/** A client that rests in no time and writes down how long it would have. */
async function story(steps: readonly Step[], told: (story: Story) => Promise<void>): Promise<void> {
  await using server = await startScript(...steps);
  const rests: number[] = [];
  const rest = async (ms: number, signal?: AbortSignal): Promise<void> => {
    rests.push(ms);
    signal?.throwIfAborted();
  };
  await told({ client: createClient({ url: server.url, rest, timeoutMs: 5000 }), server, rests });
}
const failsWith = async (promise: Promise<unknown>, wanted: Partial<ClientError>): Promise<ClientError> => {
  const error = await promise.then(
    () => assert.fail("it did not fail"),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof ClientError, String(error));
  for (const [key, value] of Object.entries(wanted)) assert.deepEqual(error[key as keyof ClientError], value, key);
  return error;
};

for (const waitMs of [1.5, -1, "5", 2 ** 40] as number[])
  test(`how long a call waits is for the server to refuse, and not for a timer: ${waitMs}`, () =>
    story([answers(400, refusal("bad_request")), answers(400, refusal("bad_request"))], async ({ client, server }) => {
      await failsWith(client.askPermit({ gate: "g", waitMs }), { code: "bad_request", message: "no: bad_request" });
      await failsWith(client.sync("w", { waitMs }), { code: "bad_request", message: "no: bad_request" });
      assert.deepEqual(
        server.heard.map(({ body }) => (body as { readonly waitMs: unknown }).waitMs),
        [waitMs, waitMs],
      );
    }));

test("a task whose answer was lost is submitted again under the same id, so it is one task", () =>
  story([losesTheAnswer, answersHalf, answers(202, submitted)], async ({ client, server, rests }) => {
    assert.deepEqual(await client.submit(task), submitted);
    const ids = server.heard.map(({ body }) => (body as { id: string }).id);
    assert.equal(ids.length, 3);
    assert.equal(new Set(ids).size, 1);
    assert.match(ids[0] ?? "", /^task_[0-9a-z]{16}$/);
    assert.equal(rests.length, 2);
  }));

test("an id the caller chose is kept", () =>
  story([answers(202, submitted)], async ({ client, server }) => {
    await client.submit({ ...task, id: "mine" });
    assert.deepEqual(server.heard[0]?.body, { ...task, id: "mine" });
  }));

test("every item of a batch, a worker and a permit get an id as well", () =>
  story([answers(202, {})], async ({ client, server }) => {
    await client.submitBatch({ agentId: "ann", tasks: [{ action: "a" }, { action: "b", id: "b" }] });
    await client.joinWorker({ slots: 2 });
    await client.askPermit({ gate: "anthropic/default" });
    const [batch, worker, permit] = server.heard.map(({ body }) => body as { id: string; tasks: { id: string }[] });
    assert.deepEqual(
      batch?.tasks.map(({ id }) => id.split("_")[0]),
      ["task", "b"],
    );
    assert.match(worker?.id ?? "", /^worker_/);
    assert.match(permit?.id ?? "", /^permit_/);
  }));

test("a list that may be a second old says so; nothing that changes something does", () =>
  story([answers(200, {})], async ({ client, server }) => {
    await client.projects({ maxAgeMs: 1999 });
    await client.projects({ maxAgeMs: 999 });
    await client.projects();
    await client.retry("t1", { maxAgeMs: 1000 });
    assert.deepEqual(
      server.heard.map(({ headers }) => headers["cache-control"]),
      ["max-age=1", undefined, undefined, undefined],
    );
  }));

test("a call that is not safe to repeat is not repeated after a lost answer", () =>
  story([losesTheAnswer, answers(202, submitted)], async ({ client, server }) => {
    await failsWith(client.retry("t1"), { code: "network", status: 0, retryable: false });
    assert.equal(server.heard.length, 1);
  }));

test("a plan is put once more after a lost answer, unless it is to begin anew each time", () =>
  story([losesTheAnswer, answers(202, {})], async ({ client, server }) => {
    await failsWith(client.plans.put("p", { tasks: {} }, { fresh: true }), { code: "network", retryable: false });
    assert.equal(server.heard.length, 1);
    await client.plans.put("p", { tasks: {} }, { fresh: false });
    assert.equal(server.heard.length, 2);
  }));

test("it is repeated where it never left: nobody listens", async () => {
  const server = await startScript(answers(200, {}));
  await server[Symbol.asyncDispose]();
  let rests = 0;
  const client = createClient({ url: server.url, retries: 2, rest: async () => void rests++ });
  const error = await failsWith(client.retry("t1"), { code: "network", retryable: true });
  assert.match(
    error.message,
    /^cannot reach http:\/\/127\.0\.0\.1:\d+ \(ECONNREFUSED\); is it running\? Start it with/,
  );
  assert.equal(rests, 2);
});

test("no room: waits as long as the server asks, then it is let in", () =>
  story(
    [
      answers(429, refusal("queue_full", { retryable: true, details: { queued: 5 } }), { "retry-after": "7" }),
      answers(503, refusal("overloaded", { retryable: true })),
      answers(202, submitted),
    ],
    async ({ client, rests }) => {
      assert.deepEqual(await client.submit(task), submitted);
      assert.equal(rests[0], 7000);
      assert.ok((rests[1] ?? 0) >= 200 && (rests[1] ?? 0) <= 400, String(rests[1]));
    },
  ));

test("tries are bounded, and the last refusal is the one the caller gets", () =>
  story(
    [answers(429, refusal("queue_full", { retryable: true, details: { maxQueue: 5 } }))],
    async ({ client, server, rests }) => {
      await failsWith(client.submit(task), {
        status: 429,
        code: "queue_full",
        retryable: true,
        details: { maxQueue: 5 },
      });
      assert.equal(server.heard.length, 5);
      assert.equal(rests.length, 4);
      await failsWith(client.submit(task, { retries: 0 }), { code: "queue_full" });
      assert.equal(server.heard.length, 6);
    },
  ));

test("a rest nobody would sit out is left to the caller", () =>
  story(
    [answers(429, refusal("backpressure", { retryable: true }), { "retry-after": "3600" })],
    async ({ client, rests }) => {
      await failsWith(client.submit(task), { code: "backpressure", retryAfterMs: 3_600_000 });
      assert.deepEqual(rests, []);
    },
  ));

test("what is wrong with the request is said at once and in the server's words", () =>
  story([answers(400, refusal("bad_request", { details: { field: "priority" } }))], async ({ client, server }) => {
    const error = await failsWith(client.submit(task), { status: 400, code: "bad_request", retryable: false });
    assert.equal(error.message, "no: bad_request");
    assert.deepEqual(error.details, { field: "priority" });
    assert.equal(server.heard.length, 1);
  }));

test("a cancel whose answer was lost has worked, if the task is cancelled when it is asked again", async () => {
  const isCancelled = answers(409, refusal("conflict", { details: { task: "t1", state: "cancelled" } }));
  await story([losesTheAnswer, isCancelled], async ({ client }) => {
    assert.deepEqual(await client.cancel("t1"), { status: "cancelled", taskId: "t1" });
  });
  await story([isCancelled], async ({ client }) => {
    await failsWith(client.cancel("t1"), { status: 409, code: "conflict" });
  });
  const isDone = answers(409, refusal("conflict", { details: { task: "t1", state: "done" } }));
  await story([losesTheAnswer, isDone], async ({ client }) => {
    await failsWith(client.cancel("t1"), { status: 409, code: "conflict" });
  });
});

test("what was to go and is gone after a lost answer has gone", () =>
  story([losesTheAnswer, answers(404, refusal("not_found"))], async ({ client }) => {
    assert.deepEqual(await client.leaveWorker("w1"), { status: "left", workerId: "w1" });
    await failsWith(client.leaveWorker("w1", { session: "s1" }), { code: "not_found" });
  }));

test("a server that says nothing is given up, and the caller's signal ends a call with its own reason", async () => {
  await story([neverAnswers], async ({ client }) => {
    await failsWith(client.task("t1", { timeoutMs: 20, retries: 1 }), { code: "timeout", status: 0, retryable: true });
    const reason = new Error("enough");
    const stop = new AbortController();
    const asked = client.task("t1", { signal: stop.signal });
    stop.abort(reason);
    await assert.rejects(asked, reason);
    await assert.rejects(client.task("t1", { signal: AbortSignal.abort(reason) }), reason);
  });
  const stop = new AbortController();
  await using server = await startScript(losesTheAnswer);
  const client = createClient({ url: server.url });
  const asked = client.task("t1", { signal: stop.signal, retries: 100 });
  stop.abort(new Error("while resting"));
  await assert.rejects(asked, /while resting/);
});

test("the time of a request lasts until its answer has been read, and is over then", async () => {
  const signals: AbortSignal[] = [];
  const fetch: Fetch = async (_, { signal }) => {
    signals.push(signal);
    const { promise: late, reject } = Promise.withResolvers<never>();
    signal.addEventListener("abort", () => reject(signal.reason));
    const text = (): Promise<string> => (signals.length === 1 ? Promise.resolve("{}") : late);
    return { status: 200, headers: new Headers(), body: null, text };
  };
  const client = createClient({ fetch });
  await client.task("t1", { timeoutMs: 20 });
  const error = await failsWith(client.task("t1", { timeoutMs: 40, retries: 0 }), { code: "timeout", retryable: true });
  assert.equal(error.message, "no answer from http://127.0.0.1:4747 within 40 ms");
  assert.equal((error.cause as DOMException).name, "TimeoutError");
  assert.deepEqual(
    signals.map(({ aborted }) => aborted),
    [false, true],
  );
});

test("a call that is refused before it is sent is a refusal of its promise, and holds up no close", () =>
  story([], async ({ client, server }) => {
    for (const body of [undefined, [], { ...task, params: { at: new Date(0) } }])
      await failsWith(client.submit(body as typeof task), { code: "bad_request", status: 0 });
    await client.close();
    await failsWith(client.submit(task), { code: "closed" });
    assert.deepEqual(server.heard, []);
  }));

test("waiting goes on over as many calls as it takes, and asks for no longer than it has", () =>
  story(
    [
      answers(200, { taskId: "t1", state: "running" }),
      losesTheAnswer,
      answers(200, { taskId: "t1", state: "done", result: 7 }),
    ],
    async ({ client, server }) => {
      assert.equal((await client.wait("t1")).result, 7);
      assert.deepEqual(
        server.heard.map(({ url }) => url),
        Array(3).fill("/tasks/t1/wait?timeoutMs=30000"),
      );
    },
  ));

test("waiting within a time ends with it", () =>
  story([answers(200, { taskId: "t1", state: "running" })], async ({ client }) => {
    const error = await failsWith(client.wait("t1", { withinMs: 0 }), { code: "timeout" });
    assert.equal(error.message, "task t1 is running after 0 ms");
  }));

const ended = { taskId: "t1", state: "done", result: 7, counts: {}, endedAt: "2026-01-31T12:00:00.000Z" };
/** A client whose server is away until so much time has passed; the time is that of its rests. */
function awayFor(t: TestContext, awayMs: number, retries?: number) {
  const clock = createHandClock({ at: 0 });
  t.mock.method(performance, "now", clock.elapsed);
  const fetch: Fetch = async (url) => {
    if (clock.elapsed() < awayMs) throw Object.assign(new Error("nobody listens"), { code: "ECONNREFUSED" });
    const { body } = Response.json(
      url.endsWith("/tasks/wait") ? { answers: [{ id: "t1", status: 200, body: ended }] } : ended,
    );
    return { status: 200, headers: new Headers(), body, text: () => new Response(body).text() };
  };
  const rest = (ms: number): Promise<void> => {
    assert.ok(ms > 0 && ms <= 10_000, `a rest of ${ms} ms`);
    return restFor(clock, ms);
  };
  /** Goes from one end of a rest to the next until the wait is over. */
  const inTime = async <Value>(wait: Promise<Value>): Promise<Value> => {
    let isOver = false;
    const over = (): void => {
      isOver = true;
    };
    wait.then(over, over);
    const next = (): number => (clock.alarms().length === 0 ? 0 : Math.min(...clock.alarms()));
    await until(
      "the end of the wait",
      () => isOver,
      () => clock.advance(next()),
    );
    return wait;
  };
  const client = createClient({ fetch, rest, ...(retries === undefined ? {} : { retries }) });
  return { client, inTime, now: clock.elapsed };
}
/** When both are over. */
const both = async (...waits: readonly Promise<unknown>[]): Promise<unknown> => {
  await Promise.allSettled(waits);
  return Promise.all(waits);
};
const waits: readonly [name: string, wait: (client: Client, options?: WaitOptions) => Promise<unknown>][] = [
  ["wait", (client, options) => client.wait("t1", options)],
  ["waits together", (client, options) => both(client.wait("t1", options), client.wait("t1", options))],
  ["waitGroup", (client, options) => client.waitGroup("g", options)],
];
for (const [name, wait] of waits) {
  test(`${name}: a server that is away is waited for, up to five minutes without an answer`, async (t) => {
    const { client, inTime, now } = awayFor(t, 280_000);
    await inTime(wait(client));
    assert.ok(now() >= 280_000 && now() <= 290_000, String(now()));
    const away = awayFor(t, Number.POSITIVE_INFINITY);
    await failsWith(away.inTime(wait(away.client)), { code: "network", retryable: true });
    assert.ok(away.now() >= 300_000 && away.now() <= 310_000, String(away.now()));
  });

  test(`${name}: without an answer it ends with its time, and after as many tries as its caller wants`, async (t) => {
    const { client, inTime, now } = awayFor(t, Number.POSITIVE_INFINITY);
    await failsWith(inTime(wait(client, { withinMs: 60_000 })), { code: "network" });
    // Its last tries may be under way when its time is over, and the last look of all has tries of its own.
    assert.ok(now() >= 60_000 && now() <= 66_000, `${now()}: at most the tries that two calls have are beyond it`);
    const before = now();
    await failsWith(inTime(wait(client, { retries: 1 })), { code: "network" });
    assert.ok(now() - before <= 400, "one rest");
    const other = awayFor(t, Number.POSITIVE_INFINITY, 0);
    await failsWith(other.inTime(wait(other.client)), { code: "network" });
    assert.equal(other.now(), 0);
  });
}

test("a client that is closed waits on for a group, over as many calls as it takes", () =>
  story([answers(200, { id: "g", counts: {} }), answers(200, ended)], async ({ client }) => {
    const waiting = client.waitGroup("g");
    await client.close();
    assert.equal((await waiting).endedAt, ended.endedAt);
  }));

for (const answer of [null, {}])
  test(`a wait that is answered ${JSON.stringify(answer)} is refused as no answer, and not made again for ever`, () =>
    story([answers(200, answer)], async ({ client, server }) => {
      await failsWith(client.wait("t"), { code: "bad_answer" });
      await failsWith(client.waitGroup("g"), { code: "bad_answer" });
      assert.equal(server.heard.length, 2);
      await failsWith(client.plans.wait("p"), { code: "bad_answer" });
    }));

const strange: [claim: string, step: Step, wanted: Partial<ClientError>][] = [
  [
    "a page",
    (response) => response.writeHead(200, { "content-type": "text/html" }).end("<html>"),
    { code: "bad_answer" },
  ],
  ["nothing at all", (response) => response.writeHead(200).end(), { code: "bad_answer", status: 200 }],
  ["another version", answers(200, {}, { "drover-protocol": "2" }), { code: "unsupported_protocol" }],
  [
    "another address",
    (response) => response.writeHead(302, { location: "http://x/" }).end(),
    { code: "bad_answer", status: 302 },
  ],
  [
    "an error page",
    (response) => response.writeHead(500).end("<html>"),
    { code: "internal", status: 500, retryable: false },
  ],
  ["a code of the future", answers(409, refusal("brand_new")), { code: "conflict", status: 409 }],
  ["no token", answers(401, refusal("unauthorized")), { code: "unauthorized", status: 401 }],
  ["a null", answers(404, null), { code: "not_found", status: 404 }],
  ["a null that is to be the answer", answers(200, null), { code: "bad_answer", status: 200 }],
  ["a number", answers(200, 7), { code: "bad_answer", status: 200 }],
];
for (const [claim, step, wanted] of strange)
  test(`an answer that is not Drover's is told as such: ${claim}`, () =>
    story([step], async ({ client, rests }) => {
      await failsWith(client.task("t1"), wanted);
      assert.deepEqual(rests, []);
    }));

test("a wait for a task that nobody knows says how one that was submitted comes to be forgotten", () =>
  story([answers(404, refusal("not_found"))], async ({ client }) => {
    const { message } = await failsWith(client.wait("t1"), { code: "not_found", status: 404 });
    assert.match(message, /; one that was submitted is forgotten .* scheduler\.remember$/);
  }));

test("what stands between and is overloaded is tried again", () =>
  story(
    [(response) => response.writeHead(502).end("Bad Gateway"), answers(200, submitted)],
    async ({ client, rests }) => {
      await client.task("t1");
      assert.equal(rests.length, 1);
    },
  ));

test("ids and queries are spelled so that nothing in them is taken for something else", () =>
  story([answers(200, { tasks: [], count: 0 })], async ({ client, server }) => {
    await client.project("a/b?c#d é");
    await client.tasks({ state: ["queued", "running"], label: ["a=b,c", "d="], agentId: "a&b=c", limit: 5 });
    await client.why("t1", { at: 12 });
    await client.logs("t1", { tail: 3 });
    await client.task("..");
    assert.deepEqual(
      server.heard.map(({ url }) => url),
      [
        "/projects/a%2Fb%3Fc%23d%20%C3%A9",
        "/tasks?state=queued&state=running&label=a%3Db%2Cc&label=d%3D&agentId=a%26b%3Dc&limit=5",
        "/tasks/t1/why?at=12",
        "/tasks/t1/logs?tail=3",
        "/tasks/..",
      ],
    );
  }));

test("every request says which version it speaks, and shows its token", async () => {
  await using server = await startScript(answers(200, {}));
  await createClient({ url: `${server.url}/under/`, token: "secret-token" }).stats();
  const [first] = server.heard;
  assert.equal(first?.url, "/under/scheduler/stats");
  assert.equal(first?.headers["drover-protocol"], "1");
  assert.equal(first?.headers.authorization, "Bearer secret-token");
});

test("an address or token that cannot be is refused at once, and the token is not repeated", () => {
  for (const url of ["", "x", "ftp://a", "http://a:b@c"]) assert.throws(() => createClient({ url }), ClientError);
  assert.throws(
    () => createClient({ token: "top secret" }),
    (error: Error) => error instanceof ClientError && !error.message.includes("secret"),
  );
});

const HASH_OF_1 = "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b";
/** One call of each method, with just what it takes. */
const methods: {
  [Name in Exclude<CallName, "bulk" | "waitAny" | "waitPermits">]: (client: Client) => Promise<unknown>;
} = {
  submit: (client) => client.submit(task),
  submitBatch: (client) => client.submitBatch({ agentId: "ann", tasks: [{ action: "a" }] }),
  tasks: (client) => client.tasks(),
  task: (client) => client.task("x"),
  patch: (client) => client.patch("x", { priority: "high" }),
  cancel: (client) => client.cancel("x", { reason: "no" }),
  cancelWhere: (client) => client.cancelWhere({ all: true }),
  retry: (client) => client.retry("x"),
  approve: (client) => client.approve("x", { note: "yes" }),
  why: (client) => client.why("x"),
  wait: (client) => client.wait("x"),
  logs: (client) => client.logs("x"),
  group: (client) => client.group("x"),
  waitGroup: (client) => client.waitGroup("x"),
  cancelGroup: (client) => client.cancelGroup("x", { reason: "no" }),
  retryGroup: (client) => client.retryGroup("x"),
  plans: (client) => client.plans.list(),
  plan: (client) => client.plans.get("x"),
  putPlan: (client) => client.plans.put("x", { tasks: {} }, { only: ["a"], fresh: true }),
  cancelPlan: (client) => client.plans.cancel("x", { reason: "no" }),
  retryPlan: (client) => client.plans.retry("x"),
  pausePlan: (client) => client.plans.pause("x"),
  resumePlan: (client) => client.plans.resume("x"),
  removePlan: (client) => client.plans.remove("x"),
  putFile: (client) => client.files.put("1"),
  file: (client) => client.files.get("x").catch(() => {}),
  usage: (client) => client.usage(),
  stats: (client) => client.stats(),
  queue: (client) => client.queue(),
  line: (client) => client.line({ limit: 2 }),
  config: (client) => client.config(),
  patchConfig: (client) => client.patchConfig(null),
  reload: (client) => client.reload(),
  pause: (client) => client.pause(),
  resume: (client) => client.resume({ project: "a" }),
  projects: (client) => client.projects(),
  project: (client) => client.project("x"),
  putProject: (client) => client.putProject("x", { weight: 2 }),
  workers: (client) => client.workers(),
  joinWorker: (client) => client.joinWorker({}),
  sync: (client) => client.sync("x", { n: 1 }),
  handInLog: (client) => client.handInLog("x", { id: "l", text: null }),
  drainWorker: (client) => client.drainWorker("x"),
  leaveWorker: (client) => client.leaveWorker("x"),
  schedules: (client) => client.schedules(),
  schedule: (client) => client.schedule("x"),
  putSchedule: (client) => client.putSchedule("x", { cron: "@daily", task }),
  removeSchedule: (client) => client.removeSchedule("x"),
  askPermit: (client) => client.askPermit({ gate: "g" }),
  settlePermit: (client) => client.settlePermit("x"),
  dropPermit: (client) => client.dropPermit("x"),
  gates: (client) => client.gates(),
  gate: (client) => client.gate("x"),
  resetGate: (client) => client.resetGate("x"),
  removeGate: (client) => client.removeGate("x"),
  events: (client) => client.eventPage({ after: 5 }),
  links: (client) => client.links("x"),
  history: (client) => client.history({ step: 60_000 }),
  stuck: (client) => client.stuck(),
  whoami: (client) => client.whoami(),
  pulse: (client) => client.pulse(),
  settings: (client) => client.settings(),
  verify: (client) => client.verify(),
  health: (client) => client.health(),
  ready: (client) => client.ready(),
  metrics: (client) => client.metrics(),
  openapi: (client) => client.openapi(),
  cluster: (client) => client.cluster(),
};
for (const [name, call] of Object.entries(methods) as [CallName, (client: Client) => Promise<unknown>][])
  test(`${name} goes to its own place`, () =>
    story([answers(200, ended)], async ({ client, server }) => {
      await call(client);
      const { method, path } = CALLS[name];
      const [heard] = server.heard;
      assert.equal(
        `${heard?.method} ${heard?.url.split("?")[0]}`,
        `${method} ${path.replace(/\{\w+\}/, name === "putFile" ? HASH_OF_1 : "x")}`,
      );
    }));

test("rests double up to a bound, are spread, and give way to what the server asks", () => {
  assert.deepEqual(
    [1, 2, 3, 10, 1000].map((tries) => restAfter(tries, undefined, 1)),
    [200, 400, 800, 10_000, 10_000],
  );
  assert.equal(restAfter(1, undefined, 0), 100);
  assert.equal(restAfter(1, 5000, 0), 5000);
  assert.equal(restAfter(6, 1000, 1), 6400);
  assert.equal(restAfter(1, 60_001, 0), null);
});

for (const what of ["a group", "a plan"])
  test(`a client that is closed waits for the end of ${what}, over as many requests as that takes`, () => {
    let looks = 0;
    const step: Step = (response, heard) => {
      const isPlan = heard.url.startsWith("/plans");
      const group = { groupId: "g", counts: {}, ...(++looks > 3 ? { endedAt: "2026-01-31T12:00:00.000Z" } : {}) };
      answers(200, isPlan ? { id: "p", groupId: "g", state: "done" } : group)(response, heard);
    };
    return story([step], async ({ client }) => {
      let isAnswered = false;
      const made = (what === "a plan" ? client.plans.wait("p") : client.waitGroup("g")).then(() => {
        isAnswered = true;
      });
      await client.close();
      assert.ok(isAnswered);
      await made;
    });
  });

test("a client that is closed puts no file, and opens and follows nothing", () =>
  story([answers(200, {})], async ({ client, server }) => {
    const put = client.files.put("1");
    await client.close();
    await put;
    assert.equal(server.heard.length, 1);
    const hash = "a".repeat(64);
    const late = [
      client.files.put("1"),
      client.files.get(hash),
      client.files.open(hash).next(),
      client.events().next(),
      client.waitGroup("g"),
      client.plans.wait("p"),
    ];
    for (const one of late) await failsWith(one, { code: "closed" });
    assert.equal(server.heard.length, 1);
  }));

test("what a call is told about itself is no part of its query", async () => {
  const urls: string[] = [];
  const fetch: Fetch = async (url) => {
    urls.push(url);
    const { body } = Response.json({ up: [], down: [] });
    return { status: 200, headers: new Headers(), body, text: () => new Response(body).text() };
  };
  const client = createClient({ url: "http://h:1", fetch });
  await client.links("t", { limit: 2, downSkip: 4, retries: 0, timeoutMs: 500 });
  await client.logs("t", { retries: 0 });
  assert.deepEqual(urls, ["http://h:1/tasks/t/links?limit=2&downSkip=4", "http://h:1/tasks/t/logs"]);
});
