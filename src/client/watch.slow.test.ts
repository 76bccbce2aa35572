import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { test } from "node:test";
import { answers, type Heard, type Step, startScript } from "../../test/kits/script-server.ts";
import { fewTurns, isPending, until } from "../../test/kits/waits.ts";
import type { WaitAnyItem } from "../protocol/index.ts";
import { type Client, createClient } from "./client.ts";
import type { ClientError } from "./client-error.ts";

/** A request that waits, with the tasks it waits for. */
type Held = { readonly ids: readonly string[]; readonly response: ServerResponse; readonly heard: Heard };
type Story = {
  readonly client: Client;
  readonly heard: readonly Heard[];
  readonly rests: number[];
  /** Those that wait for an answer now. */
  held(): readonly Held[];
  /** Answers whoever waits for these tasks, all that have ended at once; as a server does. */
  end(...ids: readonly string[]): void;
  readonly knows: { waitAny: boolean };
};

const isAny = ({ url }: Pick<Heard, "url">): boolean => url === "/tasks/wait";
const idsOf = (heard: Heard): readonly string[] =>
  isAny(heard)
    ? (heard.body as { ids: readonly string[] }).ids
    : [decodeURIComponent(/^\/tasks\/(.*)\/wait/.exec(heard.url)?.[1] ?? "")];
const mayHold = ({ url, body }: Heard): boolean =>
  !url.endsWith("timeoutMs=0") && (body as { timeoutMs?: number } | undefined)?.timeoutMs !== 0;
const done = (id: string): object => ({ taskId: id, state: "done", result: id });
const item = (id: string): WaitAnyItem => ({ id, status: 200, body: done(id) });
const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `t${index}`);
/** A machine that stands still for a second has no answer in time. */
const LATE = /^(task hasty is running after|the server has not answered within) 1 ms$/;
const failed = (promise: Promise<unknown>): Promise<ClientError> =>
  promise.then(
    () => assert.fail("it did not fail"),
    (error: ClientError) => error,
  );

type Refuses = (heard: Heard) => Step | undefined;
async function story(
  told: (story: Story) => Promise<void>,
  first: readonly Step[] = [],
  refuses: Refuses = () => undefined,
): Promise<void> {
  const all: Held[] = [];
  const knows = { waitAny: true };
  const hold: Step = (response, heard) => {
    const refusal = refuses(heard);
    if (refusal !== undefined) return refusal(response, heard);
    if (isAny(heard) && !knows.waitAny) return answers(404, { error: "nothing is there", code: "x" })(response, heard);
    if (!mayHold(heard)) return answers(200, isAny(heard) ? { answers: [] } : { state: "running" })(response, heard);
    all.push({ ids: idsOf(heard), response, heard });
  };
  await using server = await startScript(...first, hold);
  const rests: number[] = [];
  const rest = async (ms: number): Promise<void> => void rests.push(ms);
  const client = createClient({ url: server.url, rest });
  const held = (): readonly Held[] =>
    all.filter(({ response: { writableEnded, destroyed } }) => !writableEnded && !destroyed);
  const end = (...ids: readonly string[]): void => {
    for (const one of held()) {
      const over = one.ids.filter((id) => ids.includes(id));
      if (over.length === 0) continue;
      answers(200, isAny(one.heard) ? { answers: over.map(item) } : done(over[0] as string))(one.response, one.heard);
    }
  };
  await told({ client, heard: server.heard, rests, held, end, knows });
}
const heldAre = (held: Story["held"], count: number): Promise<void> =>
  until(`${count} requests that wait`, () => held().length === count);
/** The first of a client is alone and goes by itself; from then on they share. */
async function met({ client, held, end }: Story): Promise<void> {
  const two = [client.wait("m1"), client.wait("m2")];
  await heldAre(held, 2);
  end("m1", "m2");
  await Promise.all(two);
}

test("a wait alone is the request it was, and those that come meanwhile share one", () =>
  story(async ({ client, heard, held, end }) => {
    const ids = names(50);
    const waits = ids.map((id) => client.wait(id));
    await heldAre(held, 2);
    assert.deepEqual(heard.map(idsOf), [["t0"], ids.slice(1)]);
    end("t3");
    assert.equal((await (waits[3] as Promise<{ result?: unknown }>)).result, "t3");
    await heldAre(held, 2);
    assert.deepEqual(heard.slice(2).map(idsOf), [ids.filter((id) => !["t0", "t3"].includes(id))]);
    end(...ids);
    assert.deepEqual(
      (await Promise.all(waits)).map(({ taskId }) => taskId),
      ids,
    );
    const last = client.wait("alone");
    await heldAre(held, 1);
    assert.equal(heard.at(-1)?.url, "/tasks/alone/wait?timeoutMs=30000");
    end("alone");
    await last;
  }));

