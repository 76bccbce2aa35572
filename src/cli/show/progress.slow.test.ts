/**
 * A long verify, made long by a clock that runs fast.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { served } from "../../../test/kits/cli/served.ts";
import { testTerminal } from "../../../test/kits/cli/test-terminal.ts";
import { runCommandLine } from "../command-line.ts";
import { VERBS } from "../verbs.ts";

test("verify has a bar on standard error while it takes long, and takes it away before it answers", async () => {
  const server = await served(["--no-worker"]);
  await server.drover(["submit", "build", "--id", "t1"]);
  await server.stop();
  const verify = async (msPerLook: number): Promise<ReturnType<typeof testTerminal>> => {
    let now = Date.now();
    const terminal = testTerminal({ width: 70, cwd: server.directory, now: () => (now += msPerLook) });
    assert.equal(await runCommandLine(["verify", "--data", ".drover"], terminal, VERBS), 0, terminal.complained());
    return terminal;
  };
  const long = await verify(1000);
  assert.match(long.complained(), /^\rverify {2}[█░]{24} {2}\d+%, \d+ of \d+ events, .*\/s/);
  assert.ok(long.complained().endsWith("\r\u001b[K"));
  assert.match(long.shown(), /^✔ the log in/);
  assert.equal((await verify(0)).complained(), "");
});
