/**
 * A copy from a server that runs goes on where its stream broke off.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { answering } from "../../../test/kits/loopback.ts";
import { seq } from "../../core/base/index.ts";
import { fill } from "../contract/vocabulary.ts";
import { openSqliteLog } from "../sqlite/sqlite-log.ts";
import { copyLog } from "./copy.ts";
import { historyFrames } from "./serving.ts";

test("what a server has is copied to its end, however often the connection breaks", async (context) => {
  const root = mkdtempSync(join(tmpdir(), "drover-copy-live-"));
  context.after(() => rmSync(root, { recursive: true, force: true }));
  const from = join(root, "from");
  const log = await openSqliteLog({ directory: from });
  const head = await fill(log, [3, 3, 3, 3, 3]);
  await log.close();
  const asked: (string | null)[] = [];
  await using server = await answering(async ({ url = "" }, response) => {
    const after = new URL(url, "http://node").searchParams.get("after");
    asked.push(after);
    let left = after === null ? Number.POSITIVE_INFINITY : 3;
    for await (const part of historyFrames(from, after === null ? null : seq(Number(after)))) {
      if (left-- === 0) return void response.destroy();
      await new Promise((sent) => response.write(part, sent));
    }
    response.end();
  });
  const notices: string[] = [];
  const onNotice = (line: string): unknown => notices.push(line);
  const report = await copyLog(server.url, `sqlite:${join(root, "to")}`, { onNotice });
  assert.deepEqual([report.events, report.head], [15, { seq: head.seq, hash: head.hash }]);
  assert.deepEqual(asked, [null, "0", "6", "12"]);
  assert.match(notices[0] ?? "", /cannot be reached: .*; it is asked again for what comes behind event 6/);
});