test("what is waited for while a request is out is asked for at once, and goes with what is left of another", () =>
  story(async (told) => {
    const { client, held, end } = told;
    await met(told);
    const early = ["a", "b"].map((id) => client.wait(id));
    await heldAre(held, 1);
    const late = ["c", "d"].map((id) => client.wait(id));
    await heldAre(held, 2);
    assert.deepEqual(
      held().map(({ ids }) => ids),
      [
        ["a", "b"],
        ["c", "d"],
      ],
    );
    end("a", "c");
    await Promise.all([early[0], late[0]]);
    await until("what is left", () => held().flatMap(({ ids }) => ids).length === 2);
    end("b", "d");
    await Promise.all([...early, ...late]);
  }));

test("however they come there are few requests, and none is lost when they are put together", () =>
  story(async (told) => {
    const { client, held, end } = told;
    await met(told);
    const ids = names(40);
    const waits: Promise<unknown>[] = [];
    for (const id of ids) {
      waits.push(client.wait(id));
      await until("it is asked for", () => held().some((one) => one.ids.includes(id)));
    }
    await until("few", () => held().length <= 8);
    assert.deepEqual(
      held()
        .flatMap((one) => one.ids)
        .toSorted(),
      ids.toSorted(),
    );
    end(...ids);
    assert.equal((await Promise.all(waits)).length, 40);
  }));

test("while enough requests are out, waits that come one by one gather, and one request is given up for them", (t) =>
  story(async (told) => {
    const { client, held, end, heard } = told;
    await met(told);
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const ids = names(40);
    const waits: Promise<unknown>[] = [];
    for (const [index, id] of ids.entries()) {
      waits.push(client.wait(id));
      if (index < 8) await heldAre(held, index + 1);
      else await fewTurns();
    }
    assert.equal(heard.slice(2).flatMap(idsOf).length, 8);
    t.mock.timers.tick(20);
    await until("all wait", () => held().flatMap((one) => one.ids).length === 40);
    assert.equal(heard.slice(2).length, 9);
    end(...ids);
    assert.equal((await Promise.all(waits)).length, 40);
  }));

test("more than a thousand are several requests", () =>
  story(async (told) => {
    const { client, held, end } = told;
    await met(told);
    const ids = names(2100);
    const waits = ids.map((id) => client.wait(id));
    await heldAre(held, 3);
    assert.deepEqual(
      held().map((one) => one.ids.length),
      [1000, 1000, 100],
    );
    end(...ids);
    assert.equal((await Promise.all(waits)).length, 2100);
  }));

test("one that is refused is refused alone, and two that wait for the same task are told both", () =>
  story(async (told) => {
    const { client, held, end } = told;
    await met(told);
    const [good, bad, same] = [client.wait("good"), client.wait("bad"), client.wait("good")];
    await heldAre(held, 1);
    const [{ response, heard, ids }] = held() as [Held];
    assert.deepEqual(ids, ["good", "bad"]);
    const body = { error: "no such task", code: "not_found" };
    answers(200, { answers: [{ id: "bad", status: 404, body }] })(response, heard);
    const refusal = await failed(bad);
    assert.deepEqual([refusal.status, refusal.code], [404, "not_found"]);
    assert.match(refusal.message, /^no such task; one that was submitted is forgotten when .* scheduler.remember$/);
    await heldAre(held, 1);
    end("good");
    assert.deepEqual([(await good).state, (await same).state], ["done", "done"]);
  }));

test("a caller's time and signal end its own wait; a request that nobody waits for any more is given up", () =>
  story(async (told) => {
    const { client, held, end, heard } = told;
    await met(told);
    const controller = new AbortController();
    const reason = new Error("enough");
    const [patient, hasty, given] = [
      client.wait("patient"),
      client.wait("hasty", { withinMs: 1 }),
      client.wait("given", { signal: controller.signal }),
    ];
    const late = await failed(hasty);
    assert.equal(late.code, "timeout");
    assert.match(late.message, LATE);
    await heldAre(held, 1);
    controller.abort(reason);
    await assert.rejects(given, reason);
    await assert.rejects(client.wait("given", { signal: controller.signal }), reason);
    assert.ok(await isPending(patient));
    const before = heard.length;
    end("given", "patient");
    await patient;
    assert.equal(heard.length, before, "nothing is asked for again");

    const both = ["x", "y"].map((id) => client.wait(id, { signal: AbortSignal.any([soon.signal]) }));
    const gone = Promise.all(both.map(failed));
    await heldAre(held, 1);
    soon.abort(reason);
    await gone;
    await heldAre(held, 0);
  }));
