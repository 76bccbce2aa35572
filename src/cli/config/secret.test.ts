/**
 * What an address keeps to itself.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { emptyDirectory } from "../../../test/kits/cli/served.ts";
import { testTerminal } from "../../../test/kits/cli/test-terminal.ts";
import { runCommandLine } from "../command-line.ts";
import { VERBS } from "../verbs.ts";
import { withoutCredentials } from "./secret.ts";

test("an address is shown without its password, whatever that holds", () => {
  for (const [url, shown] of [
    ["postgres://x", "postgres://x"],
    ["postgres://ann:geheim@db/drover", "postgres://(hidden)@db/drover"],
    ["postgres://ann:ge@he/im?@db:5432/d?sslmode=x&password=geheim", "postgres://(hidden)@db:5432/d?(hidden)"],
    ["postgres://db:5432/drover", "postgres://db:5432/drover"],
    ["etcd:ann:geheim@db", "etcd:(hidden)"],
    ["ann:geheim@db", "ann:(hidden)"],
    ["postgres:ann:geheim/db", "postgres:(hidden)"],
    ["postgres://ann:geheim/db", "postgres:(hidden)"],
    ["//ann:geheim@db", "(hidden)"],
    ["redis", "redis"],
    ["etcd://h1:2379,h2:2379,h3/drover", "etcd://h1:2379,h2:2379,h3/drover"],
    ["etcd://ann:ge,heim@h1:2379,[::1]:2379/drover", "etcd://(hidden)@h1:2379,[::1]:2379/drover"],
    ["etcd://ann:geheim,h1/drover", "etcd:(hidden)"],
  ] as const)
    assert.equal(withoutCredentials(url), shown);
});

const URL = "postgres://ann:geheim@db/drover?password=geheim";
const OTHER = "mysql://ann:geheim@db/drover?password=geheim";
const SHORT = "postgres:ann:geheim/db";
const COMMA = /drover\.yml:1:\d+: inside \{ \} a comma ends a value/;
const told: [claim: string, args: string[], yaml: string, said: RegExp][] = [
  ["a --log of another kind", ["serve", "--log", OTHER], "", /mysql:\/\/\(hidden\)@db/],
  ["a --log of another kind, as JSON", ["serve", "--json", "--log", OTHER], "", /mysql:\/\/\(hidden\)@db/],
  ["a refused --log", ["serve", "--log", URL], "", /PostgreSQL has the option "password"/],
  ["a refused --log, as JSON", ["serve", "--json", "--log", URL], "", /PostgreSQL has the option \\+"password/],
  ["a refused --log without a host", ["serve", "--log", SHORT], "", /an address of PostgreSQL begins with/],
  ["a refused host of etcd", ["serve", "--log", "etcd://ann:geheim@a:b:1/p"], "", /the host "a:…" .* etcd is not/],
  ["a password with a slash", ["serve", "--log", "etcd://ann:ge/heim@h/p"], "", /must be percent-encoded/],
  [
    "a misspelt name of a --set",
    ["config", "show", "--set", "server.tokns=[geheim]"],
    "",
    /--set server\.tokns: server\.tokns .*mean tokens/,
  ],
  [
    "a --set that is no YAML",
    ["config", "show", "--set", 'server.tokns="a" geheim'],
    "",
    /tokns: this value is not YAML/,
  ],
  ["a --set with an alias", ["config", "show", "--set", "server.tokns=*geheim"], "", /tokns: this value is not YAML/],
  ["a --set of a section", ["config", "check", "--set", "log=geheim"], "", /--set log: log is hidden, since it may be/],
  ["a --set of webhooks", ["config", "check", "--set", "webhooks=[geheim]"], "", /webhooks is hidden, since it may be/],
  ["a refused log.url of a file", ["serve"], `log: { url: "${URL}" }\n`, /PostgreSQL has the option "password"/],
  ["a config that is shown", ["config", "show", "--origins"], `log: { url: "${URL}" }\n`, /\(hidden\)@db/],
  ["a config without a host that is shown", ["config", "show"], `log: { url: "${SHORT}" }\n`, /postgres:\(hidden\)/],
];
const wrong: [claim: string, yaml: string, said: RegExp][] = [
  ["behind it", `log: { url: "${URL}", retain: soon }\n`, /yml:1:\d+: log\.retain is "soon"[^\n]*\nhint/],
  [
    "before it",
    `log: { retain: soon, url: "${URL}" }\n`,
    / {2}1 \| log: \{ retain: soon, url: \(hidden\)\n {4}\| {8}\^/,
  ],
  ["at a comma in a URL", "log: { url: postgres://u:p,geheim@h/x }\n", COMMA],
  [
    "at a comma before a port",
    "log: { url: postgres://u:p,geheim@h:1/x }\n",
    /yml:1:28: this is not a known field; known/,
  ],
  ["at a comma in a secret", "webhooks: { secret: abc,geheim }\n", COMMA],
  ["at a comma in a token", "server: { tokens: [{ role: admin, token: abc,geheim }] }\n", COMMA],
  ["at a bracket", "log: { url: postgres://u:geheim[x]@h/x }\n", /a text with a bracket needs quotes\n/],
  ["at a blank", 'log: { url: "postgres://u:p geheim@h/x", retain: soon }\n', /log\.retain is "soon"/],
  ["at a map of tokens", "server: { tokens: { admin: geheim } }\n", /1:\d+: server\.tokens must be a list/],
  [
    "at a map of tokens, in lines",
    "server:\n  tokens:\n    admin:\n      geheim\n",
    /3:5: server\.tokens must be a list/,
  ],
  ["at a text for a section", "log: postgres://u:geheim@h/db\n", /1:1: log is hidden[^\n]*\n {2}1 \| log: \(hidden\)/],
  ["at a list for a section", "webhooks:\n  - geheim\n", /1:1: webhooks is hidden/],
  ["at a list of URLs", "log:\n  url: [geheim]\n", /2:3: log\.url is hidden/],
  ["at a section in plain words", "server: geheim\n", /1:1: server is hidden/],
  ["at a list of texts", "server: { tokens: [geheim] }\n", /server\.tokens\[0\] is hidden/],
  [
    "at a name in a token",
    "server:\n  tokens:\n    - { tken: geheim, role: admin }\n",
    /yml:3:9: this is not a known field/,
  ],
  [
    "at a misspelt name of tokens",
    "server:\n  tokns: [geheim]\n",
    /yml:2:3: server\.tokns [^\n]*\(did you mean tokens\?\)\n {2}2 \| {3}tokns: \(hidden\)\n/,
  ],
  ["at a misspelt secret", "webhooks: { secrt: geheim }\n", /1:13: webhooks\.secrt [^\n]*\(did you mean secret\?\)/],
  ["at a misspelt URL", "log: { ulr: 'postgres:u:geheim/db' }\n", /1:8: log\.ulr [^\n]*\(did you mean url\?\)/],
  ["at a misspelt section", "servr: { tokns: [geheim] }\n", /1:1: servr [^\n]*\(did you mean server\?\)/],
  [
    "in a misspelt section of lines",
    "webhook:\n  secrt: >\n    geheim\n",
    /1:1: webhook [^\n]*\(did you mean webhooks/,
  ],
  ["at tokens in another section", "scheduler:\n  tokns: [geheim]\n", /2:3: scheduler\.tokns is not a known field/],
  ["before a misspelt name", "server: { port: x, tokns: [geheim] }\n", /1:11: server\.port is "x"/],
  ["behind a misspelt name", "server: { tokns: [geheim], port: x }\n", /1:28: server\.port is "x"/],
  [
    "at a misspelt name that is no YAML",
    "server:\n  tokns: [geheim\n  port: 1\n",
    /drover\.yml:\d+:\d+: this is not YAML/,
  ],
];
const all = [
  ...told,
  ...wrong.map(([at, ...rest]) => [`a line that is wrong ${at}`, ["config", "check"], ...rest] as const),
];
for (const [claim, args, yaml, said] of all)
  test(`${claim} prints no password`, async () => {
    const cwd = emptyDirectory();
    writeFileSync(join(cwd, "drover.yml"), yaml);
    const terminal = testTerminal({ cwd, home: cwd, env: { PATH: process.env.PATH } });
    await runCommandLine([...args], terminal, VERBS);
    const shown = terminal.shown() + terminal.complained();
    assert.match(shown, said);
    assert.doesNotMatch(shown, /geheim/);
  });
