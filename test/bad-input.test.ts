/**
 * Every public function refuses what it cannot mean: with a typed error that names the field, and without a mark.
 *
 * The tables here are multiplied: each field of each body by each value of the wrong kind. After every refusal the
 * state has the same bytes as before and the log the same head.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import * as core from "../src/core/index.ts";
import { type Drover, DroverError, openDrover, openSqliteLog } from "../src/engine/index.ts";
import { taskFields } from "../src/protocol/shapes/tasks.ts";
import { createTestDrover } from "../src/testing/index.ts";
import { badCalls, body, type Expected, wrong } from "./kits/bad-calls.ts";
import {
  circular,
  huge,
  LONE,
  NAMES_NOBODY_HAS,
  NO_JSON,
  NOT_A_NAME,
  NOT_A_SPAN,
  NOT_AN_OBJECT,
  NOT_WHOLE,
} from "./kits/bad-values.ts";

const QUICK = process.env.DROVER_QUICK !== undefined;
const shown = (value: unknown): string =>
  typeof value === "bigint" || typeof value === "number"
    ? `${value}`
    : (JSON.stringify(value)?.slice(0, 40) ?? typeof value);

let drover: Drover;
before(async () => {
  const kit = await createTestDrover({ config: { scheduler: { maxBatch: 5 } } });
  drover = kit.drover;
  await drover.submit({ id: "known", agentId: "ann", action: "build" });
  await drover.submit({ id: "ended", agentId: "ann", action: "build" });
  await drover.cancel("ended");
  await kit.settle();
});
after(() => drover.close());

/** The call is refused with a typed error that names the field, and nothing has changed. */
async function refuses(call: () => unknown, { field, code = "bad_request" }: Expected): Promise<void> {
  const mark = await markOf();
  await assert.rejects(
    async () => await call(),
    (error) => {
      assert.ok(error instanceof DroverError, `${String(error)} is no DroverError`);
      assert.equal(error.code, code, error.message);
      if (field instanceof RegExp) assert.match(error.message, field);
      else assert.ok(error.message.includes(field), `"${error.message}" does not name ${field}`);
      assert.ok(error.message.length < 2000, "a refusal is short");
      return true;
    },
  );
  assert.ok((await markOf()) === mark, "nothing has changed");
}

async function markOf(): Promise<string> {
  const { head } = await drover.verify();
  return `${head.seq} ${head.hash}\n${[...core.snapshotLines(drover.state)].join("\n")}`;
}

