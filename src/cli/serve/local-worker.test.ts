import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { type LocalWorkerOptions, startLocalWorker } from "./local-worker.ts";

test("a server without a worker of its own shows what a worker beside its log has written", async () => {
  const directory = mkdtempSync(join(tmpdir(), "drover-serve-worker-"));
  const logs = join(directory, "worker", "logs", "t1");
  mkdirSync(logs, { recursive: true });
  writeFileSync(join(logs, "1.log"), "first\n");
  writeFileSync(join(logs, "2.log"), "one\ntwo\nthree\n");
  const log = { kind: "sqlite", directory } as const;
  const crew = await startLocalWorker({
    flags: { worker: false },
    log,
    others: null,
  } as unknown as LocalWorkerOptions);
  assert.deepEqual(await crew.logsOf("t1", undefined, { lines: 2 }), {
    attempt: 2,
    text: "two\nthree\n",
    truncated: true,
  });
  assert.equal((await crew.logsOf("t1", 1, { lines: 10 }))?.text, "first\n");
  assert.equal(await crew.logsOf("t1", 3, { lines: 10 }), null);
  assert.equal(await crew.logsOf("../t1", undefined, { lines: 10 }), null);
  const daysAgo = Date.now() / 1000 - 200_000;
  utimesSync(join(logs, "1.log"), daysAgo, daysAgo);
  for (const [attempt, text] of [
    [1, undefined],
    [2, "three\n"],
  ] as const) {
    const found = await crew.logsOf("t1", attempt, { lines: 1, taskAgeMs: 1000 });
    assert.equal(found?.text, text, "what was written before the task was submitted is another's");
  }
  assert.equal((await crew.logsOf("t1", 1, { lines: 1, taskAgeMs: 300_000_000 }))?.text, "first\n");
  rmSync(directory, { recursive: true });
});
