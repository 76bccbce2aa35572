import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { generatedFiles } from "../../../tools/schema-declarations.ts";
import { readConfig } from "../../core/config/index.ts";
import type { ConfigInput } from "./index.ts";

const root = join(import.meta.dirname, "../../..");

for (const [path, text] of generatedFiles())
  test(`${path} is what the schemas say`, () => {
    assert.equal(readFileSync(join(root, path), "utf8"), text, "npx node tools/schema-declarations.ts writes it anew");
  });

test("what the type of the config lets through, the engine takes", () => {
  const config: ConfigInput = {
    scheduler: { maxInFlight: 5, perType: { plan: null }, retry: { base: "1s" }, placement: { strategy: "best-fit" } },
    projects: { autoCreate: false, default: { weight: 2 }, web: { budget: { limit: 10, window: "1h" } } },
    gates: { default: { requests: 5 }, "anthropic/default": { tokens: { perMinute: 100, kind: "fixed" } } },
    log: { retain: 60_000, maxBytes: "1GiB" },
  };
  const read = readConfig(config);
  assert.ok(read.ok && read.value.projects.named.web?.weight === 2);
});
