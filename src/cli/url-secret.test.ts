/**
 * What an address keeps to itself.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { emptyDirectory } from "../../test/cli/served.ts";
import { testTerminal } from "../../test/cli/test-terminal.ts";
import { runCommandLine } from "./command-line.ts";
import { withoutCredentials } from "./url-secret.ts";
import { VERBS } from "./verbs.ts";

test("an address is shown without its password, whatever that holds", () => {
  for (const [url, shown] of [
    ["postgres://x", "postgres://x"],
    ["postgres://ann:geheim@db/drover", "postgres://(hidden)@db/drover"],
    ["postgres://ann:ge@he/im?@db:5432/d?sslmode=x&password=geheim", "postgres://(hidden)@db:5432/d?(hidden)"],
    ["etcd:ann:geheim@db", "etcd:(hidden)@db"],
    ["ann:geheim@db", "ann:(hidden)@db"],
  ] as const)
    assert.equal(withoutCredentials(url), shown);
});

const URL = "postgres://ann:geheim@db/drover?password=geheim";
const told: [claim: string, args: string[], yaml: string][] = [
  ["a refused --log", ["serve", "--log", URL], ""],
  ["a refused --log, as JSON", ["serve", "--json", "--log", URL], ""],
  ["a refused log.url of a file", ["serve"], `log: { url: "${URL}" }\n`],
  ["a line that is wrong elsewhere", ["config", "check"], `log: { url: "${URL}", retain: soon }\n`],
  ["a config that is shown", ["config", "show", "--origins"], `log: { url: "${URL}" }\n`],
];
for (const [claim, args, yaml] of told)
  test(`${claim} prints no password`, async () => {
    const cwd = emptyDirectory();
    writeFileSync(join(cwd, "drover.yml"), yaml);
    const terminal = testTerminal({ cwd, home: cwd, env: { PATH: process.env.PATH } });
    await runCommandLine(args, terminal, VERBS);
    const all = terminal.shown() + terminal.complained();
    assert.match(all, /postgres:\/\/\(hidden\)@db/);
    assert.doesNotMatch(all, /geheim/);
  });
