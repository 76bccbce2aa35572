/**
 * The live picture: drawn in place, never wider than the terminal, and gone when the run ends.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { seen } from "../../../test/kits/cli/seen-lines.ts";
import { testTerminal } from "../../../test/kits/cli/test-terminal.ts";
import { readPlan } from "../plan/plan-file.ts";
import { createOutput } from "../shell/output.ts";
import { widthOf } from "../shell/text.ts";
import { lastMeant, meantBy } from "../show/meant-line.ts";
import { lineOf } from "./lines.ts";
import { createShow, type Show } from "./show.ts";
import { createRunState, type Fact, newRow, type Row, type RunState, sumOf } from "./state.ts";

const T0 = 1_800_000_000_000;

type Stage = {
  readonly show: Show;
  readonly runState: RunState;
  readonly screen: () => string[];
  readonly bytes: () => string;
  /** The clock goes on by this much, and what is due rings. */
  readonly tick: (ms: number) => void;
  readonly happen: (fact: Fact) => void;
};

function stage(
  count: number,
  { width = 50, height = 24, json = false, lastLine = () => "", needs = [] }: Partial<Options> = {},
): Stage {
  let now = T0;
  const alarms = new Set<{ readonly at: number; readonly ring: () => void }>();
  const terminal = testTerminal({ width, height, cwd: "/w", now: () => now });
  const text = `tasks:\n${Array.from({ length: count }, (_, at) => `  t${at}: x`).join("\n")}`;
  const rows = readPlan({ file: "p.yml", text, directory: "/" }).tasks.map(
    ({ name, rules }, at): Row => newRow({ name, id: name, maxAttempts: rules.attempts, needs: needs[at] ?? [] }),
  );
  const runState = createRunState(rows);
  const show = createShow({
    ...{ terminal, output: createOutput(terminal, { json }), name: "p", where: { data: "/w/d", slots: 2 }, lastLine },
    clock: {
      elapsed: () => now,
      ringAt: (at, ring) => {
        const alarm = { at, ring };
        alarms.add(alarm);
        return () => void alarms.delete(alarm);
      },
    },
  });
  show.begun(runState);
  const tick = (ms: number): void => {
    now += ms;
    for (const alarm of [...alarms].filter(({ at }) => at <= now)) if (alarms.delete(alarm)) alarm.ring();
  };
  const happen = (fact: Fact): void => {
    const row = runState.apply(fact);
    if (row !== null) show.happened(fact, row);
  };
  return { show, runState, tick, happen, bytes: terminal.shown, screen: () => seen(terminal.shown()) };
}
type Options = {
  readonly width: number;
  readonly height: number;
  readonly json: boolean;
  readonly lastLine: (id: string) => string;
  /** Of each task, what it needs. */
  readonly needs: readonly (readonly string[])[];
};

const started = (id: string, at = T0): Fact => ({ kind: "started", id, at, attempt: 1 });

