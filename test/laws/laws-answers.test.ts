/**
 * Whatever a push worker or the receiver of a webhook answers, Drover goes on: an answer is an outcome or a failure of
 * that one exchange, and what becomes of it can be reported.
 */
import assert from "node:assert/strict";
import { createServer } from "node:net";
import { after, test } from "node:test";
import fc from "fast-check";
import { readSync } from "../../src/engine/workers/sync.ts";
import { ExchangeFailure, exchange, type OutboundAnswer } from "../../src/http/outbound.ts";
import { readShape, syncBody } from "../../src/protocol/index.ts";
import { ANSWER_BYTES_MAX, outcomeOf } from "../../src/server/push/response.ts";
import { readRetryAfter } from "../../src/std/retry-after.ts";
import { holds, holdsInTime } from "../kits/laws/cases.ts";
import { listening } from "../kits/loopback.ts";

const bytes = fc.uint8Array({ maxLength: 200 });
const body = fc.oneof(
  bytes,
  fc
    .oneof(
      fc.json(),
      fc.constantFrom("1e400", '"\\ud800"', '{"__proto__":1}', "\ufeff{}", "[".repeat(250_000), "", " ", "NaN"),
      fc.constantFrom(65, 64, 5000).map((depth) => "[".repeat(depth) + "]".repeat(depth)),
    )
    .map((text) => new TextEncoder().encode(text)),
);
const header = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.constantFrom(
    "9".repeat(400),
    "-1",
    "1e9",
    "NaN",
    "Infinity",
    "0",
    "1.5",
    "Fri, 99 Zzz 2026 00:00:00 GMT",
    "999999999999",
  ),
);

test("whatever a push worker answers, its task has an outcome that the engine takes", () => {
  const answers = fc.record({
    status: fc.integer({ min: 0, max: 999 }),
    contentType: fc.oneof(header, fc.constantFrom("application/json", "text/plain", "text/json")),
    retryAfter: fc.option(header, { nil: undefined }),
    bytes: body,
    isWhole: fc.boolean(),
  });
  holds(5000, answers, ({ retryAfter, ...answer }) => {
    const retryAfterMs = readRetryAfter(retryAfter, 0);
    const outcome = outcomeOf({ ...answer, retryAfterMs });
    const told = JSON.parse(JSON.stringify({ results: [{ taskId: "t", attempt: 1, ...outcome }] }));
    assert.ok(readShape(syncBody, told).ok, JSON.stringify(told).slice(0, 500));
    readSync(told);
  });
});

/** A server that sends just these bytes and hangs up. */
let sent: Uint8Array = new Uint8Array();
const server = await listening(
  createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => socket.end(sent));
  }),
);
after(server.close);

async function ask(answer: Uint8Array | string): Promise<OutboundAnswer | ExchangeFailure> {
  sent = typeof answer === "string" ? new TextEncoder().encode(answer) : answer;
  const url = new URL(server.url);
  const { signal } = new AbortController();
  try {
    const got = await exchange({ url, method: "POST", headers: {}, body: "{}", signal });
    await got.read(ANSWER_BYTES_MAX);
    return got;
  } catch (error) {
    assert.ok(error instanceof ExchangeFailure, String(error));
    return error;
  }
}

const HEADS = [
  "HTTP/1.1 200 OK",
  "HTTP/1.1 999 Hm",
  "HTTP/1.0 200",
  "HTTP/1.1 100 Continue",
  "HTTP/1.1 204 No",
  "HTTP/2 200",
];
const raw = fc
  .tuple(
    fc.constantFrom(...HEADS),
    fc.array(
      fc.constantFrom(
        ...["Content-Length: 5", "Content-Length: 99999999999", "Content-Length: -1", "Transfer-Encoding: chunked"],
        ...[
          "Transfer-Encoding: gzip",
          "Retry-After: \u0001",
          "Content-Encoding: gzip",
          "Connection: upgrade",
          "Upgrade: x",
        ],
        ...["A: \r\n b", ": empty", "x".repeat(30_000), "Content-Type: \xff"],
      ),
      { maxLength: 4 },
    ),
    bytes,
  )
  .map(([head, lines, rest]) =>
    Buffer.concat([Buffer.from(`${[head, ...lines].join("\r\n")}\r\n\r\n`, "latin1"), rest]),
  );

test("whatever bytes come back, an exchange is answered or has failed", async () => {
  await holdsInTime(1000, fc.oneof(bytes, raw), async (answer) => void (await ask(answer)));
});

test("an answer that wants to speak another protocol has failed", async () => {
  const head = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
  const failure = await ask(head);
  assert.ok(failure instanceof ExchangeFailure);
  assert.deepEqual([failure.reached, failure.message], ["head", "it answered 101, to go on in another protocol"]);
});