const bodyFields: Record<string, readonly unknown[]> = {
  agentId: NOT_A_NAME,
  action: [...NOT_A_NAME.filter((value) => typeof value !== "string" || value === ""), LONE, "x".repeat(1025)],
  id: NOT_A_NAME,
  project: NOT_A_NAME,
  type: NOT_A_NAME,
  tabId: NOT_A_NAME,
  parent: NOT_A_NAME,
  zone: NOT_A_NAME,
  provider: NOT_A_NAME,
  ref: [1, null, [], {}, LONE, "x".repeat(4097)],
  selector: [1, null, [], {}, LONE, "x".repeat(4097)],
  inputArtifact: [1, null, [], {}, "", LONE, "x".repeat(4097)],
  params: NOT_AN_OBJECT.filter((value) => value !== undefined),
  priority: [...NOT_WHOLE.filter((value) => value !== -1), "urgent", "None", ""],
  callbackUrl: [1, null, [], {}, "", "a/b", "ftp://a/", "http://"],
  deadline: [...NOT_WHOLE, "tomorrow", "2026-01-31", "2026-02-30T25:00:00Z", ""],
  notBefore: [...NOT_WHOLE, "tomorrow", "", "2026-01-31T12:00:00"],
  needs: [
    ...[1, "known", null, [1], [null], ["None"], [""], ["a b"], [LONE], Array(1001).fill("x")],
    ...[{ a: 1 }, { a: null }, { a: "b c" }, { "a b": "c" }, { "": "c" }, { a: LONE }, { [LONE]: "a" }, { a: ["b"] }],
  ],
  capabilities: [1, "git", {}, null, [1], ["None"], [""], [LONE], Array(65).fill("x")],
  locks: [1, "repo", {}, null, [1], ["null"], [""], [LONE], Array(65).fill("x")],
  outputs: [1, "a.md", {}, null, [1], [""], ["../a"], ["/a"], ["a/../b"], ["a\\b"], [LONE], Array(65).fill("x")],
  resources: [...NOT_AN_OBJECT.filter((value) => value !== undefined), { cpu: 1 }],
  estimatedTokens: [Number.NaN, Number.POSITIVE_INFINITY, -1, "5", null, {}, 1e13],
  iteration: NOT_WHOLE,
  maxAttempts: [...NOT_WHOLE, 0],
  timeoutMs: [...NOT_WHOLE, 0],
  onDependencyFailure: ["wait", "", null, 1, {}],
  wait: ["parent", "child", "", null, true, 1, ["children"], {}],
  onLoss: ["skip", "", null, true, []],
  approval: [
    ...[false, null, 1, "yes", [], { question: "" }, { question: 1 }, { timeoutMs: 0 }, { timeoutMs: "1s" }],
    ...[{ question: "x".repeat(4097) }, { asks: "ann" }],
  ],
  loop: [...NOT_AN_OBJECT.filter((value) => value !== undefined), {}, { max: 0 }, { max: 1001 }, { max: 1, until: "" }],
  labels: [
    ...NOT_AN_OBJECT.filter((value) => value !== undefined),
    ...[{ a: 1 }, { a: null }, { a: "x".repeat(257) }, { a: LONE }, { "a=b": "c" }, { "a b": "c" }, { "": "c" }],
    ...[{ ["k".repeat(64)]: "v" }, Object.fromEntries(Array.from({ length: 33 }, (_, at) => [`k${at}`, "v"]))],
  ],
  misspelt: [1],
  taskId: ["known"],
  ["__proto__"]: [{}],
};
test("every field of a task is tried; a payload is any JSON, and is tried below", () => {
  const untried = Object.keys(taskFields).filter((field) => !Object.hasOwn(bodyFields, field));
  assert.deepEqual(untried, ["payload"]);
});
for (const [field, values] of Object.entries(bodyFields))
  for (const value of values)
    test(`submit refuses ${field} = ${shown(value)}`, () =>
      refuses(() => drover.submit(body({ [field]: value })), { field }));

const LONE_FIELDS = Object.keys(bodyFields).filter((field) => bodyFields[field]?.flat().includes(LONE));
test("text that holds half of a character is refused as such, in every field, within JSON and as a key", async () => {
  assert.ok(LONE_FIELDS.length > 10);
  const bodies = [
    ...LONE_FIELDS.map((field) => ({ [field]: bodyFields[field]?.includes(LONE) ? LONE : [LONE] })),
    ...[{ payload: LONE }, { payload: [{ deep: LONE }] }, { params: { [LONE]: 1 } }, { callbackUrl: `http://${LONE}` }],
  ];
  for (const more of bodies)
    await refuses(() => drover.submit(body(more)), {
      field: /^\S+ is ".*", which holds half of a character \(a lone surrogate\), and must be /,
    });
  const deep = { ["k".repeat(100_000)]: { deep: LONE } };
  await refuses(() => drover.submit(body({ payload: deep })), {
    field: /^payload\.k{100}…\.deep is ".*", which holds half of a character/,
  });
  await refuses(() => drover.task(LONE), { field: "holds half of a character (a lone surrogate)" });
});

