/**
 * The address of a server, in its data directory: there while it runs, and believed only if it is the reader's own.
 */
import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { emptyDirectory, served } from "../../../test/kits/cli/served.ts";
import { testTerminal } from "../../../test/kits/cli/test-terminal.ts";
import { answers, startScript } from "../../../test/kits/script-server.ts";
import { runCommandLine } from "../command-line.ts";
import { VERBS } from "../verbs.ts";
import { liveServer, readServerFile, removeServerFile, writeServerFile } from "./server-file.ts";
import { verbFetch } from "./terminal.ts";

const NO_TOKEN = new Set(["/readyz undefined"]);
const LIMIT = { timeout: 120_000 };

describe("server.json", LIMIT, () => {
  test("says where the server is that owns the directory, to its owner alone, and goes with it", async () => {
    await using server = await served(["--no-worker"]);
    const data = join(server.directory, ".drover");
    const path = join(data, "server.json");
    assert.equal(statSync(path).mode & 0o777, 0o600);
    const found = await liveServer(data, verbFetch);
    assert.deepEqual([found?.url, found?.pid], [server.url, process.pid]);
    // A verb without an address finds it.
    const terminal = testTerminal({ cwd: server.directory, home: server.directory });
    assert.equal(await runCommandLine(["workers"], terminal, VERBS), 0, terminal.complained());
    assert.equal(await server.stop(), 0);
    assert.equal(existsSync(path), false);
    assert.equal(await liveServer(data, verbFetch), null);
  });

  test("that a killed server left behind names no server, also where another listens there now", async () => {
    await using server = await served(["--no-worker"]);
    const data = emptyDirectory();
    writeServerFile(data, { url: server.url, id: "an earlier start" });
    assert.equal(readServerFile(data)?.url, server.url);
    assert.equal(await liveServer(data, verbFetch), null);
    writeServerFile(data, { url: "http://127.0.0.1:1", id: "gone" });
    assert.equal(await liveServer(data, verbFetch), null);
    await server.stop();
  });

  test("sends no token to another that listens where a killed server was", async () => {
    await using other = await startScript(answers(200, { serverId: "another" }));
    const cwd = emptyDirectory();
    mkdirSync(join(cwd, ".drover"));
    writeServerFile(join(cwd, ".drover"), { url: other.url, id: "an earlier start" });
    const terminal = testTerminal({ cwd, home: cwd, env: { DROVER_TOKEN: "secret-0123456789" } });
    assert.equal(await runCommandLine(["workers"], terminal, VERBS), 3);
    assert.match(terminal.complained(), /the server that wrote .drover.server.json is not at http/);
    assert.deepEqual(new Set(other.heard.map(({ url, headers }) => `${url} ${headers.authorization}`)), NO_TOKEN);
  });

  test("is left alone by a server that did not write it", () => {
    const data = emptyDirectory();
    writeServerFile(data, { url: "http://127.0.0.1:1", id: "newer" });
    removeServerFile(data, "older");
    assert.equal(readServerFile(data)?.id, "newer");
    removeServerFile(data, "newer");
    assert.equal(readServerFile(data), null);
  });
});

describe("a file that is not believed", () => {
  const whole = { url: "http://127.0.0.1:1", pid: process.pid, id: "a" };
  const rows: [name: string, text: string, mode?: number][] = [
    ["one that others may read, as a checkout has them", JSON.stringify(whole), 0o644],
    ["one that is no JSON", "{"],
    ["one without an id", JSON.stringify({ ...whole, id: undefined })],
    ["one that names a file", JSON.stringify({ ...whole, url: "file:///etc/passwd" })],
    ["one that names another machine", JSON.stringify({ ...whole, url: "https://drover.example" })],
    ["one that names no loopback", JSON.stringify({ ...whole, url: "http://127.0.0.1.drover.example" })],
    ["one that is too long", JSON.stringify({ ...whole, more: "x".repeat(5000) })],
  ];
  for (const [name, text, mode = 0o600] of rows)
    test(name, () => {
      const data = emptyDirectory();
      writeServerFile(data, whole);
      assert.deepEqual(readServerFile(data), whole, "as it is written it is believed");
      writeFileSync(join(data, "server.json"), text);
      chmodSync(join(data, "server.json"), mode);
      assert.equal(readServerFile(data), null, readFileSync(join(data, "server.json"), "utf8"));
    });

  test("one that is a directory", () => {
    const data = emptyDirectory();
    mkdirSync(join(data, "server.json"), { mode: 0o700 });
    assert.equal(readServerFile(data), null);
  });
});
