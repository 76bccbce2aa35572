/**
 * `drover verify` compares the newest snapshot with what its events lead to, and says which events those were; and it
 * finds what a start would refuse beside the log.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { testTerminal } from "../../../test/kits/cli/test-terminal.ts";
import { seq } from "../../core/base/index.ts";
import { snapshotLines } from "../../core/snapshot/index.ts";
import { keepIdentity } from "../../engine/base/node-identity.ts";
import { openDrover, openSqliteLog } from "../../engine/index.ts";
import { runCommandLine } from "../command-line.ts";
import { VERBS } from "../verbs.ts";

test("a signed snapshot that is not what its events lead to is told, with exit code 1", async (context) => {
  const data = mkdtempSync(join(tmpdir(), "drover-verify-"));
  context.after(() => rmSync(data, { recursive: true, force: true }));
  const drover = await openDrover({ data });
  await drover.submit({ agentId: "ann", action: "x", id: "kept" });
  await drover.snapshot();
  const lines = [...snapshotLines(drover.state)];
  const at = seq(drover.state.seq);
  await drover.close();
  const verified = async (): Promise<[number, string]> => {
    const terminal = testTerminal({ cwd: data });
    return [await runCommandLine(["verify", "--data", data], terminal, VERBS), terminal.shown()];
  };
  const [exit, shown] = await verified();
  assert.equal(exit, 0, shown);
  assert.match(shown, new RegExp(`\\n  the snapshot of event ${at} is what the events lead to\\n`));

  const log = await openSqliteLog({ directory: data });
  const { hash } = (await log.checkpoints()).at(-1) ?? { hash: "" };
  const wrong = lines.map((line) => line.replace('"kept"', '"made up"')).join("\n");
  await log.saveSnapshot({ seq: at, hash, chunks: [Buffer.from(`${wrong}\n`)] });
  await log.close();
  const [failed, told] = await verified();
  assert.equal(failed, 1);
  assert.match(told, new RegExp(`at event ${at}: the snapshot is not what its events lead to: it says .*made up`));
});

test("a call that names a server is refused, and says what to do: no server is verified", async () => {
  const terminal = testTerminal({ cwd: tmpdir() });
  assert.equal(await runCommandLine(["verify", "--url", "http://a:4747"], terminal, VERBS), 2);
  assert.match(
    terminal.complained(),
    /reads a data directory on this machine, and asks no server: .*GET \/events\/verify/,
  );
});

test("a bit that is wrong in the private key or in node.json is found, and a start refuses it", async (context) => {
  const data = mkdtempSync(join(tmpdir(), "drover-verify-"));
  const [spare, other] = [join(data, "spare"), join(data, "other")];
  context.after(() => rmSync(data, { recursive: true, force: true }));
  for (const directory of [spare, other]) await (await openDrover({ data: directory })).close();
  keepIdentity(spare, { id: "n1", cluster: null }, "c0ffee");
  const run = async (...words: string[]): Promise<[number, string]> => {
    const terminal = testTerminal({ cwd: data });
    return [
      await runCommandLine([...words, "--data", spare], terminal, VERBS),
      terminal.shown() + terminal.complained(),
    ];
  };
  const whole = await run("verify");
  assert.equal(whole[0], 0, whole[1]);
  for (const name of ["signing-key.pem", "node.json"]) {
    const path = join(spare, name);
    const bytes = readFileSync(path);
    const places = Array.from({ length: 8 }, (_, nth) => Math.floor((nth * (bytes.length - 1)) / 7));
    for (const at of places) {
      writeFileSync(path, bytes.with(at, (bytes[at] as number) ^ 1));
      const [exit, told] = await run("verify");
      assert.equal(exit, 1, `${name}, byte ${at}: ${told}`);
      assert.ok(told.includes(path), told);
    }
    writeFileSync(path, bytes);
  }
  writeFileSync(join(spare, "signing-key.pem"), readFileSync(join(other, "signing-key.pem")));
  assert.match((await run("verify"))[1], /signing-key\.pem is not the key whose public half lies beside it/);
  rmSync(join(spare, "signing-key.pem"));
  assert.equal((await run("verify"))[0], 0, "who only reads need not have it");
  writeFileSync(join(spare, "node.json"), "{");
  const [refused, said] = await run("serve", "--port", "0");
  assert.notEqual(refused, 0);
  assert.match(said, /^error: .*node\.json makes no sense\. Put it back from a backup, or move it away\./m);
});
