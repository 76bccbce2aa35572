/**
 * The leader of a cluster is killed while people look: `drover run`, `drover top` and `drover task --logs --watch` go
 * on with the next, and the plan ends well.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { runCommandLine } from "../../src/cli/command-line.ts";
import { VERBS } from "../../src/cli/verbs.ts";
import type { ClusterView } from "../../src/protocol/index.ts";
import { planDirectory, type Running } from "../kits/cli/plan-directory.ts";
import { testScreen } from "../kits/cli/test-screen.ts";
import { testTerminal } from "../kits/cli/test-terminal.ts";
import { startNodes } from "../kits/cluster-nodes.ts";
import { etcdMissing, startEtcd } from "../kits/etcd.ts";
import { startServe } from "../kits/serve-process.ts";
import { until, within } from "../kits/waits.ts";

const PLAN = `tasks:
  first: { run: 'echo begun; read line < gate; echo "let go"; echo first >> ran' }
  second: { run: 'echo "after it"; echo second >> ran', needs: first }`;

test("a run, a screen and a log survive the leader", { skip: etcdMissing, timeout: 300_000 }, async (context) => {
  await using etcd = await startEtcd({ members: 1 });
  await using cluster = await startNodes({ log: etcd.url("drover"), ids: ["a", "b", "c"], flags: ["--no-worker"] });
  using place = planDirectory(PLAN);
  place.pipe("gate");
  const leader = await cluster.leader();
  // The leader is the first that they ask.
  const others = (await cluster.followers()).map((node) => node.url());
  const env = { DROVER_URL: [leader.url(), ...others].join(",") };
  const worker = place.startDrover(["worker", "--commands", "--id", "w"], { env });
  context.after(() => worker.terminal.signal("SIGTERM"));

  const run = place.start(["--output"], { env });
  await run.terminal.saw("begun");
  const log = place.startDrover(["task", "plan/first", "--logs", "--watch"], { env });
  await log.terminal.saw("begun");
  const screen = testScreen(100, 24);
  const terminal = testTerminal({ screen, width: 100, cwd: place.directory, home: place.directory, env });
  const top = runCommandLine(["top"], terminal, VERBS);
  context.after(() => screen.press("\u0003"));
  await screen.shows(/Running: 1\//);

  await leader.kill();
  const next = await cluster.leader();
  assert.notEqual(next.id, leader.id);
  await place.letGo("gate");
  const ended = async (what: string, { ended: end }: Running) => within(`the end of ${what}`, end, 120_000);
  const [ran, watched] = await Promise.all([ended("the run", run), ended("the log", log)]);
  assert.equal(ran.code, 0, ran.out + ran.err);
  assert.match(ran.out, /let go[\s\S]*after it/);
  assert.equal(watched.code, 0, watched.out + watched.err);
  assert.match(watched.out, /let go/);
  assert.deepEqual(place.ran(), ["first", "second"], "each ran once");
  await screen.shows(/Running: 0\//);
  screen.press("2");
  await screen.shows(/\[Tasks\][\s\S]*plan\.seco\S* +done[\s\S]*plan\.firs\S* +done/);
  screen.press("q");
  assert.equal(await within("the end of the screen", top), 0);
});

test("a run that found its server beside the plan goes on with another node", {
  skip: etcdMissing,
}, async (context) => {
  await using etcd = await startEtcd({ members: 1 });
  using place = planDirectory(PLAN);
  place.pipe("gate");
  const flags = ["--log", etcd.url("drover"), "--no-worker"];
  const data = join(place.directory, ".drover");
  await using own = await startServe({ cwd: place.directory, flags: [...flags, "--node", "own", "--data", data] });
  await using cluster = await startNodes({ log: etcd.url("drover"), ids: ["b"], flags: ["--no-worker"] });
  await until("the other to be known", async () => {
    const { nodes } = (await (await fetch(`${own.url}/cluster`)).json()) as ClusterView;
    return nodes.length === 2;
  });
  const env = { DROVER_URL: cluster.urls() };
  const worker = place.startDrover(["worker", "--commands", "--id", "w"], { env });
  context.after(() => worker.terminal.signal("SIGTERM"));
  const run = place.start(["--output"]);
  await run.terminal.saw("begun");
  assert.match(run.terminal.shown(), /\.drover\/server\.json/);
  own.signal("SIGKILL");
  await place.letGo("gate");
  const { code, out, err } = await within("the end of the run", run.ended, 120_000);
  assert.equal(code, 0, out + err);
  assert.deepEqual(place.ran(), ["first", "second"]);
});
