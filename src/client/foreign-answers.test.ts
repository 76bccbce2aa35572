import assert from "node:assert/strict";
import { test } from "node:test";
import { answers, type Step, startScript } from "../../test/kits/script-server.ts";
import { type Client, createClient } from "./client.ts";
import { ClientError } from "./client-error.ts";

const refusal = (code: string): object => ({ error: `no: ${code}`, code });
const page =
  (status: number): Step =>
  (response) =>
    response.writeHead(status, { "content-type": "text/html" }).end("<html>no</html>");
const submitted = { taskId: "t1", state: "queued", createdAt: "2026-01-31T12:00:00.000Z", position: 1 };

/** What a call is that is answered so; and how often it was asked. */
async function asked(steps: readonly Step[], call: (client: Client) => Promise<unknown>) {
  await using server = await startScript(...steps);
  const client = createClient({ url: server.url, rest: async () => {} });
  const outcome = await call(client).catch((error: unknown) => error);
  return { outcome, error: outcome instanceof ClientError ? outcome : null, times: server.heard.length };
}

const slow: readonly [whose: string, step: Step, isForeign: boolean][] = [
  ["the server", answers(408, refusal("bad_request")), false],
  ["something on the way", page(408), true],
];
for (const [whose, step, isForeign] of slow) {
  test(`that a request took too long to arrive, as ${whose} says, is no refusal: what may be repeated is`, async () => {
    for (const call of [
      (client: Client) => client.submit({ id: "t1", agentId: "ann", action: "a" }),
      (client: Client) => client.task("t1"),
      (client: Client) => client.sync("ann", { n: 1 }),
    ]) {
      const { outcome, times } = await asked([step, answers(200, submitted)], call);
      assert.deepEqual([outcome, times], [submitted, 2]);
    }
    const { error, times } = await asked([step], (client) => client.task("t1"));
    assert.partialDeepStrictEqual({ ...error }, { code: "timeout", status: 408, retryable: true, isForeign });
    assert.equal(times, 5);
  });

  test(`what must not be done twice is not repeated when ${whose} says 408: it has perhaps worked`, async () => {
    const { error, times } = await asked([step], (client) => client.retry("t1"));
    assert.partialDeepStrictEqual({ ...error }, { code: "timeout", status: 408, retryable: false });
    assert.equal(times, 1);
  });
}

test("a refusal tells whether it is in the server's words; a code that it does not have is none of them", async () => {
  for (const [status, code] of [
    [400, "bad_request"],
    [404, "not_found"],
    [413, "too_large"],
    [415, "unsupported_media_type"],
  ] as const) {
    for (const [step, isForeign] of [
      [answers(status, refusal(code)), false],
      [answers(status, refusal("NotOurs")), true],
      [answers(status, { error: "no" }), true],
      [page(status), true],
    ] as const) {
      const { error } = await asked([step], (client) => client.task("t1"));
      assert.partialDeepStrictEqual({ ...error }, { status, code, retryable: false, isForeign });
    }
  }
});

test("a version that is said twice is that version; two that differ are another", async () => {
  const call = (client: Client): Promise<unknown> => client.task("t1");
  for (const version of ["1, 1", "1,1", "1, 1 , 1"])
    assert.deepEqual((await asked([answers(200, submitted, { "drover-protocol": version })], call)).outcome, submitted);
  for (const version of ["1, 2", "2, 2", "1,"])
    assert.equal(
      (await asked([answers(200, submitted, { "drover-protocol": version })], call)).error?.code,
      "unsupported_protocol",
    );
});
