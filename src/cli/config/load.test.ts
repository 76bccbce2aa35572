/**
 * The layers of the config with the real knobs: who wins, what is refused and how, and that every knob can be set from
 * everywhere.
 */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, describe, test } from "node:test";
import { stringify } from "yaml";
import { testTerminal } from "../../../test/kits/cli/test-terminal.ts";
import { readShape } from "../../protocol/index.ts";
import {
  alternatives,
  isSpan,
  type JsonSchema,
  knobs,
  type Path,
  schemaAt,
  shownPath,
} from "../../protocol/schema/index.ts";
import { runCommandLine } from "../command-line.ts";
import type { Environment } from "../shell/terminal.ts";
import { schemaText } from "../verbs/config.ts";
import { VERBS } from "../verbs.ts";
import { toObject } from "./layers.ts";
import { dataSetting, loadSettings, type ServerConfig } from "./load.ts";
import { BadConfig, shownProblem } from "./problem.ts";
import { SETTINGS_SCHEMA } from "./settings.ts";
import { variableOf } from "./variables.ts";

const place = mkdtempSync(join(tmpdir(), "drover-layers-"));
after(() => rmSync(place, { recursive: true, force: true }));
let places = 0;

type World = { readonly user?: string; readonly own?: string; readonly env?: Environment; readonly sets?: string[] };

function world({ user, own }: World): { cwd: string; home: string } {
  const home = join(place, `home${places++}`);
  const cwd = join(home, "work");
  mkdirSync(join(home, ".config/drover"), { recursive: true });
  mkdirSync(cwd);
  if (user !== undefined) writeFileSync(join(home, ".config/drover/drover.yml"), user);
  if (own !== undefined) writeFileSync(join(cwd, "drover.yml"), own);
  return { cwd, home };
}

const load = (given: World): ServerConfig =>
  loadSettings({ env: given.env ?? {}, sets: given.sets ?? [], ...world(given) });

function problemsOf(given: World): string[] {
  try {
    load(given);
    return [];
  } catch (error) {
    if (!(error instanceof BadConfig)) throw error;
    return error.problems.map(shownProblem);
  }
}

