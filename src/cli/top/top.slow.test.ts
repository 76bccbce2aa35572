/**
 * `drover top` as a person has it: a real server, a screen, keys; and as a script has it, in a pipe.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type Served, served } from "../../../test/kits/cli/served.ts";
import { createSeen, type TestScreen, testScreen } from "../../../test/kits/cli/test-screen.ts";
import { testTerminal } from "../../../test/kits/cli/test-terminal.ts";
import { isMissing } from "../../../test/kits/optional-tool.ts";
import { within } from "../../../test/kits/waits.ts";
import type { LineView } from "../../protocol/index.ts";
import { runCommandLine } from "../command-line.ts";
import { verbFetch } from "../shell/terminal.ts";
import { VERBS } from "../verbs.ts";

describe("drover top", { concurrency: false }, () => {
  let server: Served;
  before(async () => {
    server = await served(["--no-worker"]);
    for (const id of ["first", "second"]) await server.drover(["submit", "build", "--id", id, "--agent", "ann"]);
  });
  // One that a test has left open would keep the process.
  const screens: TestScreen[] = [];
  after(() => {
    for (const screen of screens) screen.press("\u0003");
    return server[Symbol.asyncDispose]();
  });

  type Watched = {
    readonly screen: TestScreen;
    readonly ended: Promise<number>;
    readonly complained: () => string;
    readonly cut: { isOn: boolean };
    /** The status and the words that it refuses with. */
    readonly refusal: { of: { status: number; code: string; error: string } | null };
    readonly asked: string[];
    /** What it says at /readyz instead of its own answer. */
    readonly node: { word: object | null };
  };
  function watch(columns = 80, rows = 24): Watched {
    const screen = testScreen(columns, rows);
    screens.push(screen);
    const cut = { isOn: false };
    const refusal: Watched["refusal"] = { of: null };
    const asked: string[] = [];
    const node: Watched["node"] = { word: null };
    const fetch: typeof verbFetch = async (url, request) => {
      const { pathname } = new URL(String(url));
      asked.push(pathname);
      // A server that cannot be reached, and can again.
      if (cut.isOn) throw new Error("no way there");
      if (refusal.of !== null) return Response.json(refusal.of, { status: refusal.of.status });
      const isReplaced = pathname === "/readyz" && node.word !== null;
      return isReplaced ? Response.json(node.word) : verbFetch(url, request);
    };
    const terminal = testTerminal({
      ...{ screen, width: columns, hasColours: true, cwd: server.directory, env: { DROVER_URL: server.url }, fetch },
    });
    const ended = runCommandLine(["top"], terminal, VERBS);
    return { screen, cut, refusal, asked, node, ended, complained: terminal.complained };
  }

  test("shows the box, goes through the tabs, and q gives the terminal back", async () => {
    const { screen, ended } = watch();
    await screen.shows(/Running: 0\/50 {2}Queued: 2 {2}Rate Limited: No/);
    assert.equal(screen.lines().length, 24);
    screen.press("\t");
    await screen.shows(/\[Tasks\][\s\S]*second +queued/);
    for (const name of ["Projects", "Workers", "Gates"]) {
      screen.press("\t");
      await screen.shows(new RegExp(`\\[${name}\\]`));
    }
    screen.press("\u001b[Z");
    await screen.shows(/\[Workers\]/);
    screen.press("6");
    await screen.shows(/\[Events\][\s\S]*task-submitted +second/);
    screen.press("q");
    assert.equal(await ended, 0);
    assert.ok(screen.bytes().includes("\u001b[?1049l"), "the screen that was there before is back");
  });

  test("keys: filter, why, cancel when it is confirmed, retry, pause, help", async () => {
    const { screen, ended } = watch();
    await screen.shows(/first +Queued/);
    screen.press("w");
    await screen.shows(/Choose a task first/);
    screen.press("/");
    await screen.shows(/Enter keeps it/);
    screen.press("seq");
    screen.press("\u007f");
    await screen.shows(/ \/se▏/);
    screen.press("\r");
    await screen.shows(/filter: se/);
    assert.doesNotMatch(screen.lines().join("\n"), /first/);
    screen.press("\u001b[B");
    await screen.shows(/▸second/);
    screen.press("w");
    await screen.shows(/─ Why second ─[\s\S]*no worker/);
    screen.press("\u001b");
    await screen.shows(/▸second/);
    screen.press("c");
    await screen.shows(/Cancel second\? y\/n/);
    screen.press("n");
    await screen.shows(/Nothing was done/);
    screen.press("c");
    await screen.shows(/Cancel second\? y\/n/);
    screen.press("y");
    await screen.shows(/second is cancelled/);
    screen.press("2");
    await screen.shows(/second +cancelled/);
    screen.press("\u001b[B");
    await screen.shows(/▸ second/);
    screen.press("r");
    await screen.shows(/second is queued again/);
    screen.press("l");
    await screen.shows(/no log|has no attempt|log/i);
    screen.press("p");
    await screen.shows(/Pause the whole fleet\?/);
    screen.press("y");
    await screen.shows(/The fleet is paused/);
    screen.press("1");
    await screen.shows(/Paused/);
    screen.press("p");
    await screen.shows(/Go on with the whole fleet\?/);
    screen.press("y");
    await screen.shows(/The fleet goes on/);
    screen.press("?");
    await screen.shows(/─ Keys ─/);
    screen.press("\u0003");
    assert.equal(await ended, 130);
  });

  test("what w shows follows the task, and what is asked ends with it", async () => {
    await server.drover(["submit", "build", "--id", "followed"]);
    const { screen, ended, asked } = watch();
    await screen.shows(/followed +Queued/);
    screen.press("/");
    screen.press("followed\r");
    await screen.shows(/filter: followed/);
    screen.press("\u001b[B");
    await screen.shows(/▸followed/);
    screen.press("w");
    await screen.shows(/─ Why followed ─[\s\S]*followed is queued/);
    await server.drover(["cancel", "followed"]);
    await screen.shows(/─ Why followed ─[\s\S]*followed is cancelled/);
    screen.press("\u001b");
    await screen.shows(/\[Scheduler\][\s\S]*Nothing here has "followed"/);
    const whys = (): number => asked.filter((path) => path.endsWith("/why")).length;
    const before = whys();
    await server.drover(["submit", "build", "--id", "followed-too"]);
    await screen.shows(/followed-too +Queued/);
    assert.equal(whys(), before);
    await server.drover(["cancel", "followed-too"]);
    screen.press("q");
    assert.equal(await ended, 0);
  });

  test("a node that is in trouble has a line for it in the head; a server alone is asked once", async () => {
    const { screen, ended, asked, node, cut } = watch();
    await screen.shows(/first +Queued/);
    screen.press("3");
    await screen.shows(/default +1 /);
    screen.press("2");
    await screen.shows(/first +queued/);
    assert.equal(asked.filter((path) => path === "/readyz").length, 1);
    const well = { status: "ready", seq: 9, serverId: "s1", logTimeAheadMs: 0, role: "leader", epoch: 1, lagMs: 0 };
    // It comes back as a node of a cluster.
    cut.isOn = true;
    await screen.shows(/The server is gone/);
    node.word = { ...well, readOnly: "the journal is full." };
    cut.isOn = false;
    await screen.shows(/^[^\n]*\[Tasks\][^\n]*\n The cluster is read-only: the journal is full\. *\n┌─ Tasks/);
    assert.equal(screen.lines().length, 24);
    node.word = well;
    screen.press("1");
    await screen.shows(/^[^\n]*\[Scheduler\][^\n]*\n┌─ Scheduler/);
    screen.press("q");
    assert.equal(await ended, 0);
  });

  test("the filter of the tasks is a search of the server: what it shows is not what it has at hand", async () => {
    await server.drover(["submit", "build", "--id", "labelled", "--label", "team=herring"]);
    const { screen, ended } = watch();
    await screen.shows(/first +Queued/);
    screen.press("2");
    await screen.shows(/labelled +queued/);
    screen.press("/");
    await screen.shows(/Enter keeps it/);
    screen.press("HERRING");
    const text = await screen.shows(/labelled +queued(?![\s\S]*first +queued)/);
    assert.doesNotMatch(text, /Nothing here has/);
    screen.press("\u001b");
    await screen.shows(/first +queued/);
    // Over a slow line keys come together.
    screen.press("/");
    await screen.shows(/Enter keeps it/);
    screen.press("HERX\u007fRING\r");
    await screen.shows(/filter: HERRING/);
    screen.press("\u001b");
    await screen.shows(/first +queued/);
    await server.drover(["cancel", "labelled"]);
    screen.press("/");
    await screen.shows(/Enter keeps it/);
    screen.press("cancelled herring\r");
    await screen.shows(/labelled +cancelled(?![\s\S]*first +queued)/);
    screen.press("q");
    assert.equal(await ended, 0);
  });

  test("what was done is seen at once, in the lists too", async () => {
    const { screen, ended } = watch();
    await screen.shows(/first +Queued/);
    screen.press("3");
    await screen.shows(/default +1 /);
    screen.press("j");
    for (const [question, answer] of [
      ["Pause", "is paused"],
      ["Go on with", "goes on"],
      ["Pause", "is paused"],
      ["Go on with", "goes on"],
    ]) {
      screen.press("p");
      await screen.shows(new RegExp(`${question} project default\\?`));
      screen.press("y");
      await screen.shows(new RegExp(`Project default ${answer}`));
    }
    screen.press("q");
    assert.equal(await ended, 0);
  });

  test("is left before its first picture, by Ctrl-C", async () => {
    const asked = Promise.withResolvers<void>();
    const fetch: typeof verbFetch = (_, { signal }) => {
      asked.resolve();
      return new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    };
    const terminal = testTerminal({ fetch, screen: testScreen(80, 24), env: { DROVER_URL: server.url } });
    const ended = runCommandLine(["top"], terminal, VERBS);
    await asked.promise;
    terminal.signal("SIGINT");
    assert.equal(await within("the end", ended, 20_000), 130);
  });

  test("follows the size of the terminal", async () => {
    const { screen, ended } = watch();
    await screen.shows(/first +Queued/);
    screen.resize(160, 50);
    await screen.shows(/Workers: slots/);
    await screen.shows(/^(?:[^\n]*\n){49}[^\n]*\? help/);
    screen.resize(80, 24);
    const text = await screen.shows(/^(?:[^\n]*\n){23}[^\n]*\? help[^\n]*$/);
    assert.doesNotMatch(text, /Workers: slots/);
    screen.press("q");
    assert.equal(await ended, 0);
  });

  test("a server that is gone is said to be, what was seen stays, and when it is back it goes on", async () => {
    const { screen, ended, cut } = watch();
    await screen.shows(/first +Queued/);
    cut.isOn = true;
    await screen.shows(/The server is gone.*trying again: cannot reach/);
    assert.match(screen.lines().join("\n"), /first +Queued/);
    screen.press("p");
    await screen.shows(/Pause the whole fleet\?/);
    screen.press("y");
    assert.equal((await server.drover(["submit", "build", "--id", "third"])).code, 0);
    cut.isOn = false;
    const text = await screen.shows(/third +Queued[\s\S]*The server is back\./);
    assert.doesNotMatch(text, /The server is gone|cannot reach/);
    screen.press("q");
    assert.equal(await ended, 0);
  });

  test("a server that refuses is not said to be gone, and a token that it does not know ends it with 4", async () => {
    const { screen, ended, refusal, complained } = watch();
    await screen.shows(/first +Queued/);
    refusal.of = { status: 429, code: "limit", error: "too many calls" };
    const text = await screen.shows(/The server refuses, trying again: too many calls/);
    assert.match(text, /first +Queued/);
    assert.doesNotMatch(text, /The server is gone/);
    refusal.of = null;
    await screen.shows(/\? help/);
    refusal.of = { status: 401, code: "unauthorized", error: "this server does not know that token" };
    assert.equal(await within("the end of top", ended), 4);
    assert.match(complained(), /does not know that token[\s\S]*DROVER_TOKEN/);
    assert.ok(screen.bytes().includes("\u001b[?1049l"), "the screen that was there before is back");
  });

  test("in a pipe, with --once and with --json it is one look", async () => {
    const piped = await server.drover(["top"]);
    assert.equal(piped.code, 0, piped.err);
    assert.match(piped.out, /^┌─ Scheduler ─+┐\n│ Running: 0\/50 {2}Queued: 3/);
    assert.ok(piped.out.split("\n").every((line) => line === "" || line.length === 80));
    const narrow = testTerminal({ width: 60, screen: testScreen(60, 24), env: { DROVER_URL: server.url } });
    assert.equal((await server.drover(["top", "--once"], { terminal: narrow })).code, 0);
    assert.match(narrow.shown(), /^┌─ Scheduler ─{46}┐\n/);
    for (const id of Array.from({ length: 30 }, (_, at) => `more-${at}`))
      await server.drover(["submit", "build", "--id", id]);
    const low = testTerminal({ width: 80, height: 24, screen: testScreen(80, 24), env: { DROVER_URL: server.url } });
    assert.equal((await server.drover(["top", "--once"], { terminal: low })).code, 0);
    assert.equal(low.shown().split("\n").length, 24, "with the line of the prompt");
    const { tasks, isRateLimited } = JSON.parse((await server.drover(["top", "--json"])).out) as LineView;
    assert.deepEqual([tasks.queued, tasks.next.length, isRateLimited], [33, 24, false]);
  });

  test("without a server it ends with 3, before there is a screen", async () => {
    for (const args of [["top"], ["top", "--once"], ["top", "--json"]]) {
      const screen = testScreen(80, 24);
      const terminal = testTerminal({ screen, env: { DROVER_URL: "http://127.0.0.1:9" } });
      assert.equal(await runCommandLine(args, terminal, VERBS), 3);
      assert.equal(screen.bytes(), "");
    }
  });

  test("without colours there is no colour on the screen", async () => {
    const screen = testScreen(80, 24);
    const terminal = testTerminal({ screen, width: 80, env: { DROVER_URL: server.url } });
    const ended = runCommandLine(["top"], terminal, VERBS);
    await screen.shows(/first +Queued/);
    screen.press("q");
    await ended;
    assert.doesNotMatch(screen.bytes().replaceAll("\u001b", "ESC"), /ESC\[\d+m/);
  });
});

