/**
 * Frames of `drover top` as they were looked at and found good, at two sizes; and what holds at every size.
 *
 * `DROVER_FRAMES=write npm test -- top/frame` writes them anew: look at them before they are kept.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { stripVTControlCharacters } from "node:util";
import type { LineEntry } from "../../protocol/index.ts";
import { painter, widthOf } from "../shell/text.ts";
import { frameOf, markable } from "./frame.ts";
import { type Key, press } from "./keys.ts";
import { FIRST_VIEW, type Picture, TABS, type View } from "./picture.ts";
import { NO_WORD } from "./trouble.ts";

const NOW = Date.parse("2026-03-01T12:00:00Z");
const FRAMES = join(import.meta.dirname, "../../../test/frames");
const iso = (ms: number): string => new Date(NOW + ms).toISOString();

const entry = (id: string, ms: number, more: Partial<LineEntry> = {}): LineEntry => ({
  ...{ id, ms, class: "normal", project: "web", agentId: "ann", type: "code" },
  ...more,
});
const NO_CALLS = {
  inFlight: 0,
  maxInFlight: 0,
  queued: 0,
  completed: 0,
  avgWaitMs: 0,
  avgRunMs: 0,
  running: [],
  next: [],
};

function pictureWith(name = "", calls = false): Picture {
  const running = Array.from({ length: 12 }, (_, at) =>
    entry(`build-${at}${name}`, 9000 - at * 700, {
      class: at === 0 ? "critical" : at === 1 ? "high" : "normal",
      worker: `mac-${at % 3}${name}`,
      project: `${at % 2 === 0 ? "web" : "api"}${name}`,
    }),
  );
  const next = Array.from({ length: 30 }, (_, at) =>
    entry(`test-${at}${name}`, 400 * (at + 1), { class: at > 20 ? "low" : "normal", project: "docs" }),
  );
  // As the server answers: of calls it knows no agent, type and worker.
  const call = ({ id, ms, class: rank, project }: LineEntry): LineEntry => ({
    ...{ id: `call-${id}`, ms, class: rank, project, gate: "anthropic/default", task: id },
  });
  const madeUp = (of: LineEntry): LineEntry => ({ ...of, id: `permit_2d8a777a-6d0f-4c1e-9b7a-${of.id}` });
  const totals = { maxInFlight: 12, completed: 1234, avgWaitMs: 1250, avgRunMs: 4100 };
  const tasks = { ...totals, inFlight: 12, queued: 480, running, next };
  const some = { running: running.slice(0, 4).map(call), next: next.slice(0, 3).map(call).map(madeUp) };
  return {
    at: NOW - 500,
    line: {
      ...{ seq: 91, paused: false, waiting: 7, rateLimited: 12, isRateLimited: calls, tasks },
      calls: calls ? { ...totals, ...some, inFlight: 4, maxInFlight: 4, queued: 3, completed: 99 } : NO_CALLS,
    },
    tasks: running.map(({ id, project, worker }, at) => ({
      ...({ taskId: id, state: at === 3 ? "failed" : "running", attempt: 1, depth: 0 } as const),
      ...{ action: "build", agentId: "ann", createdAt: iso(-60_000), startedAt: iso(-9000 + at * 700) },
      ...{ project, worker: worker ?? "", ...(at === 3 ? { error: `3 of 120 tests fail${name}` } : {}) },
    })) as unknown as Picture["tasks"],
    projects: ["web", "api", "docs"].map((id, at) => ({
      ...{ id: `${id}${name}`, weight: 3 - at, status: at === 2 ? "paused" : "active", queued: at * 100, inFlight: 6 },
      ...{ share: 0.5 - at / 10, target: 0.4, deficit: 0, charged: 1, level: 1, spent: 60_000, reserved: 2000 },
      ...{ budget: { limit: at === 1 ? 80_000 : null, window: 3_600_000 }, maxConcurrent: 10 },
    })) as unknown as Picture["projects"],
    workers: [0, 1, 2].map((at) => ({
      ...{
        id: `mac-${at}${name}`,
        kind: "pull",
        status: at === 2 ? "unreachable" : "busy",
        slots: 4,
        inFlight: at + 2,
      },
      ...{ capabilities: ["git", "xcode"], joinedAt: iso(0) },
    })) as unknown as Picture["workers"],
    gates: [
      { id: `anthropic/default${name}`, blockedUntil: iso(12_000), held: "blocked" },
      { id: `openai/default${name}`, held: null },
    ].map((gate) => ({
      ...{ ...gate, running: 4, queued: 3, limit: 4, maxConcurrent: 4, throttles: 1, slowStart: null },
      ...{ requests: 50, requestsUsed: 31, windowMs: 60_000, tokensReserved: 0 },
      tokensUsed: { perMinute: { limit: 80_000, used: 12_000 }, perHour: null, perDay: null },
    })) as unknown as Picture["gates"],
    events: [1, 2, 3, 90, 91].map((seq) => ({
      ...{ seq, at: iso(-1000 + seq), kind: "task-done", task: `build-${seq}${name}`, attempt: 1 },
      payload: { kind: "task-done", resultSize: 12 },
    })) as unknown as Picture["events"],
    ...{ tasksFilter: "", hasMoreTasks: false, eventsRefused: null, lost: null, node: NO_WORD },
  };
}

type Frame = {
  readonly picture?: Picture;
  readonly view?: Partial<View>;
  readonly columns: number;
  readonly rows: number;
  readonly url?: string;
};
const ONE = "http://127.0.0.1:4747";
const frame = ({ picture = pictureWith(), view = {}, columns, rows, url = ONE }: Frame, isPainted = false): string[] =>
  frameOf({
    ...{ picture, view: { ...FIRST_VIEW, ...view }, size: { columns, rows }, now: NOW },
    ...{ url, paint: painter(isPainted) },
  });

for (const [columns, rows] of [
  [80, 24],
  [160, 50],
] as const)
  test(`the frames at ${columns}×${rows} are those that were looked at`, () => {
    const node = {
      isNode: true,
      trouble: "The journal is out of reach for 12s: nothing is taken, this may be as old.",
    };
    const lost = {
      since: NOW - 4000,
      why: "cannot reach http://127.0.0.1:4747 (connection refused)",
      isRefusal: false,
    };
    const shown = [
      ...TABS.map((tab) => [tab, frame({ columns, rows, view: { tab } })] as const),
      ["calls", frame({ columns, rows, picture: pictureWith("", true), view: { marked: "call-build-1" } })] as const,
      ["a filter", frame({ columns, rows, view: { filter: "mac-1", isTyping: true } })] as const,
      ["a server that is gone", frame({ columns, rows, picture: { ...pictureWith(), lost } })] as const,
      ["a journal that is away", frame({ columns, rows, picture: { ...pictureWith(), node } })] as const,
    ];
    const text = shown
      .map(([name, lines]) => `${name}\n${lines.map((line) => line.trimEnd()).join("\n")}\n`)
      .join("\n");
    const path = join(FRAMES, `top-${columns}x${rows}.txt`);
    if (process.env.DROVER_FRAMES === "write") writeFileSync(path, text);
    assert.equal(text, readFileSync(path, "utf8"));
  });

const NAMES = ["", "\u001b[31m\u0007", "\n\r\t", "東京".repeat(20), "مرحبا", "\u202e", "👩‍👩‍👧‍👦"];

test("whatever a name has in it, a frame has the size of the screen, with and without colours", () => {
  for (const [columns, rows] of [
    [40, 12],
    [80, 24],
    [120, 36],
    [160, 50],
  ] as const)
    for (const name of NAMES)
      for (const tab of TABS)
        for (const isPainted of [false, true]) {
          const picture = pictureWith(name, tab === "scheduler");
          const lines = frame({ picture, view: { tab, filter: "" }, columns, rows }, isPainted);
          const bare = lines.map(stripVTControlCharacters);
          assert.equal(lines.length, rows);
          for (const line of bare) {
            assert.ok(widthOf(line) <= columns, `${tab} at ${columns}: ${JSON.stringify(line)}`);
            assert.equal(line.replaceAll(/\p{Cc}|\u202e/gu, ""), line);
          }
          const framed = bare.filter((line) => line.startsWith("│"));
          assert.deepEqual([...new Set(framed.map(widthOf))], framed.length === 0 ? [] : [columns], `${tab} ${name}`);
        }
});

test("which columns there are depends on the width, and on nothing that is in them", () => {
  const empty = pictureWith();
  const bare = {
    ...empty,
    tasks: (empty.tasks ?? []).map(({ taskId, state }) => ({ taskId, state, attempt: 1, depth: 0 })),
    workers: (empty.workers ?? []).map((worker) => ({ ...worker, capabilities: [] })),
    projects: (empty.projects ?? []).map((project) => ({ ...project, status: "active" })),
  } as unknown as Picture;
  for (const columns of [80, 120, 160])
    for (const tab of ["tasks", "projects", "workers", "gates"] as const) {
      const titles = (picture: Picture): string[] =>
        (frame({ picture, columns, rows: 24, view: { tab } })[2] ?? "").split(/ {2,}/);
      assert.deepEqual(titles(bare), titles(pictureWith()), `${tab} at ${columns}`);
    }
});

test("of several addresses all are named where there is room, else the first and how many more", () => {
  const url = "http://node-a:4747,http://node-b:4747,http://node-c:4747";
  assert.match(frame({ url, columns: 160, rows: 24 })[0] ?? "", / node-a:4747, node-b:4747, node-c:4747 ?$/);
  assert.match(frame({ url, columns: 90, rows: 24 })[0] ?? "", / node-a:4747 and 2 more ?$/);
});

test("where calls leave room, the tasks stand below them, also on a small screen; they can be chosen there", () => {
  const { line, ...rest } = pictureWith("", true);
  const withCalls = (count: number, tasks = line.tasks): Picture => {
    const running = line.calls.running.slice(0, count);
    return {
      ...rest,
      line: { ...line, tasks, calls: { ...line.calls, running, inFlight: count, next: [], queued: 0 } },
    };
  };
  const text = (picture: Picture): string => frame({ picture, columns: 80, rows: 24 }).join("\n");
  const few = text(withCalls(2));
  assert.match(
    few,
    /call-build-1 [\s\S]*┌─ Tasks ─[\s\S]*Running: 12\/12 +Queued: 480[\s\S]*\] build-0 [\s\S]*\] test-0 /,
  );
  assert.equal(few.split("\n").length, 24);
  const ids = markable({ ...seen, picture: withCalls(2), view: FIRST_VIEW }).map(({ id }) => id);
  assert.deepEqual([ids.includes("call-build-1"), ids.includes("build-0")], [true, true]);
  assert.doesNotMatch(text(pictureWith("", true)), /┌─ Tasks/, "calls fill it");
  const idle = { ...line.tasks, inFlight: 0, queued: 0, running: [], next: [] };
  assert.doesNotMatch(text(withCalls(2, idle)), /┌─ Tasks/, "there is no task");
});

test("where more tasks are than were read, it does not say how many", () => {
  const picture = { ...pictureWith(), hasMoreTasks: true };
  const lines = (one: Picture): string =>
    frame({ picture: one, columns: 80, rows: 12, view: { tab: "tasks" } }).join("\n");
  assert.match(lines(picture), /… over 6 more/);
  assert.match(lines(pictureWith()), /… 6 more/);
});

test("a filter that nothing matches is said to be one, and a message is read to its end", () => {
  const at = (view: Partial<View>): string => frame({ columns: 80, rows: 24, view }).join("\n");
  assert.match(at({ filter: "nobody" }), /Nothing here has "nobody"\./);
  const text = `the task ${"x".repeat(60)} has ended, and cannot be cancelled`;
  const shown = at({ said: { text, isBad: true } });
  assert.match(shown, /cannot be cancelled *$/);
  assert.equal(shown.split("\n").length, 24);
});

const seen = { picture: pictureWith(), size: { columns: 80, rows: 24 }, now: NOW };
const key = (text: string): Key => (text.length > 1 ? { text: "", name: text as Key["name"] } : { text, name: null });
const pressed = (keys: readonly string[], view: View = FIRST_VIEW) =>
  keys.reduce((before, one) => press(before.view, key(one), seen), { view, action: null, isOver: false } as ReturnType<
    typeof press
  >);

test("rows are chosen in their order on the screen, and the choice stays on the screen", () => {
  const { view } = pressed(["down", "down", "up"]);
  assert.equal(view.marked, "build-0");
  assert.equal(pressed(["up"]).view.marked, markable({ ...seen, view: FIRST_VIEW }).at(-1)?.id);
  const tasks = pressed(["tab", "down", "pageDown", "pageDown"]).view;
  assert.deepEqual([tasks.tab, tasks.marked], ["tasks", "build-11"]);
});

test("a row that is gone leaves its place to the one that is there now", () => {
  const { view } = pressed(["2", "down", "down", "down", "down"]);
  assert.equal(view.marked, "build-3");
  const picture = { ...seen.picture, tasks: (seen.picture.tasks ?? []).filter(({ taskId }) => taskId !== "build-3") };
  for (const step of ["up", "down"])
    assert.equal(press(view, key(step), { ...seen, picture }).view.marked, "build-4", step);
});

test("Esc takes back what came last: a message, then the filter, then the choice of a row", () => {
  const view = { ...FIRST_VIEW, filter: "mac", marked: "build-1", said: { text: "no", isBad: true } };
  const steps = [1, 2, 3].map((times) => pressed(Array(times).fill("escape"), view).view);
  assert.deepEqual(
    steps.map(({ said, filter, marked }) => [said, filter, marked]),
    [
      [null, "mac", "build-1"],
      [null, "", "build-1"],
      [null, "", null],
    ],
  );
});

test("letters that are typed into the filter do nothing else", () => {
  const { view, action, isOver } = pressed(["/", "q", "c", "p", "erase", "enter"]);
  assert.deepEqual([view.filter, view.asked, action, isOver], ["qc", null, null, false]);
  assert.equal(pressed(["escape"], view).view.filter, "");
  assert.equal(pressed(["/", ...Array(300).fill("x")]).view.filter.length, 100);
});

test("what ends a task or stops the fleet is done after y, and after nothing else", () => {
  assert.deepEqual(pressed(["down", "c", "y"]).action, { kind: "cancel", task: "build-0" });
  for (const other of ["n", "q", "enter", "escape", "c"]) {
    const { action, isOver, view } = pressed(["down", "c", other]);
    assert.deepEqual([action, isOver, view.asked], [null, false, null], other);
  }
  assert.deepEqual(pressed(["p", "y"]).action, { kind: "pause", project: null });
  assert.deepEqual(pressed(["3", "down", "down", "down", "p", "y"]).action, { kind: "resume", project: "docs" });
});

test("of a call the keys mean the task that makes it; of one without a task, and of no row, they say so", () => {
  const picture = pictureWith("", true);
  const on = (marked: string, picked = picture) =>
    press({ ...FIRST_VIEW, marked }, key("w"), { ...seen, picture: picked });
  assert.deepEqual(on("call-build-0").action, { kind: "why", task: "build-0" });
  const [first, ...others] = picture.line.calls.running as [LineEntry, ...LineEntry[]];
  const { task: _, ...alone } = first;
  const line = { ...picture.line, calls: { ...picture.line.calls, running: [alone, ...others] } };
  assert.equal(on("call-build-0", { ...picture, line }).view.said?.text, "call-build-0 is a call of no task.");
  assert.match(on("gone").view.said?.text ?? "", /^Choose a task first/);
  assert.match(pressed(["3", "down", "w"]).view.said?.text ?? "", /^This key is for tasks/);
});

test("a text that is longer than the screen is scrolled to its end and no further", () => {
  const panel = { title: "Log", lines: Array.from({ length: 50 }, (_, at) => `line ${at}`), top: 0, of: null };
  const { view } = pressed([...Array(10).fill("pageDown")], { ...FIRST_VIEW, panel });
  assert.equal(view.panel?.top, 30);
  assert.equal(pressed(["escape"], view).view.panel, null);
});
