/**
 * The README, followed word for word by somebody who has just cloned the repository.
 *
 * Its files are copied as they are (what git would hand out, and what is about to be), the installed packages are
 * linked in the place of `npm ci`, `npm start` is run, and then every shell block marked `run`, in order, each against
 * that server. Only the port differs, since the README's may be taken here. Then Ctrl-C: it must end in good order.
 */
import assert from "node:assert/strict";
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, test } from "node:test";
import { blocksOf, brokenPromise } from "./kits/document-blocks.ts";

const root = join(import.meta.dirname, "..");
const README_PORT = "4747";
const START_LIMIT_MS = 60_000;
const BLOCK_LIMIT_MS = 120_000;

const clone = mkdtempSync(join(tmpdir(), "drover-readme-"));
after(() => rmSync(clone, { recursive: true, force: true }));

test("following the README leads from a fresh clone to finished tasks", async (t) => {
  copyTo(clone);
  const { server, port } = await npmStart(environmentFor("0"));
  t.after(() => toGroup(server, "SIGKILL"));
  const env = environmentFor(port);
  for (const { name, code, promises } of blocksOf("README.md").filter(({ language }) => language === "sh"))
    await t.test(`the commands at ${name} print what they promise`, async () => {
      const script = join(clone, `block-${name.split(":")[1]}.sh`);
      writeFileSync(script, code.replaceAll(README_PORT, port));
      const printed = await outputOf(script, env);
      assert.equal(brokenPromise(promises, printed), null);
    });
  const lastWords = text(server.stderr as NodeJS.ReadableStream);
  toGroup(server, "SIGINT");
  assert.match(await lastWords, /the server has stopped/);
});

function copyTo(directory: string): void {
  const listed = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], { cwd: root });
  for (const path of listed.toString().split("\0").filter(Boolean))
    cpSync(join(root, path), join(directory, path), { force: true, recursive: false });
  symlinkSync(join(root, "node_modules"), join(directory, "node_modules"));
}

/** As a person's shell has it, but for the port, and a home in which npm and Node may keep things. */
function environmentFor(port: string): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith("DROVER_"));
  return {
    ...Object.fromEntries(own),
    DROVER_SERVER__PORT: port,
    DROVER_URL: `http://127.0.0.1:${port}`,
    XDG_CONFIG_HOME: join(clone, "home"),
    NODE_COMPILE_CACHE: join(clone, "home", "compiled"),
    npm_config_update_notifier: "false",
  };
}

/** As a terminal does at Ctrl-C: npm, its shell and the server all hear it. */
function toGroup({ pid, exitCode, signalCode }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid !== undefined && exitCode === null && signalCode === null) process.kill(-pid, signal);
}

/** The server, on a port of its own choice. */
async function npmStart(env: NodeJS.ProcessEnv): Promise<{ server: ChildProcess; port: string }> {
  const server = spawn("npm", ["start"], { cwd: clone, env, stdio: ["ignore", "pipe", "pipe"], detached: true });
  const late = setTimeout(() => toGroup(server, "SIGKILL"), START_LIMIT_MS);
  let said = "";
  let port = "";
  for await (const chunk of server.stdout.iterator({ destroyOnReturn: false })) {
    said += String(chunk);
    port = /is ready at http:\/\/\S+:(\d+)\s/.exec(said)?.[1] ?? "";
    if (port !== "") break;
  }
  clearTimeout(late);
  if (port === "") assert.fail(`npm start said: ${said}${await text(server.stderr)}`);
  server.stdout.resume();
  return { server, port };
}

async function outputOf(script: string, env: NodeJS.ProcessEnv): Promise<string[]> {
  const shell = spawn("/bin/sh", ["-e", script], { cwd: clone, env, stdio: ["ignore", "pipe", "pipe"] });
  const late = setTimeout(() => shell.kill("SIGKILL"), BLOCK_LIMIT_MS);
  const [out, errors, [code]] = await Promise.all([text(shell.stdout), text(shell.stderr), once(shell, "exit")]);
  clearTimeout(late);
  assert.equal(code, 0, `${out}${errors}`);
  return out.split("\n").filter((line) => line.trim() !== "");
}
