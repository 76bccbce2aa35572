/**
 * The rooms of the house, as a test: which room may import which, through which index, and how many files a room holds.
 *
 * Layers are the folders of `src/`, rooms the folders inside a layer. A layer imports the layers in its row of LAYERS,
 * and only through an `index.ts`: the layer's own, which is its public face, or that of a room. Inside a layer a room
 * imports the rooms that stand before it in ROOMS. Files never import each other in a cycle. Each rule is first tried
 * on a small tree with a planted offence, then on the real one.
 */

import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { test } from "node:test";
import { importsOf, isTest } from "./kits/source-text.ts";

const FILES_MAX = 25;

/** A layer, and the layers it may import, or a room of one. */
const LAYERS: Readonly<Record<string, readonly string[]>> = {
  core: [],
  std: ["core"],
  log: ["core", "std"],
  gate: ["core", "std"],
  protocol: ["core", "std"],
  plan: ["core", "std", "protocol"],
  engine: ["core", "std", "log", "gate", "protocol", "plan"],
  http: ["core", "std", "protocol/wire"],
  server: ["core", "std", "engine", "protocol", "plan", "http"],
  client: ["core", "std", "protocol"],
  worker: ["core", "std", "client", "protocol", "plan"],
  cli: ["core", "std", "client", "worker", "protocol", "plan"],
  sim: ["core", "std", "log", "engine"],
  testing: ["core", "std", "log", "engine"],
  page: ["protocol"],
};
/** The few files in which the halves meet, and the package's own index. */
const MEETING_POINTS: Readonly<Record<string, readonly string[]>> = {
  "src/cli/serve/serve.ts": ["engine", "server"],
  "src/cli/serve/cluster-node.ts": ["engine", "server"],
  "src/cli/serve/node-config.ts": ["engine"],
  "src/cli/demo.ts": ["engine", "server"],
  "src/cli/story.ts": ["engine"],
  "src/cli/run/session.ts": ["engine"],
  "src/cli/run/api.ts": ["engine", "server"],
  "src/cli/run/log.ts": ["engine"],
  "src/cli/run/past-run.ts": ["engine"],
  "src/cli/log/verify.ts": ["engine"],
  "src/cli/log/copy.ts": ["engine", "log"],
  "src/index.ts": ["core", "gate", "engine", "client", "worker", "protocol"],
};
/**
 * Doors beside index.ts, for what a short command loads: it needs a few lines of these rooms, and each further file
 * takes a third of a millisecond. test/cli-start.slow.test.ts counts them.
 */
const SMALL_DOORS: readonly string[] = [
  "src/client/client-error.ts",
  "src/core/base/plain-object.ts",
  "src/engine/reader.ts",
  "src/std/loopback.ts",
  "src/std/plain-json.ts",
  "src/std/retry-after.ts",
  "src/std/span-text.ts",
  "src/std/version.ts",
];
/** The rooms of each layer: a room may import those before it. "." is the layer itself, whose index.ts imports all. */
const ROOMS: Readonly<Record<string, readonly string[]>> = {
  core: [
    "base",
    "collections",
    "gate",
    "config",
    "model",
    "fleet",
    "turn",
    "lifecycle",
    ".",
    "why",
    "snapshot",
    "invariants",
    "standalone",
  ],
  log: [".", "format", "integrity", "memory", "journal", "etcd", "postgres", "sqlite", "shared", "contract"],
  protocol: ["wire", "generated", "schema", "shapes", "calls", "settings", "."],
  plan: ["work", "."],
  sim: ["chance", "cells", ".", "cluster"],
  engine: [
    "base",
    "writer",
    "permits",
    "tasks",
    "files",
    "workers",
    "schedules",
    "plans",
    "snapshots",
    "views",
    ".",
    "node",
  ],
  server: ["webhooks", "access", "push", "cluster", "life", "logs", "observe", "pages", "handlers", "."],
  worker: ["output", "process", "worktree", "pull", "exec", "."],
  page: ["styles", "data", "parts", "views", "."],
  cli: ["shell", "show", "config", "plan", "worker", "run", "serve", "verbs", "log", "top", "."],
};

