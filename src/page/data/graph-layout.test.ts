import assert from "node:assert/strict";
import { test } from "node:test";
import { type Drawn, draw, HEIGHT, WIDTH } from "./graph-layout.ts";

/** Instants of a curve at which it is looked at. */
const LOOKS = Array.from({ length: 41 }, (_, index) => index / 40);

/** Points along a path of M, C and H. */
function pointsOf(path: string): [x: number, y: number][] {
  const points: [number, number][] = [];
  let [x, y] = [0, 0];
  for (const [, letter, text = ""] of path.matchAll(/([MCH])([^MCH]*)/g)) {
    const numbers = text.trim().split(/[ ,]+/).map(Number);
    if (letter === "M") [x, y] = numbers as [number, number];
    else if (letter === "H") {
      const [from, to = x] = [x, ...numbers];
      for (const part of LOOKS) points.push([from + (to - from) * part, y]);
      x = to;
    } else {
      const [x1 = 0, y1 = 0, x2 = 0, y2 = 0, x3 = 0, y3 = 0] = numbers;
      const at = (t: number, [a, b, c, d]: readonly [number, number, number, number]): number =>
        (1 - t) ** 3 * a + 3 * (1 - t) ** 2 * t * b + 3 * (1 - t) * t ** 2 * c + t ** 3 * d;
      for (const part of LOOKS) points.push([at(part, [x, x1, x2, x3]), at(part, [y, y1, y2, y3])]);
      [x, y] = [x3, y3];
    }
  }
  return points;
}

/** What a line crosses besides its own ends. */
const behind = ({ places, edges }: Drawn): string[] =>
  edges.flatMap(({ from, to, path }) =>
    [...places]
      .filter(([id]) => id !== from && id !== to)
      .filter(([, { x, y }]) =>
        pointsOf(path).some(([px, py]) => Math.abs(px - x) < WIDTH / 2 && Math.abs(py - y) < HEIGHT / 2),
      )
      .map(([id]) => `${from} to ${to} behind ${id}`),
  );

const chain = [
  { id: "plan", after: [] },
  { id: "spec", after: ["plan"] },
  { id: "api", after: ["spec"] },
  { id: "more", after: ["api"] },
  { id: "page", after: ["spec", "more"] },
  { id: "end", after: ["page", "plan", "api", "elsewhere"] },
];

test("a line that passes over tasks runs beside them, and within the drawing", () => {
  const drawn = draw(chain);
  assert.deepEqual(behind(drawn), []);
  assert.deepEqual(drawn.edges.map(({ from, to }) => `${from} ${to}`).sort(), [
    "api end",
    "api more",
    "more page",
    "page end",
    "plan end",
    "plan spec",
    "spec api",
    "spec page",
  ]);
  const heights = drawn.edges.flatMap(({ path }) => pointsOf(path).map(([, y]) => y));
  assert.ok(Math.min(...heights) > drawn.top, "no line runs out above");
  assert.ok(Math.max(...heights) < drawn.top + drawn.height, "nor below");
  for (const { y } of drawn.places.values()) assert.ok(y - HEIGHT / 2 > drawn.top);
});
