/**
 * What a page asks for, over HTTP: who it is, pulses, links, a search, what workers run, and the last hours.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { SettingView } from "../../src/protocol/index.ts";
import { createHandClock } from "../../src/std/hand-clock.ts";
import { edit } from "../kits/forged-log.ts";
import { openServer } from "../kits/test-server.ts";
import { until } from "../kits/waits.ts";

const home = mkdtempSync(join(tmpdir(), "drover-watching-"));
after(() => rmSync(home, { recursive: true, force: true }));
const tokenOf = (name: string): string => `token-of-${name}-0123456789`;
const tokens = [
  { role: "admin", token: tokenOf("admin") },
  { role: "agent", token: tokenOf("ann"), agentId: "ann", project: "site" },
  { role: "viewer", token: tokenOf("looker"), projects: ["site", "shop"] },
];

test("a token is told who it speaks for; without tokens everybody is admin", async () => {
  await using open = await openServer();
  assert.deepEqual((await open.ask("whoami", {})).json, { role: "admin" });
  await using at = await openServer({ settings: { server: { tokens } } });
  const told = async (name: string) => (await at.ask("whoami", {}, { token: tokenOf(name) })).json;
  assert.deepEqual(await told("ann"), { role: "agent", project: "site", projects: ["site"], agentId: "ann" });
  assert.deepEqual(await told("looker"), { role: "viewer", projects: ["site", "shop"] });
  assert.equal((await at.ask("whoami", {}, { token: "nobody-0123456789" })).status, 401);
});

test("a pulse comes at once, and again a second after something has happened", async () => {
  const clock = createHandClock({ at: 1_800_000_000_000 });
  await using at = await openServer({ server: { clock } });
  const once = (await at.ask("pulse", {})).json;
  assert.deepEqual([once.seq, once.inFlight, once.paused], [at.drover.state.seq, 0, false]);
  assert.equal(once.maxInFlight, at.drover.state.config.scheduler.maxInFlight);
  const stream = await fetch(`${at.url}/pulse`, { headers: { accept: "text/event-stream" } });
  const reader = (stream.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
  let said = "";
  const seqs = (): number[] => [...said.matchAll(/"seq":(\d+)/g)].map(([, seq]) => Number(seq));
  const more = async (): Promise<void> => {
    said += (await reader.read()).value ?? "";
  };
  await until("the first pulse", () => seqs().length === 1, more);
  await clock.advance(5000);
  await at.ask("submit", { body: { id: "a", agentId: "ann", action: "x" } });
  await clock.advance(1000);
  await until("the second pulse", () => seqs().length === 2, more);
  assert.deepEqual(seqs(), [once.seq, at.drover.state.seq], "none came while nothing happened");
  assert.match(said, /event: pulse\ndata: .*"queued":1/);
  await reader.cancel();
});

test("lists are shared for a second by those who say so, and never with a token of other rights", async () => {
  const clock = createHandClock({ at: 1_800_000_000_000 });
  await using at = await openServer({ server: { clock }, settings: { server: { tokens } } });
  const add = async (id: string, project: string): Promise<string> => {
    const said = await at.ask("submit", { body: { id, agentId: "ann", project, action: "x" } }, admin);
    return said.headers.get("x-drover-seq") ?? "";
  };
  const admin = { token: tokenOf("admin") };
  const shown = async (name: string, more: Record<string, string> = {}): Promise<string[]> => {
    const headers = { authorization: `Bearer ${tokenOf(name)}`, "cache-control": "max-age=1", ...more };
    const { json } = await at.call("GET", "/projects", { headers });
    return (json as { projects: { id: string }[] }).projects.map(({ id }) => id).sort();
  };
  await add("a", "shop");
  await add("b", "secret");
  assert.deepEqual(await shown("admin"), ["secret", "shop"]);
  assert.deepEqual(await shown("looker"), ["shop"]);
  const seq = await add("c", "site");
  assert.deepEqual(await shown("admin"), ["secret", "shop"], "what was told before");
  assert.deepEqual(await shown("admin", { "cache-control": "no-cache" }), ["secret", "shop", "site"]);
  assert.deepEqual(await shown("looker", { "x-drover-after": seq }), ["shop", "site"]);
  await clock.advance(1001);
  assert.deepEqual(await shown("admin"), ["secret", "shop", "site"]);
});

test("the whole log is hashed anew by a call, which says up to where it is as it was written", async () => {
  const data = join(home, "verified");
  await using at = await openServer({ open: { data }, settings: { server: { tokens } } });
  const admin = { token: tokenOf("admin") };
  for (const id of ["a", "b", "c"])
    await at.ask("submit", { body: { id, agentId: "ann", project: "site", action: "x" } }, admin);
  const whole = (await at.ask("verify", {}, admin)).json;
  assert.deepEqual([whole.ok, whole.upTo, whole.problems], [true, whole.head.seq, []]);
  assert.equal(whole.head.hash, (await at.drover.head()).hash);
  assert.equal((await at.ask("verify", {}, { token: tokenOf("ann") })).status, 403);
  // One letter of the last batch but one, as somebody with the file in hand would change it.
  const broken = whole.head.seq - 1;
  edit(data, `UPDATE batch SET bytes = CAST(replace(bytes, X'61', X'62') AS BLOB) WHERE last_seq = ${broken}`);
  const found = (await at.ask("verify", {}, admin)).json;
  assert.equal(found.ok, false);
  assert.ok(found.upTo < broken && found.upTo > 0, `right up to ${found.upTo}`);
  assert.equal(found.problems[0]?.seq, found.upTo + 1);
});

test("links are one step up and one step down, and those of others are left out", async () => {
  await using at = await openServer({ settings: { server: { tokens } } });
  const [admin, ann] = [{ token: tokenOf("admin") }, { token: tokenOf("ann") }];
  const submit = (id: string, more: object = {}) =>
    at.ask("submit", { body: { id, agentId: "ann", project: "site", action: "x", ...more } }, admin);
  await submit("root");
  await submit("middle", { parent: "root" });
  await submit("needed");
  await submit("own", { parent: "middle", needs: ["needed"] });
  await submit("child", { parent: "own" });
  await submit("later", { needs: ["own"] });
  await submit("foreign", { agentId: "ben", needs: ["own"] });
  const links = async (id: string, who: { token: string }) => {
    const { up, down } = (await at.ask("links", { params: { id }, query: {} }, who)).json;
    return [up, down].map((list) => list.map(({ taskId, kind, state }) => `${kind} ${taskId} ${state}`));
  };
  const up = ["parent middle waiting", "need needed queued"];
  assert.deepEqual(await links("own", admin), [
    up,
    ["child child waiting", "dependent later waiting", "dependent foreign waiting"],
  ]);
  assert.deepEqual(await links("own", ann), [up, ["child child waiting", "dependent later waiting"]]);
  assert.equal((await at.ask("links", { params: { id: "foreign" }, query: {} }, ann)).status, 404);
});

test("a search looks at what people know a task by, in either case", async () => {
  await using at = await openServer();
  const submit = (id: string, more: object) => at.ask("submit", { body: { id, agentId: "ann", action: "x", ...more } });
  await submit("One", {});
  await submit("two", { action: "build-ONE-page" });
  await submit("three", { labels: { team: "Stone" } });
  await submit("four", { project: "zone" });
  await submit("five", { type: "clone" });
  await submit("six", { agentId: "one-bot" });
  await submit("seven", { params: { text: "one" } });
  const found = async (query: object) => (await at.ask("tasks", { query })).json.tasks.map(({ taskId }) => taskId);
  assert.deepEqual(await found({ q: "one" }), ["One", "two", "three", "four", "five", "six"]);
  assert.deepEqual(await found({ q: "one", order: "newest", project: "zone" }), ["four"]);
  assert.equal((await at.call("GET", "/tasks?q=")).status, 400);
});

test("a worker is shown with what it runs and what it has left; of others' tasks a token hears nothing", async () => {
  await using at = await openServer({ settings: { server: { tokens } } });
  const admin = { token: tokenOf("admin") };
  await at.ask("joinWorker", { body: { id: "w", slots: 2, resources: { cpuMillicores: 4000 } } }, admin);
  const body = { action: "x", resources: { cpuMillicores: 1500 } };
  await at.ask("submit", { body: { ...body, id: "mine", agentId: "ann", project: "site" } }, admin);
  await at.ask("submit", { body: { ...body, id: "theirs", agentId: "ben" } }, admin);
  const worker = async (name: string) => (await at.ask("workers", {}, { token: tokenOf(name) })).json.workers[0];
  const seen = await worker("admin");
  assert.deepEqual([seen?.tasks, seen?.free], [["mine", "theirs"], { cpuMillicores: 1000 }]);
  assert.deepEqual((await worker("ann"))?.tasks, ["mine"]);
});

test("what can never run here and what waits too long is told, each line once, and to those whose it is", async () => {
  const priority = { starvationAfter: "1ms" };
  await using at = await openServer({ settings: { server: { tokens }, scheduler: { priority, maxInFlight: 1 } } });
  const admin = { token: tokenOf("admin") };
  const submit = (id: string, more: object = {}) =>
    at.ask("submit", { body: { id, agentId: "ann", project: "site", action: "x", ...more } }, admin);
  const told = async (name: string) =>
    (await at.ask("stuck", {}, { token: tokenOf(name) })).json.tasks.map(
      (one) => `${one.why} ${one.taskId} ${one.count}`,
    );
  await at.ask("joinWorker", { body: { id: "w", capabilities: ["git"] } }, admin);
  await submit("runs");
  await submit("gpu", { capabilities: ["gpu"] });
  await submit("gpu-too", { capabilities: ["gpu"] });
  await submit("theirs", { agentId: "ben", capabilities: ["tpu"] });
  await submit("late");
  await until(
    "a wait of a millisecond",
    async () => (await told("admin")).includes("overdue late 1"),
    async () => {},
  );
  // Those that came in the same millisecond have waited equally long.
  assert.deepEqual((await told("admin")).sort(), ["never-fits gpu 2", "never-fits theirs 1", "overdue late 1"]);
  assert.deepEqual(await told("ann"), ["never-fits gpu 2", "overdue late 1"]);
});

test("a scoped token reads the events of its own tasks, page and stream", async () => {
  await using at = await openServer({ settings: { server: { tokens } } });
  const [admin, ann] = [{ token: tokenOf("admin") }, { token: tokenOf("ann") }];
  for (const [id, agentId] of [
    ["mine", "ann"],
    ["theirs", "ben"],
  ] as const)
    await at.ask("submit", { body: { id, agentId, project: "site", action: "x" } }, admin);
  for (const id of ["mine", "theirs"]) await at.ask("cancel", { params: { id }, body: {} }, admin);
  const page = (await at.ask("events", { query: {} }, ann)).json.events;
  assert.deepEqual([...new Set(page.map(({ task }) => task))], ["mine"]);
  assert.ok(page.some(({ kind }) => kind === "task-cancelled"));
  assert.equal((await at.ask("events", { query: { task: "theirs" } }, ann)).status, 404);
});

test("samples are taken every ten seconds, outlive a restart, and are bounded; a torn line costs itself", async () => {
  const file = join(home, "history.jsonl");
  const clock = createHandClock({ at: 1_800_000_000_000 });
  const opened = () => openServer({ server: { clock, historyFile: file } });
  {
    await using at = await opened();
    await at.drover.worker({}, () => null);
    await at.ask("submit", { body: { id: "a", agentId: "ann", project: "site", action: "x" } });
    await at.drover.ended("a");
    await clock.advance(60_000);
    const { json } = await at.ask("history", { query: {} });
    assert.deepEqual([json.step, json.samples.length], [10_000, 6]);
    const [first] = json.samples;
    assert.deepEqual([first?.done, first?.starts], [1, 1]);
    assert.ok((first?.waitP50Ms ?? 0) >= 1 && first?.waitP95Ms === first?.waitP50Ms, "one task has waited");
    assert.equal(json.samples[1]?.waitP50Ms, undefined, "and none since");
    assert.deepEqual(
      first?.projects.map(({ id }) => id),
      ["site"],
    );
    assert.equal((await at.ask("history", { query: { step: 30_000 } })).json.samples.length, 2);
    const [bare] = (await at.ask("history", { query: { projects: false } })).json.samples;
    assert.deepEqual(bare, { ...first, projects: [] });
    await clock.advance(10_000);
    assert.equal((await at.ask("history", { query: {} })).json.samples.length, 7, "a new sample is seen at once");
  }
  assert.equal(statSync(file).mode & 0o777, 0o600);
  writeFileSync(file, `${readFileSync(file, "utf8")}{"at":"2027-01`);
  await using at = await opened();
  await until(
    "what was kept",
    async () => (await at.ask("history", { query: {} })).json.samples.length === 7,
    async () => {},
  );
  await clock.advance(22_000_000);
  const all = (await at.ask("history", { query: { from: "2020-01-01T00:00:00Z" } })).json;
  assert.ok(all.samples.length <= 1000 && all.samples.length > 500, String(all.samples.length));
  assert.equal(all.step, 30_000);
  assert.ok(readFileSync(file, "utf8").split("\n").length <= 4400, "the file does not grow for ever");
});

test("the config is told to all who ask as it was written once, until a knob is another", async () => {
  let written = 0;
  const value = { toJSON: () => ++written };
  const viewsOf = (path: string): SettingView[] => [{ path, value, origin: "file" }];
  let views = viewsOf("scheduler.maxInFlight");
  await using at = await openServer({ server: { settingViews: () => views } });
  const told = async (): Promise<string[]> =>
    (await at.ask("settings", {})).json.settings.map(({ path, value: shown }) => `${path} ${shown}`);
  for (let viewer = 0; viewer < 200; viewer++) assert.deepEqual(await told(), ["scheduler.maxInFlight 1"]);
  await at.drover.patchConfig({ maxQueue: 7 });
  assert.deepEqual(await told(), ["scheduler.maxInFlight 2", "scheduler.maxQueue 7"]);
  await at.drover.submit({ id: "t", agentId: "ann", action: "x" });
  assert.deepEqual(await told(), ["scheduler.maxInFlight 2", "scheduler.maxQueue 7"], "work changes no knob");
  views = viewsOf("scheduler.resultTtl");
  assert.deepEqual(await told(), ["scheduler.resultTtl 3", "scheduler.maxQueue 7"]);
});