/** Days that engines roll over into the next month, and those beside them that there are. */
const NO_DAYS = ["2027-02-29", "2027-02-31", "2028-02-30", "2100-02-29", "2027-04-31", "2027-11-31", "2027-01-00"];
const DAYS = ["2027-02-28", "2028-02-29", "2400-02-29", "2027-04-30", "2027-12-31", "2027-01-01"];
test("a day that its month does not have is refused, and the last that it has is not", async () => {
  for (const day of NO_DAYS) {
    const text = `${day}T00:00:00Z`;
    const words = (field: string): Expected => ({
      field: new RegExp(`^${field} is "${text}", and must be an instant: .*, on a day that its month has$`),
    });
    await refuses(() => drover.submit(body({ deadline: text })), words("deadline"));
    await refuses(() => drover.submit(body({ notBefore: `${day} 23:59:59.5+02:00` })), { field: "notBefore is" });
    await refuses(() => drover.patch("known", { deadline: text }), words("deadline"));
    for (const field of ["startAt", "endAt"])
      await refuses(
        () => drover.schedules.put("s", wrong({ cron: "@daily", task: body({}), [field]: text })),
        words(field),
      );
  }
  for (const day of DAYS) assert.ok((await drover.submit(body({ notBefore: `${day}t12:00:00z` }))).taskId);
});

test("submit refuses parts of resources by their path", async () => {
  for (const part of ["cpuMillicores", "memoryBytes"])
    for (const value of NOT_WHOLE)
      await refuses(() => drover.submit(body({ resources: { [part]: value } })), { field: `resources.${part}` });
});

for (const field of ["payload", "params"])
  for (const [name, value, at] of NO_JSON)
    test(`submit refuses ${name} in ${field}, and says where it lies`, () =>
      refuses(() => drover.submit(body({ [field]: field === "params" ? { x: value } : value })), {
        field: field === "params" ? `params.x${at}` : `${field}${at}`,
      }));

for (const value of NOT_AN_OBJECT)
  test(`no body is ${shown(value)}`, async () => {
    await refuses(() => drover.submit(wrong(value)), { field: "(body)" });
    await refuses(() => drover.submitBatch(wrong(value)), { field: "(body)" });
  });

test("a body is at most 1 MiB, also in a batch and in parts", async () => {
  await refuses(() => drover.submit(body({ payload: huge })), { field: "(body)" });
  await refuses(() => drover.submit(body({ params: { a: huge.slice(0, 6e5), b: huge.slice(0, 6e5) } })), {
    field: "(body)",
  });
  const { tasks } = await drover.submitBatch({ agentId: "ann", tasks: [{ action: "x", payload: huge }] });
  assert.match(tasks[0]?.error ?? "", /^tasks\[0\] is "\d+ bytes"/);
  assert.ok((await drover.submit(body({ payload: huge.slice(0, 1024 * 1024 - 100) }))).taskId);
});

for (const { name, call, expected } of badCalls) test(`refused: ${name}`, () => refuses(() => call(drover), expected));

const byId: Record<string, (id: string) => unknown> = {
  task: (id) => drover.task(id),
  wait: (id) => drover.wait(id),
  why: (id) => drover.why(id),
  cancel: (id) => drover.cancel(id),
  retry: (id) => drover.retry(id),
  patch: (id) => drover.patch(id, { priority: 1 }),
  "pause of a task": (id) => drover.pause({ task: id }),
};
for (const [name, call] of Object.entries(byId)) {
  test(`${name} refuses what is no id`, async () => {
    const none = name === "pause of a task" ? [undefined] : [];
    for (const id of NOT_A_NAME.filter((value) => !none.includes(value as undefined)))
      await refuses(() => call(wrong(id)), { field: name === "pause of a task" ? "task" : "taskId" });
  });
  test(`${name} does not know who is not there`, async () => {
    for (const id of NAMES_NOBODY_HAS) await refuses(() => call(id), { field: id, code: "not_found" });
  });
}

