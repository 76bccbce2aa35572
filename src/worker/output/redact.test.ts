import assert from "node:assert/strict";
import { test } from "node:test";
import { createRedactor } from "./redact.ts";

const PEM = "-----BEGIN PRIVATE KEY-----\nMIIEvgIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----";
const redactor = createRedactor([
  {
    ...{ DROVER_RUN_TOKEN: "run.token(1)*", ANTHROPIC_API_KEY: "sk-ant-secret-key", PGPASSWORD: "hunter2hunter2" },
    ...{ SHORT_TOKEN: "true", EMPTY_TOKEN: "", HTTPS_PROXY: "http://me:proxy-password@proxy:3128", SSH_KEY: PEM },
    ...{ GIT_AUTHOR_NAME: "Jane Doe the Author", SSH_AUTH_SOCK: "/tmp/ssh-agent.sock", KEYBOARD: "qwertz-de-latin" },
    ...{ QUOTED_SECRET: 'with "quotes" and \\', LONG_TOKEN: "abcdefghij", LONGER_TOKEN: "abcdefghijklm" },
    ...{ PIN_SECRET: "12345678" },
  },
  { OTHER_TOKEN: "other-token-value" },
]);

const rows: [string, string][] = [
  ["token run.token(1)* here", "token [redacted] here"],
  ["runXtoken(1)*", "runXtoken(1)*"],
  ["sk-ant-secret-key,hunter2hunter2", "[redacted],[redacted]"],
  ["it is true", "it is true"],
  ["http://me:proxy-password@proxy:3128", "http://me:[redacted]@proxy:3128"],
  ["MIIEvgIBADANBgkqhkiG9w0BAQEFAASC", "[redacted]"],
  [
    "Jane Doe the Author at /tmp/ssh-agent.sock on qwertz-de-latin",
    "Jane Doe the Author at /tmp/ssh-agent.sock on qwertz-de-latin",
  ],
  [JSON.stringify({ a: 'with "quotes" and \\' }), '{"a":"[redacted]"}'],
  ["abcdefghijklm", "[redacted]"],
  ["other-token-value", "[redacted]"],
  ["key sk-proj-abcdefghijklmnop1234 and ghp_abcdefghijklmnopqrstuvwxyz0123", "key [redacted] and [redacted]"],
  ["Authorization: Bearer abc.def-ghi_jkl", "Authorization: Bearer [redacted]"],
  ["task-1 took 5 s", "task-1 took 5 s"],
];
for (const [text, expected] of rows)
  test(`a line without its secrets: ${text.slice(0, 40)}`, () => assert.equal(redactor.line(text), expected));

const data: [name: string, value: unknown, expected: unknown][] = [
  [
    "texts",
    { a: ["sk-ant-secret-key", 1, null], b: 'with "quotes" and \\' },
    { a: ["[redacted]", 1, null], b: "[redacted]" },
  ],
  ["nothing that only looks like a key", ["sk-proj-zyxwvutsrqponmlk4321"], ["sk-proj-zyxwvutsrqponmlk4321"]],
  ["parts of texts", "it is hunter2hunter2!", "it is [redacted]!"],
  ["JSON inside a text", JSON.stringify({ q: 'with "quotes" and \\' }), '{"q":"[redacted]"}'],
  [
    "no number, whatever its digits",
    { pin: 12345678, text: "12345678", big: 123456789 },
    { pin: 12345678, text: "[redacted]", big: 123456789 },
  ],
  ["no word of JSON", [true, null, "false-ish"], [true, null, "false-ish"]],
  ["names of fields", { hunter2hunter2: 1, abcdefghij: 2, x: 3 }, { "[redacted]": 1, "[redacted] 2": 2, x: 3 }],
  [
    "a name that means something to objects",
    JSON.parse('{"__proto__":"12345678"}'),
    JSON.parse('{"__proto__":"[redacted]"}'),
  ],
  ["half of a character", ["a\ud800"], ["a\ufffd"]],
  ["nothing of nothing", undefined, undefined],
];
for (const [name, value, expected] of data)
  test(`taken out of data: ${name}`, () => assert.deepEqual(redactor.value(value), expected));

test("without secrets data stays as it is", () => {
  assert.deepEqual(createRedactor([{}]).value({ a: ["x", 1] }), { a: ["x", 1] });
});
