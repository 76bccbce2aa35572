import assert from "node:assert/strict";
import { test } from "node:test";
import { DEFAULT_URL } from "./addresses.ts";
import { createClient } from "./client.ts";
import { ClientError } from "./client-error.ts";

const createAnyhow = createClient as (options?: unknown) => ReturnType<typeof createClient>;
const refuses = (options: unknown, field: string, message: RegExp): void =>
  assert.throws(
    () => createAnyhow(options),
    (error) => {
      assert.ok(error instanceof ClientError, String(error));
      assert.deepEqual([error.code, error.retryable, error.details.field], ["bad_request", false, field]);
      assert.match(error.message, message);
      return true;
    },
  );
const throws = (): never => {
  throw new Error("not for you");
};

test("an address without a name is met with how to name it, instead of a client of the default one", () =>
  refuses(
    "http://127.0.0.1:9/elsewhere",
    "options",
    /^options is text, and must be an object: createClient\(\{ url: "…" \}\)$/,
  ));

const noOptions: [claim: string, options: unknown, kind: string][] = [
  ["null", null, "null"],
  ["a number", 5, "a number"],
  ["a Promise", Promise.resolve({}), "a Promise"],
  ["a list", [], "a list"],
  ["a URL", new URL("http://a"), "a URL"],
  ["a function", () => ({}), "a function"],
  ["an object of a class", new (class Place {})(), "a Place"],
  [
    "an object that throws",
    {
      get url(): string {
        return throws();
      },
    },
    "something that throws when it is read",
  ],
  ["a proxy that throws", new Proxy({}, { getPrototypeOf: throws }), "something that throws when it is read"],
];
for (const [claim, options, kind] of noOptions)
  test(`options that are no plain object are refused: ${claim}`, () =>
    refuses(options, "options", new RegExp(`^options is ${kind}, and must be a plain object such as \\{ url`)));

test("an unknown field is refused by name, with the known ones", () => {
  refuses({ URL: "http://a" }, "URL", /^URL is not a known .* \(did you mean url\?\); known here: url, token, fetch,/);
  refuses({ baseUrl: undefined }, "baseUrl", /^baseUrl is not a known field of the client's options; known here: url/);
});

const wrongFields: [field: string, value: unknown, message: RegExp][] = [
  ["url", 5, /^url is 5, and must be text: an http or https URL, or a list of them$/],
  ["url", ["http://a", null], /^url is a list, and must be text/],
  ["url", new URL("http://a"), /^url is a URL, and must be text/],
  ["url", null, /^url is null, and/],
  ["token", 4711, /^token is a number, and must be text$/],
  ["token", ["secret"], /^token is a list, and must be text$/],
  ["token", null, /^token is null, and/],
  ["fetch", {}, /^fetch is an object, and must be a function like/],
  ["timeoutMs", "5s", /^timeoutMs is text, and must be a whole number from 1/],
  ["timeoutMs", 0.5, /^timeoutMs is 0\.5, and/],
  ["timeoutMs", Number.POSITIVE_INFINITY, /^timeoutMs is Infinity, and/],
  ["timeoutMs", 2 ** 31, /^timeoutMs is 2147483648, and/],
  ["retries", -1, /^retries is -1, and must be a whole number from 0, or Infinity$/],
  ["retries", 5n, /^retries is a BigInt, and/],
  ["rest", 100, /^rest is 100, and must be a function/],
];
for (const [field, value, message] of wrongFields)
  test(`a field of the wrong kind is refused by name: ${message.source}`, () =>
    refuses({ [field]: value }, field, message));

test("what is undefined is absent, and an object without a prototype is plain", () => {
  assert.equal(createAnyhow().url, DEFAULT_URL);
  assert.equal(createAnyhow({ url: undefined, token: undefined, fetch: undefined }).url, DEFAULT_URL);
  assert.equal(createAnyhow(Object.assign(Object.create(null), { url: "http://a:1/" })).url, "http://a:1");
  createClient({ retries: Number.POSITIVE_INFINITY, timeoutMs: 1 });
});

const nowhere = createClient({ url: "http://127.0.0.1:9", fetch: () => Promise.reject(new Error("nothing is sent")) });
const nextOf = (events: AsyncGenerator): Promise<unknown> => events.next();
const wrongCalls: [claim: string, call: (options: never) => unknown, fields: readonly string[]][] = [
  ["task", (options) => nowhere.task("t", options), ["signal", "timeoutMs", "retries", "doubtMs", "maxAgeMs", "parse"]],
  ["submit", (options) => nowhere.submit({ agentId: "a", action: "b" }, options), ["signal", "timeoutMs", "retries"]],
  ["wait", (options) => nowhere.wait("t", options), ["withinMs", "signal", "timeoutMs", "retries"]],
  ["waitGroup", (options) => nowhere.waitGroup("g", options), ["withinMs", "signal", "timeoutMs"]],
  ["askPermit", (options) => nowhere.askPermit({ gate: "g", waitMs: 5 }, options), ["signal", "timeoutMs", "retries"]],
  ["events", (options) => nextOf(nowhere.events(options)), ["after", "signal", "reconnects", "silenceMs"]],
  ["files.get", (options) => nowhere.files.get("00", options), ["signal", "timeoutMs", "retries"]],
  ["files.put", (options) => nowhere.files.put("text", options), ["signal", "timeoutMs", "retries"]],
];
const NO_NUMBERS = [Number.NaN, -1, "5", null, Number.NEGATIVE_INFINITY];
const FRACTIONS_TOO = new Set(["withinMs", "maxAgeMs"]);

for (const [claim, call, fields] of wrongCalls)
  test(`an option of ${claim} that is wrong is refused by name, and nothing is sent`, async () => {
    for (const field of fields)
      for (const value of [...NO_NUMBERS, ...(FRACTIONS_TOO.has(field) ? [] : [1.5])])
        await assert.rejects(
          async () => await call({ [field]: value } as never),
          (error) => {
            assert.ok(error instanceof ClientError, `${field} ${value}: ${String(error)}`);
            assert.deepEqual([error.code, error.details.field], ["bad_request", field]);
            assert.match(error.message, new RegExp(`^${field} is .+, and must be (an? |milliseconds|the number)`));
            return true;
          },
        );
  });

for (const [claim, call] of wrongCalls)
  test(`an option that ${claim} does not have is refused by name, and so are options that are no object`, async () => {
    const refused: [given: unknown, field: string][] = [
      [{ within: 500 }, "within"],
      ["x", claim === "submit" || claim === "task" || claim === "askPermit" ? "options" : "0"],
    ];
    for (const [given, field] of refused)
      await assert.rejects(
        async () => await call(given as never),
        (error) => {
          assert.ok(error instanceof ClientError, String(error));
          assert.deepEqual([error.code, error.details.field], ["bad_request", field]);
          return true;
        },
      );
  });
