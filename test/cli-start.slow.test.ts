/**
 * What a short command loads. The engine, SQLite, a server, YAML and the global `fetch` each take longer to load than
 * all else that such a command does, so a single import in the wrong place is felt at every call.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { type Served, served } from "./kits/cli/served.ts";

const run = promisify(execFile);
const BIN = join(import.meta.dirname, "../bin/drover.js");
/** The last line on standard error: every module that was loaded, Node's own included. */
const TELL = `
  import { registerHooks } from "node:module";
  const loaded = [];
  registerHooks({ load: (url, context, next) => { loaded.push(url); return next(url, context); } });
  process.on("exit", () => process._rawDebug(JSON.stringify([...loaded, ...process.moduleLoadList])));
`;

async function loadedBy(args: readonly string[], url: string): Promise<readonly string[]> {
  const env = { ...process.env, DROVER_URL: url };
  const { stderr } = await run(process.execPath, ["--import", `data:text/javascript,${TELL}`, BIN, ...args], { env });
  return JSON.parse(stderr.trim().split("\n").at(-1) ?? "") as string[];
}

const isPackage = (url: string): boolean => /\/node_modules\//.test(url);
const isHeavyRoom = (url: string): boolean =>
  /\/(?:src|dist)\/(?:engine|log|server|worker|gate|sim|testing)\//.test(url);
const isHeavyBuiltin = (name: string): boolean => /sqlite|undici|node:https?$/.test(name);
/** A package by its name alone, since it may have hundreds of files. */
const heavy = (loaded: readonly string[]): string[] => {
  const found = loaded.filter((name) => isPackage(name) || isHeavyRoom(name) || isHeavyBuiltin(name));
  return [...new Set(found.map((name) => name.replace(/.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\/.*/, "package $1")))];
};

const isOwn = (url: string): boolean => /^file:.*\/(?:bin|src|dist)\/(?!.*node_modules)/.test(url);
/** Each takes a third of a millisecond: what a verb has to load, with a little room. */
const OWN_MAX = 40;

/** Commander writes the help; what is called with the right words does without it. */
const HELP = [["--version"], ["--help"], ["help"], ["help", "tasks"], ["tasks", "--help"]];
const CALLS = [
  ...[["tasks"], ["task", "t1"], ["why", "t1"], ["workers"], ["projects"], ["gates"], ["schedules"], ["events"]],
  ...[["pause"], ["resume"], ["submit", "build", "--id", "t2"], ["cancel", "t1"], ["retry", "t1"]],
];

describe("a short command loads nothing heavy", { concurrency: false }, () => {
  let server: Served;
  before(async () => {
    server = await served(["--no-worker"]);
    assert.equal((await server.drover(["submit", "build", "--id", "t1"])).code, 0);
  });
  after(() => server[Symbol.asyncDispose]());
  for (const args of [...HELP, [], ...CALLS])
    test(["drover", ...args].join(" "), async () => {
      const loaded = await loadedBy(args, server.url);
      assert.ok(
        loaded.some((url) => url.includes("/cli/command-line.")),
        "this is the list of what is loaded",
      );
      const own = loaded.filter(isOwn);
      assert.ok(own.length <= OWN_MAX, `${own.length} files of Drover:\n${own.join("\n")}`);
      assert.deepEqual(heavy(loaded), HELP.includes(args) ? ["package commander"] : []);
    });

  test("without a call the client stays away too", async () => {
    for (const args of [["--version"], ["--help"]]) {
      const loaded = await loadedBy(args, server.url);
      assert.deepEqual(
        loaded.filter((url) => /\/client\/(?!client-error)|NativeModule _?http/.test(url)),
        [],
      );
    }
  });

  test("what is heavy is seen where it is loaded", async () => {
    const seen = heavy(await loadedBy(["config", "check"], server.url));
    assert.ok(seen.includes("package yaml"), seen.join());
  });
});