const soon = new AbortController();

test("an answer that was lost is asked for again, at once if one was heard before, and then after a rest", () =>
  story(async (told) => {
    const { client, held, end, rests } = told;
    await met(told);
    const ids = names(4);
    const waits = ids.map((id) => client.wait(id));
    await heldAre(held, 1);
    end("t0");
    await waits[0];
    await heldAre(held, 1);
    held()[0]?.response.destroy();
    await until("it is asked again", () => held().flatMap((one) => one.ids).length === 3);
    assert.deepEqual(rests, []);
    held()[0]?.response.destroy();
    await until("it is asked again", () => held().flatMap((one) => one.ids).length === 3);
    assert.equal(rests.length, 3);
    end(...ids);
    assert.equal((await Promise.all(waits)).length, 4);
  }));

test("failures are counted anew after an answer: a long wait outlives any number of them", () =>
  story(async (told) => {
    const { client, held, end, rests } = told;
    await met(told);
    const waits = [...names(8), "last"].map((id) => client.wait(id));
    const asked = (count: number): Promise<void> =>
      until("they are asked for", () => held().flatMap((one) => one.ids).length === count);
    for (const [index, id] of names(8).entries()) {
      await asked(9 - index);
      end(id);
      await waits[index];
      for (let failure = 0; failure < 2; failure++) {
        await asked(8 - index);
        held()[0]?.response.destroy();
        await until("it has failed", () => held().length === 0);
      }
    }
    await asked(1);
    end("last");
    assert.equal((await waits.at(-1))?.taskId, "last");
    assert.equal(rests.length, 36, "once for each that was left, in each of the rounds");
  }));

test("a time that is over is no end: they are asked for again", () =>
  story(async (told) => {
    const { client, held, end } = told;
    await met(told);
    const waits = ["a", "b"].map((id) => client.wait(id));
    await heldAre(held, 1);
    const [{ response, heard }] = held() as [Held];
    answers(200, { answers: [] })(response, heard);
    await until("it is asked again", () => held().some((one) => one.response !== response));
    end("a", "b");
    await Promise.all(waits);
  }));

test("a server that does not know it is asked for each task, and not for it again within a minute", (t) =>
  story(async ({ client, held, end, heard, knows }) => {
    knows.waitAny = false;
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const ids = names(5);
    for (let round = 0; round < 2; round++) {
      const waits = ids.map((id) => client.wait(id));
      await heldAre(held, 5);
      end(...ids);
      await Promise.all(waits);
    }
    assert.equal(heard.filter(isAny).length, 1);
    t.mock.timers.tick(60_000);
    knows.waitAny = true;
    const waits = ids.map((id) => client.wait(id));
    await heldAre(held, 1);
    end(...ids);
    await Promise.all(waits);
  }));

test("what is refused or broken as a whole is told to each", () =>
  story(
    async (told) => {
      const { client } = told;
      const [first, ...others] = ["a", "b", "c"].map((id) => client.wait(id));
      await first;
      for (const other of others) assert.equal((await failed(other)).code, "unauthorized");
      for (const wait of ["a", "b"].map((id) => client.wait(id))) assert.equal((await failed(wait)).code, "bad_answer");
      for (const wait of ["a", "b"].map((id) => client.wait(id))) assert.equal((await failed(wait)).code, "bad_answer");
    },
    [
      answers(200, done("a")),
      answers(401, { error: "no", code: "unauthorized" }),
      answers(200, { answers: null }),
      answers(200, { answers: ["a", "b"].map((id) => ({ id, status: 200, body: null })) }),
    ],
  ));

const refusesWhole =
  (status: number, isRefused: (ids: readonly string[]) => boolean): Refuses =>
  (heard) =>
    isRefused(idsOf(heard)) ? answers(status, { error: `no: ${heard.url}`, code: "bad_request" }) : undefined;

const isBad = (id: string): boolean => id.includes(" ");
const refusesBad = refusesWhole(400, (ids) => ids.some(isBad));
const allWait = (held: Story["held"], count: number): Promise<void> =>
  until("all others wait", () => held().flatMap((one) => one.ids).length === count);

