/**
 * The files of tasks go along where a log is copied into a directory: from a server and from a directory, broken off
 * and begun again, and with one that is not what it should be.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { testTerminal } from "../../../test/kits/cli/test-terminal.ts";
import { startServe } from "../../../test/kits/serve-process.ts";
import { copyLog } from "../../log/shared/index.ts";
import { runCommandLine } from "../command-line.ts";
import { VERBS } from "../verbs.ts";

type Shown = { files: number; fileBytes: number; missing: { path: string; task: string; why: string }[]; ok: boolean };

function drover(cwd: string) {
  return async (...args: string[]): Promise<{ code: number; report: Shown; said: string }> => {
    const terminal = testTerminal({ cwd });
    const code = await runCommandLine([...args, "--json"], terminal, VERBS);
    const shown = terminal.shown();
    return { code, report: JSON.parse(shown === "" ? "{}" : shown) as Shown, said: terminal.complained() };
  };
}

/** Where the contents of a directory lie. */
function contentsIn(data: string): string[] {
  const root = join(data, "files");
  const parts = readdirSync(root).filter((name) => /^[0-9a-f]{2}$/.test(name));
  return parts.flatMap((part) => readdirSync(join(root, part)).map((name) => join(root, part, name)));
}

function newDirectory(context: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), "drover-copy-files-"));
  context.after(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

test("a copy into a directory has the files of tasks, from a server and from a directory", async (context) => {
  const cwd = newDirectory(context);
  const run = drover(cwd);
  await using server = await startServe({ cwd, flags: ["--worker"] });
  const command = 'for n in 1 2 3; do echo "file $n" > f$n; done';
  const submitted = ["submit", "--id", "t", "--command", command, "--output", "f*", "--wait", "--url", server.url];
  assert.equal((await run(...submitted)).code, 0);

  const first = await run("log", "copy", server.url, "live");
  assert.equal(first.code, 0, first.said);
  assert.deepEqual([first.report.files, first.report.fileBytes, first.report.missing], [3, 21, []]);
  assert.equal((await run("verify", "--data", "live")).code, 0);
  const [gone = ""] = contentsIn(join(cwd, "live"));
  rmSync(gone);
  writeFileSync(join(cwd, "live/files/half-written"), "");
  assert.equal((await run("log", "copy", server.url, "live")).report.files, 1, "what is there is not fetched again");
  assert.equal((await run("verify", "--data", "live")).code, 0);

  const beside = await run("log", "copy", ".drover", "beside");
  assert.deepEqual([beside.code, beside.report.files], [0, 3], beside.said);
  assert.match(beside.said, /A server runs on \S+\.drover: what it has by now is copied from http:/);
  assert.equal((await run("verify", "--data", "beside")).code, 0);
  const into = await run("log", "copy", "live", server.url);
  assert.deepEqual([into.code, /no history is copied into a server/.test(into.said)], [4, true], into.said);

  await server.stop();
  const second = await run("log", "copy", "live", "further");
  assert.deepEqual([second.code, second.report.files], [0, 3], second.said);
  assert.equal((await run("verify", "--data", "further")).code, 0);
  writeFileSync(gone, "forged!");
  const third = await run("log", "copy", "live", "forged");
  assert.deepEqual([third.code, third.report.files, third.report.missing.length], [1, 2, 1]);
  assert.match(third.report.missing[0]?.why ?? "", /not what was stored/);
  const terminal = testTerminal({ cwd });
  assert.equal(await runCommandLine(["log", "copy", "live", "forged"], terminal, VERBS), 1);
  assert.match(terminal.shown(), /^✘ [\s\S]*1 files of tasks could not be copied:/);
  assert.equal(contentsIn(join(cwd, "forged")).length, 2, "nothing false stands under a hash");
});

test("a server that is not there is given up, and it is said after how long, why, and what to do", async (context) => {
  const notices: string[] = [];
  const options = { openingMs: 1000, onNotice: (line: string) => void notices.push(line) };
  const given = copyLog("http://127.0.0.1:1", `sqlite:${join(newDirectory(context), "new")}`, options);
  await assert.rejects(given, {
    code: "unreachable",
    message:
      /^gave up after 1 s: the node at \S+ cannot be reached: .+\. Nothing was written\. .* run the same command again/,
  });
  assert.match(notices[0] ?? "", /^waiting for the server since 0 s: /);
});
