/**
 * A URL names a log, or is refused in a sentence that does not repeat it.
 */
import assert from "node:assert/strict";
import { resolve } from "node:path";
import { test } from "node:test";
import { failsWith } from "../contract/vocabulary.ts";
import { openJournal, openLogByUrl, placeOf } from "./by-url.ts";

test("each kind of log has its scheme", () => {
  assert.deepEqual(placeOf("memory:"), { kind: "memory" });
  assert.deepEqual(placeOf("sqlite:.drover"), { kind: "sqlite", directory: resolve(".drover") });
  assert.deepEqual(placeOf("sqlite:.drover/drover.db"), { kind: "sqlite", directory: resolve(".drover") });
  assert.deepEqual(placeOf("sqlite:///var/lib/drover"), { kind: "sqlite", directory: "/var/lib/drover" });
  assert.deepEqual(placeOf("postgres://h/d"), { kind: "postgres" });
  assert.deepEqual(placeOf("postgresql://h/d"), { kind: "postgres" });
  assert.deepEqual(placeOf("etcd://h1,h2/p"), { kind: "etcd" });
});

test("what names no log is refused, and not repeated: a password may be in it", () => {
  for (const url of ["", "sqlite:", "mysql://ann:hunter2@h/d", "hunter2", "memory:x", "POSTGRES://ann:hunter2@h/d"])
    assert.throws(
      () => placeOf(url),
      (error) => failsWith("refused")(error) && !String(error).includes("hunter2") && /sqlite:PATH/.test(String(error)),
    );
});

test("a log in memory opens by its URL; one that is no journal is refused as such", async () => {
  await using log = await openLogByUrl("memory:");
  assert.equal((await log.head()).seq, 0);
  await assert.rejects(openJournal("memory:"), failsWith("refused"));
});
