/**
 * What an attempt said last, which becomes its reason where it fails; and what of it is shown while it runs.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { createOutputLog, type OutputLog } from "./log.ts";
import { createRedactor } from "./redact.ts";

const home = mkdtempSync(join(tmpdir(), "drover-log-"));
after(() => rmSync(home, { recursive: true }));

const logAt = (path: string): OutputLog =>
  createOutputLog({
    path,
    bytesMax: 10_000,
    clock: { now: () => 0 },
    redact: createRedactor([]),
    onLine: () => undefined,
  });

for (const [written, words] of [
  ["error: no such thing\n", "error: no such thing"],
  ["error: no task has the id x\nhint:  drover tasks lists them\n", "error: no task has the id x"],
  ["error: failed to push\nhint: one\nHint: two\n\n", "error: failed to push"],
  ["hint: alone\n", "hint: alone"],
  ["hint: first\nerror: then\n", "error: then"],
] as const)
  test(`${JSON.stringify(written)}: a hint is no reason where there is another`, async () => {
    const log = logAt(join(home, "log"));
    log.output("err", Buffer.from(written));
    log.endLines();
    assert.equal(log.lastWords(), words);
    await log.close();
  });

test("a line that is shown is in the file, also one that came while there was no file yet", async () => {
  const path = join(home, ...Array.from({ length: 30 }, (_, depth) => `d${depth}`), "log");
  const log = logAt(path);
  const shown = log.tail({});
  log.note("early");
  const { text } = await shown;
  assert.equal(text, text === "" ? "" : readFileSync(path, "utf8"));
  await log.close();
  assert.match(readFileSync(path, "utf8"), /early\n$/);
});
