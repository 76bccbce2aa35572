import assert from "node:assert/strict";
import { test } from "node:test";
import { isLoopback } from "./loopback.ts";

test("loopback is known in all its spellings, and nothing else is taken for it", () => {
  for (const name of ["127.0.0.1", "127.1.2.3", "localhost", "LocalHost", "::1", "[::1]", "0:0:0:0:0:0:0:1"])
    assert.ok(isLoopback(name), name);
  for (const name of [
    "0.0.0.0",
    "::",
    "10.0.0.1",
    "example.com",
    "localhost.example",
    "1127.0.0.1",
    "::1.example",
    "127.0.0.1.evil.com",
  ])
    assert.ok(!isLoopback(name), name);
});