describe("the live picture", () => {
  test("is the plan as a tree in a box: where each task stands, how long, its last line; the past stays above", () => {
    const lastLine = (id: string): string => `${id} says\u001b[2J hello`;
    const { show, screen, tick, happen } = stage(4, { width: 70, lastLine, needs: [[], [], ["t0"], ["t0", "t2"]] });
    happen(started("t0"));
    happen(started("t1"));
    tick(3200);
    assert.deepEqual(screen(), [
      "p: 4 tasks, 2 at once; log in d",
      "┌─ p ───────────────────────────────────────────────────────────────┐",
      "│ ░░░░░░░░░░░░░░░░  2 running, 2 waiting                            │",
      "├───────────────────────────────────────────────────────────────────┤",
      "│ t0  Running      3s  t0 says␛[2J hello                            │",
      "│ t1  Running      3s  t1 says␛[2J hello                            │",
      "│ t2  Waits                                                         │",
      "│ t3  Waits                                                         │",
      "└───────────────────────────────────────────────────────────────────┘",
    ]);
    happen({ kind: "done", id: "t0", at: T0 + 3200 });
    happen({ kind: "failed", id: "t1", at: T0 + 3200, why: "exit code 1" });
    happen(started("t2", T0 + 3200));
    tick(60_000);
    assert.deepEqual(screen(), [
      "p: 4 tasks, 2 at once; log in d",
      "done      t0  3.2s",
      "failed    t1  3.2s  exit code 1",
      "┌─ p ───────────────────────────────────────────────────────────────┐",
      "│ ████████░░░░░░░░  1 running, 1 done, 1 failed, 1 waiting          │",
      "├───────────────────────────────────────────────────────────────────┤",
      "│ t0  Done       3.2s                                               │",
      "│ t1  Failed     3.2s  exit code 1                                  │",
      "│ t2  Running      1m  t2 says␛[2J hello                            │",
      "│ t3  Waits                                                         │",
      "└───────────────────────────────────────────────────────────────────┘",
    ]);
    happen({ kind: "done", id: "t2", at: T0 + 63_200 });
    tick(100);
    assert.match(screen().at(-2) ?? "", /t3 {2}Queued/);
    show.noted("look here");
    show.wrote("t2", "a\tline");
    show.end();
    assert.deepEqual(screen().slice(4), ["note: look here", "t2 | a  line"]);
  });

  test("shows children below the task that submitted them, also while it waits for them", () => {
    const { runState, screen, tick, happen } = stage(2);
    happen(started("t1"));
    happen(started("t0", T0 + 1));
    const child = (id: string, parent: string): void => {
      runState.grow(newRow({ id, name: id, parent }));
      happen(started(id, T0 + 2));
    };
    child("kid", "t1");
    child("grandkid", "kid");
    happen({ kind: "awaiting", id: "t1", at: T0 + 500 });
    runState.grow(newRow({ id: "next", name: "next", parent: "t1" }));
    tick(1000);
    assert.deepEqual(screen().slice(2), [
      "┌─ p ───────────────────────────────────────────┐",
      "│ ░░░░░░░░░░░░░░░░  1 running, 1 waiting; chil… │",
      "├───────────────────────────────────────────────┤",
      "│ t0            Running      0s                 │",
      "│ t1            Awaits       1s  its children … │",
      "│   kid         Running      0s                 │",
      "│     grandkid  Running      0s                 │",
      "│   next        Queued                          │",
      "└───────────────────────────────────────────────┘",
    ]);
    happen({ kind: "done", id: "kid", at: T0 + 1000 });
    tick(100);
    assert.equal(screen()[2], "done      t1 > kid  998ms");
    assert.deepEqual([runState.isOver(), runState.counts().all, runState.counts().children.all], [false, 2, 3]);
    happen({ kind: "done", id: "t1", at: T0 + 1500 });
    tick(100);
    assert.equal(screen()[3], "done      t1  1.5s", "as long as drover tasks says: until its children had ended");
  });

  test("what could start if there were room is counted as queued, what needs others as waiting", () => {
    const { runState, screen, tick, happen } = stage(4, { width: 80, needs: [[], [], [], ["t0"]] });
    happen(started("t0"));
    for (const id of ["kid", "next"]) runState.grow(newRow({ id, name: id, parent: "t0" }));
    tick(1000);
    assert.match(screen()[2] ?? "", /1 running, 2 queued, 1 waiting; children: 2 queued /);
  });

  test("is never wider nor higher than the terminal; what runs comes first, then what waits, then what ended", () => {
    const { screen, tick, happen } = stage(30, { width: 40, height: 16, lastLine: () => "東京".repeat(50) });
    for (let at = 0; at < 25; at++) happen(started(`t${at}`));
    for (let at = 0; at < 20; at++) happen({ kind: "done", id: `t${at}`, at: T0 + 1 });
    tick(1000);
    const picture = screen().slice(-13);
    assert.deepEqual([picture.at(0)?.slice(0, 4), picture.at(-1)?.slice(0, 2)], ["┌─ p", "└─"]);
    assert.deepEqual(new Set(picture.map(widthOf)), new Set([39]));
    const names = picture.map((line) => /│ (\S+)/.exec(line)?.[1]).slice(3, -1);
    assert.deepEqual(names, ["t20", "t21", "t22", "t23", "t24", "t25", "t26", "t27", "…"]);
    assert.match(picture.at(-2) ?? "", /… 22 more/);
  });

  test("leaves nothing behind where a terminal has printed ^C below it", () => {
    const { show, bytes, happen, tick } = stage(2);
    happen(started("t0"));
    tick(100);
    const drawn = bytes();
    show.end();
    assert.deepEqual(seen(`${drawn}^C${bytes().slice(drawn.length)}x\n`), ["p: 2 tasks, 2 at once; log in d", "x"]);
  });

  test("after its end nothing is drawn any more", () => {
    const { show, bytes, tick } = stage(2);
    show.end();
    const before = bytes();
    tick(1000);
    show.end();
    assert.equal(bytes(), before);
  });

  test("with --json there is none, also on a terminal", () => {
    const { bytes, tick, happen } = stage(1, { json: true });
    happen(started("t0"));
    tick(1000);
    assert.deepEqual(
      bytes()
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line).event),
      ["begun", "started"],
    );
  });
});

