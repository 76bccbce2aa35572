/**
 * Calls to several nodes: who is asked, what is asked again elsewhere, and who is told the token.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { text } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import {
  answers,
  answersHalf,
  type Heard,
  losesTheAnswer,
  neverAnswers,
  type ScriptServer,
  type Step,
  startScript,
  streams,
} from "../../test/kits/script-server.ts";
import { fewTurns, isPending, until } from "../../test/kits/waits.ts";
import type { BulkBody } from "../protocol/index.ts";
import { type Client, createClient } from "./client.ts";
import type { ClientError } from "./client-error.ts";
import type { ClientOptions } from "./read-options.ts";

const task = { agentId: "ann", action: "build" };
const taken = { taskId: "t1", state: "queued", createdAt: "2026-01-31T12:00:00.000Z" };
const refusal = (status: number, code: string, headers: Readonly<Record<string, string>> = {}): Step =>
  answers(status, { error: `no: ${code}`, code, retryable: true }, headers);
const noLeader = refusal(503, "no_leader", { "retry-after": "1" });
/** A node that takes what it is asked, and names this one as the leader. */
const names =
  (leader: () => string, body: unknown = taken, more: Readonly<Record<string, string>> = {}): Step =>
  (response, heard) =>
    answers(200, heard.url === "/bulk" ? { answers: eachOf(heard) } : body, { "x-drover-leader": leader(), ...more })(
      response,
      heard,
    );
const eachOf = ({ body }: Heard): object[] => (body as BulkBody).calls.map(() => ({ status: 202, body: taken }));

type Nodes = AsyncDisposable & { readonly all: readonly ScriptServer[]; readonly rests: number[] };
type Story = Nodes & { readonly client: Client; asked(): number[] };

async function story(
  scripts: readonly (readonly Step[])[],
  told: (story: Story) => Promise<void>,
  options: ClientOptions = {},
): Promise<void> {
  await using scope = new AsyncDisposableStack();
  const all: ScriptServer[] = [];
  for (const steps of scripts) all.push(scope.use(await startScript(...steps)));
  const rests: number[] = [];
  const rest = async (ms: number): Promise<void> => void rests.push(ms);
  const client = createClient({ url: all.map(({ url }) => url), token: "secret", rest, ...options });
  const asked = (): number[] => all.map(({ heard }) => heard.filter(({ url }) => url !== "/readyz").length);
  await told({ all, rests, client, asked, [Symbol.asyncDispose]: () => scope.disposeAsync() });
}
const failed = (promise: Promise<unknown>): Promise<ClientError> =>
  promise.then(
    () => assert.fail("it did not fail"),
    (error: ClientError) => error,
  );
const down = async (node: ScriptServer | undefined): Promise<void> => node?.[Symbol.asyncDispose]();
const idOf = ({ heard }: ScriptServer): unknown => (heard[0]?.body as { id?: string } | undefined)?.id;

test("a node that is down is passed over at once, and the next is asked from then on", () =>
  story([[answers(200, taken)], [answers(202, taken)]], async ({ client, all, rests, asked }) => {
    await down(all[0]);
    assert.deepEqual(await client.submit(task), taken);
    await client.task("t1");
    assert.deepEqual([asked(), rests], [[0, 2], []]);
  }));

test("a lost answer is asked for at the next node under the same id, and nothing else is", () =>
  story([[losesTheAnswer], [answersHalf], [answers(202, taken)]], async ({ client, all, rests }) => {
    assert.deepEqual(await client.submit(task), taken);
    assert.equal(new Set(all.map(idOf)).size, 1);
    assert.deepEqual(rests, []);
  }));

const gone = answers(404, { error: "no: not_found", code: "not_found" });

