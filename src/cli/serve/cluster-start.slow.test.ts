/**
 * How a node begins, or does not: an engine that is away is waited for; what is refused is refused in a sentence that
 * says what to do, has no password in it, and leaves nothing behind.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { cpSync, existsSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { emptyDirectory } from "../../../test/kits/cli/served.ts";
import { type TestTerminal, testTerminal } from "../../../test/kits/cli/test-terminal.ts";
import { type EtcdCluster, etcdMissing, startEtcd } from "../../../test/kits/etcd.ts";
import { type PostgresServer, postgresMissing, startPostgres } from "../../../test/kits/postgres.ts";
import { until, within } from "../../../test/kits/waits.ts";
import type { ClusterView, SettingsView } from "../../protocol/index.ts";
import { runCommandLine } from "../command-line.ts";
import { VERBS } from "../verbs.ts";

const LIMIT = { timeout: 300_000 };

type Begun = { readonly terminal: TestTerminal; readonly ended: Promise<number> };

function begin(cwd: string, args: readonly string[], worker: readonly string[] = ["--no-worker"]): Begun {
  const terminal = testTerminal({ cwd, home: cwd, env: { PATH: process.env.PATH } });
  const ended = runCommandLine(["serve", "--port", "0", ...worker, "--log-level", "silent", ...args], terminal, VERBS);
  return { terminal, ended };
}

/** A node that serves; ends it when it is disposed. */
async function served(cwd: string, args: readonly string[]): Promise<AsyncDisposable & Begun & { url: string }> {
  const begun = begin(cwd, args);
  const failed = begun.ended.then((code) => assert.fail(`it ended with ${code}: ${begun.terminal.complained()}`));
  failed.catch(() => {});
  await Promise.race([begun.terminal.saw("Ctrl-C stops it."), failed]);
  const [url = ""] = /http:\/\/\S+/.exec(begun.terminal.shown()) ?? [];
  const dispose = async (): Promise<void> => {
    begun.terminal.signal("SIGTERM");
    await within("its end", begun.ended);
  };
  return { ...begun, url, [Symbol.asyncDispose]: dispose };
}

/** Who leads, as a node says. */
async function leaderAt(url: string): Promise<string | undefined> {
  const { nodes } = (await (await fetch(`${url}/cluster`)).json()) as ClusterView;
  return nodes.filter(({ role }) => role === "leader").map((node) => `${node.id} ${node.url}`)[0];
}

const warningsAt = async (url: string): Promise<string> =>
  ((await (await fetch(`${url}/cluster`)).json()) as ClusterView).log.warnings.join();

async function refuses(args: readonly string[], exit: number, says: RegExp, cwd = emptyDirectory()): Promise<void> {
  const { terminal, ended } = begin(cwd, args);
  const code = await within("a refusal", ended);
  const said = terminal.complained();
  assert.match(said, says);
  assert.equal(code, exit, said);
  assert.doesNotMatch(said, /hunter2|a secret|a%20secret/);
  assert.equal(existsSync(join(cwd, ".drover/node.json")), false);
}

