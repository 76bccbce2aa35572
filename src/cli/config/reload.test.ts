/**
 * A config is exchanged as a whole or not at all, and in order.
 */
import assert from "node:assert/strict";
import { basename, dirname } from "node:path";
import { test } from "node:test";
import { testTerminal } from "../../../test/kits/cli/test-terminal.ts";
import { BadConfig } from "./problem.ts";
import { keepReloading } from "./reload.ts";

type Config = { readonly given: number; readonly files: readonly string[] };

async function play() {
  const terminal = testTerminal();
  const said: string[] = [];
  const applied: number[] = [];
  const file = { text: "1", fail: false };
  let change = (): void => {};
  const load = (): Config => {
    if (file.text === "bad") throw new BadConfig([{ message: "drover.yml:1:1: bad", origin: null }]);
    return { given: Number(file.text), files: ["/a/drover.yml"] };
  };
  const hooks = {
    load,
    apply: async ({ given }: Config) => {
      await null;
      if (file.fail) throw new Error("the log cannot be written");
      applied.push(given);
    },
    say: (message: string) => said.push(message),
    complain: assert.fail,
    alarm: (message: string) => said.push(`! ${message}`),
  };
  const reloading = keepReloading(load(), hooks, terminal, {
    watchDirectory: (_, onChange) => {
      change = () => onChange("drover.yml");
      return () => {};
    },
    setTimer: (run) => {
      run();
      return () => {};
    },
    wayTo: (path) => [{ directory: dirname(path), name: basename(path) }],
  });
  await reloading.settled();
  return { terminal, said, applied, file, change: () => change(), ...reloading };
}

test("a changed file is put in force", async () => {
  const { file, change, settled, applied, said } = await play();
  file.text = "2";
  change();
  await settled();
  assert.deepEqual([applied, said], [[2], ["the config has changed and is in force"]]);
});

test("a bad file leaves the old config in force, and says so", async () => {
  const { file, change, settled, applied, said } = await play();
  file.text = "bad";
  change();
  await settled();
  const complaint = "! the new config is not taken, the old one stays in force\ndrover.yml:1:1: bad";
  assert.deepEqual([applied, said], [[], [complaint]]);
  file.text = "3";
  change();
  await settled();
  assert.deepEqual(applied, [3]);
});

test("a file that says the same as before it was bad is good again, once", async () => {
  const { file, change, settled, applied, said } = await play();
  for (const text of ["bad", "1", "1"]) {
    file.text = text;
    change();
    await settled();
  }
  assert.deepEqual([applied, said.slice(1)], [[], ["the config is good again; nothing in it has changed"]]);
});

test("a config the server refuses is tried again when the file is saved again", async () => {
  const { file, change, settled, applied, said } = await play();
  file.text = "2";
  file.fail = true;
  change();
  await settled();
  assert.match(said[0] ?? "", /^! .*\nthe log cannot be written$/);
  file.fail = false;
  change();
  await settled();
  assert.deepEqual(applied, [2]);
});

test("a save without a change is no news, except to who asked by SIGHUP", async () => {
  const { change, settled, said, terminal } = await play();
  change();
  await settled();
  assert.deepEqual(said, []);
  terminal.signal("SIGHUP");
  await settled();
  assert.deepEqual(said, ["the config has not changed"]);
});

test("two quick changes are applied in their order", async () => {
  const { file, change, settled, applied } = await play();
  file.text = "2";
  change();
  await null;
  file.text = "3";
  change();
  await settled();
  assert.deepEqual(applied, [2, 3]);
});

test("a change that is taken back is a change too", async () => {
  const { file, change, settled, applied } = await play();
  for (const text of ["2", "1"]) {
    file.text = text;
    change();
    await settled();
  }
  assert.deepEqual(applied, [2, 1]);
});

test("asked for by a caller, it is read in its turn, and what is wrong with it is for that caller", async () => {
  const { file, change, settled, applied, said, now, terminal } = await play();
  file.text = "2";
  change();
  await now();
  assert.deepEqual(applied, [2]);
  file.text = "3";
  await now();
  file.text = "1";
  terminal.signal("SIGHUP");
  await settled();
  assert.deepEqual(applied, [2, 3, 1]);
  file.text = "bad";
  const heard = said.length;
  await assert.rejects(now(), /drover\.yml:1:1: bad/);
  await settled();
  assert.equal(said.length, heard);
});

test("what changed while the server started is noticed", async () => {
  const applied: number[] = [];
  const hooks = {
    load: (): Config => ({ given: 2, files: [] }),
    apply: async ({ given }: Config) => void applied.push(given),
    ...{ say: () => {}, complain: assert.fail, alarm: assert.fail },
  };
  const reloading = keepReloading({ given: 1, files: [] }, hooks, testTerminal());
  await reloading.settled();
  reloading.stop();
  assert.deepEqual(applied, [2]);
});

test("stopped, it hears nothing more", async () => {
  const { file, stop, settled, applied, terminal } = await play();
  stop();
  file.text = "2";
  terminal.signal("SIGHUP");
  await settled();
  assert.deepEqual(applied, []);
});
