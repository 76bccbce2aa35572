import assert from "node:assert/strict";
import { test } from "node:test";
import { createOriginCheck } from "./origin-check.ts";

const local = createOriginCheck({
  host: "127.0.0.1",
  allowedHosts: ["Box.example", "a.example:8080"],
  allowedOrigins: ["https://Ui.example/"],
});
const open = createOriginCheck({ host: "0.0.0.0", allowedHosts: [], allowedOrigins: [] });
const none = { host: "127.0.0.1", allowedHosts: [], allowedOrigins: [] };
const node = createOriginCheck({ ...none, advertised: () => "http://Node-A.example:4747" });
const behindProxy = createOriginCheck({ ...none, advertised: () => "https://a.example/" });

const hosts: [check: typeof local, host: string | undefined, isIn: boolean][] = [
  [local, "127.0.0.1:4747", true],
  [local, "localhost:4747", true],
  [local, "LOCALHOST:4747", true],
  [local, "[::1]:4747", true],
  [local, "localhost", true],
  [local, "box.example", true],
  [local, "box.example:4747", true],
  [local, "a.example:8080", true],
  [local, "a.example:8081", false],
  [local, "evil.example:4747", false],
  [local, "localhost.evil.example:4747", false],
  [local, "127.0.0.1.evil.example", false],
  [local, "10.0.0.5:4747", false],
  [local, "", false],
  [local, undefined, false],
  [open, "10.0.0.5:4747", true],
  [open, "[fe80::1]:4747", true],
  [open, "127.0.0.1:4747", true],
  [open, "evil.example:4747", false],
  [node, "node-a.example:4747", true],
  [node, "NODE-A.example:4747", true],
  [node, "localhost:4747", true],
  [node, "node-a.example", false],
  [node, "node-a.example:4748", false],
  [node, "b.node-a.example:4747", false],
  [node, "node-a.example:4747.evil.example", false],
  [node, "10.0.0.5:4747", false],
  [node, "", false],
  [behindProxy, "a.example", true],
  [behindProxy, "a.example:4747", false],
];
const kinds = new Map([
  [open, "an open server"],
  [node, "a node that says where it is"],
  [behindProxy, "a node behind a proxy"],
]);
for (const [check, host, isIn] of hosts)
  test(`${kinds.get(check) ?? "a local server"} ${isIn ? "lets in" : "refuses"} a request for ${host}`, () => {
    const refusal = check(host === undefined ? {} : { host });
    assert.equal(refusal === null, isIn);
    if (refusal !== null) assert.equal(refusal.code, host === undefined ? "bad_request" : "forbidden");
  });

test("a Host that was refused stays refused after a good one, and the other way round", () => {
  for (let round = 0; round < 2; round++) {
    assert.equal(local({ host: "localhost:1" }), null);
    assert.notEqual(local({ host: "evil.example:1" }), null);
  }
});

const host = "localhost:4747";
test("a page of the address that a node says is let in, and no other", () => {
  const host = "node-a.example:4747";
  assert.equal(node({ host, origin: "http://node-a.example:4747" }), null);
  assert.notEqual(node({ host, origin: "http://evil.example" }), null);
});

const origins: [headers: Record<string, string>, isIn: boolean][] = [
  [{ origin: "http://localhost:4747" }, true],
  [{ origin: "https://localhost:4747" }, true],
  [{ origin: "https://ui.example" }, true],
  [{ origin: "http://localhost:3000" }, false],
  [{ origin: "http://127.0.0.1:4747" }, false],
  [{ origin: "http://localhost" }, false],
  [{ origin: "http://evil.example" }, false],
  [{ origin: "http://localhost:4747.evil.example" }, false],
  [{ origin: "null" }, false],
  [{ origin: "" }, false],
  [{ "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" }, false],
  [{ "sec-fetch-site": "same-site", "sec-fetch-mode": "cors" }, false],
  [{ "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" }, true],
  [{ "sec-fetch-site": "same-origin", "sec-fetch-mode": "cors" }, true],
  [{ "sec-fetch-site": "none", "sec-fetch-mode": "navigate" }, true],
];
for (const [headers, isIn] of origins)
  test(`a page that says ${JSON.stringify(headers)} is ${isIn ? "let in" : "refused"}`, () => {
    assert.equal(local({ host, ...headers }) === null, isIn);
  });