const withOptions: Record<string, (options: never) => unknown> = {
  cancel: (options) => drover.cancel("known", options),
  wait: (options) => drover.wait("known", options),
  events: (options) => drover.events(options),
  verify: (options) => drover.verify(options),
  withPermit: (options) => drover.withPermit("llm", () => 1, options),
  tasks: (options) => drover.tasks(options),
  cancelWhere: (options) => drover.cancelWhere(options),
  worker: (options) => drover.worker(options, () => 1),
  putProject: (options) => drover.putProject("p", options),
  pause: (options) => drover.pause(options),
  resume: (options) => drover.resume(options),
};
for (const [name, call] of Object.entries(withOptions))
  test(`${name} refuses options that are none`, async () => {
    for (const value of NOT_AN_OBJECT.filter((one) => one !== undefined))
      await refuses(() => call(wrong(value)), { field: /^(options|filter|\(body\)) is / });
  });

test("a cycle is refused by its path wherever it lies", async () => {
  await refuses(() => drover.submit(body({ payload: circular() })), { field: /^payload\.self\.self.* no cycle/ });
  await refuses(() => drover.submit(body({ params: circular() })), { field: /^params\.self.* no cycle/ });
});

const options: [name: string, options: unknown, field: string][] = [
  ["options that are none", 5, "options"],
  ["options null", null, "options"],
  ["a misspelt option", { dta: "x" }, "dta"],
  ["a directory without name", { data: "" }, "data"],
  ["a directory that is no text", { data: 5 }, "data"],
  ["a directory with a NUL in its name", { data: "a\0b" }, "data"],
  ["a log that is none", { log: 5 }, "log"],
  ["a log that can do nothing", { log: {} }, "log is {}, and must be a log: an object with the functions append"],
  [
    "a clock that can do nothing",
    { clock: { now: Date.now } },
    "a clock: an object with the functions elapsed, defer, ringAt",
  ],
  ["a log and a directory", { log: {}, data: "x" }, "log"],
  ["a date that is none", { now: 5 }, "now"],
  ["a clock that is none", { clock: "x" }, "clock"],
  ["a maker of names that is none", { newId: "x" }, "newId"],
  ["a place of files that is none", { fileMedium: { list: () => [] } }, "fileMedium"],
  ["a look that is none", { artifactExists: true }, "artifactExists"],
  ["a config that is none", { config: 5 }, "config is 5"],
  ["a config with an unknown section", { config: { schedular: {} } }, "schedular"],
];
for (const [name, value, field] of options)
  test(`openDrover refuses ${name}`, () => refuses(() => openDrover(wrong(value)), { field }));

