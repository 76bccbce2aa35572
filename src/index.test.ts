import assert from "node:assert/strict";
import { test } from "node:test";
import * as engine from "./engine/index.ts";
import * as drover from "./index.ts";

test("the front door has the client, and all of the engine", () => {
  assert.equal(typeof drover.createClient, "function");
  assert.equal(typeof drover.ClientError, "function");
  const told = Object.entries(drover);
  for (const [name, value] of Object.entries(engine))
    assert.ok(
      told.some(([key, given]) => key === name && given === value),
      name,
    );
});

test("what goes over the wire has its types there", () => {
  const body: drover.wire.TaskBody = { agentId: "ann", action: "build" };
  assert.equal(body.agentId, "ann");
});
