/**
 * What the verbs about the fleet and the log say, and what they ask: why, cancel, retry, approve, workers, projects,
 * gates, schedules, pause, resume, events.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { drover, NOW, Refusal } from "../../../test/kits/cli/canned-server.ts";
import { lines, testTerminal } from "../../../test/kits/cli/test-terminal.ts";
import { runCommandLine } from "../command-line.ts";
import { VERBS } from "../verbs.ts";

describe("why", () => {
  const LATER = new Date(NOW + 30_000).toISOString();
  const why = {
    task: "tsk_12",
    state: "queued",
    summary: `It waits because it is backing off until ${LATER} after 1 failures and 0 losses (and 1 more condition).`,
    conditions: [
      { code: "fleet-paused", ok: true, detail: "the fleet is not paused", numbers: {} },
      {
        code: "backing-off",
        ok: false,
        detail: `it is backing off until ${LATER} after 1 failures and 0 losses`,
        numbers: { failures: 1, losses: 0, until: LATER, waitMs: 30_000 },
      },
      { code: "worker-room", ok: false, detail: "every worker is full", numbers: { workers: 1200, zone: null } },
    ],
    ahead: { count: 1, next: [{ task: "tsk_3", agent: "ann", reason: "score 120 before 110" }] },
  };

  test("is a picture of what holds it: numbers, who is ahead, when it could start", async () => {
    const { out } = await drover(["why", "tsk_12"], { "GET /tasks/tsk_12/why": why });
    assert.match(
      out,
      /\n {2}✘ worker-room {2}every worker is full\n.*\n\n {2}1 other condition is met; see --all\n\nBefore it/,
    );
    assert.doesNotMatch(out, /✔/);
  });
  test("has with --all also the conditions that are met, after those that are not", async () => {
    const { out } = await drover(["why", "tsk_12", "--all"], { "GET /tasks/tsk_12/why": why });
    assert.equal(
      out,
      lines(
        "tsk_12 is queued. It waits because it is backing off until 2026-01-31T12:00:30.000Z (in 30s) after " +
          "1 failures and 0 losses (and 1 more condition).",
        "",
        "  ✘ backing-off   it is backing off until 2026-01-31T12:00:30.000Z (in 30s) after 1 failures and 0 losses",
        "                  failures 1, losses 0, until in 30s, waitMs 30 000",
        "  ✘ worker-room   every worker is full",
        "                  workers 1 200",
        "",
        "  ✔ fleet-paused  the fleet is not paused",
        "",
        "Before it: 1 task of its agent is ahead.",
        "  tsk_3 of ann  score 120 before 110",
        "",
        "Earliest start: 2026-01-31T12:00:30.000Z (in 30s), if others let it: it depends on them too.",
      ),
    );
  });
  test("names tasks as their plan does, also where an id was given; what an earlier run left has its id", async () => {
    const [ship, lint] = ["web.ship.4d2443ff1420.90df7d04", "web.lint[a,b].625213cb5a13.cd53c244"];
    const old = "web.1.lint.625213cb5a13.cd53c244";
    const numbers = { dependency: lint, unmet: 1 };
    const answer = {
      ...{ task: ship, state: "waiting", ahead: { count: 0, next: [{ task: lint, agent: "ann", reason: "first" }] } },
      summary: `It waits because its need ${lint} is running.`,
      conditions: [{ code: "dependency", ok: false, detail: `its needs ${lint}, ${old} are running`, numbers }],
    };
    const tasks = [
      { name: "ship", taskId: ship },
      { name: "lint[a,b]", taskId: lint },
    ];
    const answers = {
      [`GET /tasks/${ship}/why`]: answer,
      [`GET /tasks/${ship}`]: { taskId: ship, state: "waiting", attempt: 0, depth: 0, group: "plan:web" },
      "GET /plans/web": { id: "web", groupId: "plan:web", tasks },
    };
    const { out } = await drover(["why", ship], answers);
    assert.match(out, /^web\/ship is waiting\. It waits because its need web\/lint\[a,b\] is running\.\n/);
    assert.match(out, /its needs web\/lint\[a,b\], web\.1\.lint\.625213cb5a13\.cd53c244 are running\n/);
    assert.match(out, /dependency web\/lint\[a,b\], unmet 1\n/);
    assert.match(out, /Before it:\n {2}web\/lint\[a,b\] of ann/);
    const json = await drover(["why", ship, "--json"], answers);
    assert.deepEqual(JSON.parse(json.out), answer);
    assert.equal(json.asked.length, 1);
    const { out: alone } = await drover(["why", ship], {
      ...answers,
      "GET /plans/web": new Refusal(403, "forbidden", "no"),
    });
    assert.match(alone, /^web\.ship\.4d2443ff1420\.90df7d04 is waiting/);
  });
  test("wraps in a narrow terminal, and knows when it could start", async () => {
    const answer = {
      ...why,
      conditions: [why.conditions[1]],
      ahead: { count: 0, next: [] },
      earliestStart: "2026-01-31T12:00:30Z",
    };
    const { out } = await drover(["why", "tsk_12"], { "GET /tasks/tsk_12/why": answer }, { width: 60 });
    assert.equal(
      out,
      lines(
        "tsk_12 is queued. It waits because it is backing off until",
        "2026-01-31T12:00:30.000Z (in 30s) after 1 failures and 0",
        "losses (and 1 more condition).",
        "",
        "  ✘ backing-off  it is backing off until",
        "                 2026-01-31T12:00:30.000Z (in 30s) after 1",
        "                 failures and 0 losses",
        "                 failures 1, until in 30s, waitMs 30 000",
        "",
        "Earliest start: 2026-01-31T12:00:30Z (in 30s)",
      ),
    );
  });
  for (const width of [30, 40])
    test(`keeps within ${width} columns`, async () => {
      const { out } = await drover(["why", "tsk_12"], { "GET /tasks/tsk_12/why": why }, { width });
      for (const line of out.split("\n")) assert.ok(line.length <= width, line);
      assert.match(out, /^tsk_12 is queued\. It waits\b/);
      assert.match(out, /\n {2}✘ worker-room\n {4}every worker is full\n {4}workers 1 200\n/);
    });
  test("--at asks for the past, --json passes the answer on", async () => {
    const { out, asked } = await drover(["why", "tsk_12", "--at", "47", "--json"], { "GET /tasks/tsk_12/why": why });
    assert.equal(asked[0]?.call, "GET /tasks/tsk_12/why?at=47");
    assert.deepEqual(JSON.parse(out), why);
  });
});

describe("cancel and retry", () => {
  const gone = new Refusal(404, "not_found", "no task has the id b");
  const answers = {
    "POST /tasks/a/cancel": { status: "cancelled", taskId: "a" },
    "POST /tasks/b/cancel": gone,
    "POST /tasks/c/cancel": { status: "cancelled", taskId: "c" },
  };
  test("one that is refused does not keep the others from theirs", async () => {
    const ran = await drover(["cancel", "a", "b", "c", "--reason", "wrong branch"], answers);
    assert.deepEqual([ran.code, ran.out, ran.err], [4, "a cancelled\nc cancelled\n", "error: no task has the id b\n"]);
    assert.deepEqual(ran.asked[0]?.body, { reason: "wrong branch" });
  });
  test("--json has a line for each", async () => {
    const ran = await drover(["cancel", "a", "c", "--json"], answers);
    assert.equal(ran.out, '{"status":"cancelled","taskId":"a"}\n{"status":"cancelled","taskId":"c"}\n');
  });
  test("--where cancels until there is nothing left, and sums up", async () => {
    const counts = [10_000, 3, 0];
    const ran = await drover(["cancel", "--where", "project=web", "--where", "state=queued, running"], {
      "POST /tasks/cancel": () => ({ status: "cancelled", count: counts.shift() }),
    });
    assert.equal(ran.out, "10003 tasks cancelled\n");
    assert.deepEqual(ran.asked[0]?.body, { filter: { project: "web", state: ["queued", "running"] } });
    assert.equal(ran.asked.length, 3);
  });
  test("--where all means all", async () => {
    const ran = await drover(["cancel", "--where", "all"], { "POST /tasks/cancel": { status: "cancelled", count: 0 } });
    assert.deepEqual(ran.asked[0]?.body, { filter: { all: true } });
    assert.equal(ran.out, "0 tasks cancelled\n");
  });
  const wrong: [args: string[], error: string][] = [
    [[], "error: name the tasks, or say --where, and not both"],
    [["a", "--where", "all"], "error: name the tasks, or say --where, and not both"],
    [["--where", "colour=red"], 'error: --where "colour=red" is no filter'],
    [["--where", "constructor=x"], 'error: --where "constructor=x" is no filter'],
    [["--where", "project="], 'error: --where "project=" is no filter'],
    [["--where", "project=a", "--where", "project=b"], "error: --where names project twice"],
  ];
  for (const [args, error] of wrong)
    test(`cancel ${args.join(" ")} is refused here`, async () => {
      const ran = await drover(["cancel", ...args]);
      assert.deepEqual([ran.code, ran.err.split("\n")[0], ran.asked.length], [2, error, 0]);
    });
  test("retry says so", async () => {
    const answer = { taskId: "a", state: "queued", createdAt: "2026-01-31T12:00:00Z" };
    const ran = await drover(["retry", "a"], { "POST /tasks/a/retry": answer });
    assert.deepEqual([ran.code, ran.out], [0, "a submitted again\n"]);
  });
});

describe("approve", () => {
  const answer = (taskId: string, state: string): object => ({ taskId, state, createdAt: "2026-01-31T12:00:00Z" });
  const answers = {
    "POST /tasks/a/approve": answer("a", "queued"),
    "POST /tasks/b/approve": new Refusal(409, "conflict", "b is done, not parked; the first answer counts"),
    "POST /tasks/c/approve": answer("c", "queued"),
  };
  test("says yes to each with the note, and one that is refused does not keep the others from theirs", async () => {
    const ran = await drover(["approve", "a", "b", "c", "--note", "the blue one"], answers);
    assert.deepEqual([ran.code, ran.out], [4, "a approved\nc approved\n"]);
    assert.equal(ran.err, "error: b is done, not parked; the first answer counts\n");
    assert.deepEqual(
      ran.asked.map(({ body }) => body),
      Array(3).fill({ note: "the blue one" }),
    );
  });
  test("--deny says no, and why", async () => {
    const denied = { "POST /tasks/a/approve": answer("a", "failed") };
    const ran = await drover(["approve", "a", "--deny", "--note", "not now"], denied);
    assert.deepEqual([ran.code, ran.out, ran.asked[0]?.body], [0, "a denied\n", { note: "not now", deny: true }]);
  });
  test("alone it says nothing but yes, and --json has what the API answers", async () => {
    const ran = await drover(["approve", "a", "--json"], answers);
    assert.deepEqual([JSON.parse(ran.out), ran.asked[0]?.body], [answers["POST /tasks/a/approve"], {}]);
  });
  test("without an id it is refused here", async () => {
    const ran = await drover(["approve"], answers);
    assert.deepEqual([ran.code, ran.asked.length], [2, 0]);
  });
});

describe("workers", () => {
  const workers = [
    { id: "mac-1", kind: "remote", status: "busy", slots: 4, inFlight: 2, capabilities: ["git", "node"], zone: "eu" },
    { id: "local", kind: "local", status: "idle", slots: 1, inFlight: 0, capabilities: [] },
  ];
  test("are a table", async () => {
    const { out } = await drover(["workers"], { "GET /workers": { workers, count: 2 } });
    assert.equal(
      out,
      lines(
        "ID     KIND    STATUS    BUSY  ZONE  CAPABILITIES",
        "mac-1  remote  busy    2 of 4  eu    git, node",
        "local  local   idle    0 of 1",
      ),
    );
  });
  test("none says how to start one; --json is the list", async () => {
    const empty = { "GET /workers": { workers: [], count: 0 } };
    assert.match(
      (await drover(["workers"], empty)).out,
      /^No worker is here\. Start one: .*drover.* worker --commands \(or --exec 'PROGRAM'\)\n$/,
    );
    assert.deepEqual(JSON.parse((await drover(["workers", "--json"], empty)).out), { workers: [], count: 0 });
  });
  test("drain and remove", async () => {
    const drained = await drover(["workers", "drain", "mac-1"], {
      "POST /workers/mac-1/drain": { status: "draining", workerId: "mac-1" },
    });
    assert.equal(drained.out, "mac-1 is draining: it finishes what it has\n");
    const left = await drover(["workers", "remove", "mac-1"], {
      "DELETE /workers/mac-1": { status: "left", workerId: "mac-1" },
    });
    assert.equal(left.out, "mac-1 has left; what it held is queued again\n");
  });
});

const project = {
  ...{ id: "web", weight: 3, maxConcurrent: 50, budget: { limit: 2_000_000, window: 86_400_000 }, maxPriority: -100 },
  ...{ provider: null, status: "active", queued: 1200, inFlight: 2, level: 41_000.4, target: 0.75, charged: 123_001 },
  ...{ spent: 1_500_000, reserved: 10_000, share: 0.8, deficit: -0.05 },
};

describe("projects", () => {
  test("are a table", async () => {
    const docs = {
      ...project,
      id: "docs",
      weight: 1,
      share: 0.2,
      target: 0.25,
      deficit: 0.05,
      status: "paused",
      budget: { limit: null, window: 1000 },
    };
    const { out } = await drover(["projects"], { "GET /projects": { projects: [project, docs], count: 2 } });
    assert.equal(
      out,
      lines(
        "PROJECT  STATUS  WEIGHT  SHARE  TARGET  DEFICIT  TO RUN  RUNNING  CHARGED   LEVEL  BUDGET",
        "web                   3    80%     75%    -5.0%   1 200  2 of 50  123 001  41 000  1 500 000 + 10 000 set " +
          "aside of 2 000 000 in 1d",
        "docs     paused       1    20%     25%     5.0%   1 200  2 of 50  123 001  41 000",
      ),
    );
  });
  test("say when a budget that runs out has more", async () => {
    const shown = async (spent: number): Promise<string> => {
      const one = { ...project, spent, freesAt: "2026-01-31T12:47:00Z" };
      return (await drover(["projects"], { "GET /projects": { projects: [one], count: 1 } })).out;
    };
    assert.match(await shown(1_990_000), /of 2 000 000 in 1d, more in 47m\n$/);
    assert.match(await shown(100), /of 2 000 000 in 1d\n$/);
  });
  test("keep what they may spend in a narrow terminal, and what waits", async () => {
    const used = { ...project, usage: { inputTokens: 1_000_000, outputTokens: 1, cachedTokens: 0, cost: 12.5 } };
    const headAt = async (width: number): Promise<string> =>
      (await drover(["projects"], { "GET /projects": { projects: [used], count: 1 } }, { width })).out;
    assert.match(await headAt(80), /^PROJECT +SHARE +TO RUN +RUNNING +BUDGET\n.* of 2 000 000 in 1d\n$/);
    assert.match(await headAt(120), /^PROJECT +WEIGHT +SHARE +TARGET +TO RUN +RUNNING +TOKENS +COST +BUDGET\n/);
  });
  test("set names only what changes", async () => {
    const args = ["projects", "set", "web", "--weight", "3", "--budget", "2_000_000", "--window", "24h"];
    const { out, asked } = await drover(args, { "PUT /projects/web": project });
    assert.deepEqual(asked[0]?.body, { weight: 3, budget: { limit: 2_000_000, window: 86_400_000 } });
    assert.match(out, /^PROJECT .*\nweb /);
  });
  test("set: none takes a limit or a provider away", async () => {
    const args = ["projects", "set", "web", "--budget", "none", "--provider", "none", "--max-priority", "critical"];
    const { asked } = await drover(args, { "PUT /projects/web": project });
    assert.deepEqual(asked[0]?.body, { budget: { limit: null }, maxPriority: "critical", provider: null });
  });
  test("set: nothing, and a budget that is none", async () => {
    assert.match((await drover(["projects", "set", "web"])).err, /^error: nothing to set\n/);
    assert.match(
      (await drover(["projects", "set", "web", "--weight", "0"])).err,
      /a number above 0 and at most 1000000\.\nhint: {2}its flags, with examples: npx drover help projects set\n$/,
    );
    assert.match(
      (await drover(["projects", "set", "web", "--budget", "much"])).err,
      /It must be a whole number of tokens/,
    );
  });
});

describe("gates", () => {
  const open = {
    ...{ id: "anthropic/default", running: 3, queued: 7, limit: 10, maxConcurrent: 10, throttles: 0, slowStart: null },
    ...{ requests: 50, requestsUsed: 12, windowMs: 60_000, tokensReserved: 0, held: null },
    tokensUsed: { perMinute: { limit: 40_000, used: 1200 }, perHour: null, perDay: null },
  };
  const none = { perMinute: null, perHour: null, perDay: null };
  test("are a table with countdowns", async () => {
    const blockedUntil = "2026-01-31T12:00:12Z";
    const blocked = { ...open, id: "openai", throttles: 2, blockedUntil, tokensUsed: none };
    const { out } = await drover(["gates"], { "GET /gates": { gates: [open, blocked], count: 2 } });
    assert.equal(
      out,
      lines(
        "GATE                   OUT  WAITING  REQUESTS        TOKENS                 THROTTLES  STATE",
        "anthropic/default  3 of 10        7  12 of 50 in 1m  1 200 of 40 000 in 1m             open",
        "openai             3 of 10        7  12 of 50 in 1m                                 2  blocked, opens in 12s",
      ),
    );
  });
  test("never have more calls out than the number beside it says there may be", async () => {
    const probing = { ...open, running: 9, limit: 1, slowStart: 1, tokensUsed: none };
    const lowered = { ...open, running: 9, limit: 1, maxConcurrent: 1, tokensUsed: none };
    const { out } = await drover(["gates"], { "GET /gates": { gates: [probing, lowered], count: 2 } });
    assert.match(out, /9, limit 1 .* open, slow start at 1\n/);
    assert.match(out, /9, limit 1 /);
  });
  test("one that recovers has as many places as may be out now", async () => {
    const stats = {
      scheduled: 0,
      completed: 0,
      rateLimited: 1,
      waitMs: 0,
      serviceMs: 0,
      peakQueued: 0,
      peakRunning: 0,
    };
    const gate = { ...open, running: 0, limit: 1, slowStart: 1, stats, calls: [] };
    const { out } = await drover(["gates", "show", open.id], { "GET /gates/anthropic%2Fdefault": gate });
    assert.match(out, /Running: 0\/1 .*\n.*State: open, slow start at 1 /);
  });
  test("one is shown with its totals and its calls", async () => {
    const stats = { scheduled: 1200, completed: 1197, rateLimited: 4, waitMs: 60_000, serviceMs: 2_394_000 };
    const calls = [
      { id: "p7", class: "high", state: "running", seconds: 12.4, project: "web", task: "tsk_1" },
      { id: "call-9", class: "normal", state: "queued", seconds: 61, project: "docs" },
    ];
    const gate = { ...open, throttles: 2, stats: { ...stats, peakQueued: 9, peakRunning: 10 }, calls };
    const place = "GET /gates/anthropic%2Fdefault";
    const { out } = await drover(["gates", "show", "anthropic/default"], { [place]: gate });
    assert.equal(
      out,
      lines(
        "┌─ anthropic/default ──────────────────────────────────────────────────────────┐",
        "│ Running: 3/10  Queued: 7  Rate Limited: No                                   │",
        "│ State: open  Throttles: 2  At most: 10 running, 9 queued                     │",
        "│ Requests: 12 of 50 in 1m  Tokens: 1,200 of 40,000 in 1m                      │",
        "├──────────────────────────────────────────────────────────────────────────────┤",
        "│ [HIGH] tsk_1     Running   12.4s            web                              │",
        "│ … 2 more                                                                     │",
        "│ ─────────────────────────────────────────────────────────────────────────────│",
        "│ [NORM] call-9    Queued    waiting 1m 1s    docs                             │",
        "│ … 6 more                                                                     │",
        "├──────────────────────────────────────────────────────────────────────────────┤",
        "│ Stats: 1,197 completed | 4 rate limited | avg wait 0.0s, avg run 2.0s        │",
        "└──────────────────────────────────────────────────────────────────────────────┘",
      ),
    );
    assert.equal((await drover(["gates", "anthropic/default"], { [place]: gate })).out, out);
    const idle = await drover(["gates", "show", "anthropic/default"], {
      [place]: { ...gate, running: 0, queued: 0, calls: [] },
    });
    assert.match(idle.out, /\n│ Nothing runs, and nothing waits for its turn\. +│\n/);
  });
  test("one fits on the terminal with the prompt below it, and an instant that is over is not named", async () => {
    const stats = {
      scheduled: 9,
      completed: 9,
      rateLimited: 0,
      waitMs: 0,
      serviceMs: 0,
      peakQueued: 60,
      peakRunning: 10,
    };
    const id = (at: number): string => `permit_2d8a777a-6d0f-4c1e-8000-0000000000${at + 10}`;
    const calls = Array.from({ length: 60 }, (_, at) => ({
      ...{ id: id(at), class: "normal", state: at < 10 ? "running" : "queued", seconds: 1 },
      ...{ project: "web", task: `build-${at}` },
    }));
    const held = { held: "requests", heldUntil: new Date(NOW - 1100).toISOString() };
    const gate = { ...open, ...held, running: 10, queued: 50, stats, calls };
    const canned = { "GET /gates/anthropic%2Fdefault": gate };
    const { out } = await drover(["gates", "anthropic/default"], canned, { width: 80, height: 24 });
    assert.equal(out.split("\n").length, 24, "with the line of the prompt");
    assert.match(out, /\n│ State: held: requests {2}At most/);
    assert.match(out, /\n│ \[NORM\] build-10 {2}Queued {4}waiting 1\.0s {5}web +│/);
    const piped = await drover(["gates", "anthropic/default"], canned);
    assert.match(piped.out, /build-59/);
  });
  test("one is reset or deleted by its name", async () => {
    const place = "/gates/anthropic%2Fdefault";
    const asked = await drover(["gates", "reset", "anthropic/default"], {
      [`POST ${place}/reset`]: { status: "reset", gate: "anthropic/default" },
    });
    assert.equal(
      asked.out,
      "anthropic/default has no block and no throttles; calls that are out stay out, and count (drover gates drop)\n",
    );
    const gone = await drover(["gates", "delete", "anthropic/default"], {
      [`DELETE ${place}`]: { status: "removed", gate: "anthropic/default" },
    });
    assert.equal(gone.out, "anthropic/default is removed\n");
  });
  test("a call whose program is gone is taken out by its id", async () => {
    const canned = { "DELETE /permits/call-17": { status: "dropped", permitId: "call-17" } };
    const { out } = await drover(["gates", "drop", "call-17"], canned);
    assert.equal(out, "call-17 is out of its gate; what it had used by then is not known\n");
  });
  test("none", async () => {
    assert.match((await drover(["gates"], { "GET /gates": { gates: [], count: 0 } })).out, /^No gate yet/);
  });
});

describe("schedules", () => {
  const schedule = {
    ...{ id: "nightly", cron: "0 2 * * *", timeZone: "Europe/Berlin", task: { agentId: "ann", action: "backup" } },
    ...{ nextAt: "2026-02-01T01:00:00Z", lastAt: "2026-01-31T01:00:00Z" },
  };
  test("are a table", async () => {
    const { out } = await drover(["schedules"], { "GET /schedules": { schedules: [schedule], count: 1 } });
    assert.equal(
      out,
      lines(
        "ID       CRON       TIME ZONE      NEXT    LAST     OVERLAP  AGENT  ACTION",
        "nightly  0 2 * * *  Europe/Berlin  in 13h  11h ago  skip     ann    backup",
      ),
    );
  });
  test("come in pages, and --all reads every one", async () => {
    const page = { schedules: [schedule], count: 1, nextCursor: "nightly" };
    const one = await drover(["schedules", "list", "--limit", "1"], { "GET /schedules": page });
    assert.match(one.out, /\n\nThere are more: drover schedules list --cursor nightly, or --all\.\n$/);
    const all = await drover(["schedules", "list", "--all", "--json", "--cursor", "a"], {
      "GET /schedules": { schedules: [schedule], count: 1 },
    });
    assert.deepEqual(JSON.parse(all.out), { schedules: [schedule], count: 1 });
    assert.equal(all.asked[0]?.call, "GET /schedules?limit=1000&cursor=a");
  });
  test("set takes the flags of a task", async () => {
    const args = [
      ...["schedules", "set", "nightly", "--cron", "0 2 * * *", "--command", "./backup.sh", "--overlap", "queue"],
      ...["--catch-up", "2", "--time-zone", "Europe/Berlin", "--paused", "--end", "30d", "--project", "ops"],
    ];
    const { asked } = await drover(args, { "PUT /schedules/nightly": schedule });
    assert.deepEqual(asked[0]?.body, {
      ...{ cron: "0 2 * * *", timeZone: "Europe/Berlin", overlap: "queue", catchUp: 2, paused: true },
      endAt: "2026-03-02T12:00:00.000Z",
      task: { agentId: "ann", action: "exec", project: "ops", params: { command: "./backup.sh" } },
    });
  });
  test("set without a time is refused here", async () => {
    const ran = await drover(["schedules", "set", "nightly", "backup"]);
    assert.deepEqual([ran.code, ran.err.split("\n")[0]], [2, "error: --cron is missing"]);
    const idle = await drover(["schedules", "set", "nightly", "--cron", "* * * * *"]);
    assert.equal(
      idle.err,
      "error: what is to be done is missing\n" +
        "hint:  npx drover schedules set ID ACTION --cron …, or add --command 'echo hello'\n",
    );
  });
  test("remove, and none", async () => {
    const removed = await drover(["schedules", "remove", "nightly"], {
      "DELETE /schedules/nightly": { status: "removed", id: "nightly" },
    });
    assert.equal(removed.out, "nightly removed\n");
    const none = await drover(["schedules"], { "GET /schedules": { schedules: [], count: 0 } });
    assert.equal(none.out, "Nothing is scheduled.\n");
  });
});

describe("pause and resume", () => {
  test("of the fleet, a project, a task", async () => {
    const fleet = await drover(["pause"], { "POST /scheduler/pause": { status: "paused" } });
    assert.equal(fleet.out, "the whole fleet is paused: what runs goes on\n");
    const one = await drover(["resume", "-p", "web"], {
      "POST /scheduler/resume": { status: "active", project: "web" },
    });
    assert.equal(one.out, "project web goes on\n");
    assert.deepEqual(one.asked[0]?.body, { project: "web" });
    const both = await drover(["pause", "-p", "web", "--task", "t"]);
    assert.deepEqual([both.code, both.err], [2, "error: --project or --task, not both\n"]);
  });
});

describe("events", () => {
  const event = (seq: number, kind: string, payload: object): object => ({
    ...{ seq, kind, at: "2026-01-31T12:00:00.123Z", task: "tsk_1", attempt: 1, priorHash: "", postHash: "" },
    payload,
  });
  const assigned = event(7, "task-assigned", {
    ...{ kind: "task-assigned", at: 1, task: "tsk_1", attempt: 1, worker: "ada", hold: null, locks: [] },
    ...{ reason: { type: "least-loaded", queueDepth: 0 }, error: "a\nb" },
  });
  test("are lines, with the facts that are worth showing", async () => {
    const { out } = await drover(["events"], { "GET /events": { events: [assigned] } });
    assert.equal(
      out,
      "#7       2026-01-31 12:00:00.123  task-assigned       tsk_1  attempt 1  " +
        "given to ada, the least loaded, with 0 tasks  error=a␊b\n",
    );
  });
  test("--json is one event a line; pages are read until there is none", async () => {
    const { out, asked } = await drover(["events", "--after", "5", "--json"], {
      "GET /events?after=5&limit=1000": { events: [event(6, "a", {})], nextAfter: 6 },
      "GET /events?after=6&limit=1000": { events: [assigned] },
    });
    assert.deepEqual(
      out
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line).seq),
      [6, 7],
    );
    assert.equal(asked.length, 2);
  });
  test("--limit asks for no more than that", async () => {
    const { asked } = await drover(["events", "--limit", "3"], { "GET /events": { events: [assigned] } });
    assert.equal(asked[0]?.call, "GET /events?limit=3");
  });
  test("asks for what was filtered", async () => {
    const args = "events --task t --kind task-done,task-failed --label a=b --since 8h".split(" ");
    const { asked } = await drover(args, { "GET /events": { events: [] } });
    assert.equal(
      asked[0]?.call,
      "GET /events?task=t&kind=task-done&kind=task-failed&label=a%3Db&since=2026-01-31T04%3A00%3A00.000Z&limit=1000",
    );
  });
  test("--last looks for the last ones from the end, further back until there are enough", async () => {
    const { out, asked } = await drover(["events", "--kind", "task-done", "--last", "2", "--json"], {
      "GET /events?limit=1": { events: [event(101, "x", {})] },
      "GET /readyz": { status: "ready", seq: 9000, logTimeAheadMs: 0 },
      "GET /events?kind=task-done&after=8000&limit=1000": { events: [event(8500, "task-done", {})] },
      "GET /events?kind=task-done&after=5000&limit=1000": { events: [event(5500, "task-done", {})], nextAfter: 7000 },
      "GET /events?kind=task-done&after=7000&limit=1000": {
        events: [event(7500, "task-done", {}), event(8500, "task-done", {})],
      },
    });
    const seqs = out.trimEnd().split("\n");
    assert.deepEqual(
      seqs.map((line) => JSON.parse(line).seq),
      [7500, 8500],
    );
    assert.equal(asked.length, 5);
  });
  test("--last is content with what there is", async () => {
    const { out } = await drover(["events", "--last", "20"], {
      "GET /events?limit=1": { events: [event(101, "x", {})] },
      "GET /readyz": { status: "ready", seq: 500, logTimeAheadMs: 0 },
      "GET /events?after=100&limit=1000": { events: [assigned] },
    });
    assert.match(out, /^#7 /);
    const both = await drover(["events", "--last", "2", "--limit", "3"], {});
    assert.deepEqual([both.code, /^error: --last and --limit were both given/.test(both.err)], [2, true]);
  });
  test("--follow goes on until Ctrl-C", async () => {
    const encoder = new TextEncoder();
    const fetch: typeof globalThis.fetch = async (_, init) =>
      new Response(
        new ReadableStream({
          start: (controller) => {
            controller.enqueue(encoder.encode(`id: 7\nevent: x\ndata: ${JSON.stringify(assigned)}\n\n`));
            init?.signal?.addEventListener("abort", () => controller.error(init.signal?.reason));
          },
        }),
        { headers: { "content-type": "text/event-stream" } },
      );
    const terminal = testTerminal({ now: () => NOW, fetch });
    const ran = runCommandLine(["events", "--follow"], terminal, VERBS);
    await terminal.saw("#7 ");
    terminal.signal("SIGINT");
    assert.equal(await ran, 130);
  });
});
