/**
 * The parts of the config: files with places, variables, flags, layers.
 *
 * The schema here is a small one, so that a row shows everything that decides it. That the real knobs can all be set
 * from everywhere is in load.test.ts.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { type JsonSchema, knobs, parsePath, shownPath } from "../../protocol/schema/index.ts";
import { FILE_BYTES_MAX, parseConfigFile, readConfigText, type Setting } from "./file.ts";
import { mergeLayers, settingFor, toObject } from "./layers.ts";
import { BadConfig, shownProblem } from "./problem.ts";
import { settingFromFlag, settingsFromVariables, unknownName, variableOf } from "./variables.ts";

const count: JsonSchema = { type: "integer" };
const orNone: JsonSchema = { anyOf: [{ type: "integer" }, { type: "null" }] };
const span: JsonSchema = { anyOf: [{ type: "integer" }, { type: "string" }] };
const project: JsonSchema = { type: "object", properties: { weight: count, secret: { type: "string" } } };
const schema: JsonSchema = {
  type: "object",
  properties: {
    scheduler: {
      type: "object",
      properties: {
        maxInFlight: count,
        resultTtl: span,
        perType: { type: "object", additionalProperties: orNone },
        critical: { type: "object", properties: { maxInFlight: count } },
      },
      additionalProperties: false,
    },
    budget: { type: "object", properties: { limit: orNone } },
    projects: { type: "object", properties: { autoCreate: { type: "boolean" } }, additionalProperties: project },
    log: { type: "object", properties: { url: { type: "string" } } },
  },
};

const problemsOf = (run: () => unknown): string[] => {
  try {
    run();
  } catch (error) {
    if (error instanceof BadConfig) return error.problems.map(shownProblem);
    throw error;
  }
  return [];
};
const parsed = (text: string): [path: string, value: unknown, place: string][] =>
  parseConfigFile("drover.yml", text).settings.map(({ path, value, origin }) => [
    shownPath(path),
    value,
    origin.kind === "file" ? `${origin.line}:${origin.column}` : "",
  ]);

describe("a file", () => {
  test("becomes settings, each with its line and column", () =>
    assert.deepEqual(parsed("# mine\nscheduler:\n  maxInFlight: 5\n  perType: { plan: 1, code: }\nbudget:\n"), [
      ["scheduler.maxInFlight", 5, "3:3"],
      ["scheduler.perType.plan", 1, "4:14"],
      ["scheduler.perType.code", null, "4:23"],
      ["budget", null, "5:1"],
    ]));

  test("that is empty, or all comments, says nothing", () => {
    for (const text of ["", "\n", "# nothing\n", "---\n", "\ufeff"]) assert.deepEqual(parsed(text), []);
  });

  test("keeps lists whole, and knows the places inside them", () => {
    const file = parseConfigFile(
      "f",
      "server:\n  tokens:\n    - { token: a, role: admin }\n    - token: b\n      role: x\n",
    );
    assert.deepEqual(file.settings[0]?.value, [
      { token: "a", role: "admin" },
      { token: "b", role: "x" },
    ]);
    const { line, column } = file.originOf(["server", "tokens", "1", "role"]);
    assert.deepEqual([line, column], [5, 7]);
    assert.equal(file.originOf(["server", "tokens", "1", "nothing"]).line, 4);
    assert.equal(file.originOf(["nowhere"]).line, 1);
  });

  test("may repeat itself by alias", () =>
    assert.deepEqual(
      parsed("projects:\n  web: &x { weight: 2 }\n  docs: *x\n").map(([path, value]) => [path, value]),
      [
        ["projects.web.weight", 2],
        ["projects.docs.weight", 2],
      ],
    ));

  test("has names that mean something to JavaScript, and they are names", () => {
    const { settings } = parseConfigFile("f", "projects:\n  __proto__: { weight: 2 }\n  constructor: { weight: 3 }\n");
    const { projects } = toObject(settings) as { projects: object };
    assert.deepEqual(Object.keys(projects), ["__proto__", "constructor"]);
    assert.equal(Object.getPrototypeOf(projects), Object.prototype);
  });

  const bad: [name: string, text: string, shown: string][] = [
    [
      "a name twice",
      "budget:\n  limit: 1\n  limit: 2\n",
      "drover.yml:3:3: duplicate key: this name stands twice in the same section; keep one of the two\n" +
        "  3 |   limit: 2\n    |   ^",
    ],
    [
      "a tab",
      "budget:\n\tlimit: 1\n",
      "drover.yml:2:1: a tab cannot indent YAML; use spaces\n  2 |  limit: 1\n    | ^",
    ],
    [
      "a list at the top",
      "- 1\n",
      "drover.yml:1:1: a config begins with the names of its sections, such as scheduler:",
    ],
    ["a word at the top", "hello\n", "drover.yml:1:1: a config begins with the names of its sections, such as"],
    ["two documents", "a: 1\n---\nb: 2\n", "drover.yml:2:1: a config is one document; take out what follows the ---"],
    ["an open bracket", "budget: { limit: 1\n", "drover.yml:2:1: this is not YAML: "],
    ["an alias of nothing", "budget: *x\n", "drover.yml:1:9: this alias has no anchor before it"],
    ["a tag", "budget: !!js/function 'x'\n", "drover.yml:1:9: tags are not read here; write the plain value"],
    ["an alias of itself", "budget: &x\n  limit: *x\n", "drover.yml:2:10: "],
    ["a key that is a list", "[a, b]: 1\n", "drover.yml:1:1: this is not YAML: "],
    ["too deep a list", `budget: ${"[".repeat(40)}${"]".repeat(40)}\n`, "drover.yml:1:41: this is nested more than 32"],
  ];
  for (const [name, text, shown] of bad)
    test(`with ${name} is refused where it stands`, () => {
      const [first = ""] = problemsOf(() => parseConfigFile("drover.yml", text));
      assert.ok(first.startsWith(shown), first);
    });

  test("that grows without end by aliases is refused at once", () => {
    const bomb = ["a: &a [1,1,1,1,1,1,1,1,1]"];
    for (const [before, name] of ["ab", "bc", "cd", "de", "ef", "fg", "gh", "hi"].map((two) => [...two]))
      bomb.push(`${name}: &${name} [${Array(9).fill(`*${before}`).join(",")}]`);
    const [first = ""] = problemsOf(() => parseConfigFile("f", bomb.join("\n")));
    assert.match(first, /there are more than 100 aliases up to here; write the values out/);
  });

  test("never shows a secret, however wrong its line is", () => {
    const shown = problemsOf(() => parseConfigFile("f", 'webhooks:\n  secret: "hunter2\n  b: 1\n  secret: hunter2\n'));
    assert.ok(shown.length > 0 && !shown.join().includes("hunter2"), shown.join("\n"));
    const { shownLine } = parseConfigFile("f", "tokens: [{ token: abc, role: x }]");
    const at = (column: number): string | undefined => shownLine({ kind: "file", file: "f", line: 1, column });
    assert.deepEqual([at(1), at(13), at(19), at(24)], [...Array(2).fill("tokens: [{ token: (hidden)"), ...Array(2)]);
  });

  test("every mistake of spelling YAML is listed", () =>
    assert.equal(problemsOf(() => parseConfigFile("f", "a: 1\na: 2\nb: 1\nb: 2\n")).length, 2));
});

describe("reading a file", () => {
  const home = mkdtempSync(join(tmpdir(), "drover-config-"));
  after(() => rmSync(home, { recursive: true, force: true }));
  const file = (name: string, content: string | Uint8Array): string => {
    writeFileSync(join(home, name), content);
    return join(home, name);
  };

  test("that is not there is no error", () => assert.equal(readConfigText(join(home, "none")), null));
  test("of the largest size is fine, and one byte more is not", () => {
    const text = `#${" ".repeat(FILE_BYTES_MAX - 1)}`;
    assert.equal(readConfigText(file("large", text))?.length, FILE_BYTES_MAX);
    assert.deepEqual(
      problemsOf(() => readConfigText(file("larger", `${text} `), "larger")),
      ["larger is larger than 1048576 bytes, the most that is read"],
    );
  });
  test("that is not UTF-8 says so", () =>
    assert.deepEqual(
      problemsOf(() => readConfigText(file("latin", new Uint8Array([0x61, 0xe4, 0x62])), "latin")),
      ["latin is not UTF-8 text"],
    ));
  test("that is a directory says so", () =>
    assert.deepEqual(
      problemsOf(() => readConfigText(home, "here")),
      ["here is not a file"],
    ));
});

describe("a variable", () => {
  const settings = (env: Record<string, string>): unknown[] =>
    settingsFromVariables(env, schema, new Set(["DROVER_URL"])).map(({ path, value }) => [shownPath(path), value]);

  const rows: [name: string, value: string, path: string, read: unknown][] = [
    ["DROVER_SCHEDULER__MAX_IN_FLIGHT", "10", "scheduler.maxInFlight", 10],
    ["DROVER_SCHEDULER__RESULT_TTL", "30s", "scheduler.resultTtl", "30s"],
    ["DROVER_SCHEDULER__RESULT_TTL", "30", "scheduler.resultTtl", 30],
    ["DROVER_SCHEDULER__PER_TYPE__CODE", "4", "scheduler.perType.code", 4],
    ["DROVER_SCHEDULER__PER_TYPE", "{code: 4}", "scheduler.perType", { code: 4 }],
    ["DROVER_PROJECTS__WEB__WEIGHT", "3", "projects.web.weight", 3],
    ["DROVER_PROJECTS__My-Web__WEIGHT", "3", "projects.My-Web.weight", 3],
    ["DROVER_PROJECTS__WEB__SECRET", "12345", "projects.web.secret", "12345"],
    ["DROVER_PROJECTS__WEB__SECRET", "a: b: {", "projects.web.secret", "a: b: {"],
    ["DROVER_PROJECTS__AUTO_CREATE", "false", "projects.autoCreate", false],
    ["DROVER_BUDGET__LIMIT", "null", "budget.limit", null],
    ["DROVER_BUDGET__LIMIT", "", "budget.limit", null],
    ["DROVER_LOG__URL", "sqlite:x.db", "log.url", "sqlite:x.db"],
  ];
  for (const [name, value, path, read] of rows)
    test(`${name}=${value} sets ${path}`, () => assert.deepEqual(settings({ [name]: value }), [[path, read]]));

  test("of somebody else is left alone", () =>
    assert.deepEqual(settings({ DROVER_URL: "x", DROVER_FOO: "1", PATH: "/", DROVER_TASK_ID: "t", DROVERX: "1" }), []));

  const wrong: [name: string, message: string][] = [
    ["DROVER_SCHEDULER__MAX_INFLIGHT", "did you mean DROVER_SCHEDULER__MAX_IN_FLIGHT?"],
    ["DROVER_SCHEDULER_MAX_IN_FLIGHT", "did you mean DROVER_SCHEDULER__MAX_IN_FLIGHT?"],
    ["DROVER_SCHEDULER__MAXINFLIGHT", "did you mean DROVER_SCHEDULER__MAX_IN_FLIGHT?"],
    ["DROVER_BUDGET__", "did you mean DROVER_BUDGET__LIMIT?"],
    ["DROVER_NOTHING__LIKE__THIS", "npx drover config show --effective lists every knob"],
    ["DROVER_BUDGET__LIMIT__MORE", "did you mean DROVER_BUDGET__LIMIT?"],
  ];
  for (const [name, message] of wrong)
    test(`${name} is an error that says: ${message}`, () =>
      assert.deepEqual(
        problemsOf(() => settings({ [name]: "1" })),
        [`${name}: no knob has this variable; ${message}`],
      ));

  test("has one name for each knob, and that name leads back", () => {
    const paths = [...knobs(schema)];
    assert.ok(paths.length >= 6);
    for (const path of paths)
      assert.deepEqual(
        settings({ [variableOf(path)]: "1" }).map((row) => (row as unknown[])[0]),
        [shownPath(path)],
      );
  });
});

describe("--set", () => {
  const setting = (text: string): unknown[] => {
    const { path, value } = settingFromFlag(text, schema);
    return [path, value];
  };
  test("takes a path and a value", () => {
    assert.deepEqual(setting("scheduler.maxInFlight=10"), [["scheduler", "maxInFlight"], 10]);
    assert.deepEqual(setting("projects.anthropic/default.weight=1"), [["projects", "anthropic/default", "weight"], 1]);
    assert.deepEqual(setting('projects."a.b c".weight=1'), [["projects", "a.b c", "weight"], 1]);
    assert.deepEqual(setting("log.url=sqlite:a=b"), [["log", "url"], "sqlite:a=b"]);
    assert.deepEqual(setting("budget.limit="), [["budget", "limit"], null]);
  });
  for (const text of ["scheduler.maxInFlight", "=1", ".a=1", "a..b=1", "a.=1", 'a."b=1'])
    test(`${text} is refused`, () =>
      assert.deepEqual(
        problemsOf(() => setting(text)),
        [`--set ${text.split("=")[0]}: write a path, = and a value, such as --set scheduler.maxInFlight=10`],
      ));
  test("a value that is no YAML is refused, with what it was", () =>
    assert.match(problemsOf(() => setting("scheduler.maxInFlight={"))[0] ?? "", /^--set .*: this value is not YAML: /));
  test("a path is shown the way it is written", () => {
    for (const text of ["a.b", '"a.b".c', "a/b"]) assert.equal(shownPath(parsePath(text) ?? []), text);
    assert.equal(parsePath(""), null);
  });
});

describe("layers", () => {
  const layer = (name: string, values: Record<string, unknown>): Setting[] =>
    Object.entries(values).map(([path, value]) => ({
      path: path.split("."),
      value,
      origin: { kind: "variable", name },
    }));
  const merge = (...layers: Record<string, unknown>[]): unknown =>
    toObject(
      mergeLayers(
        layers.map((values, at) => layer(`layer${at}`, values)),
        schema,
      ),
    );

  const rows: [name: string, layers: Record<string, unknown>[], merged: unknown][] = [
    ["the later wins", [{ "budget.limit": 1 }, { "budget.limit": 2 }], { budget: { limit: 2 } }],
    [
      "fields are merged one by one",
      [{ "scheduler.maxInFlight": 1, "scheduler.perType.plan": 1 }, { "scheduler.perType.code": 2 }],
      { scheduler: { maxInFlight: 1, perType: { plan: 1, code: 2 } } },
    ],
    [
      "null stays where null means something",
      [{ "budget.limit": 1 }, { "budget.limit": null }],
      { budget: { limit: null } },
    ],
    ["null takes out an entry", [{ "scheduler.perType.code": null }], { scheduler: { perType: { code: null } } }],
    ["clearing goes back to the default", [{ "scheduler.maxInFlight": 1 }, { "scheduler.maxInFlight": null }], {}],
    [
      "clearing a section clears all of it",
      [{ "scheduler.maxInFlight": 1, "budget.limit": 1 }, { scheduler: null }],
      { budget: { limit: 1 } },
    ],
    ["clearing a project forgets it", [{ "projects.web.weight": 2 }, { "projects.web": null }], {}],
    [
      "what is cleared can be set again",
      [{ "budget.limit": 1 }, { budget: null }, { "budget.limit": 3 }],
      { budget: { limit: 3 } },
    ],
    [
      "a section as one value is its fields",
      [{ "scheduler.perType.plan": 1 }, { "scheduler.perType": { code: 2 } }],
      { scheduler: { perType: { plan: 1, code: 2 } } },
    ],
    [
      "a value where a section belongs is kept, to be complained of",
      [{ "scheduler.maxInFlight": 1 }, { scheduler: 7 }],
      { scheduler: 7 },
    ],
  ];
  for (const [name, layers, merged] of rows) test(name, () => assert.deepEqual(merge(...layers), merged));

  test("each field remembers who set it last", () => {
    const merged = mergeLayers([layer("file", { "budget.limit": 1 }), layer("flag", { "budget.limit": 2 })], schema);
    assert.deepEqual(
      merged.map(({ origin }) => origin),
      [{ kind: "variable", name: "flag" }],
    );
  });

  test("a complaint finds the setting it is about", () => {
    const settings = layer("x", { "server.tokens": [], "projects.a.b.weight": 1, "scheduler.retry.base": 1 });
    const found = (field: string): string | undefined => settingFor(field, settings)?.path.join(".");
    assert.equal(found("server.tokens[0].role"), "server.tokens");
    assert.equal(found("projects.a.b.weight"), "projects.a.b.weight");
    assert.equal(found("scheduler.retry"), "scheduler.retry.base");
    assert.equal(found("budget.limit"), undefined);
  });

  test("an unknown name is met with the nearest, or with all there are", () => {
    assert.equal(
      unknownName(["scheduler", "maxInflight"], schema)?.message,
      "scheduler.maxInflight is not a known field (did you mean maxInFlight?)",
    );
    assert.equal(
      unknownName(["zebra"], schema)?.message,
      "zebra is not a known field; known here: scheduler, budget, projects, log",
    );
    assert.equal(unknownName(["projects", "anything", "weight"], schema), null);
    assert.equal(unknownName(["budget", "limit", "deeper"], schema), null);
  });
});