for (const [name, steps] of [
  ["whose answer was lost is found gone at the next node", [[losesTheAnswer], [gone]]],
  [
    "whose answer was lost is found gone when there is a leader again",
    [
      [losesTheAnswer, gone],
      [noLeader, noLeader],
    ],
  ],
  ["that a leader had under way when it was deposed is found gone", [[refusal(503, "deposed")], [gone]]],
] as const)
  test(`a removal ${name}: it has worked`, () =>
    story(steps, async ({ client }) => {
      assert.deepEqual(await client.removeSchedule("s1"), { status: "removed", id: "s1" });
    }));

test("cancels whose answers were lost, alone or together, are found done at the next node", async () => {
  const isCancelled = { error: "no: conflict", code: "conflict", details: { task: "t1", state: "cancelled" } };
  const found: Step = (response, heard) => {
    const each = heard.url === "/bulk" ? eachOf(heard).map(() => ({ status: 409, body: isCancelled })) : [];
    (each.length > 0 ? answers(200, { answers: each }) : answers(409, isCancelled))(response, heard);
  };
  const done = answers(200, { status: "cancelled", taskId: "t1" });
  await story([[losesTheAnswer], [found]], async ({ client }) => {
    assert.deepEqual(await client.cancel("t1"), { status: "cancelled", taskId: "t1" });
  });
  await story([[done, losesTheAnswer], [found]], async ({ client, all }) => {
    const ids = ["t1", "t2", "t3"];
    const cancelled = await Promise.all(ids.map((id) => client.cancel(id)));
    assert.deepEqual(
      cancelled,
      ids.map((taskId) => ({ status: "cancelled", taskId })),
    );
    assert.ok(all[1]?.heard.some(({ url }) => url === "/bulk"));
  });
});

test("what was never sent has removed nothing", () =>
  story([[noLeader], [gone]], async ({ client, all }) => {
    assert.equal((await failed(client.removeSchedule("s1"))).code, "not_found");
    await down(all[0]);
    assert.equal((await failed(client.removeSchedule("s1"))).code, "not_found");
  }));

test("what is not safe to repeat is not repeated elsewhere, unless it was never sent", () =>
  story([[losesTheAnswer], [answers(200, taken)]], async ({ client, all, asked }) => {
    const { code, retryable } = await failed(client.retry("t1"));
    assert.deepEqual([code, retryable, asked()], ["network", false, [1, 0]]);
    assert.deepEqual(await client.retry("t1"), taken);
    await down(all[1]);
    await fewTurns();
    await failed(client.retry("t1"));
    assert.deepEqual(asked(), [2, 1], "what could not be sent to the one was sent to the other");
  }));

test("what a node refuses for its own reasons is not asked elsewhere", () =>
  story([[refusal(429, "queue_full"), answers(202, taken)], [noLeader]], async ({ client, rests, asked }) => {
    assert.deepEqual(await client.submit(task), taken);
    assert.deepEqual([asked(), rests.length], [[2, 0], 1]);
  }));

for (const code of ["no_leader", "behind", "deposed", "closed"])
  test(`a node that answers ${code} is passed over at once`, () =>
    story([[refusal(503, code)], [answers(200, taken)]], async ({ client, rests, asked }) => {
      assert.deepEqual(await client.task("t1"), taken);
      assert.deepEqual([asked(), rests], [[1, 1], []]);
    }));

const electing = (count: number): Step[] => [...Array.from({ length: count }, () => noLeader), answers(202, taken)];

test("while there is no leader a call goes on, also beyond its tries, with the rests that nodes ask for", () =>
  story([electing(12), [noLeader]], async ({ client, rests, asked }) => {
    assert.deepEqual(await client.submit(task), taken);
    assert.deepEqual(asked(), [13, 12]);
    assert.equal(rests.length, 12);
    assert.ok(rests.slice(0, 3).every((ms) => ms === 1000));
    assert.ok(
      rests.every((ms) => ms >= 1000 && ms <= 1600),
      rests.join(),
    );
  }));

