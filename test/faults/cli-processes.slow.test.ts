/**
 * The command line as real processes: signals, pipes that close, a server that is killed.
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { on, once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { after, describe, test } from "node:test";
import { within } from "../kits/waits.ts";

const BIN = resolve("bin/drover.js");
const LIMIT = { timeout: 300_000 };
const place = mkdtempSync(join(tmpdir(), "drover-cli-"));
after(() => rmSync(place, { recursive: true, force: true }));
let places = 0;

const { NODE_TEST_CONTEXT: _, ...clean } = process.env;
const start = (args: readonly string[], cwd: string): ChildProcess =>
  spawn(process.execPath, [BIN, ...args], { cwd, env: clean, stdio: ["ignore", "pipe", "pipe"] });

async function serve(
  directory?: string,
): Promise<{ child: ChildProcess; url: string; cwd: string; stderr: Promise<string> }> {
  const cwd = directory ?? mkdtempSync(join(place, `${places++}-`));
  const child = start(["serve", "--port", "0", "--json", "--log-level", "silent"], cwd);
  const stderr = text(child.stderr as NodeJS.ReadableStream);
  const [first] = await within("the server's address", once(child.stdout as NodeJS.ReadableStream, "data"));
  return { child, cwd, stderr, url: (JSON.parse(String(first)) as { url: string }).url };
}

function drover(args: readonly string[], url: string): { status: number | null; stdout: string; stderr: string } {
  const env = { ...clean, DROVER_URL: url };
  return spawnSync(process.execPath, [BIN, ...args], { cwd: place, env, encoding: "utf8" });
}

/** Waits until a process is gone, or is a zombie that nobody collects; fails after a while. */
const GONE = 'for i in $(seq 600); do case "$(ps -o stat= -p $1)" in ""|Z*) exit 0;; esac; sleep 0.1; done; exit 1';

const exitOf = async (child: ChildProcess): Promise<number | null> => {
  if (child.exitCode === null && child.signalCode === null) await within("its exit", once(child, "exit"));
  return child.exitCode;
};

