import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import fc from "fast-check";
import { createCappedFile, readTail } from "./capped-file.ts";

const home = mkdtempSync(join(tmpdir(), "drover-output-"));
after(() => rmSync(home, { recursive: true, force: true }));
let count = 0;
const newPath = (): string => join(home, `d${count++}`, "1.log");
const line = (index: number): string => `line ${String(index).padStart(4, "0")}\n`;
const LINE = line(0).length;

test("what fits is kept as it is, readable by nobody else", async () => {
  const path = newPath();
  const file = createCappedFile(path, 1000);
  file.write("a\n");
  await file.flushed();
  assert.equal(readFileSync(path, "utf8"), "a\n");
  file.write("b\n");
  await file.close();
  assert.equal(readFileSync(path, "utf8"), "a\nb\n");
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(join(path, "..")), ["1.log"]);
});

test("of more than fits the beginning and the end are kept, and what is missing is told to the byte", async () => {
  const path = newPath();
  const file = createCappedFile(path, 20 * LINE);
  for (let index = 0; index < 200; index++) {
    file.write(line(index));
    if (index % 7 === 0) await file.flushed();
  }
  await file.close();
  const text = readFileSync(path, "utf8");
  const [, head = "", lost = "", tail = ""] = /^(.*)\[… (\d+) bytes are left out here …\]\n(.*)$/s.exec(text) ?? [];
  assert.equal(head, Array.from({ length: 10 }, (_, index) => line(index)).join(""));
  assert.ok(tail.endsWith(line(199)) && tail.length >= 5 * LINE && tail.length <= 10 * LINE, tail);
  assert.equal(head.length + Number(lost) + tail.length, 200 * LINE);
  assert.deepEqual(readdirSync(join(path, "..")), ["1.log"]);
});

test("whatever is written, the file is bounded, in order, and whole unless it says otherwise", async () => {
  const lines = fc.array(fc.integer({ min: 1, max: 60 }), { maxLength: 120 });
  await fc.assert(
    fc.asyncProperty(lines, fc.integer({ min: 64, max: 2000 }), fc.boolean(), async (sizes, cap, isSlow) => {
      const path = newPath();
      const file = createCappedFile(path, cap);
      const written = sizes.map((size, index) => `${index}:${"x".repeat(size)}\n`);
      for (const text of written) {
        file.write(text);
        if (isSlow) await file.flushed();
      }
      await file.close();
      const text = written.length === 0 ? "" : readFileSync(path, "utf8");
      const kept = text.split(/(?<=\n)/).filter((part) => part !== "" && !part.startsWith("[…"));
      assert.ok(text.length <= cap + 200, `${text.length} of ${cap}`);
      assert.deepEqual(
        kept,
        written.filter((part) => kept.includes(part)),
      );
      assert.equal(text.includes("[…"), kept.length < written.length);
      assert.equal(kept.at(-1), written.at(-1));
    }),
    { numRuns: 60 },
  );
});

test("while it is written, and after a crash, the tail is read across its parts", async () => {
  const path = newPath();
  const file = createCappedFile(path, 20 * LINE);
  for (let index = 0; index < 37; index++) file.write(line(index));
  await file.flushed();
  assert.ok(readdirSync(join(path, "..")).length > 1);
  const tail = await readTail(path, { lines: 7 });
  assert.equal(tail?.text, Array.from({ length: 7 }, (_, index) => line(30 + index)).join(""));
  assert.equal(tail?.isCut, true);
  await file.close();
});

test("a tail begins with a whole line, and says whether something stands before it", async () => {
  const path = newPath();
  mkdirSync(join(path, ".."));
  writeFileSync(path, "first\nsecond\nthird\n");
  const rows = [
    [{ bytes: 9 }, { text: "third\n", isCut: true }],
    [{ bytes: 100 }, { text: "first\nsecond\nthird\n", isCut: false }],
    [{ lines: 2 }, { text: "second\nthird\n", isCut: true }],
    [{ lines: 3 }, { text: "first\nsecond\nthird\n", isCut: false }],
    [{ lines: 0 }, { text: "", isCut: true }],
    [{}, { text: "first\nsecond\nthird\n", isCut: false }],
  ] as const;
  for (const [size, expected] of rows) assert.deepEqual(await readTail(path, size), expected, JSON.stringify(size));
  assert.equal(await readTail(join(home, "none"), {}), null);
});

test("a disk that refuses ends the keeping, and nothing else", async () => {
  writeFileSync(join(home, "in-the-way"), "");
  const file = createCappedFile(join(home, "in-the-way", "1.log"), 1000);
  file.write("a\n");
  await file.flushed();
  assert.match(String(file.failure), /ENOTDIR|EEXIST/);
  file.write("b\n");
  await file.close();
});
