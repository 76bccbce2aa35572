/**
 * What a command leaves: the files its task names, nothing from outside its workspace, nothing but plain files.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { hash } from "node:crypto";
import { once } from "node:events";
import { appendFileSync, linkSync, mkdirSync, symlinkSync, truncateSync, utimesSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { createWorld, temporaryHome } from "../../../test/kits/faults/exec-world.ts";
import type { FileContent, FileRef } from "../../protocol/index.ts";
import type { ExecTask } from "./contract.ts";
import { collectOutputs } from "./outputs.ts";

type Kept = Map<string, string>;

/** A directory with a tree, and a secret beside it. */
function tree(t: TestContext): string {
  const home = temporaryHome(t);
  const root = join(home, "work");
  mkdirSync(join(root, "report", "deep"), { recursive: true });
  mkdirSync(join(root, ".git"));
  writeFileSync(join(home, "secret"), "secret");
  writeFileSync(join(root, "spec.md"), "# spec");
  writeFileSync(join(root, ".hidden"), "h");
  writeFileSync(join(root, "report", "a.txt"), "a");
  writeFileSync(join(root, "report", "deep", "b.txt"), "b");
  writeFileSync(join(root, ".git", "config"), "git");
  symlinkSync(join(home, "secret"), join(root, "report", "link.txt"));
  symlinkSync(home, join(root, "report", "up"));
  spawnSync("mkfifo", [join(root, "report", "pipe.txt")]);
  return root;
}

async function collected(root: string, patterns: readonly string[]): Promise<{ kept: Kept; notes: string[] }> {
  const kept: Kept = new Map();
  const notes: string[] = [];
  await collectOutputs(patterns, root, {
    keep: async (path, source) => {
      const content = await buffer(source.bytes());
      assert.deepEqual([source.hash, source.size], [hash("sha256", content, "hex"), content.length]);
      kept.set(path, content.toString());
    },
    note: (text) => notes.push(text),
  });
  return { kept, notes };
}

const rows: readonly { readonly name: string; readonly patterns: readonly string[]; readonly kept: object }[] = [
  { name: "a path is itself", patterns: ["spec.md"], kept: { "spec.md": "# spec" } },
  { name: "a file named twice is kept once", patterns: ["spec.md", "*.md"], kept: { "spec.md": "# spec" } },
  { name: "* stays in its directory, and leaves hidden names alone", patterns: ["*"], kept: { "spec.md": "# spec" } },
  { name: "? is one character", patterns: ["report/?.txt"], kept: { "report/a.txt": "a" } },
  {
    name: "** is any depth; links, pipes and what is git's own are passed over",
    patterns: ["**"],
    kept: { ".hidden": "h", "report/a.txt": "a", "report/deep/b.txt": "b", "spec.md": "# spec" },
  },
  { name: "** in the middle is none or many", patterns: ["report/**/b.txt"], kept: { "report/deep/b.txt": "b" } },
  { name: "what is not there is none", patterns: ["no.md", "nowhere/**"], kept: {} },
];
for (const { name, patterns, kept } of rows)
  test(name, async (t) => assert.deepEqual(Object.fromEntries((await collected(tree(t), patterns)).kept), kept));

test("a second name of a file of the workspace is that file, and one of a device or a socket is none", async (t) => {
  const root = tree(t);
  linkSync(join(root, "spec.md"), join(root, "second.md"));
  const server = createServer().listen(join(root, "report", "socket.txt"));
  t.after(() => server.close());
  await once(server, "listening");
  assert.deepEqual(
    [...(await collected(root, ["*.md", "report/*.txt"])).kept],
    [
      ["report/a.txt", "a"],
      ["second.md", "# spec"],
      ["spec.md", "# spec"],
    ],
  );
  await assert.rejects(collected(root, ["report/socket.txt"]), { message: /socket\.txt is not a plain file/ });
});

test("of a pattern, a link and a pipe that it names are passed over with a note", async (t) => {
  const { kept, notes } = await collected(tree(t), ["report/*.txt"]);
  assert.deepEqual([...kept.keys()], ["report/a.txt"]);
  assert.match(notes.join(), /link\.txt is a symbolic link.*pipe\.txt is not a plain file/);
});

