/**
 * Whoever only starts Drover takes it along: npm, and `bin/drover.js` on a Node that is too old.
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, describe, test } from "node:test";

const BIN = resolve("bin/drover.js");
const LIMIT = { timeout: 120_000 };
const place = mkdtempSync(join(tmpdir(), "drover-launcher-"));
after(() => rmSync(place, { recursive: true, force: true }));
let places = 0;

const { NODE_TEST_CONTEXT: _, ...clean } = process.env;
/** Makes the Node that runs a file say that it is an old one. What it starts is what it is. */
const AGED =
  "data:text/javascript,Object.defineProperty(process,'versions'," +
  "{value:Object.freeze({...process.versions,node:'20.20.2'})})";

type Launched = { readonly launcher: ChildProcess; readonly real: number };

async function launch(words: readonly [string, ...string[]]): Promise<Launched> {
  const [command, ...args] = words;
  const data = join(place, String(places++));
  const own = ["--port", "0", "--data", data, "--json", "--log-level", "silent"];
  const launcher = spawn(command, [...args, ...own], { env: clean, stdio: ["ignore", "pipe", "inherit"] });
  const [first] = await once(launcher.stdout as NodeJS.ReadableStream, "data");
  return { launcher, real: (JSON.parse(String(first)) as { pid: number }).pid };
}

/** Waits until a process is gone, or is a zombie that nobody collects; fails after a while. */
const GONE = 'for i in $(seq 300); do case "$(ps -o stat= -p $1)" in ""|Z*) exit 0;; esac; sleep 0.1; done; exit 1';

async function isGone(pid: number): Promise<boolean> {
  const [code] = await once(spawn("sh", ["-c", GONE, "sh", String(pid)]), "exit");
  if (code !== 0) process.kill(pid, "SIGKILL");
  return code === 0;
}

const LAUNCHERS: readonly [name: string, words: readonly [string, ...string[]]][] = [
  ["npm start", ["npm", "start", "--silent", "--"]],
  ["bin/drover.js on an old Node", [process.execPath, "--import", AGED, BIN, "serve"]],
];

for (const [name, words] of LAUNCHERS) {
  describe(name, LIMIT, () => {
    for (const signal of ["SIGTERM", "SIGKILL"] as const)
      test(`takes the server along when it is sent ${signal}`, async () => {
        const { launcher, real } = await launch(words);
        assert.notEqual(real, launcher.pid, "the launcher is not the server itself");
        launcher.kill(signal);
        assert.equal(await isGone(real), true);
      });
  });
}

test("a server outlives a shell that started it and has gone", LIMIT, async () => {
  const note = join(place, "pid");
  const data = join(place, "alone");
  const line = '"$0" "$1" serve --port 0 --data "$2" --json --log-level silent > "$3" & exec cat';
  const shell = spawn("sh", ["-c", line, process.execPath, BIN, data, note], {
    env: clean,
    stdio: ["pipe", "ignore", "inherit"],
  });
  const written = spawn("sh", ["-c", 'while ! grep -q } "$1"; do sleep 0.05; done', "sh", note], { stdio: "ignore" });
  await once(written, "exit");
  const { pid, url } = JSON.parse(readFileSync(note, "utf8")) as { pid: number; url: string };
  shell.kill("SIGKILL");
  await once(shell, "exit");
  // A task and its end take a server that is alive, and longer than a look at who started it.
  const body = JSON.stringify({ agentId: "me", action: "exec", params: { command: "sleep 1" } });
  const headers = { "content-type": "application/json" };
  const { taskId } = (await (await fetch(`${url}/tasks`, { method: "POST", headers, body })).json()) as {
    taskId: string;
  };
  const watch = spawn(process.execPath, [BIN, "task", taskId, "--watch"], {
    env: { ...clean, DROVER_URL: url },
    stdio: "ignore",
  });
  const [code] = await once(watch, "exit");
  assert.equal(code, 0);
  process.kill(pid, "SIGTERM");
  assert.equal(await isGone(pid), true);
});
