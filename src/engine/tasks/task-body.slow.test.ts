/**
 * A body has one text and a bad one is told by its first fault, however quickly it was read: held against a
 * plain reading of the same rules, for values as people write them and as they should not. An item of a batch is read
 * as the body it stands for.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import { badField } from "../../core/base/refusal.ts";
import { taskFields } from "../../protocol/shapes/tasks.ts";
import { canonical, payloadOf } from "../base/canonical-json.ts";
import { DroverError } from "../base/drover-error.ts";
import {
  assignedTask,
  BODY_BYTES_MAX,
  itemReader,
  type ReadTask,
  readTaskBody,
  ScheduledBody,
  type TaskInput,
} from "./task-body.ts";

const RUNS = { numRuns: process.env.DROVER_QUICK === "1" ? 500 : 3000 };

type Fields = Record<string, unknown>;
/** An object with these fields and no others, `__proto__` being a key like any other. */
const objectOf = (
  entries: readonly (readonly [string, unknown])[],
  prototype: object | null = Object.prototype,
): Fields =>
  entries.reduce<Fields>(
    (object, [key, value]) =>
      Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true }),
    Object.create(prototype) as Fields,
  );

const words = fc.oneof(
  { weight: 3, arbitrary: fc.stringMatching(/^[a-z]{1,8}-\d{1,9}$/) },
  fc.string({ unit: "grapheme", maxLength: 12 }),
  fc.string({ unit: "binary", maxLength: 6 }),
  fc.constantFrom("", '"', "\\", "\n", "\u007f", "é", "語", "😀", "\u2028", "tail\\", "a b ~", "x".repeat(90)),
);
const AWKWARD_KEYS = [
  "__proto__",
  "constructor",
  "toJSON",
  "length",
  "0",
  "2",
  "10",
  "-1",
  "01",
  "",
  "é",
  "語",
  '"',
  "\\",
];
const key = fc.oneof(words, fc.constantFrom("a", "b", "c"), fc.constantFrom(...AWKWARD_KEYS));
const double = fc.double({ noNaN: true, noDefaultInfinity: true });
const numbers = fc.oneof(fc.integer(), double, fc.constantFrom(-0, 1e21, 1e-7));
const leaf: fc.Arbitrary<unknown> = fc.oneof(words, numbers, fc.boolean(), fc.constant(null));
const notJson: fc.Arbitrary<unknown> = fc.constantFrom<unknown[]>(
  ...[undefined, Number.NaN, Number.POSITIVE_INFINITY, 5n, () => 1, Symbol("no"), "\ud800", "\udc00 é", new Date(0)],
  ...[new Map(), Object.create({ a: 1 }), new Array(2), [1, undefined, 2], { "\ud800": 1 }, { "\udfff": undefined }],
);
const isObject = (value: unknown): boolean => typeof value === "object" && value !== null && !Array.isArray(value);
const sometimes = (often: fc.Arbitrary<unknown>, seldom: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> =>
  fc.oneof({ weight: 12, arbitrary: often }, seldom);
/** A tree of these leaves; a field may also be undefined, which is as good as absent. */
function tree(leaves: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  return fc.letrec<{ value: unknown }>((tie) => {
    const item = fc.oneof({ weight: 6, arbitrary: tie("value") }, fc.constant(undefined));
    const entries = fc.array(fc.tuple(key, item), { maxLength: 6 });
    return {
      value: fc.oneof(
        { depthSize: "small", withCrossShrink: true },
        leaves,
        fc.array(tie("value"), { maxLength: 4 }),
        fc.tuple(entries, fc.constantFrom(Object.prototype, null)).map(([all, above]) => objectOf(all, above)),
      ),
    };
  }).value;
}
const json = tree(leaf);
const dubious = tree(sometimes(leaf, notJson));

/** The rules of the text, one after the other and for nothing but to be read. */
function plainly(value: unknown, path: string, depth: number): string {
  const not = (expected: string, field = path, what = value): never => {
    throw new DroverError("bad_request", "", { refusal: badField(field, what, expected) });
  };
  if (depth > 64) not("at most 64 levels deep, and no cycle", path, "…");
  if (typeof value === "string" && !value.isWellFormed()) not("well-formed text");
  if (typeof value === "number" && !Number.isFinite(value)) not("a finite number");
  if (["string", "number", "boolean"].includes(typeof value) || value === null) return JSON.stringify(value);
  if (typeof value !== "object") return not("JSON: text, a number, true, false, null, a list or an object");
  if (Array.isArray(value)) return `[${Array.from(value, (item, at) => plainly(item, `${path}[${at}]`, depth + 1))}]`;
  if (![Object.prototype, null].includes(Object.getPrototypeOf(value)))
    not("plain JSON (text for dates, base64 for bytes)");
  const fields: string[] = [];
  for (const name of Object.keys(value).sort()) {
    const place = path === "" ? name : `${path}.${name}`;
    if (!name.isWellFormed()) not("a key of well-formed text", place.toWellFormed(), name);
    const item = (value as Fields)[name];
    if (item !== undefined) fields.push(`${JSON.stringify(name)}:${plainly(item, place, depth + 1)}`);
  }
  return `{${fields}}`;
}

/** What it gives, or the refusal it throws. */
function outcome(make: () => unknown): unknown {
  try {
    return make();
  } catch (error) {
    if (!(error instanceof DroverError)) throw error;
    return { refusal: error.refusal };
  }
}

const holds = <Given>(given: fc.Arbitrary<Given>, law: (given: Given) => void): void =>
  fc.assert(fc.property(given, law), RUNS);

const described = (text: string) => ({
  text,
  size: Buffer.from(text).length,
  hash: createHash("sha256").update(text).digest("hex"),
});

test("every value has the text, the size and the hash of a plain spelling", () => {
  holds(json, (value) => assert.deepEqual(payloadOf(value, "at"), described(plainly(value, "at", 0))));
});

test("what JSON cannot hold is refused for its first fault in the order of the text", () => {
  const path = fc.constantFrom("", "result", "a.b");
  holds(fc.tuple(dubious, path), ([value, at]) =>
    assert.deepEqual(
      outcome(() => canonical(value, at)),
      outcome(() => plainly(value, at, 0)),
    ),
  );
});

test("a key that is met again, or the thousandth of many, is counted and spelled as at first", () => {
  const many = objectOf(Array.from({ length: 1500 }, (_, index) => [`key ${index} ${"é".repeat(index % 3)}`, index]));
  for (const value of [{ é: 1 }, { é: 1 }, { "語\n": { é: "" } }, { "語\n": { é: "" } }, many, many, { a: "b" }])
    assert.deepEqual(payloadOf(value, ""), described(plainly(value, "", 0)));
});

test("sixty-four levels are read, one more and a cycle are not", () => {
  const nested = (levels: number, inmost: unknown): unknown[] =>
    [0, 1].map((first) =>
      Array.from({ length: levels }).reduce((inner, _, at) => (at % 2 === first ? [inner] : { a: inner }), inmost),
    );
  const cycle: Fields = {};
  cycle.around = [cycle];
  for (const inmost of ["text", "é", 1, null, [], {}, undefined])
    for (const value of [...[63, 64, 65, 66].flatMap((levels) => nested(levels, inmost)), cycle])
      assert.deepEqual(
        outcome(() => canonical(value, "")),
        outcome(() => plainly(value, "", 0)),
      );
});

test("a value that is another each time it is read is refused, not spelled", () => {
  let times = 0;
  const fickle = {
    get a() {
      return times++ === 0 ? Number.NaN : 1;
    },
  };
  assert.throws(() => canonical(fickle, "result"), /result is .*must be a value that does not change while it is read/);
});

const some = (...values: readonly unknown[]): fc.Arbitrary<unknown> => fc.constantFrom(...values);
/** What the fields of a body may hold, and what they may not; and some that no body has. */
const FIELDS: Readonly<Record<string, readonly [fc.Arbitrary<unknown>, fc.Arbitrary<unknown>]>> = {
  agentId: [some("ann", "zoë"), some("None", "", 5)],
  action: [
    fc.oneof(
      words.filter((text) => text !== ""),
      some("build"),
    ),
    some("", "\ud800"),
  ],
  id: [some("t-1", "sch_a"), some("sch_a_20260101T000000Z", "two words")],
  project: [some("alpha", 'q"uote', "null-"), some("null", 3)],
  type: [some("lint", "語"), some("\ud800")],
  ref: [words, some(5)],
  params: [json.filter(isObject), fc.oneof(dubious, json)],
  payload: [json, dubious],
  priority: [some(3, "high", -0), some("urgent", 1.5)],
  deadline: [some("2026-01-31T12:00:00Z", 0, -0), some(-1, "soon")],
  needs: [some(["b", "a", "b"], []), some(["a", ""], "a", new Array(1))],
  resources: [some({ memoryBytes: 5, cpuMillicores: -0 }, {}, { memoryBytes: undefined }), some({ cpu: 1 }, 7)],
  capabilities: [some(["z", "a", "z"], ["é"]), some([1])],
  iteration: [some(1, 2), some(1.5)],
  estimatedTokens: [some(1.2, 7, -0), some(Number.NaN, "7")],
  onDependencyFailure: [some("skip", "run"), some("wait")],
  onLoss: [some("retry", "fail"), some("skip")],
  labels: [some({ team: "web", a: "" }, {}, { z: "é=", a: undefined }), some({ "a=b": "c" }, { a: 1 })],
  callbackUrl: [some("https://example.com/", "http://é/"), some("", 3)],
};
const KNOWN = Object.keys(FIELDS);
const known = fc
  .constantFrom(...KNOWN)
  .chain((name) =>
    fc.tuple(fc.constant(name), sometimes(FIELDS[name]![0], fc.oneof(FIELDS[name]![1], some(undefined)))),
  );
const unknown = fc.tuple(fc.constantFrom("cpu", "toString", "__proto__", ""), some(1, undefined));
const field = fc.oneof({ weight: 30, arbitrary: known }, unknown);
const entries = fc.uniqueArray(field, { maxLength: 8, selector: ([name]) => name });
const bodies = fc
  .tuple(entries, fc.boolean(), fc.boolean(), fc.constantFrom(Object.prototype, Object.prototype, null, { odd: 1 }))
  .map(([given, isNamed, isLast, prototype]) => {
    const needed = isNamed
      ? ([
          ["action", "build"],
          ["agentId", "ann"],
        ] as const)
      : [];
    const rest = given.filter(([name]) => !needed.some(([taken]) => taken === name));
    return objectOf(isLast ? [...rest, ...needed] : [...needed, ...rest], prototype);
  });

/** The refusal of a body with nothing but this field that may be wrong; what is wrong inside of it is told later. */
function faultOf(name: string, value: unknown): unknown {
  if (KNOWN.includes(name) && value === undefined) return null;
  const alone = outcome(() => readTaskBody(new ScheduledBody(objectOf([...GOOD, [name, value]]) as never)));
  const { refusal = null } = alone as { refusal?: { expected?: string } };
  const isOfInside =
    (name === "params" || name === "payload") && !/^an? (plain )?object$/.test(refusal?.expected ?? "");
  return isOfInside ? null : refusal;
}
const GOOD = [
  ["agentId", "ann"],
  ["action", "build"],
] as const;

test("a body has the text of a plain spelling, and the first of its faults is told", () => {
  holds(bodies, (body) => {
    const found = outcome(() => readTaskBody(body)) as Partial<ReadTask> & { refusal?: unknown };
    if (![Object.prototype, null].includes(Object.getPrototypeOf(body)))
      return assert.partialDeepStrictEqual(found, { refusal: { field: "(body)" } });
    const fault = Object.entries(body)
      .map(([name, value]) => faultOf(name, value))
      .find((refusal) => refusal !== null);
    if (fault !== undefined) return assert.deepEqual(found, { refusal: fault });
    const missing = ["agentId", "action"].find((name) => body[name] === undefined);
    if (missing !== undefined)
      return assert.partialDeepStrictEqual(found, { refusal: { field: missing, value: "nothing" } });
    if (String(body.id).startsWith("sch_a_")) return assert.partialDeepStrictEqual(found, { refusal: { field: "id" } });
    const expected = outcome(() => plainly(body, "", 0));
    if (typeof expected !== "string") return assert.deepEqual(found, expected);
    const { text, size, hash } = described(expected);
    assert.equal(found.text, text);
    assert.deepEqual(
      [found.submission?.bodySize, found.submission?.bodyHash],
      [size, body.id === undefined ? "" : hash],
    );
    assert.deepEqual(JSON.parse(text).agentId, found.submission?.agent);
    // What a handler is shown is the same whether or not the text was parsed for it, to the order of its fields.
    const { plain = null } = found;
    const shown = [assignedTask(text, plain, "t", 1), assignedTask(text, null, "t", 1)];
    assert.deepEqual(shown[0], shown[1]);
    assert.deepEqual(Object.keys(shown[0] as object), Object.keys(shown[1] as object));
  });
});

test("a field that is undefined is as good as absent; null is a value, and none but the payload may be that", () => {
  const good = Object.fromEntries(GOOD);
  for (const name of KNOWN.filter((known) => !(known in good))) {
    assert.deepEqual(readTaskBody({ [name]: undefined, ...good }), readTaskBody(good));
    const read = () => readTaskBody({ ...good, [name]: null });
    if (name === "payload") assert.equal(read().text, '{"action":"build","agentId":"ann","payload":null}');
    else assert.throws(read, new RegExp(`${name} is null`));
  }
});

const shares = fc.record(
  { project: fc.constantFrom("alpha", 'q"uote', "é"), callbackUrl: fc.constantFrom("https://a/", "http://é/") },
  { requiredKeys: [] },
);

test("an item of a batch is read as the body it stands for, or refused as that is", () => {
  holds(fc.tuple(shares, fc.array(bodies, { minLength: 1, maxLength: 4 })), ([said, items]) => {
    const readItem = itemReader({ agentId: "ann", ...said }, false);
    for (const { agentId: _, ...item } of items)
      assert.deepEqual(
        outcome(() => readItem(item)),
        outcome(() => readTaskBody({ ...said, ...item, agentId: "ann" })),
      );
  });
});

test("labels are given to the core as key=value in the order of their texts, and an absent one is none", () => {
  const given = { b: "2", a: "x=y", ab: "", c: undefined as never };
  const { submission, text } = readTaskBody({ agentId: "ann", action: "build", labels: given });
  assert.deepEqual(submission.labels, ["a=x=y", "ab=", "b=2"]);
  assert.equal(text, '{"action":"build","agentId":"ann","labels":{"a":"x=y","ab":"","b":"2"}}');
});

test("what an item says counts before what the batch says, even if that is nothing", () => {
  const readItem = itemReader({ agentId: "ann", project: "alpha", callbackUrl: "https://a/" }, false);
  const texts = [{}, { project: "beta" }, { project: undefined }, { callbackUrl: undefined }].map((more) => {
    const { submission, text } = readItem({ action: "build", ...more });
    return [submission.project, submission.callback, text];
  });
  const url = '"callbackUrl":"https://a/"';
  assert.deepEqual(texts, [
    ["alpha", "a", `{"action":"build","agentId":"ann",${url},"project":"alpha"}`],
    ["beta", "a", `{"action":"build","agentId":"ann",${url},"project":"beta"}`],
    ["default", "a", `{"action":"build","agentId":"ann",${url}}`],
    ["alpha", null, '{"action":"build","agentId":"ann","project":"alpha"}'],
  ]);
});

test("the limit of a body is counted in bytes, alone and in a batch", () => {
  const around = JSON.stringify({ action: "a", payload: "" }).length;
  const readItem = itemReader({ agentId: "ann" }, false);
  for (const letter of ["a", "é", '"']) {
    const room = Math.floor((BODY_BYTES_MAX - around) / 2) * (letter === "a" ? 2 : 1);
    for (const [more, isRead] of [
      [0, true],
      [2, false],
    ] as const) {
      const item = { action: "a", payload: letter.repeat(room + more) };
      for (const read of [() => readTaskBody({ ...item, agentId: "ann" }), () => readItem(item)])
        if (isRead) assert.ok(read().submission.bodySize > BODY_BYTES_MAX - 3);
        else assert.throws(read, /\(body\) is .* bytes.*at most 1048576 bytes/);
    }
  }
});

test("id, agent and project do not count: what is read without them is read with them too", () => {
  const around = JSON.stringify({ action: "a", payload: "" }).length;
  const readItem = itemReader({ agentId: "ann", project: "site" }, true);
  for (const id of ["5f0c0c6e-43a5-4b5c-9b3e-7c7f0f3f2b11", 'é"'.repeat(20)])
    for (const [more, isRead] of [
      [0, true],
      [1, false],
    ] as const) {
      const item = { id, action: "a", payload: "x".repeat(BODY_BYTES_MAX - around + more) };
      for (const read of [() => readTaskBody({ ...item, agentId: "ann", project: "p" }), () => readItem(item)])
        if (isRead) assert.equal(read().submission.id, id);
        else assert.throws(read, /\(body\) is "1048577 bytes".*at most 1048576 bytes/);
    }
});

test("every field finds its place in what the core is told", () => {
  const body = {
    ...{ agentId: "ann", action: "build", id: "t", project: "p", type: "lint", tabId: "tab", ref: "r", selector: "s" },
    ...{ params: { a: 1 }, payload: [2], priority: "high", deadline: 9, notBefore: 8, parent: "up", needs: ["z", "b"] },
    ...{ inputArtifact: "in", resources: { cpuMillicores: 3, memoryBytes: 4 }, capabilities: ["y", "x"], locks: ["l"] },
    ...{ zone: "zone", provider: "prov", estimatedTokens: 4.5, iteration: 6, maxAttempts: 7, timeoutMs: 10 },
    ...{ onDependencyFailure: "run", onLoss: "retry", callbackUrl: "https://a/", labels: { k: "v" }, loop: { max: 3 } },
    ...{ outputs: ["report/**"], approval: { question: "now?", timeoutMs: 11 }, wait: "children" },
  };
  assert.deepEqual(Object.keys(body).sort(), Object.keys(taskFields).sort());
  const { hash: bodyHash, size: bodySize } = described(plainly(body, "", 0));
  assert.deepEqual(readTaskBody(body).submission, {
    ...{ id: "t", project: "p", agent: "ann", bodyHash, bodySize, type: "lint", capabilities: ["x", "y"], cpu: 3 },
    ...{ memory: 4, provider: "prov", locks: ["l"], zone: "zone", tab: "tab", priority: -100, parent: "up" },
    ...{ needs: ["z", "b"], artifact: "in", artifactReady: false, notBefore: 8, deadline: 9, estimatedTokens: 5 },
    ...{ iteration: 6, maxAttempts: 7, timeoutMs: 10, onDependencyFailure: "run", onLoss: "retry", callback: "a" },
    ...{ maxRounds: 3, approval: { question: "now?", timeoutMs: 11 }, wait: "children" },
    ...{ action: "build", labels: ["k=v"] },
  });
});

test("the last field of all is read, spelled and forgotten like any other", () => {
  const last = Object.keys(taskFields).sort().at(-1);
  assert.equal(last, "zone");
  const readItem = itemReader({ agentId: "ann" }, false);
  const text = '{"action":"a","agentId":"ann","zone":"eu"}';
  for (const { submission, plain, ...read } of [
    readTaskBody({ zone: "eu", action: "a", agentId: "ann" }),
    readItem({ zone: "eu", action: "a" }),
  ])
    assert.deepEqual([read.text, submission.zone, plain], [text, "eu", JSON.parse(text)]);
  const next = readItem({ action: "a" });
  assert.deepEqual([next.text, next.submission.zone], ['{"action":"a","agentId":"ann"}', null]);
});

test("a word that means nothing is no name, though a name may begin like one", () => {
  for (const nothing of ["", "None", "none", "null", "undefined", "NaN"])
    assert.throws(() => readTaskBody({ agentId: nothing, action: "a" }), /agentId is ".*not "None" or "null"/);
  for (const agentId of ["N", "nul", "Nones", "u", "nobody", "Ñandú"])
    assert.equal(readTaskBody({ agentId, action: "a" }).submission.agent, agentId);
});

test("an exec with a command is told from one without, alone, in a batch and by a schedule", () => {
  const withOne: unknown[] = ["true", ["a", "b c"], ["a", ""]].map((command) => ({ command }));
  const bad = [undefined, null, "", " ", [], [""], [1], ["a", null], { a: 1 }, 5].map((command) => ({ command }));
  const without: unknown[] = [undefined, {}, ...bad];
  const inBatch = itemReader({ agentId: "ann" }, false);
  for (const params of [...withOne, ...without]) {
    const item = { action: "exec", params };
    const body = { ...item, agentId: "ann" };
    const read = [readTaskBody(body), inBatch(item), readTaskBody(new ScheduledBody(body as TaskInput))];
    const name = withOne.includes(params) ? "exec(command)" : "exec";
    for (const { submission } of read) assert.equal(submission.action, name, JSON.stringify(params));
    assert.equal(readTaskBody({ ...body, action: "build" }).submission.action, "build");
    assert.equal(readTaskBody({ ...body, action: "exec(command)" }).submission.action, "");
  }
});
