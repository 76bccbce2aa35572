/**
 * A running server loses no file and no last token by a reload.
 */
import assert from "node:assert/strict";
import { mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { emptyDirectory, type Served, served } from "../../../test/kits/cli/served.ts";

const TOKEN = "0123456789abcdef";
const LIMIT = { timeout: 120_000 };
const GOOD = `server: { tokens: [{ token: ${TOKEN}, role: admin }] }\nbudget: { limit: 500 }\n`;

const withToken = { headers: { authorization: `Bearer ${TOKEN}` } };
const statusOf = async (url: string, init: RequestInit = {}): Promise<number> =>
  (await fetch(`${url}/tasks`, init)).status;

/** What was complained of since the last look. */
function complaintsOf({ terminal }: Served): () => string {
  let seen = 0;
  return () => {
    const all = terminal.complained();
    const fresh = all.slice(seen);
    seen = all.length;
    return fresh;
  };
}

type Loss = { readonly name: string; readonly lose: (file: string) => void; readonly says: string };
const losses: Loss[] = [
  { name: "is removed", lose: (file) => unlinkSync(file), says: " is gone; put it back, or restart the server" },
  { name: "is emptied", lose: (file) => writeFileSync(file, ""), says: " is empty; write it again, or restart" },
  { name: "has only comments", lose: (file) => writeFileSync(file, "# later\n"), says: " is empty; write it again" },
  { name: "has no token left", lose: (file) => writeFileSync(file, "budget: { limit: 500 }\n"), says: "server.tokens" },
  {
    name: "has an empty list of tokens",
    lose: (file) => writeFileSync(file, "server: { tokens: [] }\n"),
    says: "server.tokens would be empty",
  },
];

for (const where of ["drover.yml", ".config/drover/drover.yml"]) {
  describe(`a config file of a running server, ${where}`, LIMIT, () => {
    for (const { name, lose, says } of losses) {
      test(`that ${name} changes nothing, is complained of, and is read when it is whole again`, async () => {
        const directory = emptyDirectory();
        const file = join(directory, where);
        mkdirSync(join(file, ".."), { recursive: true });
        writeFileSync(file, GOOD);
        await using server = await served(["--no-worker", "--log", "memory:"], { directory });
        const { terminal, url } = server;
        const complaints = complaintsOf(server);
        assert.equal(await statusOf(url), 401);
        lose(file);
        await terminal.saw(says);
        assert.match(complaints(), /^error: the new config is not taken, the old one stays in force\n/);
        assert.equal(await statusOf(url), 401);
        terminal.signal("SIGHUP");
        const refused = await fetch(`${url}/scheduler/reload`, { method: "POST", ...withToken });
        assert.equal(refused.status, 400);
        assert.ok(((await refused.json()) as { error: string }).error.includes(says));
        assert.ok(complaints().includes(says), "a SIGHUP is answered");
        assert.equal(await statusOf(url), 401);
        writeFileSync(file, `${GOOD}scheduler: { maxInFlight: 7 }\n`);
        await terminal.saw("the config has changed and is in force");
        const config = (await (await fetch(`${url}/scheduler/config`, withToken)).json()) as { maxInFlight: number };
        assert.equal(config.maxInFlight, 7);
      });
    }
  });
}

test("a file that came after the start is missed when it goes, as is one named by --config", LIMIT, async () => {
  const directory = emptyDirectory();
  writeFileSync(join(directory, "own.yml"), "budget: { limit: 5 }\n");
  for (const [args, file, says] of [
    [[], "drover.yml", "drover.yml is gone"],
    [["--config", "own.yml"], "own.yml", "own.yml does not exist"],
  ] as const) {
    await using server = await served(["--no-worker", "--log", "memory:", ...args], { directory });
    writeFileSync(join(directory, file), "budget: { limit: 6 }\n");
    await server.terminal.saw("the config has changed and is in force");
    unlinkSync(join(directory, file));
    await server.terminal.saw(says);
  }
});

test("a file that was empty at the start may stay so", LIMIT, async () => {
  const directory = emptyDirectory();
  writeFileSync(join(directory, "drover.yml"), "");
  await using server = await served(["--no-worker", "--log", "memory:"], { directory });
  server.terminal.signal("SIGHUP");
  await server.terminal.saw("the config has not changed");
});

test("a mounted config map: the swap of its link is taken, and so is a swap to nothing noticed", LIMIT, async () => {
  const directory = emptyDirectory();
  const mounted = join(directory, "mounted");
  for (const [version, limit] of [
    ["v1", 3],
    ["v2", 4],
  ] as const) {
    mkdirSync(join(mounted, version), { recursive: true });
    writeFileSync(join(mounted, version, "drover.yml"), `scheduler: { maxInFlight: ${limit} }\n`);
  }
  mkdirSync(join(mounted, "v3"));
  const swapTo = (version: string): void => {
    symlinkSync(version, join(mounted, "..new"));
    renameSync(join(mounted, "..new"), join(mounted, "..data"));
  };
  swapTo("v1");
  symlinkSync("..data/drover.yml", join(mounted, "drover.yml"));
  const args = ["--no-worker", "--log", "memory:", "--config", "mounted/drover.yml"];
  await using server = await served(args, { directory });
  swapTo("v2");
  await server.terminal.saw("the config has changed and is in force");
  const config = (await (await fetch(`${server.url}/scheduler/config`)).json()) as { maxInFlight: number };
  assert.equal(config.maxInFlight, 4);
  swapTo("v3");
  await server.terminal.saw("mounted/drover.yml does not exist");
  rmSync(join(mounted, "v1"), { recursive: true });
});
