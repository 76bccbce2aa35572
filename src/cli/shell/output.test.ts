/**
 * Tables line up, spans are short, and nothing a stranger wrote is obeyed by the terminal.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { stripVTControlCharacters } from "node:util";
import { testTerminal } from "../../../test/kits/cli/test-terminal.ts";
import type { TaskView } from "../../protocol/index.ts";
import { taskDetails } from "../show/task-view.ts";
import { age, bytes, count, lasted, span } from "../show/time.ts";
import { createOutput, list, table } from "./output.ts";
import { wantsColours } from "./terminal.ts";
import { clip, painter, plain, plainLines, widthOf, wrapLine } from "./text.ts";

const grey = painter(false);
const bright = painter(true);

// Beside a wide one a character is measured by the tables of all scripts.
test("what is measured by its length alone is as wide as the tables of all scripts say", () => {
  const codes = Array.from({ length: 0x3000 }, (_, code) => code).filter((code) => code < 0x300 || code >= 0x2000);
  for (const char of codes.map((code) => String.fromCodePoint(code)))
    assert.equal(widthOf(char), widthOf(`東${char}`) - 2, JSON.stringify(char));
});

describe("text", () => {
  const rows: [name: string, given: string, shown: string][] = [
    ["an escape sequence is a picture", "\u001b[2Jgone", "␛[2Jgone"],
    ["a line break does not break a table", "one\ntwo\r", "one␊two␍"],
    ["C1 controls do nothing", "a\u009b31mb", "a�31mb"],
    ["writing direction cannot be turned around", "a\u202eb", "a�b"],
    ["ordinary text of any language stays", "häuser 東京 👍", "häuser 東京 👍"],
    ["delete is a picture", "a\u007f", "a␡"],
  ];
  for (const [name, given, shown] of rows) test(name, () => assert.equal(plain(given), shown));

  test("several lines stay several lines", () => assert.equal(plainLines("a\r\n\tb\u001b\n"), "a\n\tb␛\n"));

  for (const [text, width] of [
    ["abc", 3],
    ["東京", 4],
    ["é", 1],
    ["e\u0301", 1],
    ["👍", 2],
    ["👩‍👩‍👧", 2],
    ["ｆｕｌｌ", 8],
    ["", 0],
  ] as const)
    test(`"${text}" takes ${width} columns`, () => assert.equal(widthOf(text), width));

  for (const [text, columns, shown] of [
    ["abcdef", 6, "abcdef"],
    ["abcdef", 5, "abcd…"],
    ["東京都", 5, "東京…"],
    ["東京都", 4, "東…"],
    ["abc", 1, "…"],
    ["abc", 0, ""],
  ] as const)
    test(`"${text}" in ${columns} columns is "${shown}"`, () => assert.equal(clip(text, columns), shown));

  test("words are wrapped, and a long one stands alone", () =>
    assert.deepEqual(wrapLine("it waits for averylongwordindeed to end", 10), [
      "it waits",
      "for",
      "averylongwordindeed",
      "to end",
    ]));

  for (const [name, line, columns, shown] of [
    ["one that just fits stays as it is", "  it  fits ", 11, "  it  fits "],
    ["one column less, and it is broken", "  it  fits", 9, "  it|    fits"],
    ["what stands between words stays", "a  b   c  d", 8, "a  b   c|  d"],
    [
      "a long word stays whole on a line of its own",
      "see averylongwordindeed here",
      10,
      "see|  averylongwordindeed|  here",
    ],
    ["wide letters count double", "東京 東京", 8, "東京|  東京"],
    ["deep down half of the columns are left for text", "         a b", 10, "         a|     b"],
    ["nothing but blanks is an empty line", "     ", 3, ""],
  ] as const)
    test(`a line: ${name}`, () => assert.deepEqual(wrapLine(line, columns, "  "), shown.split("|")));

  test("a line of a million letters is broken at once", () => {
    assert.equal(wrapLine("word ".repeat(200_000), 60).length, 16_667);
    assert.equal(wrapLine("x".repeat(1_000_000), 60).length, 1);
  });
});

describe("time", () => {
  for (const [ms, shown] of [
    [0, "0ms"],
    [999, "999ms"],
    [1000, "1s"],
    [4_260, "4.2s"],
    [9_999, "9.9s"],
    [10_000, "10s"],
    [59_900, "1m"],
    [200_000, "3m 20s"],
    [3_599_600, "1h"],
    [7_500_000, "2h 5m"],
    [86_399_999, "1d"],
    [273_600_000, "3d 4h"],
    [-5000, "-5s"],
  ] as const)
    test(`${ms} ms is ${shown}`, () => assert.equal(span(ms), shown));

  test("an age says which way", () => {
    const now = Date.parse("2026-01-02T00:00:00Z");
    assert.equal(age("2026-01-01T23:57:00Z", now), "3m ago");
    assert.equal(age("2026-01-02T00:00:05Z", now), "in 5s");
    assert.equal(age(now, now), "now");
    assert.equal(age(undefined, now), "");
    assert.equal(age("not a time", now), "");
    assert.equal(lasted("2026-01-01T23:57:00Z", undefined, now), "3m");
    assert.equal(lasted("2026-01-01T23:57:00Z", "2026-01-01T23:57:01Z", now), "1s");
    assert.equal(lasted(undefined, undefined, now), "");
  });

  test("counts are grouped and bytes have units", () => {
    assert.equal(count(1234567), "1 234 567");
    assert.equal(count(0.12345), "0.12");
    assert.equal(count(-1200), "-1 200");
    assert.equal(bytes(512), "512 B");
    assert.equal(bytes(1536), "1.5 KiB");
    assert.equal(bytes(2 ** 30), "1 GiB");
  });
});

type Row = { id: string; action: string; state: string; zone: string };
const rows: Row[] = [
  { id: "tsk_1", action: "write the whole of the documentation", state: "done", zone: "" },
  { id: "tsk_20000", action: "build", state: "failed", zone: "" },
];
const columns = [
  { title: "ID", of: ({ id }: Row) => id },
  { title: "ACTION", of: ({ action }: Row) => action, shrinks: true },
  { title: "N", of: ({ id }: Row) => String(id.length), align: "right" as const },
  { title: "STATE", of: ({ state }: Row) => state, tint: () => "green" as const },
  { title: "ZONE", of: ({ zone }: Row) => zone },
];

describe("a table", () => {
  test("is aligned, and leaves out what nobody has", () =>
    assert.equal(
      table(rows, columns, { width: null, paint: grey }),
      [
        "ID         ACTION                                N  STATE",
        "tsk_1      write the whole of the documentation  5  done",
        "tsk_20000  build                                 9  failed",
        "",
      ].join("\n"),
    ));

  test("fits the terminal by cutting only what may be cut", () =>
    assert.equal(
      table(rows, columns, { width: 40, paint: grey }),
      [
        "ID         ACTION              N  STATE",
        "tsk_1      write the whole o…  5  done",
        "tsk_20000  build               9  failed",
        "",
      ].join("\n"),
    ));

  test("never cuts an id, however narrow the terminal", () => {
    const [, first = "", second = ""] = table(rows, columns, { width: 5, paint: grey }).split("\n");
    assert.equal(first, "tsk_1");
    assert.equal(second, "tsk_20000");
  });

  const stays = columns.map((column) => ({ ...column, stays: column.title === "STATE" }));
  for (const [width, shown] of [
    [30, "ID         ACTION    N  STATE|tsk_1      write t…  5  done|tsk_20000  build     9  failed"],
    [29, "ID         ACTION      STATE|tsk_1      write the…  done|tsk_20000  build       failed"],
    [20, "ID         STATE|tsk_1      done|tsk_20000  failed"],
    [15, "ID         STA…|tsk_1      done|tsk_20000  fai…"],
    [11, "ID|tsk_1|tsk_20000"],
  ] as const)
    test(`in ${width} columns leaves out what has no room, and no row is wider`, () => {
      const lines = table(rows, stays, { width, paint: grey }).trimEnd().split("\n");
      assert.deepEqual(lines, shown.split("|"));
      for (const line of lines) assert.ok(widthOf(line) <= width, line);
    });

  test("has colours only where they are asked for", () => {
    assert.ok(table(rows, columns, { width: null, paint: bright }).includes("\u001b[32mdone\u001b[39m"));
    assert.ok(!table(rows, columns, { width: null, paint: grey }).includes("\u001b"));
  });

  test("of a million letters is cut at once", () => {
    const long = [{ ...(rows[0] as Row), action: "x".repeat(1_000_000) }];
    assert.equal(table(long, columns, { width: 60, paint: grey }).split("\n")[0]?.length, 60);
  });

  test("a list aligns its values and leaves out what is unset", () =>
    assert.equal(
      list(
        [
          ["state", "done"],
          ["error", undefined],
          ["created", "3m ago"],
        ],
        { paint: grey, width: null, indent: "  " },
      ),
      "  state    done\n  created  3m ago\n",
    ));
});

describe("a task", () => {
  const NOW = Date.parse("2026-01-31T12:00:00Z");
  const task: TaskView = {
    ...{ taskId: "build-the-documentation-of-every-package-and-publish", state: "failed", attempt: 1, agentId: "ann" },
    error: "exit code 3: the page that was to be built is not there, see docs/guide/getting-started.md",
    capabilities: ["git", "node24"],
    createdAt: "2026-01-31T11:50:00.000Z",
    payload: { prompt: "say in a few sentences what is missing from this page", deep: [1] },
    result: "two lines,\n  of which the second is further in and rather long",
  };
  const details = (width: number | null, hasColours = false): string =>
    taskDetails(task, createOutput(testTerminal({ width, hasColours, now: () => NOW }), {}));
  const wide = [
    "task          build-the-documentation-of-every-package-and-publish",
    "state         failed",
    "error         exit code 3: the page that was to be built is not there, see docs/guide/getting-started.md",
    "agent         ann",
    "attempt       1",
    "created       2026-01-31T11:50:00.000Z (10m ago)",
    "capabilities  git, node24",
    "payload",
    "  {",
    '    "prompt": "say in a few sentences what is missing from this page",',
    '    "deep": [',
    "      1",
    "    ]",
    "  }",
    "result",
    "  two lines,",
    "    of which the second is further in and rather long",
    "",
  ];
  const narrow = [
    "task",
    "  build-the-documentation-of-every-package-and-publish",
    "state         failed",
    "error         exit code 3: the page that was to be built is",
    "              not there, see docs/guide/getting-started.md",
    "agent         ann",
    "attempt       1",
    "created       2026-01-31T11:50:00.000Z (10m ago)",
    "capabilities  git, node24",
    "payload",
    "  {",
    '    "prompt": "say in a few sentences what is missing from',
    '      this page",',
    ...wide.slice(10),
  ];

  test("has a line for each value where there is room, and in a file or a pipe", () => {
    assert.deepEqual(details(120).split("\n"), wide);
    assert.deepEqual(details(null).split("\n"), wide);
  });
  test("in 60 columns goes on below itself, and a long id below its name", () =>
    assert.deepEqual(details(60).split("\n"), narrow));
  test("has the same lines in colours, and no colour reaches over the end of a line", () => {
    const painted = details(60, true);
    assert.ok(painted.includes("\n              \u001b[31mnot there, see docs/guide/getting-started.md\u001b[39m\n"));
    assert.deepEqual(stripVTControlCharacters(painted).split("\n"), narrow);
  });
  for (const width of [120, 80, 60, 40, 20, 5, 1])
    test(`in ${width} columns loses no word, and only a word alone is wider`, () => {
      const shown = details(width);
      assert.deepEqual(shown.split(/\s+/), wide.join("\n").split(/\s+/));
      for (const line of shown.split("\n")) assert.ok(widthOf(line) <= width || !/\S\s+\S/.test(line), line);
    });
});

describe("colours", () => {
  for (const [isTerminal, env, wanted] of [
    [true, {}, true],
    [false, {}, false],
    [true, { NO_COLOR: "1" }, false],
    [true, { NO_COLOR: "" }, true],
    [true, { TERM: "dumb" }, false],
  ] as const)
    test(`terminal ${isTerminal}, ${JSON.stringify(env)}: ${wanted}`, () =>
      assert.equal(wantsColours(isTerminal, env), wanted));
});