describe("layers", () => {
  const limit = (given: World): number => load(given).settings.config.scheduler.maxInFlight;
  const user = "scheduler: { maxInFlight: 11 }";
  const own = "scheduler: { maxInFlight: 12 }";
  const env = { DROVER_SCHEDULER__MAX_IN_FLIGHT: "13" };
  const sets = ["scheduler.maxInFlight=14"];
  test("each wins over all before it", () => {
    assert.equal(limit({}), 50);
    assert.equal(limit({ user }), 11);
    assert.equal(limit({ user, own }), 12);
    assert.equal(limit({ user, own, env }), 13);
    assert.equal(limit({ user, own, env, sets }), 14);
  });
  test("clearing goes back to the default, not to the layer below", () => {
    assert.equal(limit({ user, own: "scheduler: { maxInFlight: }" }), 50);
    assert.equal(limit({ user, own: "scheduler:\n  # maxInFlight: 12\n" }), 50);
    assert.equal(limit({ own, env: { DROVER_SCHEDULER__MAX_IN_FLIGHT: "" } }), 50);
    assert.equal(limit({ own, sets: ["scheduler.maxInFlight=null"] }), 50);
  });
  test("clearing a limit by type takes it out, and a budget's is none", () => {
    const { settings } = load({
      own: "scheduler: { perType: { code: } }\nbudget: { limit: 5 }",
      sets: ["budget.limit="],
    });
    assert.deepEqual(settings.config.scheduler.perType, { plan: 2, spec: 5, phase: 20 });
    assert.equal(settings.config.budget.limit, null);
  });
  test("the user's file is where XDG says, unless that is no absolute path", () => {
    const { cwd, home } = world({ user });
    const from = (base: string): number =>
      loadSettings({ env: { XDG_CONFIG_HOME: base }, cwd, home: "/nowhere" }).settings.config.scheduler.maxInFlight;
    assert.equal(from(join(home, ".config")), 11);
    assert.equal(from(".config"), 50);
  });
  test("--config is read instead of ./drover.yml, and must be there", () => {
    const { cwd, home } = world({ own });
    writeFileSync(join(cwd, "other.yml"), "scheduler: { maxInFlight: 7 }");
    const from = (configFile: string | undefined, env: Environment = {}): number =>
      loadSettings({ env, cwd, home, configFile }).settings.config.scheduler.maxInFlight;
    assert.equal(from("other.yml"), 7);
    assert.equal(from(undefined, { DROVER_CONFIG: "other.yml" }), 7);
    assert.equal(from(undefined, { DROVER_CONFIG: "" }), 12);
    assert.throws(() => from("missing.yml"), /missing\.yml does not exist/);
  });
  test("DROVER_DATA is short for a log in a directory, and the knob itself wins", () => {
    assert.equal(load({ env: { DROVER_DATA: "/data" } }).settings.log.url, "sqlite:/data/drover.db");
    const both = { DROVER_DATA: "/data", DROVER_LOG__URL: "memory:" };
    assert.equal(load({ env: both }).settings.log.url, "memory:");
    assert.equal(load({ env: both }).data, null);
  });
  test("where nodes share the log, DROVER_DATA and --data name the directory of this node and not another log", () => {
    const own = "log: { url: 'etcd://h1,h2/drover' }";
    const both = load({ own, env: { DROVER_DATA: "/data" } });
    assert.deepEqual([both.settings.log.url, both.data], ["etcd://h1,h2/drover", "/data"]);
    const flags = [dataSetting("/other", { kind: "flag", flag: "--data" })];
    const byFlag = loadSettings({ env: { DROVER_DATA: "/data" }, flags, ...world({ own }) });
    assert.deepEqual([byFlag.settings.log.url, byFlag.data], ["etcd://h1,h2/drover", "/other"]);
    const alone = loadSettings({ env: {}, flags, ...world({ own: "log: { url: 'sqlite:x' }" }) });
    assert.deepEqual([alone.settings.log.url, alone.data], ["sqlite:/other/drover.db", null]);
    assert.equal(load({ own }).data, null);
  });
  test("a project or gate has any name, also that of what stands around it or of what every object has", () => {
    const named = (given: World, section: "projects" | "gates"): [string, number][] =>
      Object.entries(load(given).settings.config[section].named).map(([name, { maxConcurrent }]) => [
        name,
        maxConcurrent,
      ]);
    for (const name of ["named", "constructor", "__proto__", "toString", "scheduler"]) {
      for (const section of ["projects", "gates"] as const) {
        const file = `${section}: { ${name}: { maxConcurrent: 3 }, b: { maxConcurrent: 2 } }`;
        const both = [
          [name, 3],
          ["b", 2],
        ];
        assert.deepEqual(named({ own: file }, section), both);
        assert.deepEqual(named({ sets: [`${section}.${name}.maxConcurrent=4`] }, section), [[name, 4]]);
        assert.deepEqual(named({ sets: [`${section}={${name}: {maxConcurrent: 5}}`] }, section), [[name, 5]]);
        // Two _ divide the names of a variable, so one that holds them cannot be said there.
        const variable = `DROVER_${section.toUpperCase()}__${name}__MAX_CONCURRENT`;
        if (!name.includes("__")) assert.deepEqual(named({ env: { [variable]: "6" } }, section), [[name, 6]]);
        assert.match(problemsOf({ own: `${section}: { ${name}: { maxConcurrent: 0 } }` }).join(), /maxConcurrent is 0/);
      }
    }
  });
  test("a drover.yaml is pointed out", () => {
    const { cwd, home } = world({});
    writeFileSync(join(cwd, "drover.yaml"), "");
    const { warnings } = loadSettings({ env: {}, cwd, home });
    assert.deepEqual(warnings, ["drover.yaml is not read; call it drover.yml, or name it with --config drover.yaml"]);
  });
});