/** It gives a command a terminal of its own, and is on every Debian. */
const skip = isMissing("script", "bsdutils");

/** A `top` in a terminal of its own, until it has drawn a frame that is `whole`; answers that frame. */
async function framesOf(url: string, rows: number, columns: number, whole: RegExp): Promise<readonly string[]> {
  const words = [process.execPath, join(import.meta.dirname, "../main.ts"), "top", "--url", url];
  const child = spawn("script", ["-qfec", `stty rows ${rows} cols ${columns}; exec ${words.join(" ")}`, "/dev/null"]);
  const seen = createSeen();
  let isLeaving = false;
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    if (!isLeaving) seen.write(text);
    if (isLeaving || !whole.test(seen.lines().join("\n"))) return;
    isLeaving = true;
    child.stdin.write("q");
  });
  const [code] = (await once(child, "exit")) as [number];
  assert.equal(code, 0);
  return seen.lines();
}

test("in a real terminal it draws, hears a key, and leaves with its exit code", { skip }, async () => {
  await using server = await served(["--no-worker"]);
  await server.drover(["submit", "build", "--id", "first", "--agent", "ann"]);
  const small = await framesOf(server.url, 24, 80, /first {5}Queued[\s\S]*\? help/);
  assert.equal(small[1], `┌─ Scheduler ${"─".repeat(66)}┐`);
  assert.match(small[4] ?? "", /^│ \[NORM\] first {5}Queued {4}waiting \d+\.\ds {2,}no worker is here {2}ann +│$/);
  assert.match(small[23] ?? "", /\? help/);

  // Its lists come with the second look: until then the boxes beside hold a mark.
  const large = await framesOf(server.url, 50, 160, /first {5}Queued[\s\S]*none is here +│[\s\S]*\? help/);
  const text = large
    .map((line) =>
      line
        .replace(/waiting \d+\.\ds */, "waiting 0.0s     ")
        .replace(/ *127\.0\.0\.1:\d+/, " HOST")
        .trimEnd(),
    )
    .join("\n");
  const path = join(import.meta.dirname, "../../../test/frames/terminal-160x50.txt");
  if (process.env.DROVER_FRAMES === "write") writeFileSync(path, `${text}\n`);
  assert.equal(`${text}\n`, readFileSync(path, "utf8"));
});
