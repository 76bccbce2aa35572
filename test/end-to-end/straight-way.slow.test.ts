/**
 * A path that is looked up as it stands, and the same path by way of the router, are one way.
 *
 * A question mark with nothing behind it is enough to take the router, and changes nothing about what is asked.
 */
import assert from "node:assert/strict";
import { type IncomingHttpHeaders, request } from "node:http";
import { after, before, test } from "node:test";
import { CALL_LIST, ROLES } from "../../src/protocol/index.ts";
import { openServer, type TestServer } from "../kits/server-kit.ts";

const tokenOf = (name: string): string => `token-of-${name}-0123456789`;
const tokens = [
  ...ROLES.map((role) => ({ role, token: tokenOf(role) })),
  { role: "agent", token: tokenOf("ann"), agentId: "ann" },
];
let at: TestServer;
before(async () => {
  at = await openServer({ settings: { server: { tokens, bodyLimit: 4096 } } });
});
after(() => at.server.close());

type Asked = { readonly headers?: Record<string, string>; readonly body?: string };
type Heard = { readonly status: number | undefined; readonly headers: IncomingHttpHeaders; readonly text: string };

function ask(method: string, path: string, { headers = {}, body }: Asked): Promise<Heard> {
  const { port } = new URL(at.url);
  return new Promise((resolve, reject) => {
    const type = body === undefined ? {} : { "content-type": "application/json" };
    const sent = request({ port, method, path, headers: { ...type, ...headers } }, (response) => {
      let text = "";
      response.on("data", (part: Buffer) => (text += part.toString()));
      response.on("end", () => resolve({ status: response.statusCode, headers: response.headers, text }));
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

/** What does not differ from one asking to the next. */
function steady({ status, headers, text }: Heard): unknown {
  const { date: _, ...rest } = headers;
  if (status !== undefined && status >= 400) return { status, headers: rest, text };
  const { "content-length": __, ...known } = rest;
  return { status, headers: known };
}

const admin = { authorization: `Bearer ${tokenOf("admin")}` };
const bodies: [what: string, asked: Asked][] = [
  ["a list in place of a body", { headers: admin, body: "[]" }],
  ["a field nobody knows", { headers: admin, body: '{"nobodyKnows":1}' }],
  ["half a body of JSON", { headers: admin, body: '{"agentId"' }],
  ["a body that is too large", { headers: admin, body: JSON.stringify("x".repeat(5000)) }],
  ["a form", { headers: { ...admin, "content-type": "application/x-www-form-urlencoded" }, body: "a=b" }],
  ["a compressed body", { headers: { ...admin, "content-encoding": "gzip" }, body: "{}" }],
];
const rows: [what: string, asked: Asked][] = [
  ["no token", {}],
  ["a wrong token", { headers: { authorization: "Bearer nobody" } }],
  ...[...ROLES, "ann"].map((name): [string, Asked] => [
    `the token of ${name}`,
    { headers: { authorization: `Bearer ${tokenOf(name)}` } },
  ]),
  ["a page from elsewhere", { headers: { ...admin, origin: "http://evil.example" } }],
  ["another name of the server", { headers: { ...admin, host: "evil.example" } }],
  ["another protocol", { headers: { ...admin, "drover-protocol": "2" } }],
];

for (const [what, asked] of [...rows, ...bodies])
  test(`${what} is answered alike, whichever way a request takes`, async () => {
    for (const { method, path, params, body } of CALL_LIST) {
      if (params !== null || (asked.body !== undefined && body === null)) continue;
      const [straight, routed] = [await ask(method, path, asked), await ask(method, `${path}?`, asked)];
      assert.deepEqual(steady(straight), steady(routed), `${method} ${path}`);
    }
  });

test("both ways are counted under the same route", async () => {
  const count = async (): Promise<number> => {
    const { text } = await ask("GET", "/metrics", { headers: admin });
    const line = /request_duration_seconds_count\{method="GET",route="\/readyz",status="200"\} (\d+)/.exec(text);
    return Number(line?.[1] ?? 0);
  };
  const before = await count();
  for (const path of ["/readyz", "/readyz?"]) assert.equal((await ask("GET", path, { headers: admin })).status, 200);
  assert.equal(await count(), before + 2);
});