test("it does not go on for ever, and not where it is to be tried once", () =>
  story([[noLeader], [noLeader]], async ({ client, rests, asked }) => {
    assert.equal((await failed(client.submit(task))).code, "no_leader");
    const waitedMs = rests.reduce((sum, ms) => sum + ms, 0);
    assert.ok(waitedMs >= 15_000 && waitedMs <= 17_000, String(waitedMs));
    const [before = 0] = asked();
    assert.equal((await failed(client.submit(task, { retries: 0 }))).code, "no_leader");
    assert.deepEqual(asked(), [before + 1, before + 1]);
  }));

test("a caller that has said how often is patient too if a node says that there is no leader, and only then", () =>
  story(
    [electing(6), [noLeader]],
    async ({ client, all, rests }) => {
      assert.deepEqual(await client.submit(task), taken);
      assert.equal(rests.length, 6);
      for (const node of all) await down(node);
      const { code, message } = await failed(client.submit(task));
      assert.deepEqual([code, rests.length], ["network", 6 + 2]);
      assert.match(message, /^none of http:\S+, http:\S+ answers: cannot reach http:\S+ \(ECONNREFUSED\)$/);
    },
    { retries: 2 },
  ));

test("where one node is gone and another knows of no leader, that is told, and not that none answers", () =>
  story(
    [[noLeader], [noLeader]],
    async ({ client, all: [, gone] }) => {
      await down(gone as ScriptServer);
      for (let count = 0; count < 2; count++) {
        const { code, message } = await failed(client.submit(task));
        assert.equal(code, "no_leader", message);
        assert.doesNotMatch(message, /none of|cannot reach/);
      }
    },
    { retries: 0 },
  ));

test("one address that names no other is tried as ever", () =>
  story([[losesTheAnswer]], async ({ client, asked }) => {
    await failed(client.submit(task));
    assert.deepEqual(asked(), [5]);
  }));

test("calls go to the leader once it is known, and back when it is gone", () => {
  const leader = (): string => nodes[1]?.url ?? "";
  let nodes: readonly ScriptServer[] = [];
  return story([[names(leader)], [names(leader)]], async ({ client, all, asked }) => {
    nodes = all;
    await client.task("t1");
    await Promise.all(["a", "b", "c"].map((id) => client.submit({ ...task, id })));
    await client.wait("t1", { withinMs: 0 }).catch(() => {});
    assert.equal(asked()[0], 1);
    await down(all[1]);
    await Promise.all(["d", "e", "f"].map((id) => client.submit({ ...task, id })));
    assert.ok((asked()[0] ?? 0) >= 2);
    assert.equal((await client.task("t1")).state, "queued");
  });
});

test("a leader that was not given is told nothing before it says that it leads, and then the token", async () => {
  let leader = "";
  await using other = await startScript(names(() => leader, { role: "leader" }));
  leader = other.url;
  await story([[names(() => leader)]], async ({ client }) => {
    await client.task("t1");
    await client.task("t1");
    await until("the leader to be asked", () => other.heard.length === 1);
    const [{ url, headers } = assert.fail()] = other.heard;
    assert.deepEqual([url, headers.authorization], ["/readyz", undefined]);
    await until(
      "the leader to be followed",
      () => other.heard.length > 1,
      () => client.task("t1"),
    );
    assert.equal(other.heard[1]?.headers.authorization, "Bearer secret");
  });
});

test("one that answers there and does not lead is never told the token", async () => {
  await using stranger = await startScript(answers(200, { status: "ready" }));
  await story([[names(() => stranger.url)]], async ({ client, asked }) => {
    for (let call = 0; call < 10; call++) await client.task("t1");
    await until("the stranger to be asked", () => stranger.heard.length === 1);
    for (let call = 0; call < 10; call++) await client.task("t1");
    assert.deepEqual([asked(), stranger.heard.length], [[20], 1]);
    assert.equal(stranger.heard[0]?.headers.authorization, undefined);
  });
});

