/**
 * Knobs of `server:` that are read by a part of their own: what the file says must reach that part.
 *
 * Its other knobs bind in the tests of what they are about: host and tokens in tokens.slow.test.ts, bodyLimit in
 * wire.slow.test.ts, shutdownGrace in shutdown.slow.test.ts, port in cli/serve/serve.slow.test.ts.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { trace } from "@opentelemetry/api";
import { TracerProvider } from "@opentelemetry/sdk-trace";
import { statusUnder } from "../kits/raw-socket.ts";
import { openServer, type TestServer } from "../kits/test-server.ts";

const statusOf = ({ url }: TestServer, headers: Record<string, string>): Promise<number> =>
  statusUnder(`${url}/healthz`, headers);

test("server.allowedHosts binds", async () => {
  for (const [allowedHosts, status] of [
    [["box.example"], 200],
    [[], 403],
  ] as const) {
    await using at = await openServer({ settings: { server: { allowedHosts } } });
    assert.equal(await statusOf(at, { host: "box.example:4747" }), status);
  }
});

test("server.allowedOrigins binds", async () => {
  for (const [allowedOrigins, status] of [
    [["https://ui.example"], 200],
    [[], 403],
  ] as const) {
    await using at = await openServer({ settings: { server: { allowedOrigins } } });
    assert.equal(await statusOf(at, { origin: "https://ui.example" }), status);
  }
});

test("server.telemetry binds, and uses what the program has set up itself", async () => {
  const names: string[] = [];
  const hears = { onStart: () => {}, onEnd: (span: { name: string }) => void names.push(span.name) };
  const done = async (): Promise<void> => {};
  trace.setGlobalTracerProvider(
    new TracerProvider({ spanProcessors: [{ ...hears, forceFlush: done, shutdown: done }] }),
  );
  for (const [telemetry, expected] of [
    [false, []],
    [true, ["GET /healthz"]],
  ] as const) {
    await using at = await openServer({ settings: { server: { telemetry } } });
    assert.equal(await statusOf(at, {}), 200);
    assert.deepEqual(names, expected);
  }
  trace.disable();
});
