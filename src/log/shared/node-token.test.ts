/**
 * A token lets a node in at one other, in one process of that, for a minute; whatever date either of them has.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createHandClock } from "../../std/hand-clock.ts";
import { createNodeDoor, nodeToken } from "./node-token.ts";

const secret = "5".repeat(64);

function world() {
  const clock = createHandClock({ at: 1_767_225_600_000 });
  const door = (self = "b", of = secret) => createNodeDoor({ secret: of, self, clock });
  return { clock, door };
}

test("a token is good where it was made for, for a minute, and neither before nor after", async () => {
  const { clock, door } = world();
  const own = door();
  const [process, at] = own.moment().split("-") as [string, string];
  const token = nodeToken(secret, "a", { node: "b", moment: own.moment() });
  assert.ok(own.isOpenedBy(token));
  assert.ok(!door().isOpenedBy(token), "another process");
  assert.ok(!own.isOpenedBy(nodeToken(secret, "a", { node: "c", moment: own.moment() })), "another node");
  assert.ok(!own.isOpenedBy(nodeToken("6".repeat(64), "a", { node: "b", moment: own.moment() })), "another secret");
  const ahead = nodeToken(secret, "a", { node: "b", moment: `${process}-${Number(at) + 1}` });
  assert.ok(!own.isOpenedBy(ahead), "it was never given");
  await clock.advance(60_000);
  assert.ok(own.isOpenedBy(token));
  await clock.advance(1);
  assert.ok(!own.isOpenedBy(token));
});

test("a date that is set changes nothing", () => {
  const { clock, door } = world();
  const own = door();
  const token = nodeToken(secret, "a", { node: "b", moment: own.moment() });
  clock.setWall(clock.now() + 172_800_000);
  assert.ok(own.isOpenedBy(token));
  clock.setWall(0);
  assert.ok(own.isOpenedBy(token));
});

test("what is no token opens nothing", () => {
  const own = world().door();
  const token = nodeToken(secret, "a", { node: "b", moment: own.moment() });
  for (const bad of ["", "node.", "node..", token.slice(1), `${token}0`, token.replace(/.$/, "g"), token.toUpperCase()])
    assert.ok(!own.isOpenedBy(bad), bad);
  for (const moment of ["", "-", "0", own.moment().slice(1), `${own.moment()}x`])
    assert.ok(!own.isOpenedBy(nodeToken(secret, "a", { node: "b", moment })), moment);
});