test("reads ask for what writes were told, over every node, and also after calls that travelled together", () => {
  const leader = (): string => all[0]?.url ?? "";
  let all: readonly ScriptServer[] = [];
  const at = (seq: string): Step => names(leader, taken, { "x-drover-seq": seq });
  return story([[at("7"), at("8"), at("9"), at("30")], [at("50")]], async (told) => {
    const { client } = told;
    all = told.all;
    await Promise.all(["a", "b", "c"].map((id) => client.submit({ ...task, id })));
    await client.task("t1");
    await down(all[0]);
    await client.task("t1");
    const reads = all.flatMap(({ heard }) => heard).filter(({ method }) => method === "GET");
    assert.deepEqual(
      reads.map(({ headers }) => headers["x-drover-after"]),
      ["8", "8"],
    );
    const writes = all.flatMap(({ heard }) => heard).filter(({ method }) => method === "POST");
    assert.ok(writes.every(({ headers }) => headers["x-drover-after"] === undefined));
  });
});

test("a log that has less than it said is asked for that as long as the call lasts, and not by the next", () =>
  story(
    [
      [
        answers(202, taken, { "x-drover-seq": "99" }),
        refusal(503, "behind"),
        refusal(503, "behind"),
        answers(200, taken),
      ],
    ],
    async ({ client, all }) => {
      await client.submit(task);
      assert.equal((await failed(client.task("t1"))).code, "behind");
      assert.deepEqual(await client.task("t1"), taken);
      const after = all[0]?.heard.map(({ headers }) => headers["x-drover-after"]);
      assert.deepEqual(after, [undefined, "99", "99", undefined]);
    },
    { retries: 1 },
  ));

const ended = { taskId: "t1", state: "done" };

test("waits, alone and together, go on at another node", () => {
  const ids = ["a", "b", "c"];
  const all = { answers: ids.map((id) => ({ id, status: 200, body: ended })) };
  const ends: Step = (response, heard) => answers(200, heard.url === "/tasks/wait" ? all : ended)(response, heard);
  const dies: Step = (response) => void setImmediate(() => response.destroy());
  return story([[dies, dies, dies, noLeader], [ends]], async ({ client, rests }) => {
    assert.equal((await client.wait("t1")).state, "done");
    await Promise.all(ids.map((id) => client.wait(id)));
    assert.deepEqual(rests, []);
  });
});

test("events go on at another node behind the last one, and that node is asked to have it", () => {
  const event = (seq: number): string => `id: ${seq}\nevent: x\ndata: ${JSON.stringify({ seq })}\n\n`;
  return story(
    [[streams([event(1), event(2)], "cut")], [noLeader, streams([event(2), event(3)], "stay")]],
    async ({ client, all }) => {
      const seen: number[] = [];
      const over = new AbortController();
      for await (const { seq } of client.events({ signal: over.signal })) {
        seen.push(seq);
        if (seq === 3) over.abort();
      }
      assert.deepEqual(seen, [1, 2, 3]);
      const headers = all[1]?.heard.at(-1)?.headers;
      assert.deepEqual([headers?.["last-event-id"], headers?.["x-drover-after"]], ["2", "2"]);
      assert.equal(all[0]?.heard[0]?.headers["x-drover-after"], undefined);
    },
  );
});

test("files go up and come down by another node", () => {
  const content = '"a file"';
  const hash = createHash("sha256").update(content).digest("hex");
  const serves: Step = (response, heard) =>
    heard.method === "PUT" ? answers(201, { hash })(response, heard) : void response.writeHead(200).end(content);
  return story([[losesTheAnswer], [serves]], async ({ client, all }) => {
    assert.equal((await client.files.put(content)).hash, hash);
    assert.equal(Buffer.from(await client.files.get(hash)).toString(), content);
    const another = createClient({ url: all.map(({ url }) => url), rest: async () => {} });
    assert.equal(await text(another.files.open(hash)), content);
  });
});

