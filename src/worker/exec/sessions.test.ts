import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { createSessions } from "./sessions.ts";

const home = mkdtempSync(join(tmpdir(), "drover-sessions-"));
after(() => rmSync(home, { recursive: true, force: true }));

test("a session is remembered for its task, by the tool that opened it, until it is forgotten", () => {
  const directory = join(home, "a");
  const claude = createSessions(directory, "claude");
  assert.equal(claude.of("t/1"), undefined);
  claude.note("t/1", "s-1");
  claude.note("t/1", "s-2");
  assert.equal(createSessions(directory, "claude").of("t/1"), "s-2");
  assert.equal(createSessions(directory, "codex").of("t/1"), undefined);
  assert.equal(claude.of("t/2"), undefined);
  claude.forget("t/1");
  claude.forget("t/1");
  assert.equal(claude.of("t/1"), undefined);
  claude.note("t/1", "s-2");
  assert.equal(claude.of("t/1"), "s-2");
});

test("what could be taken for an option, or is no session at all, is not kept", () => {
  const sessions = createSessions(join(home, "b"), "claude");
  for (const id of ["", "--help", "-x", "a b", "a\nb", "x".repeat(300), "../up"]) sessions.note("t", id);
  assert.equal(sessions.of("t"), undefined);
  sessions.note("t", "good");
  for (const text of ["", "{", "null", '{"sessionId":"--help","tool":"claude"}']) {
    writeFileSync(join(home, "b", "t.json"), text);
    assert.equal(sessions.of("t"), undefined, text);
  }
});

test("old sessions go", () => {
  const directory = join(home, "c");
  const sessions = createSessions(directory, "claude");
  const day = 24 * 3_600_000;
  for (const [task, age] of [
    ["old", 31],
    ["young", 29],
  ] as const) {
    sessions.note(task, "s");
    utimesSync(join(directory, `${task}.json`), (100 - age) * (day / 1000), (100 - age) * (day / 1000));
  }
  sessions.prune(100 * day);
  assert.deepEqual(readdirSync(directory), ["young.json"]);
  createSessions(join(home, "none"), "claude").prune(0);
});
