import assert from "node:assert/strict";
import { test } from "node:test";
import { DroverError } from "../../engine/base/drover-error.ts";
import { openDrover } from "../../engine/drover.ts";
import { ServerRefusal } from "../../http/problem.ts";
import type { LogBody } from "../../protocol/index.ts";
import { createHandClock } from "../../std/hand-clock.ts";
import {
  ASKED_AT_ONCE_MAX,
  createLogRequests,
  LOG_WAIT_MS,
  type LogOutcome,
  type LogRequests,
  SHARING_MAX,
  WANTED_MAX,
  WANTED_PER_WORKER_MAX,
} from "./log-requests.ts";

const waits = new AbortController().signal;
const about = (worker: string, taskId = "t", lines = 10) => ({ worker, taskId, attempt: 1, lines });

/** A requests before a real engine, with workers that have joined and said where their logs lie. */
async function kit(workers: Record<string, string | undefined> = { ann: "here" }, bodyLimit = 1_048_576) {
  const drover = await openDrover();
  const clock = createHandClock({ at: 0 });
  const requests = createLogRequests({ drover, clock, bodyLimit });
  const sessions = new Map<string, string>();
  const join = async (id: string, folder?: string): Promise<void> => {
    const { session } = await drover.remote.join({ id });
    sessions.set(id, session);
    requests.heard(id, session, folder);
  };
  for (const [id, folder] of Object.entries(workers)) await join(id, folder);
  /** Asks, and hears which id the request has. */
  const ask = (worker: string, taskId?: string, signal = waits): { id: string; outcome: Promise<LogOutcome> } => {
    const outcome = requests.ask(about(worker, taskId), signal);
    outcome.catch(() => {});
    return { outcome, id: requests.list(worker).at(-1)?.id ?? "" };
  };
  const handIn = (worker: string, body: LogBody) =>
    requests.take(worker, { session: sessions.get(worker) as string, ...body });
  return { drover, clock, requests, sessions, join, ask, handIn, [Symbol.asyncDispose]: () => drover.close() };
}

const refusesWith =
  (code: string, text: RegExp) =>
  (error: unknown): boolean => {
    assert.ok(error instanceof ServerRefusal || error instanceof DroverError, String(error));
    assert.equal(error.code, code);
    assert.match(error.message, text);
    return true;
  };

test("a worker hears at once all that is wanted of it, every time, and what it hands in is the answer", async () => {
  await using at = await kit();
  let rings = 0;
  const stop = at.requests.listen("ann", () => rings++);
  assert.equal(at.requests.isDue("ann"), false);
  const first = at.requests.ask(about("ann", "t", 7), waits);
  assert.deepEqual([rings, at.requests.isDue("ann")], [1, true]);
  const [wanted] = at.requests.list("ann");
  assert.deepEqual(wanted, { id: wanted?.id, taskId: "t", attempt: 1, lines: 7, bytes: 262_144 });
  assert.equal(at.requests.isDue("ann"), false, "it has just been told");
  const second = at.ask("ann", "u");
  assert.equal(at.requests.list("ann").length, 2);
  const body = { id: wanted?.id ?? "", text: "a\nb\n", truncated: true };
  assert.deepEqual(at.handIn("ann", body), { status: "taken", id: wanted?.id });
  assert.deepEqual(await first, { kind: "tail", text: "a\nb\n", truncated: true });
  assert.deepEqual(at.handIn("ann", body), { status: "taken", id: wanted?.id }, "the same again changes nothing");
  at.handIn("ann", { id: second.id, text: null });
  assert.deepEqual(await second.outcome, { kind: "none" });
  assert.deepEqual([at.requests.list("ann"), at.clock.alarms().length], [[], 0]);
  stop();
});

test("what is not handed in is told again each second, and nobody waits longer than the limit", async () => {
  await using at = await kit();
  const { outcome, id } = at.ask("ann");
  let rings = 0;
  at.requests.listen("ann", () => {
    rings++;
    at.requests.list("ann");
  });
  at.clock.turn(999);
  assert.equal(rings, 0);
  at.clock.turn(1);
  assert.equal(rings, 1);
  at.clock.turn(LOG_WAIT_MS - 1001);
  assert.equal(rings, 4);
  assert.equal(at.requests.list("ann").length, 1);
  at.clock.turn(1);
  assert.deepEqual(await outcome, { kind: "silent" });
  assert.deepEqual(at.handIn("ann", { id, text: "x" }), { status: "late", id });
  assert.deepEqual([at.requests.list("ann"), at.clock.alarms().length], [[], 0]);
});