describe("without an engine", LIMIT, () => {
  test("what does not go together is said before anything is opened", async () => {
    const nodes = "etcd://127.0.0.1:1/p";
    await refuses(["--log", "mysql://ann:hunter2@h/d"], 2, /mysql:\/\/\(hidden\)@h\/d".*\nhint:.*etcd:\/\/HOST/);
    await refuses(["--log", "etcd://ann:hunter2@h:x/p"], 2, /the host "h:…" in the address of etcd/);
    await refuses(["--node", "n1"], 2, /--node is for a node of a cluster\nhint:.*--log etcd/);
    await refuses(["--advertise", "http://h:1"], 2, /--advertise is for a node of a cluster/);
    await refuses(["--log", nodes, "--node", "a b"], 2, /cluster\.node is "a b", and must be a name of 1 to 64/);
    await refuses(["--log", nodes, "--advertise", "h:1"], 2, /cluster\.advertise is "h:1", and must be an http/);
    for (const more of ["/drover", "//", "/?a=b", "/#a"])
      await refuses(["--log", nodes, "--advertise", `http://h:1${more}`], 2, /a host and a port alone, without a path/);
    await refuses(["--log", nodes, "--set", "cluster.lease=5s"], 2, /cluster\.lease is "5s", .* from 1000 to 4000 ms/);
    const open = ["--host", "0.0.0.0", "--set", "server.tokens=[{token: 0123456789abcdef, role: admin}]"];
    await refuses(["--log", nodes, ...open], 2, /every address of the machine .*\nhint:.*--advertise http/);
    await refuses(["--log", nodes, "--host", "0.0.0.0"], 2, /server\.tokens is empty: anybody could run tasks/);
  });

  test("one that waits is alive and not ready, says so every few seconds, and ends at the first signal", async () => {
    const { terminal, ended } = begin(emptyDirectory(), ["--log", "etcd://ann:hunter2@127.0.0.1:1/p"]);
    await terminal.saw("waiting for the journal");
    const [, url = ""] = /Listening at (http:\S+), not ready/.exec(terminal.complained()) ?? [];
    assert.equal((await fetch(`${url}/healthz`)).status, 200);
    for (const [method, path] of [
      ["GET", "/readyz"],
      ["GET", "/tasks"],
      ["POST", "/tasks"],
      ["GET", "/nowhere"],
    ] as const) {
      const answer = await fetch(url + path, { method });
      assert.deepEqual([answer.status, answer.headers.get("retry-after")], [503, "1"], path);
      const { code, error, retryable } = (await answer.json()) as Record<string, unknown>;
      assert.deepEqual([code, retryable], ["no_leader", true]);
      assert.match(String(error), /^waiting for the journal since \d+ s: .*127\.0\.0\.1:1.*; try again$/);
      assert.doesNotMatch(String(error), /hunter2/);
    }
    const page = await fetch(`${url}/ui/`, { headers: { accept: "text/html,*/*" } });
    const { status, headers } = page;
    assert.deepEqual(
      [status, headers.get("refresh"), headers.get("content-type")?.slice(0, 10)],
      [503, "2", "text/plain"],
    );
    assert.match(
      await page.text(),
      /^Drover is not ready: waiting for the journal since .*\nThis page looks again by itself\.\n$/,
    );
    terminal.signal("SIGTERM");
    assert.equal(await within("its end", ended), 0);
    assert.doesNotMatch(terminal.complained() + terminal.shown(), /hunter2/);
    await assert.rejects(fetch(`${url}/healthz`));
  });
});

describe("a log that takes connections and says nothing", LIMIT, () => {
  test("a second signal ends the start at once, with the exit code of that signal", async () => {
    const mute = createServer().listen(0, "127.0.0.1");
    await once(mute, "listening");
    const { port } = mute.address() as AddressInfo;
    for (const [signal, exit] of [
      ["SIGINT", 130],
      ["SIGTERM", 143],
    ] as const) {
      const { terminal, ended } = begin(emptyDirectory(), ["--log", `etcd://127.0.0.1:${port}/p`]);
      await terminal.saw("Listening at");
      terminal.signal("SIGTERM");
      terminal.signal(signal);
      assert.equal(await within("its end", ended), exit);
    }
    mute.close();
  });
});

describe("over PostgreSQL", { ...LIMIT, skip: postgresMissing }, () => {
  let postgres: PostgresServer;
  before(async () => {
    postgres = await startPostgres();
  });
  after(() => postgres[Symbol.asyncDispose]());
  const tables = async (schema: string): Promise<number> =>
    (await postgres.sql(`SELECT 1 FROM pg_tables WHERE schemaname = '${schema}'`)).length;

  test("one that begins before its database serves as soon as that is there", async () => {
    const url = postgres.url({ schema: "later" });
    await postgres.kill();
    const cwd = emptyDirectory();
    const { terminal, ended } = begin(cwd, ["--log", url]);
    await terminal.saw("waiting for the journal");
    await postgres.start();
    await terminal.saw("Ctrl-C stops it.");
    const [at = ""] = /http:\/\/127\S+/.exec(terminal.shown()) ?? [];
    await until("it to be ready", async () => (await fetch(`${at}/readyz`)).status === 200);
    assert.match(
      terminal.shown(),
      /\n {2}node {4}\S+, follower, at http:\/\/127\.0\.0\.1:\d+\n {2}log {5}postgres:\/\//,
    );
    const shown = await fetch(`${at}/config`).then((answer) => answer.text());
    terminal.signal("SIGTERM");
    assert.equal(await ended, 0);
    assert.doesNotMatch(terminal.shown() + terminal.complained() + shown, new RegExp(postgres.password));
    assert.doesNotMatch(shown, new RegExp(encodeURIComponent(postgres.password)));
  });

  test("a wrong password, tables of another product and of a newer version are refused", async () => {
    const wrong = postgres.url({ schema: "s1" }).replace(/:[^:@]*@/, ":hunter2@");
    await refuses(["--log", wrong], 2, /PostgreSQL.*password/s);
    assert.equal(await tables("s1"), 0);
    await postgres.sql("CREATE SCHEMA theirs; CREATE TABLE theirs.meta (id integer)");
    await refuses(
      ["--log", postgres.url({ schema: "theirs" })],
      2,
      /is another product's.*Name another: \?schema=NAME/,
    );
    assert.equal(await tables("theirs"), 1);
    {
      await using _ = await served(emptyDirectory(), ["--log", postgres.url({ schema: "newer" })]);
    }
    await postgres.sql("UPDATE newer.meta SET version = 99, oldest = 99");
    await refuses(["--log", postgres.url({ schema: "newer" })], 6, /has version 99; .* Use a newer version of Drover/);
  });

  test("cluster.lease, cluster.node and cluster.advertise bind", async () => {
    const rest = "SELECT extract(epoch FROM until - clock_timestamp())::float8 AS s FROM lease.lead WHERE node <> ''";
    const leftS = async (): Promise<number> => Number((await postgres.sql(rest))[0]?.s ?? Number.NEGATIVE_INFINITY);
    for (const [lease, name, advertise] of [
      ["1s", "n1", "http://one.example:4747"],
      ["4s", "n2", "http://two.example:4747"],
    ] as const) {
      const knobs = [`cluster.lease=${lease}`, `cluster.node=${name}`, `cluster.advertise=${advertise}`];
      const set = knobs.flatMap((knob) => ["--set", knob]);
      await using node = await served(emptyDirectory(), ["--log", postgres.url({ schema: "lease" }), ...set]);
      let left = 0;
      await until("it to lead", async () => (await leaderAt(node.url)) === `${name} ${advertise}`);
      await until("a warning of that address", async () => (await warningsAt(node.url)).includes(`at ${advertise}, `));
      if (lease === "4s") await until("a lease above that of the default", async () => (await leftS()) > 3);
      else for (let look = 0; look < 5; look++) left = Math.max(left, await leftS());
      assert.ok(left <= 1, `of a lease of 1 s, ${left} s were left`);
    }
  });

  test("GET /config of a follower tells what is in force, and what its own config says otherwise", async () => {
    const node = (id: string, ...sets: string[]) =>
      served(emptyDirectory(), [
        ...["--log", postgres.url({ schema: "config" }), "--node", id],
        ...sets.flatMap((set) => ["--set", set]),
      ]);
    await using first = await node("n1", "scheduler.maxInFlight=7", "scheduler.resultTtl=2h", "projects.web.weight=3");
    await until("it to lead", async () => (await leaderAt(first.url))?.startsWith("n1 ") === true);
    await using second = await node("n2", "scheduler.maxInFlight=9");
    const told = async (url: string, path: string): Promise<unknown[]> => {
      const { settings } = (await (await fetch(`${url}/config`)).json()) as SettingsView;
      const { value, origin, where, own } = settings.find((setting) => setting.path === path) ?? {};
      return [value, origin, where, own];
    };
    const own = { value: 9, origin: "flag", where: "--set scheduler.maxInFlight" };
    assert.deepEqual(await told(first.url, "scheduler.maxInFlight"), [7, "flag", own.where, undefined]);
    const inForce: [path: string, told: unknown[]][] = [
      ["scheduler.maxInFlight", [7, "leader", "node n1", own]],
      ["scheduler.resultTtl", ["2h", "leader", "node n1", { value: "5m", origin: "default" }]],
      ["projects.web.weight", [3, "leader", "node n1", { value: null, origin: "default" }]],
      ["scheduler.maxQueue", [100_000, "default", undefined, undefined]],
      ["cluster.node", ["n2", "flag", "--node", undefined]],
    ];
    for (const [path, expected] of inForce) assert.deepEqual(await told(second.url, path), expected, path);
    const patch = { method: "PATCH", headers: { "content-type": "application/json" }, body: '{"maxInFlight":8}' };
    assert.equal((await fetch(`${first.url}/scheduler/config`, patch)).status, 200);
    const patched = [8, "patch", "PATCH /scheduler/config", own];
    await until("the patch", async () => (await told(second.url, "scheduler.maxInFlight"))[0] === 8);
    assert.deepEqual(await told(second.url, "scheduler.maxInFlight"), patched);
  });

  test("a worker beside a node needs a token where callers do; one that cannot be made is refused", async () => {
    const log = ["--log", postgres.url({ schema: "worker" })];
    const tokens = ["--set", "server.tokens=[{token: 0123456789abcdef, role: admin}]"];
    for (const [args, says] of [
      [["--worker", ...tokens], /worker beside a node needs a token, .*\nhint:.*DROVER_TOKEN .* role worker/],
      [["--exec", "a | b"], /error: the command holds \|, which needs a shell/],
    ] as const) {
      const { terminal, ended } = begin(emptyDirectory(), [...log, ...args], []);
      assert.equal(await within("a refusal", ended), 2, terminal.complained());
      assert.match(terminal.complained(), says);
    }
  });

  test("a schema without a history is told of, with those that may have been meant", async () => {
    const [, host = ""] = /@([^/]+\/\w+)/.exec(postgres.url({ schema: "begun" })) ?? [];
    assert.match(String(await newHistoryAt(postgres.url({ schema: "begun" }))), /NEW history at .*schema=begun: there/);
    const said = String(await newHistoryAt(postgres.url({ schema: "begum" })));
    assert.ok(said.includes(`postgres://${host}?schema=begun`), said);
    assert.doesNotMatch(said, /schema=begum.*schema=begum/);
    assert.equal(await newHistoryAt(postgres.url({ schema: "begun" })), null);
  });

  test("a directory is of one node in one cluster, and a name of one node", async () => {
    const cwd = emptyDirectory();
    const log = ["--log", postgres.url({ schema: "one" })];
    {
      await using first = await served(cwd, [...log, "--node", "n1"]);
      assert.match(first.terminal.shown(), /\n {2}node {4}n1, /);
      const other = begin(emptyDirectory(), [...log, "--node", "n1"]);
      assert.equal(await within("a refusal", other.ended), 2);
      assert.match(
        other.terminal.complained(),
        /another node is called n1: the one at http:\S+, heard of \d s ago\. Give/,
      );
      const elsewhere = emptyDirectory();
      cpSync(join(cwd, ".drover"), join(elsewhere, ".drover"), { recursive: true });
      const copy = begin(elsewhere, log);
      assert.equal(await within("a refusal", copy.ended), 2, copy.terminal.complained());
      assert.match(copy.terminal.complained(), /another node is called n1: .* A copy of another node's data directory/);
    }
    for (const [args, exit, says] of [
      [[...log, "--node", "n2"], 2, /\.drover is that of node n1, not of n2\. Leave out --node/],
      [["--log", postgres.url({ schema: "two" })], 2, /\.drover is that of node n1 in another cluster\. Name/],
      [[], 2, /\.drover is that of node n1 of a cluster, whose log is elsewhere\. Nothing was changed/],
    ] as const) {
      const { terminal, ended } = begin(cwd, args);
      assert.equal(await within("a refusal", ended), exit, terminal.complained());
      assert.match(terminal.complained(), says);
    }
    await using again = await served(cwd, log);
    assert.match(again.terminal.shown(), /\n {2}node {4}n1, /);
  });
});

/** What a node says of a history that it begins, in its log and in its welcome; null if neither has it. */
async function newHistoryAt(log: string): Promise<string | null> {
  const cwd = emptyDirectory();
  await using node = await served(cwd, ["--log", log]);
  // One may lead for a moment before the first event: until then there still is no history.
  await until("a first event", async () => {
    const { log: journal } = (await (await fetch(`${node.url}/cluster`)).json()) as ClusterView;
    return journal.seq > 0;
  });
  const says = /this node begins a NEW history at .*/;
  const [warned = null] = says.exec(node.terminal.complained()) ?? [];
  const [welcomed = null] = says.exec(node.terminal.shown()) ?? [];
  assert.equal(welcomed, warned);
  return welcomed;
}

describe("over etcd", { ...LIMIT, skip: etcdMissing }, () => {
  let etcd: EtcdCluster;
  before(async () => {
    etcd = await startEtcd();
  });
  after(() => etcd[Symbol.asyncDispose]());

  test("a prefix without a history is told of, with those that may have been meant", async () => {
    await etcd.ctl("put", "/above", "1");
    await etcd.ctl("put", "/other/product/x", "1");
    const at = (prefix: string): string => etcd.url(prefix);
    assert.equal(await newHistoryAt(at("drover")), `this node begins a NEW history at ${at("drover")}: there was none`);
    assert.equal(
      await newHistoryAt(at("team/drover-2")),
      `this node begins a NEW history at ${at("team/drover-2")}: there was none. ` +
        `${at("drover")} has one: stop this node if that was meant`,
    );
    assert.match(
      String(await newHistoryAt(at("drovr"))),
      new RegExp(`none\\. ${at("drover")}, ${at("team/drover-2")} have one: stop this node`),
    );
    assert.equal(await newHistoryAt(at("drover")), null, "where there is one, nothing is said");
  });

  test("keys of another product and of a newer version are refused", async () => {
    await etcd.ctl("put", "/theirs/x", "1");
    await refuses(
      ["--log", etcd.url("theirs")],
      2,
      /under \/theirs\/ in etcd are not Drover's: give .* another prefix/,
    );
    await etcd.ctl("put", "/newer/head", JSON.stringify({ drover: "journal", version: 99 }));
    await refuses(["--log", etcd.url("newer")], 6, /was written by a newer version of Drover/);
    for (const prefix of ["/theirs/", "/newer/"])
      assert.equal((await etcd.ctl("get", "--prefix", prefix, "--keys-only")).trim().split(/\s+/).length, 1);
  });

  test("a user that etcd does not know is refused, and the password stays where it is", async () => {
    await etcd.ctl("user", "add", "root:right");
    await etcd.ctl("user", "grant-role", "root", "root");
    await etcd.ctl("auth", "enable");
    await refuses(["--log", etcd.url("p").replace("etcd://", "etcd://root:hunter2@")], 2, /etcd.*(password|user)/s);
    await refuses(["--log", etcd.url("p")], 2, /etcd.*user/s);
    await using node = await served(emptyDirectory(), [
      "--log",
      etcd.url("p").replace("etcd://", "etcd://root:right@"),
    ]);
    assert.match(node.terminal.shown(), /\n {2}log {5}etcd:\/\/\(hidden\)@127\.0\.0\.1:\d+\/p\n/);
  });
});
