import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { until } from "../../../test/kits/waits.ts";
import { nextTurn } from "../../std/clock.ts";
import { createPump } from "./pump.ts";

const linesIn = (piece: Buffer): number => piece.toString().split("\n").length - 1;

function pumped(onPiece: (lines: number) => void = () => {}) {
  const stream = new PassThrough();
  const pieces: Buffer[] = [];
  const pump = createPump(stream, (piece) => {
    pieces.push(piece);
    onPiece(linesIn(piece));
  });
  return { stream, pump, lines: () => pieces.map(linesIn), text: () => Buffer.concat(pieces).toString() };
}
type Pumped = ReturnType<typeof pumped>;

const untilCame = ({ lines }: Pumped, pieces: number): Promise<void> =>
  until(`${pieces} pieces`, () => lines().length >= pieces);

test("a chunk of few lines is handed on at once and whole, with a line that has no end", async () => {
  const one = pumped();
  one.stream.write("a\nb\nc");
  await untilCame(one, 1);
  assert.deepEqual(one.text(), "a\nb\nc");
  await one.pump.drained();
});

test("many lines come in slices, and the pipe is not read meanwhile", async () => {
  const one = pumped();
  const text = `${"y\n".repeat(1000)}end`;
  one.stream.write(text);
  await untilCame(one, 1);
  assert.deepEqual(one.lines(), [256]);
  assert.equal(one.stream.isPaused(), true);
  await one.pump.drained();
  assert.deepEqual(one.lines(), [256, 256, 256, 232]);
  assert.equal(one.text(), text);
  assert.equal(one.stream.isPaused(), false);
});

test("in one turn of the event loop one pump hands on one slice, and they take turns", async () => {
  const seen: string[] = [];
  const pumps = ["a", "b"].map((name) => pumped((lines) => seen.push(`${name}${lines}`)));
  for (const { stream } of pumps) stream.write("y\n".repeat(768));
  for (const one of pumps) await untilCame(one, 1);
  assert.deepEqual(seen.slice(0, 2), ["a256", "b256"], "the first at once");
  for (let slices = 3; slices <= 6; slices++) {
    await until(`${slices} slices`, () => seen.length >= slices);
    assert.equal(seen.length, slices, "one slice a turn");
  }
  assert.deepEqual(seen.slice(2), ["a256", "b256", "a256", "b256"]);
});

test("what comes though the pipe is paused keeps its place, and an end hands on all of it", async () => {
  const one = pumped();
  const text = `${"1\n".repeat(600)}${"2\n".repeat(600)}`;
  one.stream.write(text.slice(0, 1200));
  await untilCame(one, 1);
  // As Node does when a child has exited.
  one.stream.emit("data", Buffer.from(text.slice(1200)));
  one.pump.end();
  assert.equal(one.text(), text);
  await one.pump.drained();
  await nextTurn();
  assert.equal(one.text(), text);
});