describe("a server", LIMIT, () => {
  for (const signal of ["SIGTERM", "SIGINT"] as const)
    test(`ends in good order on ${signal}, with code 0 and nothing to complain of`, async () => {
      const { child, url, stderr } = await serve();
      const done = drover(["submit", "--command", "echo '{\"a\":1}'", "--wait", "--json"], url);
      assert.deepEqual([done.status, JSON.parse(done.stdout).result], [0, { a: 1 }]);
      child.kill(signal);
      assert.deepEqual([await exitOf(child), await stderr], [0, ""]);
    });

  test("ends its process when it has ended, whatever is still open in it", async () => {
    const cwd = mkdtempSync(join(place, `${places++}-`));
    const open = "data:text/javascript,setInterval(() => {}, 1000)";
    const words = [BIN, "serve", "--port", "0", "--json", "--log-level", "silent"];
    const child = spawn(process.execPath, ["--import", open, ...words], { cwd, env: clean });
    await within("the server's address", once(child.stdout, "data"));
    child.kill("SIGTERM");
    assert.equal(await exitOf(child), 0);
  });

  test("whose output goes elsewhere keeps its welcome and its log apart, and the log is lines of JSON", async () => {
    const cwd = mkdtempSync(join(place, `${places++}-`));
    writeFileSync(join(cwd, "drover.yaml"), "");
    const child = start(["serve", "--port", "0"], cwd);
    const [out, err] = [child.stdout, child.stderr].map((stream) => text(stream as NodeJS.ReadableStream));
    for await (const [chunk] of on(child.stdout as NodeJS.ReadableStream, "data"))
      if (String(chunk).includes("Ctrl-C stops it.")) break;
    child.kill("SIGTERM");
    assert.equal(await exitOf(child), 0);
    assert.match(
      (await out) ?? "",
      /^Drover \S+ is ready at http:.*\n[^{]*'\{"agentId".*\n.*\n\nCtrl-C stops it\.\n$/s,
    );
    const said = ((await err) ?? "")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line).msg as string);
    assert.match(said[0] ?? "", /drover\.yaml.*drover\.yml/, "what is not as it should be is in the log too");
    for (const msg of ["the server is up", "the server has stopped"]) assert.ok(said.includes(msg), said.join("; "));
    assert.ok(
      said.some((msg) => msg.startsWith("Stopping: ")),
      said.join("; "),
    );
  });

  test("leaves at once on the second signal, and takes its commands with it", async () => {
    const { child, url, cwd } = await serve();
    const pipe = join(cwd, "pid.pipe");
    assert.equal(spawnSync("mkfifo", [pipe]).status, 0);
    drover(["submit", "--command", `echo $$ > ${pipe}; exec sleep 600`, "--id", "long"], url);
    // The command itself says that it runs: the server may say so before it has begun.
    const pid = (await readFile(pipe, "utf8")).trim();
    child.kill("SIGINT");
    // A second press within a moment is taken for the first: some who start us pass on what the terminal sent as well.
    const again = setInterval(() => child.kill("SIGINT"), 250);
    assert.equal(await exitOf(child), 130);
    clearInterval(again);
    assert.equal(spawnSync("sh", ["-c", GONE, "sh", pid]).status, 0);
  });

  test("killed outright keeps what it acknowledged, and the next one goes on", async () => {
    const first = await serve();
    drover(["submit", "--command", "true", "--id", "early", "--wait"], first.url);
    drover(["submit", "--command", "true", "--id", "late", "--not-before", "1s"], first.url);
    first.child.kill("SIGKILL");
    await exitOf(first.child);
    const second = await serve(first.cwd);
    const early = drover(["task", "early", "--json"], second.url);
    assert.equal(JSON.parse(early.stdout).state, "done");
    const late = drover(["task", "late", "--watch"], second.url);
    assert.equal(late.status, 0, late.stdout);
    second.child.kill("SIGTERM");
    assert.equal(await exitOf(second.child), 0);
  });
});

describe("a verb", LIMIT, () => {
  test("whose reader has gone ends in silence", async () => {
    const { child, url } = await serve();
    const script = `"${process.execPath}" "${BIN}" events --follow --json | head -n 1`;
    const piped = spawn("sh", ["-c", script], {
      env: { ...clean, DROVER_URL: url },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const said = Promise.all([text(piped.stdout), text(piped.stderr)]);
    // The pipe is found closed by the next event that is written to it.
    const busy = setInterval(() => drover(["submit", "--command", "true"], url), 500);
    const [out, err] = await said;
    clearInterval(busy);
    assert.equal(JSON.parse(out).seq, 1);
    assert.equal(err, "");
    child.kill("SIGTERM");
    assert.equal(await exitOf(child), 0);
  });

  test("without a server says so, with code 3", () => {
    const { status, stdout, stderr } = drover(["tasks"], "http://127.0.0.1:9");
    assert.deepEqual([status, stdout], [3, ""]);
    assert.match(stderr, /^error: cannot reach http:\/\/127\.0\.0\.1:9 \(.*\nhint: /);
  });

  test("reads its input from a pipe", async () => {
    const { child, url } = await serve();
    const args = [
      "-c",
      `echo '{"n": 3}' | "${process.execPath}" "${BIN}" submit count --params - --capability x --json`,
    ];
    const { stdout, status } = spawnSync("sh", args, { env: { ...clean, DROVER_URL: url }, encoding: "utf8" });
    assert.equal(status, 0);
    const task = drover(["task", JSON.parse(stdout).taskId, "--json"], url);
    assert.deepEqual(JSON.parse(task.stdout).params, { n: 3 });
    child.kill("SIGTERM");
    assert.equal(await exitOf(child), 0);
  });
});
