/**
 * `drover log copy`, as a person calls it: between directories, PostgreSQL and etcd, killed and begun again, and every
 * refusal with its exit code. No password is ever shown.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, type TestContext, test } from "node:test";
import { testTerminal } from "../../../test/kits/cli/test-terminal.ts";
import { type EtcdCluster, etcdMissing, startEtcd } from "../../../test/kits/etcd.ts";
import { type PostgresServer, postgresMissing, startPostgres } from "../../../test/kits/postgres.ts";
import { until } from "../../../test/kits/waits.ts";
import { seq } from "../../core/base/index.ts";
import { fill } from "../../log/contract/vocabulary.ts";
import type { Head } from "../../log/log.ts";
import { openJournal } from "../../log/shared/by-url.ts";
import { openSqliteLog } from "../../log/sqlite/sqlite-log.ts";
import { runCommandLine } from "../command-line.ts";
import { VERBS } from "../verbs.ts";

const BIN = join(import.meta.dirname, "../../../bin/drover.js");
const missing = postgresMissing || etcdMissing;

function newDirectory(context: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), "drover-log-copy-"));
  context.after(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** A directory with so many batches of three events. */
async function filled(context: TestContext, batches: number): Promise<{ directory: string; head: Head }> {
  const directory = newDirectory(context);
  await using log = await openSqliteLog({ directory });
  return { directory, head: await fill(log, new Array(batches).fill(3)) };
}

async function copy(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const terminal = testTerminal({ cwd: tmpdir() });
  const code = await runCommandLine(["log", "copy", ...args], terminal, VERBS);
  return { code, out: terminal.shown(), err: terminal.complained() };
}

describe("drover log copy", { skip: missing }, () => {
  let postgres: PostgresServer;
  let etcd: EtcdCluster;
  const started = missing === false ? Promise.all([startPostgres(), startEtcd()]) : null;
  after(async () => {
    await Promise.all((await (started ?? [])).map((each) => each[Symbol.asyncDispose]()));
  });
  const ready = async (): Promise<void> => {
    [postgres, etcd] = (await started) as [PostgresServer, EtcdCluster];
  };

  test("a history goes round: a directory, etcd, PostgreSQL, a directory; then all is there", async (context) => {
    await ready();
    const { directory, head } = await filled(context, 40);
    const [there, further] = [etcd.url("round"), postgres.url({ schema: "round" })];
    const back = join(newDirectory(context), "back");
    const first = await copy(directory, there);
    assert.equal(first.code, 0, first.err);
    assert.match(first.out, /^✔ etcd:\S+ has 120 more events \(.+\) now, and ends where \S+ does\n {2}head 120:/);
    assert.equal((await copy(there, further)).code, 0);
    const last = await copy(further, `sqlite:${back}`, "--json");
    const report = JSON.parse(last.out) as { events: number; head: object };
    assert.deepEqual([report.events, report.head], [120, { seq: head.seq, hash: head.hash }]);
    assert.match((await copy(directory, there)).out, /has all of it already/);
    await using log = await openSqliteLog({ directory: back });
    assert.deepEqual((await log.verify({ expect: head })).problems, []);
  });

  test("a copy that is killed goes on where it was", async (context) => {
    await ready();
    const { directory, head } = await filled(context, 4000);
    const url = postgres.url({ schema: "killed" });
    const child = spawn(process.execPath, [BIN, "log", "copy", directory, url], { stdio: "ignore" });
    const ended = once(child, "exit");
    await using journal = await openJournal(url);
    await until("the first batches", async () => (await journal.head()).seq > 30);
    child.kill("SIGKILL");
    await ended;
    const { seq: reached } = await journal.head();
    assert.ok(reached < head.seq, "it was killed on the way");
    const { code, out, err } = await copy(directory, url, "--json");
    assert.equal(code, 0, err);
    // What was on its way when it was killed may have landed since.
    const { events } = JSON.parse(out) as { events: number };
    assert.ok(events > 0 && events <= head.seq - reached, `${events} of ${head.seq - reached}`);
    assert.equal((await journal.head()).hash, head.hash);
  });

  test("what is refused is said, with its exit code, and nothing is written", async (context) => {
    await ready();
    const { directory } = await filled(context, 2);
    const longer = await filled(context, 5);
    const other = newDirectory(context);
    const otherLog = await openSqliteLog({ directory: other });
    await fill(otherLog, [5, 5, 5, 5]);
    await otherLog.close();
    const prefix = "refused";
    assert.equal((await copy(longer.directory, etcd.url(prefix))).code, 0);
    await using journal = await openJournal(etcd.url(prefix));
    await journal.prune(seq(6));
    const [elsewhere, missingLog] = [join(newDirectory(context), "new"), join(newDirectory(context), "none")];
    const rows: [args: [string, string], code: number, says: RegExp][] = [
      [[etcd.url(prefix), elsewhere], 4, /events up to 6 of etcd:\S+ were pruned.*Nothing was written/s],
      [[etcd.url(prefix), postgres.url({ schema: "of_pruned" })], 4, /events up to 6 .* were pruned/],
      [[directory, etcd.url(prefix)], 4, /ends at event 15, and \S+ at 6 already: .* the other way round\?/],
      [[other, etcd.url(prefix)], 4, /has another history than/],
      [[missingLog, elsewhere], 4, /there is no log in/],
      [["http://127.0.0.1:1,http://127.0.0.1:2", elsewhere], 4, /copied from one node: give one address/],
      [["memory:", elsewhere], 4, /a log in memory cannot be copied/],
      [["mysql://me:hidden-word@host/x", elsewhere], 4, /a log is named by a URL/],
      [[directory, "postgres://me:hidden-word@127.0.0.1:1/x?nonsense=1"], 4, /has the option "nonsense"/],
    ];
    for (const [args, code, says] of rows) {
      const ran = await copy(...args);
      assert.equal(ran.code, code, `${args.join(" ")}: ${ran.err}`);
      assert.match(ran.err, says);
      assert.doesNotMatch(ran.err + ran.out, /hidden-word/);
    }
    await using _ = await openSqliteLog({ directory });
    const locked = await copy(directory, elsewhere);
    assert.deepEqual(
      [locked.code, /a server runs on .*stop it, or copy from its URL/.test(locked.err)],
      [6, true],
      locked.err,
    );
    const into = await copy(longer.directory, directory);
    assert.deepEqual([into.code, /is in use by/.test(into.err)], [6, true], into.err);
  });
});
