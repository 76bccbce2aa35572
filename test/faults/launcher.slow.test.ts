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

/** Neither the test runner above nor npm is to be seen by what is started here. */
const clean = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => name !== "NODE_TEST_CONTEXT" && !name.startsWith("npm_")),
);
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
  ["npx", ["npx", "--offline", "drover", "serve"]],
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

/** What all that npm and npx start has in its environment, however far below them. */
const BELOW: readonly [name: string, env: Readonly<Record<string, string>>][] = [
  ["", {}],
  [" below npx", { npm_lifecycle_event: "npx" }],
  [" below npm start", { npm_lifecycle_event: "start", npm_package_json: resolve("package.json") }],
];

for (const [where, env] of BELOW)
  test(`a server outlives a shell${where} that started it and has gone`, LIMIT, () =>
    outlivesShell({ ...clean, ...env }),
  );

test("a server that npx left in the background stays", LIMIT, async () => {
  const note = join(place, `pid-${places}`);
  const data = join(place, String(places++));
  const server = `'${process.execPath}' '${BIN}' serve --port 0 --data '${data}' --json --log-level silent`;
  const line = `nohup ${server} > '${note}' &`;
  await once(spawn("npx", ["--offline", "-c", `${line} ${WRITTEN.replace("$1", note)}`], { env: clean }), "exit");
  await staysUp(note, clean);
});

/** Waits until a file has all of a ready line. */
const WRITTEN = 'while ! grep -q } "$1"; do sleep 0.05; done';

async function outlivesShell(env: NodeJS.ProcessEnv): Promise<void> {
  const note = join(place, `pid-${places}`);
  const data = join(place, String(places++));
  const line = '"$0" "$1" serve --port 0 --data "$2" --json --log-level silent > "$3" & exec cat';
  const shell = spawn("sh", ["-c", line, process.execPath, BIN, data, note], {
    env,
    stdio: ["pipe", "ignore", "inherit"],
  });
  await once(spawn("sh", ["-c", WRITTEN, "sh", note], { stdio: "ignore" }), "exit");
  shell.kill("SIGKILL");
  await once(shell, "exit");
  await staysUp(note, env);
}

async function staysUp(note: string, env: NodeJS.ProcessEnv): Promise<void> {
  const { pid, url } = JSON.parse(readFileSync(note, "utf8")) as { pid: number; url: string };
  // The first takes longer than a look at who started it. A server that is told to stop ends it, and takes no second.
  const codes: unknown[] = [];
  for (const command of ["sleep 1", "true"]) {
    const words = [BIN, "submit", "--command", command, "--wait"];
    const submit = spawn(process.execPath, words, { env: { ...env, DROVER_URL: url }, stdio: "ignore" });
    codes.push((await once(submit, "exit"))[0]);
  }
  try {
    process.kill(pid, "SIGTERM");
  } catch {} // Then it has gone before, and no task was done.
  assert.equal(await isGone(pid), true);
  assert.deepEqual(codes, [0, 0]);
}
