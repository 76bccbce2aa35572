import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { type Access, createAccess, ServerRefusal } from "../../http/index.ts";
import { knownTokens } from "./tokens.ts";

const accessOf = (...given: Parameters<typeof knownTokens>): Access => createAccess(knownTokens(...given));

const [plain, hashed, fromEnv] = ["plain-token-0123456789", "hashed-token-0123456789", "env-token-0123456789"];
const access = accessOf(
  [
    { token: plain, role: "admin" },
    { tokenHash: createHash("sha256").update(hashed).digest("hex"), role: "agent", agentId: "ann", project: "site" },
    { tokenEnv: "DROVER_TEST_TOKEN", role: "viewer" },
  ],
  { DROVER_TEST_TOKEN: fromEnv },
);

test("a token is known in plain, by its hash and from the environment", () => {
  assert.deepEqual(access(`Bearer ${plain}`), { role: "admin", projects: null, agentId: null });
  assert.deepEqual(access(`bearer   ${hashed}`), { role: "agent", projects: ["site"], agentId: "ann" });
  assert.equal(access(`Bearer ${fromEnv}`).role, "viewer");
});

const bad = [
  undefined,
  "",
  "Bearer",
  "Bearer ",
  plain,
  `Basic ${plain}`,
  `Bearer ${plain}x`,
  `Bearer ${plain.slice(1)}`,
];
for (const given of [...bad, `Bearer ${plain} ${plain}`, `Bearer ${"a".repeat(2000)}`, "Bearer \u0000"])
  test(`${JSON.stringify(given?.slice(0, 40))} is nobody's token, and is not repeated`, () => {
    assert.throws(
      () => access(given),
      (error) => error instanceof ServerRefusal && error.code === "unauthorized" && !error.message.includes(plain),
    );
  });

test("without tokens everybody is admin", () => assert.equal(accessOf([])(undefined).role, "admin"));

test("a variable that is not set, or too short, stops the start", () => {
  for (const env of [{}, { DROVER_TEST_TOKEN: "short" }])
    assert.throws(
      () => accessOf([{ tokenEnv: "DROVER_TEST_TOKEN", role: "admin" }], env),
      /tokens\[0\].*DROVER_TEST_TOKEN/,
    );
});

test("a worker's token cannot be scoped, since a worker runs the tasks of all", () => {
  assert.throws(() => accessOf([{ token: plain, role: "worker", project: "site" }]), /server\.tokens\[0\].*worker/);
});

test("the same token twice stops the start, however it is written, and is not repeated", () => {
  const again = { tokenHash: createHash("sha256").update(plain).digest("hex"), role: "viewer" } as const;
  assert.throws(
    () => accessOf([{ token: plain, role: "admin" }, again]),
    (error: Error) => /server\.tokens\[1\].*already/.test(error.message) && !error.message.includes(plain),
  );
});

test("a token that no header can hold stops the start", () => {
  for (const token of [`${plain}\n`, `two ${plain}`, `${plain}é`])
    assert.throws(() => accessOf([{ tokenEnv: "T", role: "admin" }], { T: token }), /tokens\[0\].*printable ASCII/);
});
