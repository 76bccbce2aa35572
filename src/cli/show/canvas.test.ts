/**
 * A picture that is drawn over itself: what is seen is what was meant, and it is written seldom.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { seen } from "../../../test/kits/cli/seen-lines.ts";
import { createHandClock } from "../../std/index.ts";
import { createCanvas } from "./canvas.ts";

function stage() {
  const clock = createHandClock({ at: 0 });
  const written: string[] = [];
  const terminal = { out: (text: string): void => void written.push(text), width: 80 };
  let lines: readonly string[] = [];
  const canvas = createCanvas({ terminal, clock, picture: () => lines });
  return {
    ...{ canvas, clock, written, terminal },
    show(next: readonly string[]): void {
      lines = next;
      canvas.refresh();
    },
  };
}

const word = fc.constantFrom("", "a", "bb", "a longer one");
const step = fc.oneof(
  fc.record({ kind: fc.constant("show" as const), lines: fc.array(word, { maxLength: 3 }) }),
  fc.record({ kind: fc.constant("print" as const), text: word }),
  fc.record({ kind: fc.constant("resize" as const), width: fc.constantFrom(40, 80) }),
  fc.record({ kind: fc.constant("interrupt" as const) }),
);

test("what is seen is all that was printed, and below it the picture", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const { canvas, written, terminal, show } = stage();
      const printed: string[] = [];
      let lines: readonly string[] = [];
      for (const one of steps) {
        if (one.kind === "print") canvas.print(one.text);
        else if (one.kind === "show") show(one.lines);
        else if (one.kind === "resize") terminal.width = one.width;
        else if (lines.length > 0) written.push("^C");
        if (one.kind === "print") printed.push(one.text);
        if (one.kind === "show") lines = one.lines;
        canvas.flush();
        if (one.kind !== "interrupt") assert.deepEqual(seen(written.join("")), [...printed, ...lines]);
      }
    }),
  );
});

/** The screen after a terminal was made so narrow: lines that are too wide for it are broken. */
const narrowed = (screen: string, width: number): string =>
  seen(screen)
    .map((line) => `${line.replaceAll(new RegExp(`.{${width}}(?=.)`, "g"), "$&\n")}\n`)
    .join("");

test("nothing of the old picture is left in a terminal that was made narrower", () => {
  const { canvas, written, terminal, show } = stage();
  const green = "\u001b[32m";
  const box = (width: number): string[] => ["─".repeat(width), "", `${green}${"x".repeat(width)}`, "end"];
  const sent = (): string => written.splice(0).join("").replaceAll(green, "");
  canvas.print("a line that stays");
  show(box(80));
  canvas.flush();
  const before = narrowed(sent(), 30);
  assert.equal(seen(before).length, 1 + 3 + 1 + 3 + 1);
  terminal.width = 30;
  show(box(30));
  canvas.flush();
  assert.deepEqual(seen(before + sent()), ["a line that stays", "─".repeat(30), "", "x".repeat(30), "end"]);
});

test("however much happens it is drawn ten times a second, and nothing that was printed is lost", () => {
  const { canvas, clock, written, show } = stage();
  const printed: string[] = [];
  for (let ms = 0; ms < 1000; ms += 1) {
    show([`${ms}`]);
    printed.push(`line ${ms}`);
    canvas.print(`line ${ms}`);
    clock.turn(1);
  }
  assert.ok(written.length <= 11, `${written.length} draws in a second`);
  clock.turn(100);
  assert.deepEqual(seen(written.join("")), [...printed, "999"]);
});

test("only lines that have changed are written, none where none has", () => {
  const { clock, written, show } = stage();
  const long = "x".repeat(70);
  show([long, "1", long]);
  clock.turn(1000);
  show([long, "2", long]);
  assert.equal(written[1], "\r\u001b[3A\n2\u001b[K\n\n\u001b[0J");
  clock.turn(1000);
  show([long, "2", long]);
  assert.equal(written.length, 2);
});

test("what is printed does not wait without bound", () => {
  const { canvas, written } = stage();
  for (let at = 0; at < 100; at++) canvas.print("x".repeat(1000));
  assert.ok(written.length >= 2 && written.join("").length >= 64 * 1024);
});
