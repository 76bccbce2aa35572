/**
 * A changed file is noticed once per burst, whichever way it was changed.
 *
 * The directory and the timer are played by hand; one test at the end asks the real file system.
 */
import assert from "node:assert/strict";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { realWorld, type WatchWorld, watchFiles } from "./config-watch.ts";

type Played = {
  readonly changes: () => number;
  readonly warnings: string[];
  readonly touch: (directory: string, name: string | null) => void;
  readonly pass: () => void;
  readonly timers: () => number;
  readonly watched: () => string[];
  readonly fail: (directory: string, error: Error) => void;
  readonly links: Map<string, string>;
  readonly stop: () => void;
};

function play(files: string[], missing: ReadonlySet<string> = new Set()): Played {
  const watchers = new Map<string, { change: (name: string | null) => void; error: (error: Error) => void }>();
  const timers = new Set<() => void>();
  const warnings: string[] = [];
  const links = new Map<string, string>();
  let changes = 0;
  const world: WatchWorld = {
    watchDirectory: (directory, change, error) => {
      if (missing.has(directory)) throw Object.assign(new Error("no such directory"), { code: "ENOENT" });
      watchers.set(directory, { change, error });
      return () => void watchers.delete(directory);
    },
    setTimer: (run) => {
      timers.add(run);
      return () => void timers.delete(run);
    },
    realPath: (file) => links.get(file) ?? file,
  };
  const watch = watchFiles(
    files,
    {
      onChange: () => {
        changes++;
      },
      onWarning: (message) => warnings.push(message),
    },
    world,
  );
  return {
    ...{ warnings, links, stop: watch.stop },
    changes: () => changes,
    touch: (directory, name) => watchers.get(directory)?.change(name),
    pass: () => {
      for (const run of [...timers]) {
        timers.delete(run);
        run();
      }
    },
    timers: () => timers.size,
    watched: () => [...watchers.keys()].sort(),
    fail: (directory, error) => watchers.get(directory)?.error(error),
  };
}

describe("a watch", () => {
  test("calls once for a burst, after it has gone quiet", () => {
    const watch = play(["/a/drover.yml"]);
    for (const name of ["drover.yml", "drover.yml", "drover.yml"]) watch.touch("/a", name);
    assert.deepEqual([watch.changes(), watch.timers()], [0, 1]);
    watch.pass();
    assert.equal(watch.changes(), 1);
    watch.touch("/a", "drover.yml");
    watch.pass();
    assert.equal(watch.changes(), 2);
  });
  test("does not mind its neighbours", () => {
    const watch = play(["/a/drover.yml"]);
    for (const name of ["drover.db", ".drover.yml.swp", "4913"]) watch.touch("/a", name);
    assert.equal(watch.timers(), 0);
  });
  test("takes a change without a name for one of its own", () => {
    const watch = play(["/a/drover.yml"]);
    watch.touch("/a", null);
    assert.equal(watch.timers(), 1);
  });
  test("hears the swap of a link in the directory", () => {
    const watch = play(["/etc/d/drover.yml"]);
    watch.touch("/etc/d", "..data");
    assert.equal(watch.timers(), 1);
  });
  test("watches where a link leads, also when it leads elsewhere later", () => {
    const watch = play(["/a/drover.yml"]);
    watch.links.set("/a/drover.yml", "/b/real.yml");
    watch.touch("/a", "drover.yml");
    watch.pass();
    assert.deepEqual(watch.watched(), ["/a", "/b"]);
    watch.touch("/b", "real.yml");
    watch.pass();
    assert.equal(watch.changes(), 2);
  });
  test("a directory that is not there is no matter, and is watched once it is", () => {
    const missing = new Set(["/user"]);
    const watch = play(["/user/drover.yml", "/a/drover.yml"], missing);
    assert.deepEqual([watch.watched(), watch.warnings], [["/a"], []]);
    missing.clear();
    watch.touch("/a", "drover.yml");
    watch.pass();
    assert.deepEqual(watch.watched(), ["/a", "/user"]);
  });
  test("that breaks says what to do instead, and goes on with the others", () => {
    const watch = play(["/a/drover.yml", "/b/drover.yml"]);
    watch.fail("/a", new Error("too many watches"));
    assert.deepEqual(watch.warnings, ["changes in /a are not noticed: too many watches; send SIGHUP instead"]);
    assert.deepEqual(watch.watched(), ["/b"]);
  });
  test("stopped is silent, also in the middle of a burst, and twice", () => {
    const watch = play(["/a/drover.yml"]);
    watch.touch("/a", "drover.yml");
    watch.stop();
    watch.stop();
    assert.deepEqual([watch.timers(), watch.watched()], [0, []]);
  });
});

test("the real file system: written in place, and renamed into place", { timeout: 60_000 }, async () => {
  const directory = mkdtempSync(join(tmpdir(), "drover-watch-"));
  const file = join(directory, "drover.yml");
  let next = Promise.withResolvers<void>();
  const hooks = { onChange: () => next.resolve(), onWarning: assert.fail };
  const world = { ...realWorld, setTimer: (run: () => void) => realWorld.setTimer(run, 1) };
  const watch = watchFiles([file], hooks, world);
  // The watch alone keeps no process alive, which is right for a server and wrong for a test that waits for it.
  const alive = setInterval(() => {}, 1000);
  try {
    writeFileSync(file, "a: 1");
    await next.promise;
    next = Promise.withResolvers();
    writeFileSync(join(directory, "new"), "a: 2");
    renameSync(join(directory, "new"), file);
    await next.promise;
  } finally {
    clearInterval(alive);
    watch.stop();
    rmSync(directory, { recursive: true, force: true });
  }
});
