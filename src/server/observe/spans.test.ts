import assert from "node:assert/strict";
import { test } from "node:test";
import { createSpans, type SpanOptions } from "./spans.ts";

const missing = async (): Promise<never> => {
  throw Object.assign(new Error("Cannot find package"), { code: "ERR_MODULE_NOT_FOUND" });
};
const options = (given: Partial<SpanOptions>, warnings: string[] = []): SpanOptions => ({
  ...{ isWanted: false, version: "1", env: {}, load: missing },
  onWarning: (message) => warnings.push(message),
  ...given,
});

test("without being asked there are no spans, and nothing is loaded", async () => {
  const warnings: string[] = [];
  assert.equal(await createSpans(options({}, warnings)), null);
  assert.deepEqual(warnings, []);
});

test("spans that the config wants and nobody can send stop the start, and say what to install", async () => {
  await assert.rejects(createSpans(options({ isWanted: true })), /server\.telemetry.*npm install @opentelemetry/);
});

test("a variable that is there for every program of a machine is no reason not to start", async () => {
  const warnings: string[] = [];
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9" };
  assert.equal(await createSpans(options({ env }, warnings)), null);
  assert.match(warnings[0] ?? "", /OTEL_EXPORTER_OTLP_ENDPOINT is set.*npm install/);
});

test("a fault in what sends spans is no missing package", async () => {
  const load = async (): Promise<never> => {
    throw new TypeError("broken");
  };
  await assert.rejects(createSpans(options({ isWanted: true, load })), TypeError);
});