type Tree = ReadonlyMap<string, readonly string[]>;
type Rule = (tree: Tree) => string[];
type Import = { readonly from: string; readonly to: string };

const rules = {
  "imports only the layers of its row": (tree) =>
    importsIn(tree).flatMap(({ from, to }) => {
      const [own, other] = [layerOf(from), layerOf(to)];
      if (own !== "" && LAYERS[own] === undefined) return [`${own}/ is not a layer: see LAYERS`];
      const allowed = [own, ...(LAYERS[own] ?? []), ...(MEETING_POINTS[from] ?? [])];
      return allowed.includes(other) || allowed.includes(`${other}/${roomOf(to)}`) ? [] : [`${from} > ${to}`];
    }),
  "imports another layer only through an index.ts": (tree) =>
    importsIn(tree)
      .filter(
        ({ from, to }) =>
          layerOf(from) !== layerOf(to) && posix.basename(to) !== "index.ts" && !SMALL_DOORS.includes(to),
      )
      .map(({ from, to }) => `${from} > ${to}`),
  "imports only rooms that stand before its own": (tree) =>
    importsIn(tree).flatMap(({ from, to }) => {
      const rooms = ROOMS[layerOf(from)];
      if (rooms === undefined || layerOf(from) !== layerOf(to) || posix.basename(from) === "index.ts") return [];
      const [own, other] = [rooms.indexOf(roomOf(from)), rooms.indexOf(roomOf(to))];
      if (own < 0 || other < 0) return [`${own < 0 ? from : to} is in no room of ROOMS`];
      return other <= own ? [] : [`${from} > ${to}`];
    }),
  "is in no cycle of imports": (tree) =>
    [...tree.keys()].filter((file) => leadsBack(tree, file)).map((file) => `${file} imports what imports it`),
  [`is in a folder of at most ${FILES_MAX} source files`]: (tree) => {
    const counts = new Map<string, number>();
    for (const path of tree.keys()) counts.set(posix.dirname(path), (counts.get(posix.dirname(path)) ?? 0) + 1);
    return [...counts]
      .filter(([, count]) => count > FILES_MAX)
      .map(([folder, count]) => `${folder} holds ${count} files`);
  },
} satisfies Record<string, Rule>;

function layerOf(path: string): string {
  const parts = path.split("/");
  return parts.length > 2 ? (parts[1] ?? "") : "";
}

function roomOf(path: string): string {
  return path.split("/").slice(2, -1).join("/") || ".";
}

function importsIn(tree: Tree): Import[] {
  return [...tree].flatMap(([from, targets]) => targets.map((to) => ({ from, to })));
}

/** Whether the imports of a file, and theirs, come back to it. */
function leadsBack(tree: Tree, start: string): boolean {
  const seen = new Set<string>();
  const open = [...(tree.get(start) ?? [])];
  for (let file = open.pop(); file !== undefined; file = open.pop()) {
    if (file === start) return true;
    if (seen.has(file)) continue;
    seen.add(file);
    open.push(...(tree.get(file) ?? []));
  }
  return false;
}

const root = join(import.meta.dirname, "..");
/** Offences of today, by their complaint. A list that only gets shorter. */
const known: readonly string[] = JSON.parse(readFileSync(join(root, "test/kits/known-offences.json"), "utf8"));

function sourceTree(): Tree {
  const paths = globSync("src/**/*.{ts,tsx}", { cwd: root }).map((path) => path.replaceAll("\\", "/"));
  return new Map(paths.filter((path) => !isTest(path)).map((path) => [path, targetsOf(path)]));
}

function targetsOf(path: string): string[] {
  const relative = importsOf(readFileSync(join(root, path), "utf8")).filter((target) => target.startsWith("."));
  return relative.map((target) => posix.join(posix.dirname(path), target));
}

const tree = sourceTree();
const found = Object.entries(rules).map(([claim, rule]) => ({ claim, complaints: (rule as Rule)(tree) }));

