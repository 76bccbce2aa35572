/**
 * Every knob binds: the same story under two settings of one knob ends in two ways.
 *
 * The table is keyed by the knob's path. A field of the config without a row fails the test, and so does a row that
 * sees the same whatever its knob is set to: a limit that is parsed and never used is the oldest trap there is.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { DEFAULT_CONFIG } from "../src/core/config/config.ts";
import { type Knob, rowsOfGates, rowsOfProjects } from "./kits/knobs/gates-and-projects.ts";
import { rowsOfQueue } from "./kits/knobs/queue.ts";
import { openStory } from "./kits/knobs/story.ts";
import { rowsOfTurn } from "./kits/knobs/turn.ts";

const KNOBS: Readonly<Record<string, Knob>> = { ...rowsOfQueue, ...rowsOfTurn, ...rowsOfProjects, ...rowsOfGates };

const isSection = (value: unknown): value is object =>
  typeof value === "object" && value !== null && Object.keys(value).length > 0;
const leavesOf = (value: unknown, path: string): string[] =>
  isSection(value)
    ? Object.entries(value).flatMap(([key, inner]) => leavesOf(inner, path === "" ? key : `${path}.${key}`))
    : [path];

test("W2 every knob has a row, and every row a knob", () => {
  assert.deepEqual(Object.keys(KNOBS).sort(), leavesOf(DEFAULT_CONFIG, "").sort());
});

for (const [path, { base = {}, cases, tell }] of Object.entries(KNOBS))
  test(`${path} binds`, async () => {
    const first = cases[0]?.[1];
    assert.ok(
      cases.some(([, seen]) => !isDeepStrictEqual(seen, first)),
      "its row tells two settings apart",
    );
    for (const [value, expected] of cases) {
      const kit = await openStory(path, value, base);
      assert.deepEqual(await tell(kit), expected, `${path} = ${JSON.stringify(value)}`);
      // Handlers of these stories never end by themselves: they are given up after their grace.
      const closed = kit.drover.close();
      await kit.clock.advance(kit.drover.state.config.workers.killGrace);
      await closed;
    }
  });