describe("the runState", () => {
  test("a fact about another task changes nothing", () => {
    const { runState } = stage(1);
    assert.equal(runState.apply(started("stranger")), null);
  });

  test("a task that needs one outside the run is queued when that has ended", () => {
    const { runState } = stage(1, { needs: [["stranger"]] });
    const isQueued = (): boolean => runState.isQueued(runState.rows[0] as Row);
    assert.equal(isQueued(), false);
    runState.apply({ kind: "done", id: "stranger", at: T0 });
    assert.equal(isQueued(), true);
    runState.apply({ kind: "retried", id: "stranger", at: T0 });
    assert.equal(isQueued(), false);
  });

  test("a task that is sent back waits, and what it took is its last attempt", () => {
    const { runState } = stage(1);
    runState.apply(started("t0"));
    runState.apply({ kind: "again", id: "t0", at: T0 + 5, why: "later", until: T0 + 10 });
    runState.apply({ ...started("t0", T0 + 10), attempt: 2 } as Fact);
    runState.apply({ kind: "done", id: "t0", at: T0 + 17 });
    const { state, attempts, attempt, tookMs, why } = runState.rows[0] as Row;
    assert.deepEqual([state, attempts, attempt, tookMs, why, runState.isOver()], ["done", 2, 2, 7, "", true]);
  });

  test("a loop counts its rounds, takes as long as the last, and says nothing of a next one after the last", () => {
    const row = newRow({ name: "fix", id: "fix", maxRounds: 2 });
    const runState = createRunState([row]);
    const line = (fact: Fact): string | null => {
      const changed = runState.apply(fact);
      return changed === null ? null : lineOf(fact, changed, { paint: (_, text) => text, width: 3 });
    };
    const round = (at: number, note: string | null): Fact => ({ kind: "round", id: "fix", at, note });
    const lines = [
      line({ ...started("fix", 0) }),
      line(round(10, "some\n2 tests fail\n")),
      line({ ...started("fix", 100) }),
      line(round(107, "1 test fails")),
      line({ kind: "failed", id: "fix", at: 107, why: "the loop ended after 2 rounds" }),
    ];
    assert.deepEqual(lines, [
      "start     fix",
      "round     fix  2 tests fail; round 2 of 2 is next",
      "start     fix  (round 2 of 2)",
      null,
      "failed    fix  7ms  the loop ended after 2 rounds",
    ]);
  });

  test("what attempts say they used is summed up; a cost that is not said counts as none", () => {
    const { runState } = stage(2);
    const used = (id: string, outputTokens: number, cost: number | null): void =>
      void runState.apply({ kind: "used", id, at: T0, usage: { inputTokens: 10, outputTokens, cost } });
    used("t0", 1, null);
    used("t0", 2, 0.5);
    used("t1", 4, null);
    const usages = runState.rows.map(({ usage }) => usage);
    assert.deepEqual(usages, [
      { tokens: 23, cost: 0.5 },
      { tokens: 14, cost: null },
    ]);
    assert.deepEqual(sumOf([null, ...usages]), { tokens: 37, cost: 0.5 });
    assert.equal(sumOf([null, null]), null);
  });
});

test("the last line of an agent is what it says or uses, and not the JSON around it", () => {
  const claude = (content: unknown) => JSON.stringify({ type: "assistant", message: { content } });
  const cases: readonly (readonly [line: string, meant: string])[] = [
    ["compiling main.c", "compiling main.c"],
    ['{"some":"json of a command"}', '{"some":"json of a command"}'],
    [claude([{ type: "text", text: "I look at it.\nThen I mend it." }]), "I look at it."],
    [claude([{ type: "tool_use", name: "Bash", input: { command: "npm test" } }]), "Bash npm test"],
    ['{"type":"user","message":{"content":[{"type":"tool_result","content":"a page of text"}]}}', ""],
    ['{"type":"system","subtype":"init","session_id":"s"}', ""],
    ['{"type":"result","subtype":"success","result":"All is well."}', "All is well."],
    ['{"type":"item.completed","item":{"type":"agent_message","text":"Done."}}', "Done."],
    ['{"type":"item.started","item":{"type":"command_execution","command":"ls"}}', "ls"],
    ['{"type":"turn.completed","usage":{"input_tokens":3}}', ""],
    ['{"type":"progress","value":"half of it"}', "half of it"],
    ['{"type":"assistant","message":{"content":[{"type":"te … (100 more)', ""],
  ];
  for (const [line, meant] of cases) assert.equal(meantBy(line), meant, line);
});

test("of any output, the last line that says something is found, or there is none", () => {
  const pieces = ["\n", " ", '{"type":"system","subtype":"init"}', "said"];
  let texts = [""];
  for (let length = 0; length < 5; length++) {
    texts = ["", ...texts.flatMap((text) => pieces.map((piece) => text + piece))];
    for (const text of texts) {
      const meant = text.split("\n").map((line) => meantBy(line.trimEnd()));
      assert.equal(lastMeant(text), meant.findLast((line) => line !== "") ?? "", JSON.stringify(text));
    }
  }
});
