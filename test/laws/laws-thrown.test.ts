/**
 * Whatever a handler throws, and whatever a provider's client throws in it, is an outcome of its task: it can be
 * reported, and a permit that was held meanwhile is given back.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { failed } from "../../src/engine/tasks/handler-outcome.ts";
import { readSync } from "../../src/engine/workers/sync.ts";
import { createGate } from "../../src/gate/index.ts";
import { readShape, syncBody } from "../../src/protocol/index.ts";
import { TaskRequeue } from "../../src/worker/index.ts";
import { reportOfError } from "../../src/worker/pull/outcome.ts";
import { holds, holdsInTime } from "../kits/laws/cases.ts";

const bad = (): never => {
  throw new Error("and again");
};
const { proxy: gone, revoke } = Proxy.revocable({}, {});
revoke();

const FIELDS = ["status", "statusCode", "message", "name", "permanent", "retryAfterMs", "headers", "response", "then"];
/** Made when it is needed: what draws the cases would look at it, too. */
const ODD: readonly (() => unknown)[] = [
  ...[429, 529, "429", Number.NaN, Number.POSITIVE_INFINITY, -1, 1e300, 10n, Symbol("s"), null, true],
  ...["\ud800", "x".repeat(10_000), "", { status: 429 }, { "retry-after": "9".repeat(400) }, gone],
  ...[new Proxy({}, { get: bad }), new Proxy(new Error("x"), { getPrototypeOf: bad })],
].map((value) => () => value);
const odd = fc.constantFrom(...ODD);
const thrown = fc
  .tuple(
    fc.constantFrom<() => object>(
      () => new Error("no"),
      () => ({}),
      () => new TaskRequeue("\udc00"),
      () => Object.create(null),
      () => () => {},
    ),
    fc.array(fc.tuple(fc.constantFrom(...FIELDS), odd, fc.boolean()), { maxLength: 4 }),
  )
  .map(([make, fields]) => {
    const error = make();
    for (const [name, value, isThrown] of fields)
      Object.defineProperty(error, name, { configurable: true, get: () => (isThrown ? bad() : value()) });
    return (): unknown => error;
  });
const anything = fc.oneof({ weight: 3, arbitrary: thrown }, odd);

test("a report on the wire can be made of whatever a handler throws", () => {
  holds(5000, anything, (make) => {
    const error = make();
    const body = JSON.parse(
      JSON.stringify({ results: [{ taskId: "t", attempt: 1, ...reportOfError(error, null, 0) }] }),
    );
    assert.ok(readShape(syncBody, body).ok, JSON.stringify(body));
    readSync(body);
  });
});

test("a report in the engine's own process can be made of whatever a handler throws, as on the wire", () => {
  holds(5000, anything, (make) => {
    const error = make();
    const { report } = failed({ task: "t" as never, attempt: 1, tokens: null }, error, 0);
    const { error: said, retryAfterMs } = report;
    assert.ok(typeof said === "string" && said.isWellFormed());
    assert.equal(said, reportOfError(error, null, 0).error);
    assert.ok(retryAfterMs === null || (Number.isSafeInteger(retryAfterMs) && retryAfterMs >= 0));
  });
});

test("a permit comes back whatever its call throws, and the caller gets just that", async () => {
  await holdsInTime(1000, anything, async (make) => {
    const error = make();
    const gate = createGate({ now: () => 0 });
    let heard: unknown = null;
    const call = (): never => {
      throw error;
    };
    await gate.withPermit(call, { attempts: 1 }).catch((reason: unknown) => {
      heard = reason;
    });
    assert.ok(Object.is(heard, error));
    assert.equal(gate.queueState().running, 0);
    gate.close();
  });
});
