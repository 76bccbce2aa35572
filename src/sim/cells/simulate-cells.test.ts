/**
 * Cells: where projects go, what moves when cells come and go, and how long nobody decides.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { createRandom } from "../chance/random.ts";
import { movesBetween, playMoves } from "./moves.ts";
import { playYear } from "./outages.ts";
import { best, type Project, place } from "./placement.ts";
import { simulateCells } from "./simulate-cells.ts";

const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index);
const projects = fc
  .array(fc.integer({ min: 1, max: 20 }), { minLength: 1, maxLength: 200 })
  .map((loads): Project[] => loads.map((load, id) => ({ id, load })));

test("law: a cell has at most the limit times the mean, where no project is larger than what is left", () => {
  fc.assert(
    fc.property(projects, fc.integer({ min: 1, max: 12 }), (all, count) => {
      const mean = all.reduce((sum, { load }) => sum + load, 0) / count;
      const largest = Math.max(...all.map(({ load }) => load));
      const limit = 1 + largest / mean;
      const { loads, cells } = place({ projects: all, cells: upTo(count), limit });
      assert.equal(cells.length, all.length);
      for (const load of loads.values()) assert.ok(load <= limit * mean + 1e-9, `${load} of ${limit * mean}`);
      const placed = upTo(count).map((cell) =>
        all.reduce((sum, { load }, at) => sum + (cells[at] === cell ? load : 0), 0),
      );
      assert.deepEqual(
        placed,
        upTo(count).map((cell) => loads.get(cell)),
      );
    }),
  );
});

test("law: when a cell comes, only what it gets moves; when one goes, only what it had", () => {
  fc.assert(
    fc.property(fc.nat(1_000_000), fc.integer({ min: 1, max: 20 }), (id, count) => {
      const [before, after] = [best(id, upTo(count)), best(id, upTo(count + 1))];
      assert.ok(after === before || after === count);
    }),
  );
});

test("a thousand projects on ten cells: each has a tenth, give or take", () => {
  const counts = upTo(10).map((cell) => upTo(1000).filter((id) => best(id, upTo(10)) === cell).length);
  for (const count of counts) assert.ok(count > 70 && count < 130, String(counts));
});

test("moves of one cell wait for each other, others do not", () => {
  const input = { random: createRandom(1), perCell: 1, taskSeconds: 0, queuedSeconds: 1, givenPerSecond: 1 };
  const move = (from: number, to: number) => ({ from, to, load: 10 });
  assert.deepEqual(playMoves({ ...input, moves: [move(0, 1), move(2, 3)] }).seconds, 10);
  assert.deepEqual(playMoves({ ...input, moves: [move(0, 1), move(0, 2)] }).seconds, 20);
  assert.deepEqual(playMoves({ ...input, perCell: 2, moves: [move(0, 1), move(0, 2)] }).seconds, 10);
  const all = upTo(5).map((id): Project => ({ id, load: 1 }));
  const same = place({ projects: all, cells: upTo(3), limit: 9 });
  assert.deepEqual(movesBetween(all, same, same), []);
});

test("a cell is away for each leader that is lost, and for as long as two of three machines are", () => {
  const input = { cells: 20, leaderLostMs: 1000, handOverMs: 10, upgrades: 2 };
  const calm = playYear({ ...input, random: createRandom(1), betweenHours: 1e9, awayHours: 1 });
  assert.deepEqual([calm.machinesLost, calm.atOnce, calm.awayMs[0]], [0, 0, 20]);
  const brief = playYear({ ...input, random: createRandom(2), betweenHours: 1000, awayHours: 1e-9 });
  assert.ok(brief.leadersLost > 0 && brief.majoritiesLost === 0);
  const away = brief.awayMs.reduce((sum, ms) => sum + ms, 0);
  assert.equal(Math.round(away), brief.leadersLost * 1000 + 20 * 20);
  const rough = playYear({ ...input, random: createRandom(3), betweenHours: 100, awayHours: 100 });
  // Each machine is there half of the time, and so are two of three.
  const share = rough.awayMs.reduce((sum, ms) => sum + ms, 0) / (20 * 365 * 24 * 3_600_000);
  assert.ok(share > 0.45 && share < 0.55, String(share));
});

test("the same seed gives the same figures, another gives others", () => {
  const input = { seed: 5, cells: 20, projects: 500, rate: 1000 };
  assert.deepEqual(simulateCells(input), simulateCells(input));
  assert.notDeepEqual(simulateCells(input).plain, simulateCells({ ...input, seed: 6 }).plain);
});