describe("a bad config", () => {
  const rows: [name: string, given: World, shown: string[]][] = [
    [
      "a value out of bounds",
      { own: "scheduler:\n  retry:\n    maxLosses: 0\n" },
      [
        "drover.yml:3:5: scheduler.retry.maxLosses is 0, and must be a whole number from 1 to 1000000\n" +
          "  3 |     maxLosses: 0\n    |     ^",
      ],
    ],
    [
      "two fields that cannot both be, where only one was written",
      { own: "scheduler: { retry: { base: 10m } }" },
      [
        "drover.yml:1:23: scheduler.retry.max is 300000, and must be at least scheduler.retry.base (600000 ms)\n" +
          "  1 | scheduler: { retry: { base: 10m } }\n    |                       ^",
      ],
    ],
    [
      "a bad line that a flag outweighs",
      { own: "server: { port: x }", sets: ["server.port=1"] },
      [
        'drover.yml:1:11: server.port is "x", and must be a whole number from 0 to 65535\n' +
          "  1 | server: { port: x }\n    |           ^",
      ],
    ],
    [
      "several at once, from everywhere",
      { own: "zebra: 1\n", env: { DROVER_BUDGET__LIMIT: "-1" }, sets: ["server.port=-1"] },
      [
        "drover.yml:1:1: zebra is not a known field; known here: scheduler, budget, projects, gates, workers, " +
          "artifacts, files, log, server, webhooks, cluster\n  1 | zebra: (hidden)\n    | ^",
        "DROVER_BUDGET__LIMIT: budget.limit is -1, and must be a whole number from 1 to 9007199254740991, or null",
        "--set server.port: server.port is -1, and must be a whole number from 0 to 65535",
      ],
    ],
    [
      "a token that ties a worker, which a server would refuse",
      { own: "server: { tokens: [ { role: worker, token: aaaaaaaaaaaaaaaaaaaa, project: web } ] }" },
      ['drover.yml:1:66: server.tokens[0].project is "web", and must be left out: a worker runs the tasks of all'],
    ],
    [
      "a number where a section belongs",
      { own: "scheduler: 5" },
      [
        "drover.yml:1:1: scheduler is 5, and must be an object such as " +
          "{ maxInFlight: …, maxPerAgentInFlight: …, maxQueue: …, … }\n  1 | scheduler: 5\n    | ^",
      ],
    ],
  ];
  for (const [name, given, shown] of rows) test(name, () => assert.deepEqual(problemsOf(given), shown));

  test("everything that is wrong with the tokens is told, each at its place", () => {
    const own = [
      ...["server:", "  port: x", "  tokens:", "    - { role: boss, token: short }", "    - { role: admin }"],
      "    - { role: worker, tokenEnv: A, token: aaaaaaaaaaaaaaaaaaaa, agentId: ann }",
      ...["    - { role: viewer, tokenEnv: B }", "    - { role: admin, tokenEnv: B, tokn: 1 }"],
    ].join("\n");
    const heads = problemsOf({ own }).map((problem) => problem.split(/, and must|; known|\n/)[0]);
    assert.deepEqual(heads, [
      'drover.yml:2:3: server.port is "x"',
      'drover.yml:4:9: server.tokens[0].role is "boss"',
      "drover.yml:4:21: server.tokens[0].token is hidden, since it is a secret",
      "drover.yml:5:7: server.tokens[1] is without a token or tokenEnv",
      "drover.yml:6:7: server.tokens[2] is with token and tokenEnv at once",
      'drover.yml:6:65: server.tokens[2].agentId is "ann"',
      "drover.yml:8:35: this is not a known field (did you mean token?)",
      "drover.yml:8:7: server.tokens[4] is the tokenEnv of an entry further up",
    ]);
  });
});

/** A value that is right for a knob and not its default. */
function another(schema: JsonSchema): unknown {
  const kinds = alternatives(schema);
  const listed = kinds.flatMap((one) => one.enum ?? []).filter((value) => value !== schema.default);
  if (listed.length > 0) return listed[0];
  if (kinds.some(({ type }) => type === "boolean")) return schema.default === false;
  if (kinds.some(({ type }) => type === "array")) return schema.description === "" ? [] : undefined;
  const numbers = kinds.filter(({ type }) => type === "integer" || type === "number");
  const [first] = numbers;
  const number = Math.min(Number(first?.minimum ?? 1) + 1001, Number(first?.maximum) - 1);
  if (first !== undefined) return isSpan(schema) ? `${number}ms` : number;
  const texts = ["memory:other", "other", "http://other.test"];
  return texts.find((text) => readShape(schema as never, text).ok);
}