const logOptions: [name: string, options: unknown, field: string | RegExp][] = [
  ["no options", undefined, /^options is nothing, and must be an object such as \{ directory: …, /],
  ["options null", null, /^options is null/],
  ["a promise of options", Promise.resolve({ directory: "x" }), /^options is a Promise, and must be a plain object/],
  ["no directory", {}, /^options\.directory is nothing, and must be the path of a directory/],
  ["a directory without name", { directory: "" }, "options.directory"],
  ["a directory that is no text", { directory: 5 }, "options.directory"],
  ["a directory with a NUL in its name", { directory: "a\0b" }, "options.directory"],
  ["a misspelt option", { directory: "x", readonly: true }, "options.readonly is not a known field"],
  ["maybe only to read", { directory: "x", readOnly: "yes" }, "options.readOnly"],
  ["a size below nothing", { directory: "x", maxBytes: -1 }, "options.maxBytes is -1"],
  ["a size of NaN", { directory: "x", maxBytes: Number.NaN }, "options.maxBytes is NaN"],
];
for (const [name, value, field] of logOptions)
  test(`openSqliteLog refuses ${name}`, () => refuses(() => openSqliteLog(wrong(value)), { field }));

for (const [index, path] of configLeaves(core.DEFAULT_CONFIG, "").entries())
  test(`reload refuses a bad ${path}, and changes nothing`, async () => {
    const field = path.replace(/(window|agingPerClass|permitTtl)Ms$/, "$1");
    // Any name will do for a provider, and any text for a path.
    const isFine: (value: unknown) => boolean =
      path === "projects.default.provider" ? isWord : path === "artifacts.root" ? isText : () => false;
    const values = NOT_A_SPAN.filter((one) => !isFine(one));
    for (const value of QUICK ? values.slice(index % values.length).slice(0, 2) : values)
      await refuses(() => drover.reload(wrong(configWith(path, value))), { field: field.split(".").at(-1) as string });
  });

const isText = (value: unknown): boolean => typeof value === "string" && value !== "";
const isWord = (value: unknown): boolean => typeof value === "string" && /^\S+$/.test(value);

function configLeaves(value: object, path: string): string[] {
  return Object.entries(value).flatMap(([key, inner]) => {
    const at = path === "" ? key : `${path}.${key}`;
    if (key === "named") return [];
    return typeof inner === "object" && inner !== null ? configLeaves(inner, at) : [at];
  });
}

function configWith(path: string, value: unknown): unknown {
  return path
    .split(".")
    .reverse()
    .reduce<unknown>((inner, key) => ({ [key]: inner }), value);
}

test("reload refuses unknown fields at every level, and a retry that shrinks", async () => {
  for (const path of ["x", "scheduler.x", "scheduler.priority.x", "gates.default.x", "projects.p.x", "log.x"])
    await refuses(() => drover.reload(wrong(configWith(path, 1))), { field: path });
  await refuses(() => drover.reload({ scheduler: { retry: { base: "10m" } } }), { field: "scheduler.retry.max" });
  await refuses(() => drover.reload({ projects: { None: {} } }), { field: "projects.None" });
});

test("reload refuses what is no config, and changes nothing", async () => {
  for (const value of NOT_AN_OBJECT)
    await refuses(() => drover.reload(wrong(value)), { field: /^config is .* an object/ });
  await refuses(() => openDrover({ config: wrong(null) }), { field: "config is null" });
});

test("a name that came out undefined does not pause the fleet", async () => {
  for (const call of [drover.pause, drover.resume]) {
    for (const key of ["project", "task"])
      await refuses(() => call(wrong({ [key]: undefined })), {
        field: `${key} is nothing, and must be the name of a ${key}; or absent, for the whole fleet`,
      });
    await refuses(() => call(wrong({ project: undefined, task: undefined })), { field: "project is nothing" });
    await refuses(() => call(wrong({ project: "nobody", task: undefined })), { field: "nobody", code: "not_found" });
  }
});

const kinds: [value: unknown, shown: string][] = [
  [new Date(0), 'a Date ("1970-01-01T00:00:00.000Z")'],
  [new Map([[1, 2]]), "a Map"],
  [new Error("boom"), "an Error"],
  [10n, "a BigInt (10n)"],
  [() => 1, "a function"],
  [{ at: 5 }, '{"at":5}'],
  [[1], "[1]"],
];
for (const [value, kind] of kinds)
  test(`a refusal shows ${kind} as what it is`, () =>
    refuses(() => drover.submit(body({ deadline: value })), { field: `deadline is ${kind}, and must be` }));

test("createTestDrover refuses options that are none", () =>
  refuses(() => createTestDrover(wrong(null)), { field: "options is null" }));

test("a misspelt filter is refused with every field there is", async () => {
  const known = "known here: agentId, project, state, type, label, group, parent, root";
  await refuses(() => drover.tasks(wrong({ stat: "done" })), {
    field: `${known}, order, q, asking, since, limit, cursor`,
  });
  await refuses(() => drover.cancelWhere(wrong({ stat: "done" })), { field: `${known}, all` });
});

test("a gate's setting is refused under the name it was given by", async () => {
  await refuses(() => drover.reload({ gates: { x: { window: "abc" } } }), { field: /^gates\.x\.window is "abc"/ });
  await refuses(() => drover.reload(wrong({ gates: { x: { windowMs: "abc" } } })), {
    field: /^gates\.x\.windowMs is "abc"/,
  });
});

test("a project nobody knows is refused without a word about settings that have no part in it", () =>
  refuses(() => drover.pause({ project: "nope" }), {
    field: /^no project is called nope; register it, or name it in the config$/,
    code: "not_found",
  }));