for (const path of ["../secret", "/etc/passwd", "report/../../secret", "a//b", "report/link.txt", "report/up/secret"])
  test(`${path} is refused, and nothing of it is read`, async (t) => {
    await assert.rejects(collected(tree(t), [path]), { name: "OutputTrouble", permanent: true });
  });
for (const path of ["report/pipe.txt", "report", ".git/config"])
  test(`${path} is no plain file of the task, and is refused by name`, async (t) => {
    await assert.rejects(collected(tree(t), [path]), { name: "OutputTrouble", message: new RegExp(path) });
  });

test("of a file that grows what it had is kept; one that shrinks while it is read is tried again", async (t) => {
  const root = tree(t);
  const path = join(root, "spec.md");
  const keep = async (_: string, { bytes, size }: { bytes(): AsyncIterable<Uint8Array>; size: number }) => {
    appendFileSync(path, "more");
    assert.equal((await buffer(bytes())).length, size);
    truncateSync(path, 1);
    await buffer(bytes());
  };
  await assert.rejects(collectOutputs(["spec.md"], root, { keep, note: () => {} }), { permanent: false });
});

test("more files than any task may leave are refused", async (t) => {
  const root = tree(t);
  mkdirSync(join(root, "many"));
  for (let index = 0; index <= 1000; index++) writeFileSync(join(root, "many", `${index}`), "");
  await assert.rejects(collected(root, ["many/*"]), /over 1000 files/);
});

// -------------------------------------------------------------- in an attempt

const whole: ExecTask = { taskId: "t1", attempt: 1, action: "work", agentId: "ann" };

function contextWith(refuse: (path: string) => Error | null = () => null) {
  const left: string[] = [];
  return {
    left,
    ...{ attempt: 1, signal: new AbortController().signal, progress: () => {}, usage: () => {} },
    output: async (path: string, content: FileContent): Promise<FileRef> => {
      const refusal = refuse(path);
      if (refusal !== null) throw refusal;
      left.push(path);
      const { hash: one, size } = content as { hash: string; size: number };
      return { path, hash: one, size };
    },
  };
}

test("outputs are collected when a command has ended, also one that failed", async (t) => {
  const { handler } = createWorld(t, { script: `echo a > a.txt; exit "$CODE"`, env: ["CODE=0"] });
  const done = contextWith();
  assert.equal((await handler.run({ ...whole, outputs: ["a.txt"] }, done)).outcome, "done");
  assert.deepEqual(done.left, ["a.txt"]);
  const { handler: failing } = createWorld(t, { script: "echo a > a.txt; exit 3" });
  const failed = contextWith();
  assert.equal((await failing.run({ ...whole, outputs: ["a.txt"] }, failed)).outcome, "failed");
  assert.deepEqual(failed.left, ["a.txt"]);
});

test("a worker that runs one program hands out what that has written, and nothing that was there before", async (t) => {
  const script = "echo new > new.txt; echo more >> old.txt";
  for (const [allowUntil, kept] of [
    [false, ["new.txt", "old.txt"]],
    [true, [".env", "new.txt", "old.txt", "unchanged.txt"]],
  ] as const) {
    const { handler, home: cwd } = createWorld(t, { script, allowUntil });
    for (const name of [".env", "old.txt", "unchanged.txt"]) writeFileSync(join(cwd, name), "secret");
    for (const name of [".env", "unchanged.txt"]) utimesSync(join(cwd, name), 4_000_000_000, 4_000_000_000);
    const found = contextWith();
    assert.equal((await handler.run({ ...whole, outputs: ["**"] }, found)).outcome, "done");
    assert.deepEqual(found.left, kept);
    const named = await handler.run({ ...whole, attempt: 2, outputs: [".env"] }, { ...contextWith(), attempt: 2 });
    assert.equal(named.outcome, allowUntil ? "done" : "failed");
    if (!allowUntil) assert.match(String(named.error), /\.env was there before the command began/);
  }
});

test("what was written in an earlier round of a loop counts too", async (t) => {
  const script = `[ -e a.txt ] && exit 0; echo a > a.txt; echo '{"again":true}'`;
  const { handler } = createWorld(t, { script });
  const loop = { ...whole, outputs: ["a.txt"], loop: { max: 3 } };
  assert.equal((await handler.run({ ...loop, round: { number: 1, max: 3 } }, contextWith())).outcome, "again");
  const last = contextWith();
  const round = { ...loop, attempt: 2, round: { number: 2, max: 3 } };
  assert.equal((await handler.run(round, { ...last, attempt: 2 })).outcome, "done");
  assert.deepEqual(last.left, ["a.txt"]);
});

