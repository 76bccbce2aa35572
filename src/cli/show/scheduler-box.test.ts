/**
 * The scheduler box, against the picture it was asked for by, and with names that would break a box.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { LineEntry, LinePart, PriorityName } from "../../protocol/index.ts";
import { widthOf } from "../shell/text.ts";
import { barOf } from "./box.ts";
import { grouped, lineBox, type SchedulerBox, schedulerBox, seconds } from "./scheduler-box.ts";

const paint = (_: unknown, text: string): string => text;
const entry = (id: string, ms: number, rank: PriorityName = "normal"): LineEntry => ({
  ...{ id, ms, class: rank, project: "default" },
});
const RUNNING = [
  entry("exec-001", 2300, "high"),
  entry("exec-007", 1800, "high"),
  ...[3100, 2900, 2500, 2100, 1500].map((ms, at) => entry(`exec-00${at + 2}`, ms)),
  ...[entry("exec-008", 999), entry("exec-009", 400), entry("exec-010", 200)],
];
const NEXT = [
  ...[5200, 4800, 3100].map((ms, at) => entry(`exec-01${at + 1}`, ms)),
  ...[entry("exec-014", 2000, "low"), entry("exec-015", 599, "low")],
];
const BOX: SchedulerBox = {
  ...{ title: "Scheduler", inFlight: 10, maxInFlight: 10, queued: 5, running: RUNNING, next: NEXT },
  ...{ completed: 1234, rateLimited: 12, isRateLimited: false, avgWaitMs: 450, avgRunMs: 2300 },
};
const drawn = (box: Partial<SchedulerBox>, width: number, height: number): string[] =>
  schedulerBox({ ...BOX, ...box }, { width, height, paint });

test("it is the box that was asked for", () => {
  assert.deepEqual(drawn({}, 74, 30), [
    "┌─ Scheduler ────────────────────────────────────────────────────────────┐",
    "│ Running: 10/10  Queued: 5  Rate Limited: No                            │",
    "├────────────────────────────────────────────────────────────────────────┤",
    "│ [HIGH] exec-001  Running   2.3s                                        │",
    "│ [HIGH] exec-007  Running   1.8s                                        │",
    "│ [NORM] exec-002  Running   3.1s                                        │",
    "│ [NORM] exec-003  Running   2.9s                                        │",
    "│ [NORM] exec-004  Running   2.5s                                        │",
    "│ [NORM] exec-005  Running   2.1s                                        │",
    "│ [NORM] exec-006  Running   1.5s                                        │",
    "│ [NORM] exec-008  Running   0.9s                                        │",
    "│ [NORM] exec-009  Running   0.4s                                        │",
    "│ [NORM] exec-010  Running   0.2s                                        │",
    "│ ───────────────────────────────────────────────────────────────────────│",
    "│ [NORM] exec-011  Queued    waiting 5.2s                                │",
    "│ [NORM] exec-012  Queued    waiting 4.8s                                │",
    "│ [NORM] exec-013  Queued    waiting 3.1s                                │",
    "│ [LOW]  exec-014  Queued    waiting 2.0s                                │",
    "│ [LOW]  exec-015  Queued    waiting 0.5s                                │",
    "├────────────────────────────────────────────────────────────────────────┤",
    "│ Stats: 1,234 completed | 12 rate limited | avg wait 0.4s, avg run 2.3s │",
    "└────────────────────────────────────────────────────────────────────────┘",
  ]);
});

test("calls are shown where there are any, else tasks", () => {
  const part = (inFlight: number, completed: number): LinePart => ({
    ...{ inFlight, maxInFlight: 5, queued: 0, completed, avgWaitMs: 0, avgRunMs: 0, running: [], next: [] },
  });
  const shown = (tasks: LinePart, calls: LinePart): number =>
    lineBox({ seq: 1, paused: false, waiting: 0, rateLimited: 0, isRateLimited: false, tasks, calls }).completed;
  assert.equal(shown(part(3, 100), part(1, 200)), 200);
  assert.equal(shown(part(3, 100), part(0, 200)), 100, "calls were made, and none is now");
  assert.equal(shown(part(0, 100), part(0, 200)), 200);
  assert.equal(shown(part(0, 100), part(0, 0)), 100);
});

test("tasks that wait for others are counted beside those that are queued, where there is room", () => {
  const head = (waiting: number, width = 80): string => drawn({ waiting }, width, 30)[1] ?? "";
  assert.match(head(39), /│ Running: 10\/10 {2}Queued: 5, waiting: 39 {2}Rate Limited: No /);
  assert.match(head(0), /Queued: 5 {2}Rate/);
  assert.match(head(39, 50), /Queued: 5 {2}Rate/);
});

test("what failed is counted beside what was completed: the averages are of both", () => {
  const counts = { inFlight: 0, maxInFlight: 5, queued: 0, completed: 0, failed: 1, rateLimited: 0 };
  const box = { ...counts, title: "Scheduler", isRateLimited: false, avgWaitMs: 400, avgRunMs: 2300 };
  const lines = schedulerBox({ ...box, running: [], next: [] }, { width: 80, height: 9, paint: (_, text) => text });
  assert.match(lines.at(-2) ?? "", /Stats: 0 completed, 1 failed \| 0 rate limited \| avg wait 0.4s, run 2.3s/);
});

test("a number that has no room is left out and not cut", () => {
  const counts = { inFlight: 0, maxInFlight: 5, queued: 0, completed: 38_214, failed: 1_203, rateLimited: 1_432 };
  const box = { ...counts, title: "Scheduler", isRateLimited: false, avgWaitMs: 2200, avgRunMs: 300 };
  const stats = (width: number): string => {
    const lines = schedulerBox({ ...box, running: [], next: [] }, { width, height: 9, paint: (_, text) => text });
    return (lines.at(-2) ?? "").slice(2, -2).trim();
  };
  const whole = "Stats: 38,214 completed, 1,203 failed | 1,432 rate limited | avg wait 2.2s, run 0.3s";
  assert.equal(stats(whole.length + 4), whole);
  assert.equal(stats(whole.length + 3), "Stats: 38,214 completed, 1,203 failed | avg wait 2.2s, run 0.3s");
  assert.equal(stats(80), "Stats: 38,214 completed, 1,203 failed | avg wait 2.2s, run 0.3s");
  assert.equal(stats(60), "Stats: 38,214 completed, 1,203 failed | avg wait 2.2s");
  assert.equal(stats(42), "Stats: 38,214 completed, 1,203 failed");
});

test("the numbers of tasks stand beside those of calls, and the other way round", () => {
  const part = (inFlight: number, maxInFlight: number, queued: number): LinePart => ({
    ...{ inFlight, maxInFlight, queued, completed: 0, avgWaitMs: 0, avgRunMs: 0, running: [], next: [] },
  });
  const heads = (tasks: LinePart, calls: LinePart): string[] => {
    const line = { seq: 1, paused: false, waiting: 0, rateLimited: 0, isRateLimited: false, tasks, calls };
    const lines = schedulerBox(lineBox(line), { width: 80, height: 23, paint, isFilled: true });
    assert.equal(lines.length, 23);
    return lines
      .slice(
        1,
        lines.findIndex((text) => text.startsWith("├")),
      )
      .map((text) => text.slice(2, -2).trim());
  };
  assert.deepEqual(heads(part(60, 100, 1740), part(4, 4, 60)), [
    "Running: 4/4  Queued: 60  Rate Limited: No",
    "These are calls to providers.  Tasks: 60/100 running, 1,740 queued",
  ]);
  assert.deepEqual(heads(part(60, 100, 740), part(0, 4, 0)), [
    "Running: 60/100  Queued: 740  Rate Limited: No",
    "These are tasks.  Calls to providers: 0/4 running, 0 queued",
  ]);
  const gates = [
    { id: "anthropic/default", inFlight: 9, maxInFlight: 1, queued: 1060 },
    { id: "openai/team", inFlight: 1, maxInFlight: 4, queued: 0 },
  ];
  assert.deepEqual(heads(part(60, 100, 740), { ...part(10, 5, 1060), gates }), [
    "Running: 10, limit 5  Queued: 1,060  Rate Limited: No",
    "These are calls to providers.  Tasks: 60/100 running, 740 queued",
    "Gates: anthropic/default 9, limit 1 +1,060 queued, openai/team 1/4",
  ]);
  assert.equal(heads(part(1, 50, 2), part(0, 0, 0)).length, 1, "there is no gate");
});

test("a call is named by its task, unless its own name is one to read", () => {
  const made = "permit_2d8a777a-6d0f-4c1e-9b7a-000000000001";
  const of = (id: string, task?: string): LineEntry => ({
    ...{ ...entry(id, 1000), project: "web", gate: "anthropic/default" },
    ...(task === undefined ? {} : { task }),
  });
  const running = [of(made, "build-7"), of("review of build-7", "build-7"), of(made), of("p809", "build-8")];
  const rows = drawn({ running, next: [], inFlight: 4, queued: 0 }, 140, 20).slice(3, 7);
  assert.deepEqual(
    rows.map((row) => row.slice(2, -2).trim().replaceAll(/ {2,}/g, " | ")),
    [
      "[NORM] build-7 | Running | 1.0s | web | anthropic/default",
      "[NORM] review of build-7 | Running | 1.0s | build-7 | web | anthropic/default",
      "[NORM] permit_2d8…000000001 | Running | 1.0s | web | anthropic/default",
      "[NORM] build-8 | Running | 1.0s | web | anthropic/default",
    ],
  );
});

test("what does not fit ends in how many more there are, also of those that were not read", () => {
  const lines = drawn({ inFlight: 300, queued: 4000, isRateLimited: true }, 60, 16);
  assert.equal(lines.length, 16);
  assert.ok(lines[1]?.startsWith("│ Running: 300, limit 10  Queued: 4,000  Rate Limited: Yes "));
  assert.deepEqual(
    lines.filter((line) => line.includes("more")).map((line) => line.slice(2, -2).trim()),
    ["… 295 more", "… 3,998 more"],
  );
});

test("every height has a box of that height, and those that wait are seen beside any number that run", () => {
  for (let height = 9; height < 40; height++) {
    const lines = schedulerBox({ ...BOX, inFlight: 300, queued: 4000 }, { width: 80, height, paint, isFilled: true });
    assert.equal(lines.length, height);
    if (height >= 13)
      assert.ok(
        lines.some((line) => line.includes("Queued    waiting")),
        lines.join("\n"),
      );
  }
});

test("an idle scheduler says so, and one that is paused too", () => {
  const idle = { inFlight: 0, queued: 0, running: [], next: [], paused: true };
  assert.deepEqual(
    drawn(idle, 60, 24)
      .slice(1, 4)
      .map((line) => line.slice(2, -2).trim()),
    [
      "Running: 0/10  Queued: 0  Rate Limited: No  Paused",
      "────────────────────────────────────────────────────────",
      "Nothing runs, and nothing waits for its turn.",
    ],
  );
});

test("names with control characters, wide letters or letters from right to left never break the box", () => {
  const names = [
    "\u001b[2Jgone",
    "a\nb\tc",
    "研究".repeat(30),
    "שלום־עולם",
    "مرحبا",
    "e\u0301".repeat(9),
    "\u202eevil",
    "👩‍👩‍👧‍👦",
  ];
  for (const width of [40, 56, 80, 160])
    for (const name of names) {
      const named = { ...entry(name, 1), project: name, agentId: name, worker: name };
      const lines = drawn({ title: name, running: [named], next: [named], inFlight: 1, queued: 1 }, width, 20);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these must not be there
      for (const line of lines) assert.doesNotMatch(line, /[\u0000-\u001f\u202e]/);
      assert.deepEqual(lines.map(widthOf), Array(lines.length).fill(width), lines.join("\n"));
    }
});

test("times keep a tenth of a second up to a minute, and numbers have commas", () => {
  assert.deepEqual([0, 99, 100, 59_999, 60_000, 200_000].map(seconds), [
    "0.0s",
    "0.0s",
    "0.1s",
    "59.9s",
    "1m",
    "3m 20s",
  ]);
  assert.deepEqual([0, 999, 1234, 1_234_567].map(grouped), ["0", "999", "1,234", "1,234,567"]);
});

test("a bar is exactly as wide as it is to be, whatever share it shows", () => {
  for (const share of [-1, 0, 0.01, 0.5, 0.999, 1, 7, Number.NaN]) assert.equal(widthOf(barOf(share, 10)), 10);
  assert.equal(barOf(0.5, 4), "██  ");
});
