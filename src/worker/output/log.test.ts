/**
 * What an attempt said last, which becomes its reason where it fails.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { createOutputLog } from "./log.ts";
import { createRedactor } from "./redact.ts";

const home = mkdtempSync(join(tmpdir(), "drover-log-"));
after(() => rmSync(home, { recursive: true }));

for (const [written, words] of [
  ["error: no such thing\n", "error: no such thing"],
  ["error: no task has the id x\nhint:  drover tasks lists them\n", "error: no task has the id x"],
  ["error: failed to push\nhint: one\nHint: two\n\n", "error: failed to push"],
  ["hint: alone\n", "hint: alone"],
  ["hint: first\nerror: then\n", "error: then"],
] as const)
  test(`${JSON.stringify(written)}: a hint is no reason where there is another`, async () => {
    const redact = createRedactor([]);
    const plan = {
      path: join(home, "log"),
      bytesMax: 10_000,
      clock: { now: () => 0 },
      redact,
      onLine: () => undefined,
    };
    const log = createOutputLog(plan);
    log.output("err", Buffer.from(written));
    log.endLines();
    assert.equal(log.lastWords(), words);
    await log.close();
  });