test("what Drover keeps in a workspace is never handed out, whoever asks", async (t) => {
  const root = tree(t);
  for (const name of [".drover", "data"]) {
    mkdirSync(join(root, name));
    writeFileSync(join(root, name, "key"), "secret");
  }
  const kept: string[] = [];
  const keep = async (path: string): Promise<void> => void kept.push(path);
  const collect = (pattern: string): Promise<void> =>
    collectOutputs([pattern], root, { keep, note: () => {}, data: join(root, "data") });
  await collect("**");
  assert.deepEqual(
    kept.filter((path) => path.endsWith("key")),
    [],
  );
  assert.ok(kept.includes("spec.md"));
  for (const path of [".drover/key", "data/key"]) await assert.rejects(collect(path), /is git's own, or Drover's/);
  // A worktree lies in the data directory.
  kept.length = 0;
  await collectOutputs(["spec.md"], root, { keep, note: () => {}, data: join(root, "..") });
  assert.deepEqual(kept, ["spec.md"]);
});

const refusals: readonly { readonly code: string; readonly details?: object; readonly expected: object }[] = [
  { code: "too_large", expected: { outcome: "failed", permanent: true } },
  { code: "bad_request", expected: { outcome: "failed", permanent: true } },
  { code: "bad_request", details: { field: "hash" }, expected: { outcome: "failed" } },
  { code: "over_capacity", expected: { outcome: "requeue" } },
  { code: "network", expected: { outcome: "requeue" } },
];
for (const { code, details, expected } of refusals)
  test(`a refusal of ${code}${details === undefined ? "" : " of its hash"} is told by the name`, async (t) => {
    const { handler } = createWorld(t, { script: "echo a > a.txt" });
    const context = contextWith(() => Object.assign(new Error(`no: ${code}`), { code, details }));
    const { outcome, permanent, error } = await handler.run({ ...whole, outputs: ["a.txt"] }, context);
    assert.deepEqual({ outcome, ...(permanent === undefined ? {} : { permanent }) }, expected);
    assert.match(error ?? "", /a\.txt|no: /);
  });

test("files of a need are laid, fetched once, and again if the copy here is damaged", async (t) => {
  const { handler, data } = createWorld(t, {
    script: `cat "$DROVER_INPUTS_DIR/plan/docs/spec.md"; printf x >> "$DROVER_INPUTS_DIR/plan/docs/spec.md"`,
  });
  const content = Buffer.from("# spec\n");
  const ref = { path: "docs/spec.md", hash: hash("sha256", content, "hex"), size: content.length };
  const inputs = { plan: { taskId: "p", state: "done" as const, files: [ref] } };
  let fetched = 0;
  const context = {
    ...contextWith(),
    async *file() {
      fetched++;
      yield content;
    },
  };
  for (const attempt of [1, 2]) await handler.run({ ...whole, attempt, inputs }, { ...context, attempt });
  assert.equal(fetched, 1);
  writeFileSync(join(data, "inputs", ref.hash), "damaged");
  await handler.run({ ...whole, attempt: 3, inputs }, { ...context, attempt: 3 });
  assert.equal(fetched, 2);
  for (const attempt of [1, 2, 3]) assert.match((await handler.tail("t1", attempt))?.text ?? "", /out {2}# spec/);
});

test("a path of a need's file that leads elsewhere is never laid", async (t) => {
  const { handler, home } = createWorld(t, { script: "true" });
  const content = Buffer.from("evil");
  const ref = { path: "../../../evil", hash: hash("sha256", content, "hex"), size: 4 };
  const context = {
    ...contextWith(),
    async *file() {
      yield content;
    },
  };
  const inputs = { plan: { taskId: "p", state: "done" as const, files: [ref] } };
  const { outcome, error } = await handler.run({ ...whole, inputs }, context);
  assert.equal(outcome, "requeue");
  assert.match(error ?? "", /leads elsewhere/);
  assert.equal(spawnSync("find", [home, "-name", "evil"]).stdout.toString(), "");
});
