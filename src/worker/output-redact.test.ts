import assert from "node:assert/strict";
import { test } from "node:test";
import { createRedactor } from "./output-redact.ts";

const PEM = "-----BEGIN PRIVATE KEY-----\nMIIEvgIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----";
const redactor = createRedactor([
  {
    ...{ DROVER_RUN_TOKEN: "run.token(1)*", ANTHROPIC_API_KEY: "sk-ant-secret-key", PGPASSWORD: "hunter2hunter2" },
    ...{ SHORT_TOKEN: "true", EMPTY_TOKEN: "", HTTPS_PROXY: "http://me:proxy-password@proxy:3128", SSH_KEY: PEM },
    ...{ GIT_AUTHOR_NAME: "Jane Doe the Author", SSH_AUTH_SOCK: "/tmp/ssh-agent.sock", KEYBOARD: "qwertz-de-latin" },
    ...{ QUOTED_SECRET: 'with "quotes" and \\', LONG_TOKEN: "abcdefghij", LONGER_TOKEN: "abcdefghijklm" },
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

test("known secrets are taken out of data, and nothing else is changed", () => {
  const value = { a: ["sk-ant-secret-key", 1, null], b: 'with "quotes" and \\', c: "sk-proj-zyxwvutsrqponmlk4321" };
  assert.deepEqual(redactor.value(value), { a: ["[redacted]", 1, null], b: "[redacted]", c: value.c });
  const clean = { a: 1 };
  assert.equal(redactor.value(clean), clean);
  assert.equal(redactor.value(undefined), undefined);
  assert.deepEqual(createRedactor([{}]).value({ a: "x" }), { a: "x" });
});