test("among many, an id that no task can have is found and refused, and the others wait on together", () =>
  story(
    async (told) => {
      const { client, held, end, heard } = told;
      await met(told);
      const ids = names(100);
      const waits = ids.map((id) => client.wait(id));
      const bad = client.wait("b d");
      assert.equal((await failed(bad)).message, "no: /tasks/b%20d/wait?timeoutMs=0");
      await allWait(held, 100);
      assert.ok(heard.length < 30, `${heard.length} requests`);
      waits.push(client.wait("late"));
      await until("it is asked for", () => held().some((one) => one.ids.includes("late")));
      end(...ids, "late");
      assert.equal((await Promise.all(waits)).length, 101);
    },
    [],
    refusesBad,
  ));

test("however many are refused, one request at a time looks for them, and few wait beside it", () => {
  const now = { refused: 0, held: (): readonly Held[] => [] };
  const most = { refused: 0, held: 0 };
  const refuses: Refuses = (heard) => {
    most.held = Math.max(most.held, now.held().length);
    const refusal = refusesBad(heard);
    if (refusal === undefined) return undefined;
    most.refused = Math.max(most.refused, ++now.refused);
    return async (...given) => {
      await fewTurns(5);
      now.refused--;
      refusal(...given);
    };
  };
  return story(
    async (told) => {
      const { client, held, end } = told;
      await met(told);
      now.held = held;
      const ids = names(64);
      const waits = ids.map((id) => client.wait(id));
      const refused = ids.map((id) => failed(client.wait(`${id} `)));
      for (const { code } of await Promise.all(refused)) assert.equal(code, "bad_request");
      await allWait(held, 64);
      assert.equal(most.refused, 1);
      assert.ok(most.held <= 8, `${most.held} requests wait`);
      end(...ids);
      assert.equal((await Promise.all(waits)).length, 64);
    },
    [],
    refuses,
  );
});

test("a request that names too many is made again for fewer, and so are the next", () =>
  story(
    async (told) => {
      const { client, held, end, heard } = told;
      await met(told);
      for (const ids of [names(400), names(400)]) {
        const waits = ids.map((id) => client.wait(id));
        await until("all wait", () => held().flatMap((one) => one.ids).length === 400);
        assert.deepEqual(
          held().map((one) => one.ids.length),
          [100, 100, 100, 100],
        );
        end(...ids);
        assert.equal((await Promise.all(waits)).length, 400);
      }
      assert.equal(heard.filter((one) => idsOf(one).length > 130).length, 3, "400, and 200 twice");
    },
    [],
    refusesWhole(413, (ids) => ids.length > 130),
  ));

test("where fewer go than were refused, fewer go from then on, whatever the server says of it", () => {
  const tooMany = refusesWhole(400, (ids) => ids.length > 100);
  let refused = 0;
  const refuses: Refuses = (heard) => {
    const refusal = tooMany(heard);
    if (refusal !== undefined) refused++;
    return refusal;
  };
  return story(
    async (told) => {
      const { client, held, end } = told;
      await met(told);
      const ids = names(1500);
      const waits = ids.map((id) => client.wait(id));
      await allWait(held, 1500);
      assert.ok(refused <= 30, `${refused} refused`);
      end(...ids);
      await Promise.all(waits);
      const before = refused;
      const more = ids.slice(0, 400).map((id) => client.wait(id));
      await allWait(held, 400);
      assert.equal(refused, before);
      end(...ids);
      await Promise.all(more);
    },
    [],
    refuses,
  );
});

for (const status of [400, 413])
  test(`requests that were refused with ${status} are smaller for a minute, and no longer`, (t) => {
    let left = 1;
    const once = refusesWhole(status, (ids) => ids.length > 1 && left-- > 0);
    return story(
      async (told) => {
        const { client, held, end } = told;
        await met(told);
        t.mock.timers.enable({ apis: ["setTimeout"] });
        for (const ids of [names(2), names(3)]) {
          const waits = ids.map((id) => client.wait(id));
          await heldAre(held, ids.length);
          end(...ids);
          await Promise.all(waits);
        }
        t.mock.timers.tick(60_000);
        const waits = names(3).map((id) => client.wait(id));
        await heldAre(held, 1);
        end(...names(3));
        assert.equal((await Promise.all(waits)).length, 3);
      },
      [],
      once,
    );
  });