describe("every knob", () => {
  const byPath = (config: ServerConfig, path: Path): unknown =>
    config.effective.find((setting) => shownPath(setting.path) === shownPath(path))?.value;
  const all = [...knobs(SETTINGS_SCHEMA)].map((path) => ({
    path,
    value: another(schemaAt(SETTINGS_SCHEMA, path) ?? {}),
  }));
  const settable = all.filter(({ value }) => value !== undefined);

  test("is one of those there are", () => {
    assert.ok(settable.length >= 65, String(settable.length));
    assert.deepEqual(
      all.filter(({ value }) => value === undefined).map(({ path }) => shownPath(path)),
      ["server.tokens", "server.allowedHosts", "server.allowedOrigins"],
    );
  });

  for (const { path, value } of settable)
    test(`${shownPath(path)} is set by a file, by ${variableOf(path)} and by --set, with the same effect`, () => {
      const text = stringify(toObject([{ path, value, origin: { kind: "default" } }]));
      const byFile = load({ own: text });
      const byVariable = load({ env: { [variableOf(path)]: String(value) } });
      const byFlag = load({ sets: [`${shownPath(path)}=${value}`] });
      assert.notDeepEqual(byFile.settings, load({}).settings);
      assert.deepEqual(byVariable.settings, byFile.settings);
      assert.deepEqual(byFlag.settings, byFile.settings);
      assert.deepEqual(byPath(byFile, path), value);
    });
});

test("the effective config, written into a file, is the same config", () => {
  const { effective, settings } = load({});
  const again = load({ own: stringify(toObject(effective)) });
  assert.deepEqual(again.settings, settings);
});

test("schema/drover.schema.json is what drover config schema prints", () => {
  const file = join(dirname(import.meta.dirname), "../../schema/drover.schema.json");
  const hint = "it is out of step: npx drover config schema > schema/drover.schema.json";
  assert.ok(readFileSync(file, "utf8") === schemaText(), hint);
});

