import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { type CrewOptions, startLocalCrew } from "./serve-worker.ts";

test("a server without a worker of its own shows what a worker beside its log has written", async () => {
  const directory = mkdtempSync(join(tmpdir(), "drover-serve-worker-"));
  const logs = join(directory, "worker", "logs", "t1");
  mkdirSync(logs, { recursive: true });
  writeFileSync(join(logs, "1.log"), "first\n");
  writeFileSync(join(logs, "2.log"), "one\ntwo\nthree\n");
  const place = { kind: "sqlite", directory } as const;
  const crew = await startLocalCrew({
    flags: { worker: false },
    place,
    isOpenToOthers: false,
  } as unknown as CrewOptions);
  assert.deepEqual(await crew.logsOf("t1", undefined, 2), { attempt: 2, text: "two\nthree\n", truncated: true });
  assert.equal((await crew.logsOf("t1", 1, 10))?.text, "first\n");
  assert.equal(await crew.logsOf("t1", 3, 10), null);
  assert.equal(await crew.logsOf("../t1", undefined, 10), null);
  rmSync(directory, { recursive: true });
});