/** Refused for one that is bad, then looked into; `looked` is called while a half is. */
async function allGoTogetherAfter(
  ids: readonly string[],
  looked: (bad: AbortController) => void,
  said: RegExp,
): Promise<void> {
  const bad = new AbortController();
  const refuses: Refuses = (heard) => {
    const refusal = refusesBad(heard);
    if (refusal !== undefined || mayHold(heard)) return refusal;
    return async (...given) => {
      looked(bad);
      await fewTurns();
      answers(200, isAny(heard) ? { answers: [] } : { state: "running" })(...given);
    };
  };
  await story(
    async (told) => {
      const { client, held, end } = told;
      await met(told);
      const waits = ids.map((id) => client.wait(id));
      assert.match((await failed(client.wait("b d", { signal: bad.signal }))).message, said);
      const isHeld = (id: string): boolean => held().some((one) => one.ids.includes(id));
      await until("all wait again", () => ids.every(isHeld));
      const more = names(4).map((id) => client.wait(id));
      await until("they are asked for", () => names(4).every(isHeld));
      assert.ok(held().some((one) => one.ids.length >= 4));
      end(...ids, ...names(4));
      assert.equal((await Promise.all([...waits, ...more])).length, ids.length + 4);
    },
    [],
    refuses,
  );
}

test("a refusal for an id that is given up before its half is asked for says nothing of how many may go", () =>
  allGoTogetherAfter(["a", "b", "c"], (bad) => bad.abort(new Error("enough")), /^enough$/));

test("waits for the same task stay in one half, so that all that was refused is looked into", () =>
  allGoTogetherAfter(["a", "a"], () => {}, /^no: \/tasks\/b%20d\/wait\?timeoutMs=0$/));

test("what was refused first is looked into first, however many that no task can have follow", () => {
  const now = { refused: (): void => {}, more: 20 };
  const refuses: Refuses = (heard) => {
    const refusal = refusesBad(heard);
    if (refusal !== undefined && !mayHold(heard)) now.refused();
    return refusal;
  };
  return story(
    async (told) => {
      const { client } = told;
      await met(told);
      const later: Promise<unknown>[] = [];
      now.refused = () => {
        if (now.more-- > 0) later.push(...["x x", "y y"].map((id) => failed(client.wait(id))));
      };
      await Promise.all(["a a", "b b", "c c", "d d"].map((id) => failed(client.wait(id))));
      assert.ok(now.more > 0, "more came meanwhile");
      now.more = 0;
      await Promise.all(later);
    },
    [],
    refuses,
  );
});

test("an id that is no text is refused at once, and not sent with others", () =>
  story(async ({ client, heard }) => {
    const refused = await failed(client.wait(undefined as unknown as string));
    assert.deepEqual([refused.code, refused.message], ["bad_request", "id is nothing, and must be the id of a task"]);
    assert.equal(heard.length, 0);
  }));

test("a client that is closed waits on for what it was asked, and takes no more", () =>
  story(async (told) => {
    const { client, held, end } = told;
    await met(told);
    const waits = ["a", "b"].map((id) => client.wait(id));
    const closed = client.close();
    assert.equal((await failed(client.wait("c"))).code, "closed");
    await heldAre(held, 1);
    end("a");
    await waits[0];
    await fewTurns();
    assert.ok(await isPending(closed));
    await heldAre(held, 1);
    end("b");
    await closed;
    assert.equal((await Promise.all(waits)).length, 2);
  }));

test("a server that says nothing holds up no wait, alone or with others, for longer than it may last", async () => {
  // The time of a call by itself is half a minute, and each has five tries.
  await using server = await startScript(() => {});
  const client = createClient({ url: server.url });
  const waits = names(3).map((id) => client.wait(id, { withinMs: 20 }));
  const all: Promise<unknown>[] = [
    client.wait("alone", { withinMs: 20 }),
    client.waitGroup("g", { withinMs: 20 }),
    ...waits,
  ];
  for (const { code, message } of await Promise.all(all.map(failed)))
    assert.deepEqual([code, message.replace(/\d+ ms/, "")], ["timeout", "the server has not answered within "]);
});

test("where there is no server a wait rests no longer than it may last", async () => {
  const rests: number[] = [];
  const rest = async (ms: number): Promise<void> => void rests.push(ms);
  const client = createClient({ url: "http://127.0.0.1:1", rest });
  assert.equal((await failed(client.wait("t", { withinMs: 0.5 }))).code, "network");
  assert.ok(
    rests.every((ms) => ms <= 0.5),
    rests.join(),
  );
});

test("a program's own fetch carries what waits together", async () => {
  const paths: string[] = [];
  await using server = await startScript((response, heard) =>
    answers(200, isAny(heard) ? { answers: idsOf(heard).map(item) } : done("x"))(response, heard),
  );
  const client = createClient({
    url: server.url,
    fetch: (url, request) => {
      paths.push(new URL(url).pathname);
      return globalThis.fetch(url, request);
    },
  });
  await Promise.all(["x", "y", "z"].map((id) => client.wait(id)));
  assert.deepEqual(paths, ["/tasks/x/wait", "/tasks/wait"]);
});