for (const { claim, complaints } of found)
  test(`every file ${claim}`, () => {
    const news = complaints.filter((complaint) => !known.includes(complaint));
    assert.ok(news.length === 0, `\n${news.join("\n")}\n`);
  });

test("the list of known offences names only what still is one", () => {
  const all = new Set(found.flatMap(({ complaints }) => complaints));
  assert.deepEqual(
    known.filter((complaint) => !all.has(complaint)),
    [],
  );
});

test("ARCHITECTURE.md has a row for each layer, with its rooms in the order in which they build on each other", () => {
  const text = readFileSync(join(root, "ARCHITECTURE.md"), "utf8");
  const rows = [...text.matchAll(/^\| `(\w+)\/` +\|[^|]*\|(.*)\|$/gm)].map(([, layer = "", rooms = ""]) => [
    layer,
    [...rooms.matchAll(/`(\w+)`/g)].map(([, room]) => room),
  ]);
  const roomsOf = (layer: string): string[] => (ROOMS[layer] ?? []).filter((room) => room !== ".");
  const expected = Object.fromEntries(Object.keys(LAYERS).map((layer) => [layer, roomsOf(layer)]));
  assert.deepEqual(Object.fromEntries(rows), expected);
});

type Claim = keyof typeof rules;
const of = (files: Record<string, readonly string[]>): Tree => new Map(Object.entries(files));
const many = Object.fromEntries(Array.from({ length: FILES_MAX + 1 }, (_, index) => [`src/log/a${index}.ts`, []]));

const planted: [Claim, Tree][] = [
  ["imports only the layers of its row", of({ "src/core/a.ts": ["src/log/index.ts"] })],
  ["imports only the layers of its row", of({ "src/client/a.ts": ["src/engine/index.ts"] })],
  ["imports only the layers of its row", of({ "src/cli/verbs/submit.ts": ["src/server/index.ts"] })],
  ["imports only the layers of its row", of({ "src/http/a.ts": ["src/protocol/index.ts"] })],
  ["imports only the layers of its row", of({ "src/core/a.ts": ["test/run.ts"] })],
  ["imports only the layers of its row", of({ "src/shared/a.ts": ["src/shared/b.ts"] })],
  ["imports another layer only through an index.ts", of({ "src/engine/a.ts": ["src/core/base/brand.ts"] })],
  ["imports only rooms that stand before its own", of({ "src/core/base/a.ts": ["src/core/task/b.ts"] })],
  ["imports only rooms that stand before its own", of({ "src/core/attic/a.ts": ["src/core/base/b.ts"] })],
  ["is in no cycle of imports", of({ "src/log/a.ts": ["src/log/b.ts"], "src/log/b.ts": ["src/log/a.ts"] })],
  [`is in a folder of at most ${FILES_MAX} source files`, of(many)],
];

for (const [claim, offence] of planted)
  test(`a planted offence is caught: ${claim}: ${[...offence].at(0)?.join(" > ")}`, () => {
    assert.notDeepEqual(rules[claim](offence), []);
  });

const innocent: [Claim, Tree][] = [
  ["imports only the layers of its row", of({ "src/cli/serve/serve.ts": ["src/server/index.ts"] })],
  ["imports only the layers of its row", of({ "src/http/a.ts": ["src/protocol/wire/index.ts"] })],
  ["imports only the layers of its row", of({ "src/index.ts": ["src/engine/index.ts"] })],
  ["imports another layer only through an index.ts", of({ "src/engine/a.ts": ["src/core/base/index.ts"] })],
  ["imports only rooms that stand before its own", of({ "src/core/index.ts": ["src/core/why/why.ts"] })],
  ["is in no cycle of imports", of({ "src/log/a.ts": ["src/log/b.ts"], "src/log/b.ts": ["src/log/c.ts"] })],
];

for (const [claim, tree] of innocent)
  test(`an innocent tree is left alone: ${claim}: ${[...tree].at(0)?.join(" > ")}`, () => {
    assert.deepEqual(rules[claim](tree), []);
  });
