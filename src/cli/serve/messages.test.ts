/**
 * What `drover serve` says at its start and at its end.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { loadSettings } from "../config/load.ts";
import { afterFailure, welcome } from "./messages.ts";

test("where no worker comes along, a first command is tried with one of one's own", () => {
  const config = loadSettings({ env: {}, cwd: "/", home: "/", configFile: undefined, sets: [], flags: [] });
  const said = (runs: boolean): string => {
    const facts = { url: "http://127.0.0.1:4800", log: { kind: "memory" }, config, cwd: "/" } as const;
    return welcome({ ...facts, worker: { describe: () => "a word of it", runs } }, (_, text) => text);
  };
  for (const runs of [true, false]) assert.match(said(runs), /worker {2}a word of it\n.*Try it.*"echo hello"/s);
  assert.doesNotMatch(said(true), /worker --commands/);
  assert.match(said(false), /waits for a worker:\n .*drover.* worker --commands --url http:\S+:4800\n/);
});

test("that nothing is lost is not said where histories differ", () => {
  const log = { kind: "memory" } as const;
  assert.match(afterFailure("io", log), /^nothing that was acknowledged is lost; start it again/);
  assert.match(afterFailure(undefined, log), /^nothing that was acknowledged is lost/);
  assert.doesNotMatch(afterFailure("diverged", log), /nothing that was acknowledged|start it again/);
  assert.match(afterFailure("diverged", log), /change neither before you know which/);
});