describe("drover config", () => {
  type Run = { readonly code: number; readonly out: string; readonly err: string };
  async function drover(args: string[], given: World): Promise<Run> {
    const terminal = testTerminal({ env: given.env ?? {}, ...world(given) });
    const code = await runCommandLine(["config", ...args], terminal, VERBS);
    return { code, out: terminal.shown(), err: terminal.complained() };
  }

  test("check: a good one", async () => {
    const { code, out, err } = await drover(["check"], { own: "budget: { limit: 5 }" });
    assert.deepEqual([code, err], [0, ""]);
    assert.match(out, /^The config is good \(.*work\/drover\.yml\): 1 setting differs from the defaults\.\n$/);
  });
  test("check: none", async () => {
    const { out } = await drover(["check"], {});
    assert.equal(out, "The config is good (no config file here): 0 settings differ from the defaults.\n");
  });
  test("check: a variable that is to hold a token and is not set is named, and no secret is told", async () => {
    const tokens = "[{ tokenEnv: ADMIN_TOKEN, role: admin }, { tokenEnv: VIEW_TOKEN, role: viewer }]";
    const env = { ADMIN_TOKEN: "0123456789abcdef", VIEW_TOKEN: "" };
    const { code, out, err } = await drover(["check"], { own: `server: { tokens: ${tokens} }`, env });
    const warning = "server.tokens[1].tokenEnv names VIEW_TOKEN, which is not set here; a server needs it to start";
    assert.deepEqual([code, err], [0, `warning: ${warning}\n`]);
    assert.match(out, /^The config is good /);
    const asJson = await drover(["check", "--json"], { own: `server: { tokens: ${tokens} }`, env });
    assert.deepEqual(JSON.parse(asJson.out).warnings, [warning]);
  });
  test("check FILE: a bad one says everything that is wrong, on standard error, with code 2", async () => {
    const { code, out, err } = await drover(["check", "drover.yml"], {
      own: "budget: { limt: 5 }\nserver: { port: 1.5 }",
    });
    assert.deepEqual([code, out], [2, ""]);
    assert.equal(
      err,
      [
        "error: the config has 2 problems",
        "drover.yml:1:11: budget.limt is not a known field (did you mean limit?)",
        "  1 | budget: { limt: (hidden)",
        "    |           ^",
        "drover.yml:2:11: server.port is 1.5, and must be a whole number from 0 to 65535",
        "  2 | server: { port: 1.5 }",
        "    |           ^",
        "hint:  npx drover help config says where settings come from; " +
          "npx drover config check tries a file without a server",
        "",
      ].join("\n"),
    );
  });
  test("check --json: the problems as data", async () => {
    const { code, err } = await drover(["check", "--json"], { own: "budget: { limt: 5 }" });
    const { code: name, details } = JSON.parse(err);
    assert.deepEqual([code, name], [2, "bad_config"]);
    assert.deepEqual(details.problems[0].origin, { kind: "file", file: "drover.yml", line: 1, column: 11 });
  });
  const admin = "tokens: [{ token: 0123456789abcdef, role: admin }]";
  const hosts: [name: string, own: string, env: Record<string, string>, isGood: boolean][] = [
    ["every address without a token", "server: { host: 0.0.0.0 }", {}, false],
    ["every address of both families without a token", 'server: { host: "::" }', {}, false],
    ["a name without a token", "server: { host: drover.example }", {}, false],
    ["an address from a variable, without a token", "", { DROVER_SERVER__HOST: "10.0.0.1" }, false],
    ["every address with a token", `server: { host: 0.0.0.0, ${admin} }`, {}, true],
    ["another loopback address without a token", "server: { host: 127.0.0.2 }", {}, true],
    ["loopback by name without a token", "server: { host: localhost }", {}, true],
  ];
  for (const [name, own, env, isGood] of hosts)
    test(`check: ${name} is ${isGood ? "good" : "refused in the words of drover serve"}`, async () => {
      const given = { own, env };
      const { code, out, err } = await drover(["check"], given);
      if (isGood) return assert.deepEqual([code, err], [0, ""]);
      const terminal = testTerminal({ ...world(given), env });
      const args = ["serve", "--port", "0", "--log", "memory:", "--log-level", "silent"];
      assert.equal(await runCommandLine(args, terminal, VERBS), 2);
      assert.deepEqual([code, out, err], [2, "", terminal.complained()]);
      assert.match(err, /^error: server\.host is \S+, which others can reach, and server\.tokens is empty: /);
    });
  test("show: what was set, by whom, and no secret", async () => {
    const own =
      'scheduler: { perType: { code: 3 } }\nwebhooks: { secret: "hunter2" }\n' +
      "server:\n  tokens: [{ token: 0123456789abcdef, role: admin }]\n";
    const { out } = await drover(["show", "--origins"], { own, env: { DROVER_BUDGET__LIMIT: "9" } });
    assert.equal(
      out,
      [
        "scheduler:",
        "  perType:",
        "    code: 3 # drover.yml:1",
        "budget:",
        "  limit: 9 # DROVER_BUDGET__LIMIT",
        "server:",
        "  tokens: [ { token: (hidden), role: admin } ] # drover.yml:4",
        "webhooks:",
        "  secret: (hidden) # drover.yml:2",
        "",
      ].join("\n"),
    );
  });
  test("show: nothing set", async () => {
    const { out } = await drover(["show"], {});
    assert.equal(out, "# nothing is set: every knob has its default (--effective shows them)\n");
  });
  test("show --effective --json: every knob", async () => {
    const { out } = await drover(["show", "--effective", "--origins", "--json"], { own: "budget: { limit: 5 }" });
    const { config, origins } = JSON.parse(out);
    assert.equal(config.scheduler.maxInFlight, 50);
    assert.equal(config.budget.limit, 5);
    assert.equal(origins["budget.limit"], "drover.yml:1:11");
    assert.equal(origins["scheduler.maxInFlight"], "default");
  });
});
