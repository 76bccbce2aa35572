/**
 * What each verb says, letter by letter: to people, to programs, and when it goes wrong. And what it asks of the
 * server.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { cannedServer, drover, NOW, type Ran, Refusal } from "../../test/kits/cli/canned-server.ts";
import { lines, testTerminal } from "../../test/kits/cli/test-terminal.ts";
import { taskFields } from "../protocol/shapes/tasks.ts";
import { runCommandLine } from "./command-line.ts";
import { newPart } from "./shell/log-text.ts";
import { VERBS } from "./verbs.ts";

const directory = mkdtempSync(join(tmpdir(), "drover-verbs-"));
after(() => rmSync(directory, { recursive: true, force: true }));

const running = {
  taskId: "tsk_12",
  state: "running",
  attempt: 2,
  agentId: "ann",
  project: "web",
  action: "write the page",
  worker: "mac-1",
  createdAt: "2026-01-31T11:50:00.000Z",
  startedAt: "2026-01-31T11:59:30.000Z",
};
const failed = {
  taskId: "tsk_7",
  state: "failed",
  attempt: 3,
  agentId: "ben",
  project: "default",
  action: "build",
  error: "exit code 1: \u001b[31mno such file",
  createdAt: "2026-01-31T10:00:00.000Z",
  startedAt: "2026-01-31T10:00:01.000Z",
  completedAt: "2026-01-31T10:00:05.200Z",
  latencyMs: 5200,
  result: { log: "a" },
};

describe("submit", () => {
  const answer = { taskId: "tsk_1", state: "queued", position: 1, createdAt: "2026-01-31T12:00:00.000Z" };
  const answers = { "POST /tasks": answer };
  const bodyOf = ({ asked }: Ran): Record<string, unknown> => {
    const { id, ...body } = (asked[0]?.body ?? {}) as Record<string, unknown>;
    assert.equal(typeof id, "string");
    return body;
  };

  test("prints the id and nothing else", async () => {
    const ran = await drover(["submit", "build"], answers);
    assert.deepEqual([ran.code, ran.out, ran.err], [0, "tsk_1\n", ""]);
    assert.deepEqual(bodyOf(ran), { agentId: "ann", action: "build" });
  });

  test("with a token that speaks for one agent, a task is that agent's unless another was named", async () => {
    const refusal = { error: "agentId is me, and …", code: "forbidden", details: { field: "agentId", allowed: "ann" } };
    const bodies: string[] = [];
    const fetch: typeof globalThis.fetch = async (_, init) => {
      const { agentId } = JSON.parse(String(init?.body));
      bodies.push(agentId);
      return agentId === "ann"
        ? Response.json({ taskId: "t", state: "queued" }, { status: 202 })
        : Response.json(refusal, { status: 403 });
    };
    const run = async (env: object, ...more: string[]) => {
      const terminal = testTerminal({ env: { USER: "me", ...env }, fetch });
      return runCommandLine(["submit", "build", ...more], terminal, VERBS);
    };
    assert.deepEqual([await run({}), bodies.splice(0)], [0, ["me", "ann"]]);
    assert.deepEqual([await run({}, "--agent", "bob"), bodies.splice(0)], [4, ["bob"]]);
    assert.deepEqual([await run({ DROVER_AGENT: "eve" }), bodies.splice(0)], [4, ["eve"]]);
  });
  test("--json prints the answer as it came", async () => {
    const { out } = await drover(["submit", "build", "--json"], answers);
    assert.deepEqual(JSON.parse(out), answer);
  });

  test("has a flag for every field", async () => {
    writeFileSync(join(directory, "payload.json"), '{"deep": [1]}');
    const args = [
      ...["submit", "click", "--agent", "bot", "--project", "web", "--type", "code", "--id", "mine"],
      ...["--params", '{"a": 1}', "--payload", "@payload.json", "--priority", "-5", "--deadline", "30m"],
      ...["--not-before", "2026-02-01T00:00:00Z", "--callback-url", "https://example.com/hook", "--parent", "p"],
      ...["--needs", "a,b", "--needs", "c", "--artifact", "/tmp/x", "--cpu", "0.5", "--memory", "1GiB"],
      ...["--capability", "git", "--lock", "repo:x", "--zone", "eu", "--provider", "anthropic/default"],
      ...["--tokens", "500", "--iteration", "2", "--max-attempts", "1", "--timeout", "10m", "--tab", "t1"],
      ...["--ref", "e5", "--selector", "#go", "--on-dependency-failure", "run", "--on-loss", "fail"],
      ...["--label", "team=web", "--label", "where=a=b", "--max-rounds", "3", "--until", "npm test"],
      ...["--output", "report/**", "--approval", "ship it?", "--wait-children"],
    ];
    const { asked, err } = await drover(args, answers, { cwd: directory });
    assert.equal(err, "");
    assert.deepEqual(asked[0]?.body, {
      ...{ agentId: "bot", action: "click", id: "mine", project: "web", type: "code", params: { a: 1 } },
      ...{ payload: { deep: [1] }, priority: -5, deadline: "2026-01-31T12:30:00.000Z" },
      ...{ notBefore: "2026-02-01T00:00:00Z", callbackUrl: "https://example.com/hook", parent: "p" },
      ...{ needs: ["a", "b", "c"], inputArtifact: "/tmp/x" },
      resources: { cpuMillicores: 500, memoryBytes: 1_073_741_824 },
      ...{ capabilities: ["git"], locks: ["repo:x"], zone: "eu", provider: "anthropic/default" },
      ...{ estimatedTokens: 500, iteration: 2, maxAttempts: 1, timeoutMs: 600_000, tabId: "t1", ref: "e5" },
      ...{ selector: "#go", onDependencyFailure: "run", onLoss: "fail" },
      labels: { team: "web", where: "a=b" },
      loop: { until: "npm test", max: 3 },
      ...{ outputs: ["report/**"], approval: { question: "ship it?" }, wait: "children" },
    });
    assert.deepEqual(Object.keys(asked[0]?.body as object).sort(), Object.keys(taskFields).sort());
  });

  test("--needs gives a need a name before an equals sign", async () => {
    const ran = await drover(["submit", "x", "--needs", "spec=task-1,task-2", "--needs", "code=a=b"], answers);
    assert.deepEqual(bodyOf(ran).needs, { spec: "task-1", "task-2": "task-2", code: "a=b" });
  });

  test("--until without --max-rounds has no end, and is refused", async () => {
    const { code, err } = await drover(["submit", "x", "--until", "true"], answers);
    assert.equal(code, 2);
    assert.match(err, /--max-rounds 10/);
  });

  test("--command is params.command of an exec task, beside other params", async () => {
    const ran = await drover(["submit", "--command", "echo hello", "--params", '{"cwd": "x"}'], answers);
    assert.deepEqual(bodyOf(ran), { agentId: "ann", action: "exec", params: { cwd: "x", command: "echo hello" } });
  });

  test("--params - reads standard input", async () => {
    const ran = await drover(["submit", "x", "--params", "-"], answers, { input: '{"from": "stdin"}' });
    assert.deepEqual(bodyOf(ran).params, { from: "stdin" });
  });

  test("tells warnings on standard error", async () => {
    const warnings = [{ type: "never-fits", detail: "it needs gpu; no worker offers gpu" }];
    const { out, err } = await drover(["submit", "x"], { "POST /tasks": { ...answer, throttle: true, warnings } });
    assert.equal(out, "tsk_1\n");
    assert.equal(
      err,
      lines(
        "warning: it needs gpu; no worker offers gpu",
        "warning: the queue is filling; submit more slowly",
        "         npx drover why tsk_1 says what is missing",
      ),
    );
  });

  test("--wait tells the way on standard error and the result on standard output", async () => {
    const states = [{ ...running, state: "queued", position: 3, worker: undefined }, running];
    const done = { ...running, state: "done", completedAt: "2026-01-31T12:00:00.000Z", result: { pages: 3 } };
    const ran = await drover(["submit", "x", "--wait"], {
      ...answers,
      "GET /tasks/tsk_1": () => states.shift() ?? running,
      "GET /tasks/tsk_1/wait": done,
    });
    assert.equal(ran.code, 0);
    assert.equal(ran.out, '{\n  "pages": 3\n}\n');
    assert.equal(ran.err, lines("tsk_12 queued: number 3 in line", "tsk_12 done: ran 30s on mac-1"));
  });

  test("--wait ends with code 1 when the task failed, and with --json prints the task", async () => {
    const ran = await drover(["submit", "x", "--wait", "--json"], {
      ...answers,
      "GET /tasks/tsk_1": failed,
      "GET /tasks/tsk_1/wait": failed,
    });
    assert.equal(ran.code, 1);
    assert.deepEqual(JSON.parse(ran.out), failed);
    assert.equal(ran.err, "");
  });

  test("Ctrl-C while waiting leaves the task alone, and says so", async () => {
    const hanging = cannedServer({ ...answers, "GET /tasks/tsk_1": running });
    const fetch: typeof globalThis.fetch = (input, init) => {
      if (!String(input).includes("/wait")) return hanging.fetch(input, init);
      return new Promise((_, reject) => {
        init?.signal?.addEventListener("abort", () => reject(init.signal?.reason), { once: true });
        terminal.signal("SIGINT");
      });
    };
    const terminal = testTerminal({ env: { USER: "ann" }, now: () => NOW, fetch });
    const code = await runCommandLine(["submit", "x", "--wait"], terminal, VERBS);
    assert.equal(code, 130);
    assert.match(terminal.complained(), /stopped waiting; the task goes on: npx drover task tsk_1 --watch\n$/);
  });

  const wrong: [args: string[], err: string][] = [
    [
      [],
      "error: what is to be done is missing\n" +
        "hint:  npx drover submit ACTION, or npx drover submit --command 'echo hello'\n",
    ],
    [
      ["x", "--params", "{"],
      "error: --params: its value is not JSON: Expected property name or '}' in JSON at position 1 (line 1 column 2)" +
        `\nhint:  such as --params '{"path": "src"}', --params @file.json, or --params - for standard input\n`,
    ],
    [["x", "--params", "[1]"], `error: --params must be a JSON object, such as '{"path": "src"}'\n`],
    [["x", "--params", "@missing"], "error: --params: missing cannot be read: there is no such file\n"],
    [
      ["x", "--params", "-", "--payload", "-"],
      "error: --params and --payload cannot both be standard input\nhint:  give one of them as @file\n",
    ],
    [
      ["--command", "a", "--params", '{"command": "b"}'],
      "error: --params has a command already\nhint:  give the command once: --command, or command in --params\n",
    ],
    [
      ["x", "--deadline", "tomorrow"],
      'error: --deadline is "tomorrow"\n' +
        "hint:  give an instant such as 2026-01-31T12:00:00Z, or a span from now: 30s, 2h\n",
    ],
    [
      ["x", "--memory", "lots"],
      "error: option '--memory <size>' argument 'lots' is invalid. It must be a size such as 512MiB or 2GB.\n" +
        "hint:  its flags, with examples: npx drover help submit\n",
    ],
  ];
  for (const [args, err] of wrong)
    test(`${args.join(" ") || "nothing"} is refused here, and the server is not asked`, async () => {
      const ran = await drover(["submit", ...args], answers);
      assert.deepEqual([ran.code, ran.out, ran.err, ran.asked.length], [2, "", err, 0]);
    });
});

describe("submit --batch", () => {
  const input = '{"action":"a","id":"a"}\n\n{"action":7,"id":"b"}\n';
  const batch = {
    ...{ groupId: "grp_7", submitted: 2, accepted: 1, rejected: 1 },
    tasks: [
      { taskId: "a", state: "queued" },
      { state: "rejected", error: "tasks[1].action is 7, and must be text" },
    ],
  };
  const answers = { "POST /tasks/batch": batch };
  test("prints the ids, says by its line what was turned away, and names the group", async () => {
    const { code, out, err, asked } = await drover(["submit", "--batch", "-", "-p", "web"], answers, { input });
    assert.deepEqual([code, out], [4, "a\n"]);
    assert.match(
      err,
      /^error: standard input:3: action is 7, and must be text\n1 of 2 accepted; .* group grp_7 --wait /,
    );
    assert.deepEqual(asked[0]?.body, {
      agentId: "ann",
      project: "web",
      tasks: [
        { action: "a", id: "a" },
        { action: 7, id: "b" },
      ],
    });
  });
  test("with --json answers as the server does", async () => {
    const { out, err } = await drover(["submit", "--batch", "-", "--json"], answers, { input });
    assert.deepEqual([JSON.parse(out), err], [batch, ""]);
  });
  test("refuses what is said of one task, and asks nothing", async () => {
    for (const args of [["build"], ["--max-attempts", "2"], ["--wait"]]) {
      const { code, err, asked } = await drover(["submit", ...args, "--batch", "-"], answers, { input });
      assert.deepEqual([code, asked.length], [2, 0]);
      assert.ok(err.startsWith(`error: ${args[0]} is of one task, and --batch has many\n`), err);
    }
  });
});

describe("the server says no", () => {
  const rows: [refusal: Refusal, code: number, err: string][] = [
    [new Refusal(400, "bad_request", "priority is 1.5, and must be …"), 2, "error: priority is 1.5, and must be …\n"],
    [new Refusal(404, "not_found", "no log of x"), 4, "error: no log of x\n"],
    [
      new Refusal(401, "unauthorized", "no token"),
      4,
      "error: no token\nhint:  set DROVER_TOKEN to a token of this server\n",
    ],
    [
      new Refusal(429, "queue_full", "the queue is full: 5 of maxQueue 5 tasks"),
      5,
      "error: the queue is full: 5 of maxQueue 5 tasks\n" +
        "hint:  try again in a while, or raise the limit that the message names\n",
    ],
    [new Refusal(500, "internal", "a bug"), 6, "error: a bug\nhint:  the server's own log says more\n"],
  ];
  for (const [refusal, code, err] of rows)
    test(`${refusal.body.code} is exit code ${code}`, async () => {
      const ran = await drover(["task", "x"], { "GET /tasks/x": refusal });
      assert.deepEqual([ran.code, ran.out, ran.err], [code, "", err]);
    });

  test("with --json the refusal is passed on as it came", async () => {
    const refusal = new Refusal(409, "conflict", "task x has ended as done", { state: "done" });
    const ran = await drover(["task", "x", "--json"], { "GET /tasks/x": refusal });
    assert.deepEqual([ran.code, ran.out], [4, ""]);
    const { error, code, details } = JSON.parse(ran.err);
    assert.deepEqual([error, code, details], ["task x has ended as done", "conflict", { state: "done" }]);
  });

  test("a server that asks to come back much later is not waited for", { timeout: 60_000 }, async () => {
    const fetch: typeof globalThis.fetch = async () =>
      new Response(JSON.stringify({ error: "shutting down", code: "closed", retryable: true }), {
        status: 503,
        headers: { "retry-after": "45" },
      });
    const ran = await drover(["task", "x"], {}, { fetch });
    assert.deepEqual([ran.code, ran.err.split("\n")[0]], [3, "error: shutting down"]);
  });

  test("an address that is none is refused before anything is asked", async () => {
    const ran = await drover(["tasks", "--url", "localhost:1"]);
    assert.deepEqual([ran.code, ran.asked.length], [2, 0]);
    assert.match(ran.err, /^error: url is "localhost:1", and must be an http or https URL\nhint: /);
  });

  test("the token comes from DROVER_TOKEN, the address from DROVER_URL or --url", async () => {
    const seen: [string, string | null][] = [];
    const fetch: typeof globalThis.fetch = async (input, init) => {
      seen.push([String(input), new Headers(init?.headers).get("authorization")]);
      return new Response('{"workers": [], "count": 0}');
    };
    const env = { DROVER_URL: "http://one:1/", DROVER_TOKEN: "secret" };
    await drover(["workers"], {}, { fetch, env });
    await drover(["workers", "--url", "http://two:2"], {}, { fetch, env });
    assert.deepEqual(seen, [
      ["http://one:1/workers", "Bearer secret"],
      ["http://two:2/workers", "Bearer secret"],
    ]);
  });
});

describe("tasks", () => {
  const page = { tasks: [running, failed], count: 2, nextCursor: "12" };
  test("is a table, and says that there is more", async () => {
    const { out, asked } = await drover(["tasks", "-n", "2"], { "GET /tasks": page });
    assert.equal(
      out,
      lines(
        "ID      STATE    PROJECT  AGENT  ACTION          TRY  WORKER  AGE  TOOK  NOTE",
        "tsk_12  running  web      ann    write the page    2  mac-1   10m   30s",
        "tsk_7   failed            ben    build             3           2h  4.2s  exit code 1: ␛[31mno such file",
        "",
        "There are more: --cursor 12, or --all.",
      ),
    );
    assert.deepEqual(
      asked.map(({ call }) => call),
      ["GET /tasks?order=newest&limit=2"],
    );
  });
  test("is a tree with --tree, whole and from its root", async () => {
    const child = { ...running, taskId: "tsk_13", parent: "tsk_12", state: "queued", action: "leaf", attempt: 0 };
    const leaf = { ...child, taskId: "tsk_15", parent: "tsk_13" };
    const tasks = [running, child, failed, leaf, { ...child, taskId: "tsk_16" }];
    const { out, asked } = await drover(["tasks", "--tree", "tsk_12"], { "GET /tasks": { tasks, count: 5 } });
    assert.deepEqual(
      out.split("\n").map((line) => line.slice(0, 20).trimEnd()),
      [
        "ID          STATE",
        "tsk_12      running",
        "  tsk_13    queued",
        "    tsk_15  queued",
        "  tsk_16    queued",
      ].concat(["tsk_7       failed", ""]),
    );
    assert.deepEqual(asked[0]?.call, "GET /tasks?root=tsk_12&order=oldest&limit=1000");
    const newest = await drover(["tasks", "--tree"], { "GET /tasks": { tasks: tasks.toReversed(), count: 5 } });
    assert.equal(newest.out, out, "the other way round it is the same tree");
    const [head = "", , , , , last = ""] = out.split("\n");
    assert.equal(
      last
        .slice(0, head.indexOf("TOOK") + 4)
        .split(" ")
        .at(-1),
      "4.2s",
      "how long it ran, not waited too",
    );
  });
  test("in a narrow terminal keeps the ids whole", async () => {
    const { out } = await drover(["tasks", "-n", "2"], { "GET /tasks": page }, { width: 76 });
    for (const line of out.split("\n")) assert.ok(line.length <= 76, line);
    assert.match(out, /^tsk_12 .*…/m);
  });
  test("in a narrow terminal keeps why a task failed, and both ends of a long id", async () => {
    const long = { ...failed, taskId: "nightly-refactor/implement-the-payment-service-of-the-shop-v2" };
    const usage = { inputTokens: 120_000, outputTokens: 999, cachedTokens: 0, cost: 1.5 };
    const tasks = [{ ...running, usage, project: "payments" }, long, { ...running, state: "parked", approval: ASKED }];
    const shown = async (width: number) =>
      (await drover(["tasks"], { "GET /tasks": { tasks, count: 3 } }, { width })).out;
    for (const width of [80, 90, 100, 140])
      for (const line of (await shown(width)).split("\n")) assert.ok(line.length <= width, line);
    const [head, , second, third] = (await shown(80)).split("\n");
    assert.match(head ?? "", /^ID +STATE +ACTION +AGE +NOTE$/);
    assert.match(second ?? "", /^nightly-refac\S+…\S+shop-v2 +failed .* exit code 1: .*…$/);
    assert.match(third ?? "", / asks: Is it good\?$/);
    assert.match((await shown(140)).split("\n")[0] ?? "", /AGENT .* TOOK +TOKENS +COST +NOTE$/);
  });
  test("asks for what was filtered", async () => {
    const args =
      "tasks -p web -a ann --state queued,running --label a=b,c --label d=e --since 8h -n 5 --cursor 9".split(" ");
    const { asked } = await drover(args, { "GET /tasks": { tasks: [], count: 0 } });
    assert.equal(
      asked[0]?.call,
      "GET /tasks?project=web&agentId=ann&state=queued&state=running&label=a%3Db%2Cc&label=d%3De" +
        "&order=newest&since=2026-01-31T04%3A00%3A00.000Z&limit=5&cursor=9",
    );
  });
  test("in the words of the API too, for --order", async () => {
    for (const order of ["newest", "oldest", "desc", "asc"]) {
      const { asked } = await drover(["tasks", "--order", order], {
        [`GET /tasks?order=${order}&limit=50`]: { tasks: [running], count: 1 },
      });
      assert.equal(asked.length, 1, order);
    }
  });

  test("--all reads every page, --json answers one", async () => {
    const { out, asked } = await drover(["tasks", "--all", "--json"], {
      "GET /tasks?order=newest&limit=1000": { tasks: [running], count: 1, nextCursor: "5" },
      "GET /tasks?order=newest&limit=1000&cursor=5": { tasks: [failed], count: 1 },
    });
    assert.equal(asked.length, 2);
    assert.deepEqual(JSON.parse(out), { tasks: [running, failed], count: 2 });
  });
  test("a page that ended before its limit is not the last", async () => {
    const { out } = await drover(["tasks", "--json"], {
      "GET /tasks?order=newest&limit=50": { tasks: [running], count: 1, nextCursor: "5" },
      "GET /tasks?order=newest&limit=49&cursor=5": { tasks: [failed], count: 1 },
    });
    assert.deepEqual(JSON.parse(out), { tasks: [running, failed], count: 2 });
  });
  test("nothing there", async () => {
    const { out } = await drover(["tasks"], { "GET /tasks": { tasks: [], count: 0 } });
    assert.match(out, /^No tasks here\. Ended ones leave the list after scheduler\.resultTtl, .*\n$/);
  });
});

const ASKED = { question: "Is it good?" };

describe("usage", () => {
  const usage = { inputTokens: 12_000, outputTokens: 345, cachedTokens: 0, cost: 0.1 + 0.2 };
  const report = {
    by: "label:team",
    rows: [
      { key: "web", attempts: 2, usage },
      { key: "", attempts: 1, usage: { ...usage, cost: undefined } },
    ],
    count: 2,
    total: { attempts: 1003, usage },
    omitted: 7,
  };
  test("is a table with a sum", async () => {
    const { out, asked } = await drover("usage --by label:team -p web -a ann --since 2026-01-30 -n 2".split(" "), {
      "GET /usage": report,
    });
    assert.equal(
      asked[0]?.call,
      "GET /usage?by=label%3Ateam&project=web&agentId=ann&limit=2&since=2026-01-30T00%3A00%3A00Z",
    );
    assert.equal(
      out,
      lines(
        "LABEL:TEAM        ATTEMPTS  TOKENS IN  OUT  FROM A CACHE  COST",
        "web                      2     12 000  345             0   0.3",
        "                         1     12 000  345             0",
        "all, with 7 more     1 003     12 000  345             0   0.3",
      ),
    );
  });
  test("nothing was used yet", async () => {
    const { out } = await drover(["usage"], { "GET /usage": { ...report, rows: [], count: 0, omitted: undefined } });
    assert.equal(out, "Nothing was used, as far as attempts have said.\n");
  });
});

for (const [given, asked] of [
  ["8h", "2026-01-31T04%3A00%3A00.000Z"],
  ["2026-01-30", "2026-01-30T00%3A00%3A00Z"],
  ["2026-01-30T08:00:00+01:00", "2026-01-30T08%3A00%3A00%2B01%3A00"],
] as const)
  test(`--since ${given} is an instant on the wire`, async () => {
    const { asked: calls } = await drover(["tasks", "--since", given], { "GET /tasks": { tasks: [], count: 0 } });
    assert.match(calls[0]?.call ?? "", new RegExp(`since=${asked.replaceAll(".", "\\.")}&`));
  });
for (const given of ["yesterday", "8 hours", "2026-13-45", "2026-1-1"])
  test(`--since ${given} is refused, with what would be right`, async () => {
    const { code, err } = await drover(["tasks", "--since", given], {});
    assert.equal(code, 2);
    assert.match(err, /--since is ".*"\nhint: {2}give a span before now, such as 8h, a date such as 2026-01-31, or an/);
  });

describe("group", () => {
  const group = {
    ...{ id: "grp_7", projects: ["web"], total: 3, counts: { queued: 0, done: 2, failed: 1 } },
    ...{ createdAt: "2026-01-31T10:00:00.000Z", endedAt: "2026-01-31T11:00:00.000Z" },
  };
  test("shows how many of its tasks are where", async () => {
    const { out } = await drover(["group", "grp_7"], { "GET /groups/grp_7": group });
    assert.match(out, /^tasks +3: 2 done, 1 failed$/m);
    assert.match(out, /^ended +2026-01-31T11:00:00\.000Z \(1h ago\)$/m);
  });
  test("--retry --wait runs again what did not go well, and fails unless all are done", async () => {
    const answers = {
      "POST /groups/grp_7/retry": { status: "submitted", groupId: "grp_7", count: 1, refused: 0 },
      "GET /groups/grp_7/wait": group,
    };
    const { asked, code } = await drover(["group", "grp_7", "--retry", "--wait"], answers);
    assert.deepEqual([asked.length, code], [2, 1]);
    const done = { ...group, counts: { done: 3 } };
    assert.equal((await drover(["group", "grp_7", "-w"], { "GET /groups/grp_7/wait": done })).code, 0);
  });
  test("--cancel cancels what has not ended; both at once are refused", async () => {
    const answers = { "POST /groups/grp_7/cancel": { status: "cancelled", groupId: "grp_7", count: 1 } };
    const { asked } = await drover(["group", "grp_7", "--cancel"], { ...answers, "GET /groups/grp_7": group });
    assert.equal(asked[0]?.call, "POST /groups/grp_7/cancel");
    assert.equal((await drover(["group", "grp_7", "--cancel", "--retry"], {})).code, 2);
  });
});

describe("task", () => {
  test("lists what there is to know, and nothing that is unset", async () => {
    const { out } = await drover(["task", "tsk_7"], { "GET /tasks/tsk_7": failed });
    assert.equal(
      out,
      lines(
        "task     tsk_7",
        "state    failed",
        "error    exit code 1: ␛[31mno such file",
        "action   build",
        "agent    ben",
        "project  default",
        "attempt  3",
        "created  2026-01-31T10:00:00.000Z (2h ago)",
        "started  2026-01-31T10:00:01.000Z (2h ago)",
        "ended    2026-01-31T10:00:05.200Z (2h ago)",
        "took     4.2s",
        "in all   5.2s from submit to end",
        "result",
        "  {",
        '    "log": "a"',
        "  }",
      ),
    );
  });
  test("--json is the task as it came", async () => {
    const { out } = await drover(["task", "tsk_7", "--json"], { "GET /tasks/tsk_7": failed });
    assert.deepEqual(JSON.parse(out), failed);
  });
  test("--logs prints the log, made safe", async () => {
    const logs = { taskId: "tsk_7", attempt: 3, text: "one\n\u001b[2Jtwo\n", truncated: false };
    const { out, asked } = await drover(["task", "tsk_7", "--logs", "--tail", "2", "--attempt", "3"], {
      "GET /tasks/tsk_7/logs": logs,
    });
    assert.equal(out, "one\n␛[2Jtwo\n");
    assert.equal(asked[0]?.call, "GET /tasks/tsk_7/logs?attempt=3&tail=2");
  });
  test("--watch tells each change, and the exit code tells the end", async () => {
    const states: unknown[] = [{ ...failed, state: "queued", error: undefined, completedAt: undefined }];
    const ran = await drover(["task", "tsk_7", "--watch"], {
      "GET /tasks/tsk_7": () => states.shift() ?? failed,
      "GET /tasks/tsk_7/wait": failed,
    });
    assert.equal(ran.code, 1);
    assert.equal(ran.out, lines("tsk_7 queued", "tsk_7 failed: ran 4.2s, exit code 1: ␛[31mno such file"));
  });
  test("--logs --watch goes on to the end though the worker with the log does not answer", async () => {
    const { code, out, err } = await drover(["task", "tsk_7", "--logs", "--watch"], {
      ...{ "GET /tasks/tsk_7": failed, "GET /tasks/tsk_7/wait": failed },
      "GET /tasks/tsk_7/logs": new Refusal(504, "worker_silent", "worker w did not hand it in"),
    });
    assert.deepEqual([code, out, err.includes("error:")], [1, "", false]);
    assert.equal(err.split("no log: worker w did not hand it in\n").length, 2, "once, at the end");
  });
  test("--logs --watch of a log that may not be read ends, and says so", async () => {
    const over = Promise.withResolvers<unknown>();
    const { code, err } = await drover(["task", "tsk_7", "--logs", "--watch"], {
      ...{ "GET /tasks/tsk_7": { ...failed, state: "running" }, "GET /tasks/tsk_7/wait": () => over.promise },
      "GET /tasks/tsk_7/logs": new Refusal(403, "forbidden", "the token may not read it"),
    });
    over.resolve(failed);
    assert.deepEqual([code, err.includes("error: the token may not read it")], [4, true]);
  });
  test("what is new in a log is found behind what was shown", () => {
    const rows: [before: string, now: string, fresh: string][] = [
      ["", "a\n", "a\n"],
      ["a\n", "a\nb\n", "b\n"],
      ["a\n", "a\n", ""],
      ["a\nb\n", "b\nc\n", "c\n"],
      ["x\nx\nx\n", "x\nx\ny\n", "y\n"],
      ["x\ny\n", "p\nq\n", "p\nq\n"],
      ["abcabc", "bcabcd", "d"],
    ];
    for (const [before, now, fresh] of rows) assert.equal(newPart(before, now), fresh, JSON.stringify([before, now]));
  });
});
