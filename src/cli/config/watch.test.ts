/**
 * A changed file is noticed once per burst, whichever way it was changed.
 *
 * The directory and the timer are played by hand; one test at the end asks the real file system.
 */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { describe, test } from "node:test";
import { realWorld, type Station, type WatchWorld, watchFiles, wayTo } from "./watch.ts";

const stationOf = (path: string): Station => ({ directory: dirname(path), name: basename(path) });

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
      const own = { change, error };
      watchers.set(directory, own);
      // The next watch on a directory is made before this one goes.
      return () => (watchers.get(directory) === own ? void watchers.delete(directory) : undefined);
    },
    setTimer: (run) => {
      timers.add(run);
      return () => void timers.delete(run);
    },
    wayTo: (file) => {
      const target = links.get(file);
      return [file, ...(target === undefined ? [] : [target])].map(stationOf);
    },
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

test("a watch that cannot be had is complained of once", () => {
  const warnings: string[] = [];
  let change: () => void = () => {};
  const world: WatchWorld = {
    watchDirectory: (directory, onChange) => {
      if (directory === "/b") throw new Error("too many watches");
      change = () => onChange("drover.yml");
      return () => {};
    },
    setTimer: (run) => {
      run();
      return () => {};
    },
    wayTo: (file) => [stationOf(file)],
  };
  const hooks = { onChange: () => {}, onWarning: (message: string) => warnings.push(message) };
  watchFiles(["/a/drover.yml", "/b/drover.yml"], hooks, world);
  for (let round = 0; round < 3; round++) change();
  assert.equal(warnings.length, 1);
});

describe("the real file system", () => {
  function watched(file: string): Disposable & { readonly after: (change: () => void) => Promise<void> } {
    let next = Promise.withResolvers<void>();
    const hooks = { onChange: () => next.resolve(), onWarning: assert.fail };
    const world = { ...realWorld, setTimer: (run: () => void) => realWorld.setTimer(run, 1) };
    const watch = watchFiles([file], hooks, world);
    // The watch alone keeps no process alive, which is right for a server and wrong for a test that waits for it.
    const alive = setInterval(() => {}, 1000);
    return {
      after: (change) => {
        next = Promise.withResolvers();
        change();
        return next.promise;
      },
      [Symbol.dispose]: () => {
        clearInterval(alive);
        watch.stop();
      },
    };
  }

  function place(): Disposable & { readonly at: (...names: string[]) => string } {
    const directory = realpathSync(mkdtempSync(join(tmpdir(), "drover-watch-")));
    return {
      at: (...names) => join(directory, ...names),
      [Symbol.dispose]: () => rmSync(directory, { recursive: true, force: true }),
    };
  }

  const swapLink = (link: string, target: string): void => {
    symlinkSync(target, `${link}.new`);
    renameSync(`${link}.new`, link);
  };
  const LIMIT = { timeout: 60_000 };

  test("a file is written, renamed into place, removed, and there again", LIMIT, async () => {
    using files = place();
    using watch = watched(files.at("drover.yml"));
    await watch.after(() => writeFileSync(files.at("drover.yml"), "a: 1"));
    writeFileSync(files.at("new"), "a: 2");
    await watch.after(() => renameSync(files.at("new"), files.at("drover.yml")));
    await watch.after(() => rmSync(files.at("drover.yml")));
    await watch.after(() => writeFileSync(files.at("drover.yml"), "a: 3"));
  });

  for (const [name, inner] of [
    ["..data", ""],
    ["current", "conf"],
  ] as const) {
    test(`the link ${name} is swapped, again and again, as a mounted config map does`, LIMIT, async () => {
      using files = place();
      for (const version of ["v1", "v2", "v3"]) {
        mkdirSync(files.at(version, inner), { recursive: true });
        writeFileSync(files.at(version, inner, "drover.yml"), version);
      }
      symlinkSync("v1", files.at(name));
      symlinkSync(join(name, inner, "drover.yml"), files.at("drover.yml"));
      using watch = watched(files.at("drover.yml"));
      await watch.after(() => swapLink(files.at(name), "v2"));
      rmSync(files.at("v1"), { recursive: true });
      await watch.after(() => swapLink(files.at(name), "v3"));
      await watch.after(() => writeFileSync(files.at("v3", inner, "drover.yml"), "in place"));
    });
  }

  test("the directory is reached by a link that is swapped", LIMIT, async () => {
    using files = place();
    for (const version of ["v1", "v2"]) mkdirSync(files.at(version));
    symlinkSync(files.at("v1"), files.at("live"));
    using watch = watched(files.at("live", "drover.yml"));
    await watch.after(() => swapLink(files.at("live"), files.at("v2")));
    await watch.after(() => writeFileSync(files.at("v2", "drover.yml"), "a: 1"));
  });

  test("the directories around it are removed, and made again", LIMIT, async () => {
    using files = place();
    const file = files.at("a", "b", "drover.yml");
    mkdirSync(files.at("a", "b"), { recursive: true });
    writeFileSync(file, "a: 1");
    using watch = watched(file);
    for (let round = 0; round < 2; round++) {
      await watch.after(() => rmSync(files.at("a"), { recursive: true }));
      await watch.after(() => mkdirSync(files.at("a")));
      await watch.after(() => mkdirSync(files.at("a", "b")));
      await watch.after(() => writeFileSync(file, "a: 2"));
    }
  });

  test("another directory is put in the place of its own", LIMIT, async () => {
    using files = place();
    for (const name of ["live", "next"]) {
      mkdirSync(files.at(name));
      writeFileSync(files.at(name, "drover.yml"), name);
    }
    using watch = watched(files.at("live", "drover.yml"));
    await watch.after(() => {
      renameSync(files.at("live"), files.at("old"));
      renameSync(files.at("next"), files.at("live"));
    });
    await watch.after(() => writeFileSync(files.at("live", "drover.yml"), "in place"));
  });
});

describe("the way to a file", () => {
  test("ends at the first name that is missing, and at a loop", () => {
    const directory = realpathSync(mkdtempSync(join(tmpdir(), "drover-way-")));
    try {
      const shown = (file: string): string[] => wayTo(file).map(({ directory: at, name }) => join(at, name));
      assert.deepEqual(shown(join(directory, "x", "y", "drover.yml")), [directory, join(directory, "x")]);
      symlinkSync("loop", join(directory, "loop"));
      assert.ok(shown(join(directory, "loop")).includes(join(directory, "loop")));
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});