test("two who want the same share a request until the worker has heard of it, and not after", async () => {
  await using at = await kit();
  const early = [at.requests.ask(about("ann"), waits), at.requests.ask(about("ann"), waits)];
  const other = at.requests.ask(about("ann", "t", 11), waits);
  const told = at.requests.list("ann");
  assert.equal(told.length, 2);
  const late = at.ask("ann");
  assert.equal(at.requests.list("ann").length, 3);
  at.handIn("ann", { id: told[0]?.id ?? "", text: "early" });
  at.handIn("ann", { id: told[1]?.id ?? "", text: "eleven" });
  at.handIn("ann", { id: late.id, text: "late" });
  const texts = (await Promise.all([...early, other, late.outcome])).map((one) => "text" in one && one.text);
  assert.deepEqual(texts, ["early", "early", "eleven", "late"]);
});

test("only so many share a request: each of them gets the whole text", async () => {
  await using at = await kit();
  const sharing = Array.from({ length: SHARING_MAX }, () => at.requests.ask(about("ann"), waits));
  const oneMore = at.requests.ask(about("ann"), waits);
  await assert.rejects(oneMore, refusesWith("overloaded", /^32 others wait for this log already; try again/));
  at.handIn("ann", { id: at.requests.list("ann")[0]?.id ?? "", text: "x" });
  assert.equal((await Promise.all(sharing)).length, SHARING_MAX);
});

test("who hangs up is forgotten, and the request with the last of them", async () => {
  await using at = await kit();
  const gone = new AbortController();
  const one = at.requests.ask(about("ann"), gone.signal);
  const other = at.requests.ask(about("ann"), waits);
  const [wanted] = at.requests.list("ann");
  gone.abort(new Error("hung up"));
  await assert.rejects(one, /hung up/);
  assert.equal(at.requests.list("ann").length, 1);
  at.handIn("ann", { id: wanted?.id ?? "", text: "x" });
  assert.equal((await other).kind, "tail");
  const last = at.ask("ann", "u", gone.signal);
  await assert.rejects(last.outcome, /hung up/);
  const leaving = new AbortController();
  const left = at.ask("ann", "u", leaving.signal);
  leaving.abort(new Error("hung up"));
  await assert.rejects(left.outcome, /hung up/);
  assert.deepEqual([at.requests.list("ann"), at.clock.alarms().length], [[], 0]);
  assert.deepEqual(at.handIn("ann", { id: left.id, text: "x" }), { status: "late", id: left.id });
});

test("so many logs may be wanted of a worker and of all together, and no more", async () => {
  const count = WANTED_MAX / WANTED_PER_WORKER_MAX + 1;
  const names = Array.from({ length: count }, (_, index) => `w${index}`);
  await using at = await kit(Object.fromEntries(names.map((name) => [name, name])));
  for (const name of names.slice(1))
    for (let index = 0; index < WANTED_PER_WORKER_MAX; index++) at.ask(name, `t${index}`);
  await assert.rejects(at.ask("w1", "more").outcome, refusesWith("overloaded", /^16 logs are wanted of worker w1 al/));
  await assert.rejects(at.ask("w0").outcome, refusesWith("overloaded", /^256 logs are wanted of workers already/));
  at.handIn("w1", { id: at.requests.list("w1")[0]?.id ?? "", text: null });
  assert.notEqual(at.ask("w0").id, "");
});

test("a worker that lies is refused, and whoever waits waits on", async () => {
  await using at = await kit({ ann: "here", bob: "there" }, 1024);
  const { outcome, id } = at.ask("ann");
  assert.equal(at.requests.list("ann")[0]?.bytes, 512, "what a body may have, less its frame");
  const rows: [() => unknown, string, RegExp][] = [
    [
      () => at.handIn("ann", { id: "log_x", text: "x" }),
      "not_found",
      /worker ann was not asked for log log_x; hand in/,
    ],
    [() => at.handIn("bob", { id, text: "x" }), "not_found", /worker bob was not asked for log/],
    [() => at.handIn("nobody", { id, text: "x" }), "not_found", /nobody/],
    [() => at.requests.take("ann", { session: "old", id, text: "x" }), "session_lost", /ann/],
    [
      () => at.handIn("ann", { id, text: "x".repeat(511) }),
      "bad_request",
      /text .*513 bytes.*at most 512 bytes as JSON/,
    ],
    [() => at.handIn("ann", { id, text: "\u001b".repeat(90) }), "bad_request", /text .*542 bytes/],
  ];
  for (const [lie, code, text] of rows) assert.throws(lie, refusesWith(code, text));
  assert.equal(at.handIn("ann", { id, text: "x".repeat(510) }).status, "taken");
  assert.equal((await outcome).kind, "tail");
  assert.throws(() => at.handIn("bob", { id, text: "x" }), refusesWith("not_found", /bob was not asked/));
});

test("a log that its worker could not read is told with its reason", async () => {
  await using at = await kit();
  const { outcome, id } = at.ask("ann");
  at.handIn("ann", { id, text: null, error: "EACCES" });
  assert.deepEqual(await outcome, { kind: "failed", error: "EACCES" });
});

