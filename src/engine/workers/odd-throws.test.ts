/**
 * A handler may throw anything: its task fails, and the engine goes on.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createTestDrover } from "../../testing/index.ts";

const bad = (): never => {
  throw new Error("and again");
};
const { proxy, revoke } = Proxy.revocable({}, {});
revoke();
const ODD: readonly (readonly [name: string, thrown: unknown])[] = [
  ["an error whose status throws", Object.defineProperty(new Error("q"), "status", { get: bad })],
  ["an error whose message throws", Object.defineProperty(new Error("q"), "message", { get: bad })],
  ["something whose permanence throws", Object.defineProperty({}, "permanent", { get: bad })],
  ["something whose name throws", Object.defineProperty({}, Symbol.toStringTag, { get: bad })],
  ["a proxy that is gone", proxy],
  ["a proxy that answers nothing", new Proxy({}, { get: bad, getPrototypeOf: bad })],
];

for (const [name, thrown] of ODD)
  test(`${name} is a failure like any other`, async () => {
    await using kit = await createTestDrover();
    await kit.drover.worker({ slots: 1 }, () => {
      throw thrown;
    });
    await kit.drover.submit({ agentId: "ann", action: "x", id: "t", maxAttempts: 1 });
    await kit.settle();
    const { state, error } = await kit.drover.task("t");
    assert.equal(state, "failed");
    assert.ok((error ?? "").length > 0);
  });
