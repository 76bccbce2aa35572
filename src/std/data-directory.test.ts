import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { keepPrivate, makeOwnDirectory } from "./data-directory.ts";

const home = mkdtempSync(join(tmpdir(), "drover-own-"));
after(() => rmSync(home, { recursive: true, force: true }));
const rows: { name: string; there: string; data: string; ignored: string | null }[] = [
  { name: "a new one", there: "a", data: "a/.drover", ignored: "a/.drover" },
  { name: "a new one deep below", there: "b", data: "b/.drover/runs/plan", ignored: "b/.drover" },
  { name: "a new one below one that was there", there: "c/.drover", data: "c/.drover/runs", ignored: "c/.drover/runs" },
  { name: "one of another name, below others that are new", there: "d", data: "d/build/log", ignored: "d/build/log" },
  { name: "one that was there", there: "e/.drover", data: "e/.drover", ignored: null },
];
for (const { name, there, data, ignored } of rows)
  test(`${name} is its owner's alone, and git sees nothing of ${ignored === null ? "what Drover made" : "it"}`, () => {
    mkdirSync(join(home, there), { recursive: true });
    makeOwnDirectory(join(home, data));
    makeOwnDirectory(join(home, data));
    const [top = ""] = there.split("/");
    const found = readdirSync(join(home, top), { recursive: true }).filter((path) =>
      String(path).endsWith(".gitignore"),
    );
    assert.deepEqual(
      found.map((path) => join(top, String(path))),
      ignored === null ? [] : [join(ignored, ".gitignore")],
    );
    if (ignored === null) return;
    assert.equal(statSync(join(home, data)).mode & 0o777, 0o700);
    const git = (...args: string[]): string => execFileSync("git", args, { cwd: join(home, top), encoding: "utf8" });
    git("init", "--quiet");
    assert.equal(git("status", "--porcelain"), "");
    assert.ok(existsSync(join(home, data)));
  });

test("a restored copy keeps its owner's files from others, and the public half of the key for everybody", () => {
  const data = join(home, "restored");
  mkdirSync(data);
  const own = ["attempt-key", "drover.db", "drover.db-wal", "owner.pid", "signing-key.pem", "snapshot-7.ndjson"];
  for (const name of [...own, "signing-key.pub.pem"]) writeFileSync(join(data, name), "", { mode: 0o644 });
  keepPrivate(data);
  const others = readdirSync(data).filter((name) => (statSync(join(data, name)).mode & 0o077) !== 0);
  assert.deepEqual(others, ["signing-key.pub.pem"]);
});

test("where no directory can be made it says so, and does not try for ever", () => {
  assert.throws(() => makeOwnDirectory("/proc/drover/data"), { code: "ENOENT" });
  makeOwnDirectory(join(home, "f"));
  assert.throws(() => makeOwnDirectory(join(home, "f", ".gitignore")), { code: "EEXIST" });
  assert.throws(() => makeOwnDirectory(join(home, "f", ".gitignore", "data")), { code: "ENOTDIR" });
});