const keeperOf = (requests: LogRequests, worker: string): string => {
  const keeper = requests.keeperOf(worker);
  if (typeof keeper === "string") return keeper;
  return "anyOf" in keeper ? `any of ${keeper.anyOf}` : keeper.worker;
};

test("a log is where its worker is, or who took over its folder; else it is said why not", async () => {
  await using at = await kit({ ann: "here", bob: undefined });
  await at.drover.remote.join({ id: "new" });
  await at.drover.remote.join({ id: "push", endpoint: "http://127.0.0.1:9/" });
  await at.drover.worker({ id: "inside" }, () => {});
  const found = Object.fromEntries(
    ["ann", "bob", "new", "push", "inside", "stranger"].map((id) => [id, keeperOf(at.requests, id)]),
  );
  assert.deepEqual(found, {
    ...{ ann: "ann", bob: "keeps-none", push: "keeps-none", inside: "keeps-none" },
    stranger: "any of ann",
    new: "new",
  });
  await at.drover.remote.leave("ann");
  assert.equal(keeperOf(at.requests, "ann"), "gone");
  await at.join("cid", "elsewhere");
  assert.equal(keeperOf(at.requests, "ann"), "gone");
  await at.join("dan", "here");
  assert.equal(keeperOf(at.requests, "ann"), "dan");
  await at.join("ann");
  assert.equal(keeperOf(at.requests, "ann"), "keeps-none", "it is back, and keeps none now");
});

test("who waits hears at once that the worker left, or that it keeps no logs after all", async () => {
  await using at = await kit();
  const left = at.ask("ann");
  at.requests.left("ann");
  assert.deepEqual(await left.outcome, { kind: "gone" });
  const { session } = await at.drover.remote.join({ id: "new" });
  const early = at.requests.ask(about("new"), waits);
  assert.deepEqual(at.requests.list("new"), [], "it has not said that it keeps any");
  at.requests.heard("new", "another", undefined);
  at.requests.heard("new", session, undefined);
  assert.deepEqual(await early, { kind: "keeps-none" });
});

test("what a stranger or a former session says of its folder is not believed", async () => {
  await using at = await kit();
  at.requests.heard("stranger", undefined, "here");
  at.requests.heard("ann", "another", undefined);
  assert.deepEqual([keeperOf(at.requests, "stranger"), keeperOf(at.requests, "ann")], ["any of ann", "ann"]);
});

test("of several in one folder the one heard of last is asked: the other may be dead already", async () => {
  await using at = await kit({ old: "here", new: "here" });
  assert.deepEqual([keeperOf(at.requests, "old"), keeperOf(at.requests, "new")], ["new", "new"]);
  at.requests.heard("old", at.sessions.get("old"), "here");
  assert.deepEqual([keeperOf(at.requests, "old"), keeperOf(at.requests, "new")], ["old", "old"]);
});

test("a worker that kept none and has left has none", async () => {
  await using at = await kit({ ann: undefined, bob: "there" });
  await at.drover.remote.leave("ann");
  assert.equal(keeperOf(at.requests, "ann"), "keeps-none");
});

test("where nobody knows the folder some who are there are asked, and the first that has it answers", async () => {
  const names = Array.from({ length: ASKED_AT_ONCE_MAX + 4 }, (_, index) => `w${index}`);
  await using at = await kit(Object.fromEntries(names.map((name) => [name, name])));
  await at.join("heir", "w19");
  const anyOf = [...names.slice(4, -1), "heir"];
  assert.deepEqual(at.requests.keeperOf("before the restart"), { anyOf });
  const { worker: _, ...request } = about("");
  const found = at.requests.askAny(anyOf, request, waits);
  const idOf = (worker: string): string => at.requests.list(worker)[0]?.id ?? "";
  at.handIn("w5", { id: idOf("w5"), text: null });
  at.handIn("w6", { id: idOf("w6"), text: null, error: "EACCES" });
  at.handIn("heir", { id: idOf("heir"), text: "kept" });
  assert.deepEqual(await found, { kind: "tail", text: "kept", truncated: false });
  assert.deepEqual([at.requests.list("w7"), at.clock.alarms().length], [[], 0], "the others are asked no longer");
  const none = at.requests.askAny(["w5", "w6"], request, waits);
  for (const worker of ["w5", "w6"]) at.handIn(worker, { id: idOf(worker), text: null });
  assert.deepEqual(await none, { kind: "gone" });
  const gone = new AbortController();
  const unheard = at.requests.askAny(["w5", "w6"], request, gone.signal);
  gone.abort(new Error("hung up"));
  await assert.rejects(unheard, /hung up/);
  for (let index = 0; index < WANTED_PER_WORKER_MAX; index++) at.ask("w5", `t${index}`);
  const crowded = at.requests.askAny(["w5", "w6"], request, waits);
  at.handIn("w6", { id: idOf("w6"), text: null });
  await assert.rejects(crowded, refusesWith("overloaded", /wanted of worker w5 already/));
});