test("a node that is silent is left for another, and so is what was asked of it", (t: TestContext) =>
  story([[neverAnswers], [answers(200, taken)]], async ({ client, all, asked, rests }) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const calls = [client.task("t1"), client.submit(task)];
    await until("both to be asked", () => all[0]?.heard.length === 2);
    t.mock.timers.tick(10_000);
    assert.deepEqual(await Promise.all(calls), [taken, taken]);
    assert.deepEqual([asked(), rests], [[2, 2], []]);
    await client.task("t1");
    assert.deepEqual(asked(), [2, 3]);
  }));

test("a node that has answered in time is not doubted later", (t: TestContext) =>
  story([[answers(200, taken)], [answers(200, taken)]], async ({ client, all, asked }) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    await client.task("t1");
    t.mock.timers.tick(60_000);
    await fewTurns();
    await client.task("t1");
    assert.deepEqual([asked(), all[1]?.heard], [[2, 0], []]);
  }));

const follows = answers(200, { role: "follower" });
const leads = answers(200, { role: "leader" });
/** What a node says of its role, and what it does with all else. */
const as =
  (ready: Step, rest: Step): Step =>
  (response, heard) =>
    (heard.url === "/readyz" ? ready : rest)(response, heard);

test("a leader that is silent is left as soon as another says that it leads, and not before", (t: TestContext) => {
  const nodes: ScriptServer[] = [];
  let second: Step = as(follows, answers(500, {}));
  const leader: Step = (response, heard) =>
    nodes[0]?.heard.length === 1 ? names(() => nodes[0]?.url ?? "")(response, heard) : neverAnswers(response, heard);
  return story([[leader], [(...given) => second(...given)]], async ({ client, all, asked, rests }) => {
    nodes.push(...all);
    await client.task("t1");
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const call = client.task("t1");
    await until("the leader to be asked", () => all[0]?.heard.length === 2);
    t.mock.timers.tick(2000);
    await until("the other to be asked who leads", () => all[1]?.heard.length === 1);
    await until("a look later", async () => {
      t.mock.timers.tick(1000);
      await fewTurns();
      return (all[1]?.heard.length ?? 0) > 1;
    });
    assert.deepEqual(asked(), [2, 0]);
    second = as(leads, answers(200, taken));
    await until("its answer", async () => {
      t.mock.timers.tick(100);
      return !(await isPending(call));
    });
    assert.deepEqual([await call, asked(), rests], [taken, [2, 1], []]);
    assert.ok(all.every(({ heard }) => heard.every(({ url, headers }) => url !== "/readyz" || !headers.authorization)));
  });
});

test("a node that only takes its time is waited for, though another leads", (t: TestContext) => {
  const held: (() => void)[] = [];
  const slow: Step = (response, heard) => void held.push(() => answers(200, taken)(response, heard));
  return story([[as(follows, slow)], [as(leads, answers(500, {}))]], async ({ client, all, asked }) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const call = client.task("t1");
    await until("it to be asked", () => held.length === 1);
    t.mock.timers.tick(2000);
    await until("it to be asked how it is", () => all[0]?.heard.length === 2);
    await fewTurns();
    held[0]?.();
    assert.deepEqual([await call, asked()], [taken, [1, 0]]);
  });
});

test("what has a time of its own, or must not be repeated, waits on, while others go elsewhere", (t: TestContext) =>
  story([[neverAnswers], [answers(200, taken)]], async ({ client, all, asked }) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const over = new AbortController();
    const { signal } = over;
    const calls = [client.retry("t1", { signal }), client.task("t1", { timeoutMs: 60_000, signal })];
    calls.push(client.task("t1", { timeoutMs: 60_000, doubtMs: 3000, signal }));
    for (const call of calls) call.catch(() => {});
    await until("all to be asked", () => all[0]?.heard.length === 3);
    t.mock.timers.tick(3000);
    await client.task("t1");
    assert.deepEqual(asked(), [3, 1]);
    t.mock.timers.tick(10_000);
    over.abort();
    await Promise.allSettled(calls);
    assert.deepEqual(asked(), [3, 1]);
  }));
