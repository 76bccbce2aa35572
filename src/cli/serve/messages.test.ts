/**
 * What `drover serve` says when it ends.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { afterFailure } from "./messages.ts";

test("that nothing is lost is not said where histories differ", () => {
  const log = { kind: "memory" } as const;
  assert.match(afterFailure("io", log), /^nothing that was acknowledged is lost; start it again/);
  assert.match(afterFailure(undefined, log), /^nothing that was acknowledged is lost/);
  assert.doesNotMatch(afterFailure("diverged", log), /nothing that was acknowledged|start it again/);
  assert.match(afterFailure("diverged", log), /change neither before you know which/);
});
