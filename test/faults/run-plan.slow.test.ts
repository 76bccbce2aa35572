/**
 * `drover run` as a real process that is interrupted and killed: what is done stays done and is not run again, and
 * nothing that it started outlives it for long.
 *
 * What counts as done is what was printed as done, since that is what a person relies on. Commands leave a line in a
 * file when they begin, so a second run of one is seen.
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { describe, test } from "node:test";
import fc from "fast-check";
import { type PlanDirectory, planDirectory } from "../kits/cli/plan-directory.ts";

const MAIN = join(import.meta.dirname, "../../src/cli/main.ts");
const LIMIT = { timeout: 300_000 };

type Process = {
  readonly child: ChildProcess;
  readonly lines: string[];
  readonly errors: () => string;
  /** Resolves with the exit code, or the signal it died by. */
  readonly ended: Promise<number | string>;
  /** Resolves when so many lines were printed, or it has ended. */
  readonly printed: (count: number) => Promise<void>;
};

function start(place: PlanDirectory, args: readonly string[] = []): Process {
  const child = spawn(process.execPath, [MAIN, "run", "plan.yml", ...args], { cwd: place.directory });
  const lines: string[] = [];
  let errors = "";
  let wake = (): void => {};
  child.stderr.on("data", (chunk) => {
    errors += String(chunk);
  });
  createInterface({ input: child.stdout }).on("line", (line) => {
    lines.push(line);
    wake();
  });
  const ended = once(child, "close").then(([code, signal]) => {
    wake();
    return code ?? signal;
  });
  async function printed(count: number): Promise<void> {
    while (lines.length < count && child.exitCode === null && child.signalCode === null)
      await new Promise<void>((resolve) => (wake = resolve));
  }
  return { child, lines, errors: () => errors, ended, printed };
}

/** Running, and not merely waiting to be asked how it ended. */
function isAlive(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return !/^[ZX]/.test(stat.slice(stat.lastIndexOf(")") + 2));
  } catch {
    return false;
  }
}

const wordOf = (line: string): [word: string, task: string] => {
  const [word = "", task = ""] = line.split(/ +/);
  return [word, task];
};
const tasksWith = (lines: readonly string[], word: string): string[] =>
  lines.map(wordOf).flatMap(([first, task]) => (first === word ? [task] : []));

/** A command with a child that has left its group and its parent; both say who they are, then wait for ever. */
const PLAN = `workers: { slots: 2, killGrace: 2s }
tasks:
  first: echo first >> ran
  held:
    needs: first
    run: |
      echo held >> ran
      test -e free && exit 0
      setsid sh -c 'echo $$ > far; read x < never.pipe' &
      echo $$ > near
      while ! test -s far; do :; done
      echo up > up.pipe
      read x < never.pipe
  last: { run: echo last >> ran, needs: held }
`;

async function heldPlace(plan = PLAN): Promise<{ place: PlanDirectory; run: Process; pids: number[] }> {
  const place = planDirectory(plan);
  for (const name of ["up.pipe", "never.pipe"]) place.pipe(name);
  const run = start(place);
  await place.hear("up.pipe");
  const pids = [Number(place.read("near")), Number(place.read("far"))];
  assert.deepEqual(pids.map(isAlive), [true, true]);
  return { place, run, pids };
}

async function finishes(place: PlanDirectory, first: RegExp): Promise<Process> {
  place.write("free", "");
  const run = start(place);
  assert.equal(await run.ended, 0, run.errors());
  assert.match(run.lines[0] ?? "", first);
  assert.deepEqual(place.ran(), ["first", "held", "held", "last"]);
  return run;
}

describe("drover run", LIMIT, () => {
  for (const [signal, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)
    test(`${signal} stops the command and all it started, ends with ${code}, and the next run goes on`, async () => {
      const { place, run, pids } = await heldPlace();
      using _ = place;
      run.child.kill(signal);
      assert.equal(await run.ended, code, run.errors());
      assert.deepEqual(pids.map(isAlive), [false, false]);
      assert.match(run.lines.at(-2) ?? "", /^plan: 1 of 3 done, 2 not finished, in /);
      await finishes(place, /^plan: 1 of 3 tasks done before, 2 at once/);
    });

  test("killed, it leaves its command running; the next run kills that first, and goes on", async () => {
    const { place, run, pids } = await heldPlace();
    using _ = place;
    run.child.kill("SIGKILL");
    assert.equal(await run.ended, "SIGKILL");
    assert.deepEqual(pids.map(isAlive), [true, true]);
    const next = await finishes(place, /^plan: 1 of 3 tasks done before, 2 at once/);
    assert.deepEqual(pids.map(isAlive), [false, false]);
    assert.match(next.errors(), /^note: \d processes that an earlier run had left behind were killed\n$/);
  });

  test("killed, a task with onLoss: fail has failed in the next run, and runs in the one after", async () => {
    const { place, run } = await heldPlace(PLAN.replace("  held:\n", "  held:\n    onLoss: fail\n"));
    using _ = place;
    run.child.kill("SIGKILL");
    assert.equal(await run.ended, "SIGKILL");
    place.write("free", "");
    const next = start(place);
    assert.equal(await next.ended, 1, next.errors());
    assert.deepEqual(place.ran(), ["first", "held"]);
    assert.match(next.lines.join("\n"), /its outcome is unknown/);
    await finishes(place, /^plan: 1 of 3 tasks done before, 2 at once/);
  });

  test("a reader that has gone ends it, and what it had started ends with it", async () => {
    const { place, run, pids } = await heldPlace();
    using _ = place;
    run.child.stdout?.destroy();
    run.child.kill("SIGINT");
    await run.ended;
    assert.deepEqual(pids.map(isAlive), [false, false]);
    await finishes(place, /^plan: 1 of 3 tasks done before/);
  });
});

test("killed again and again, what was printed as done never starts again, and all of it ends", LIMIT, async () => {
  const count = 12;
  const tasks = Array.from({ length: count }, (_, at) => {
    const needs = at < 3 ? "" : `, needs: [t${at - 3}, t${at - 2}]`;
    return `  t${at}: { run: echo t${at} >> ran${needs} }`;
  });
  using place = planDirectory(`workers: { slots: 2 }\ntasks:\n${tasks.join("\n")}`);
  const done = new Set<string>();
  // Drawn anew each time; what is printed with a failure tells how to draw it again.
  const [seed] = fc.sample(fc.integer({ min: 0, max: 1_000_000 }), 1) as [number];
  const draws = fc.sample(fc.integer({ min: 1, max: 8 }), { numRuns: 40, seed });
  let last: unknown = null;
  for (const [round, kill] of draws.entries()) {
    const run = start(place);
    await run.printed(round < 25 ? kill : Number.POSITIVE_INFINITY);
    run.child.kill("SIGKILL");
    const how = await run.ended;
    const again = tasksWith(run.lines, "start").filter((task) => done.has(task));
    assert.deepEqual(again, [], `round ${round}, seed ${seed}`);
    for (const task of tasksWith(run.lines, "done")) done.add(task);
    last = how;
    if (how === 0) break;
  }
  // What ended just before a kill may never have been printed: that the last run ends well says that all is done.
  assert.equal(last, 0, `seed ${seed}`);
  assert.deepEqual([...new Set(place.ran())].length, count);
});
