/**
 * Every verb that takes a task takes PLAN/TASK, of a plan on a server and of one that has run alone and is over; and
 * says what was meant where there is no such task.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type PlanDirectory, planDirectory } from "../../../test/kits/cli/plan-directory.ts";
import { served } from "../../../test/kits/cli/served.ts";
import { git } from "../../../test/kits/faults/repository.ts";

const LIMIT = { timeout: 180_000 };
const PLAN = `tasks:
  spec: { run: echo hi > spec.md; echo seen, outputs: [spec.md], worktree: true }
  code: { for: { part: [a, b] }, run: echo $part >> part, worktree: true }
  ship: { run: echo ship >> ran, needs: [spec, code], approval: { question: Ship it? } }
  last: { run: echo last >> ran, needs: ship }`;

/** TASK is where the task stands; where a verb cannot reach what is over, `live` is said. */
type Row = { readonly args: string; readonly task: string; readonly says: RegExp; readonly live?: true };
const ROWS: readonly Row[] = [
  { args: "task TASK", task: "spec", says: /state +done/ },
  { args: "task TASK --logs", task: "spec", says: /seen/ },
  { args: "logs TASK", task: "spec", says: /seen/ },
  { args: "why TASK", task: "last", says: /^plan\/last is waiting/ },
  { args: "why TASK", task: "ship", says: /\(npx drover approve plan\/ship\): Ship it/ },
  { args: "events TASK", task: "spec", says: /task-submitted.*task-done/s },
  { args: "events --task TASK", task: "spec", says: /task-submitted.*task-done/s },
  { args: "files TASK", task: "spec", says: /spec\.md +3 B/ },
  { args: "files TASK --get spec.md", task: "spec", says: /spec\.md +3 B/ },
  { args: "tasks --tree TASK", task: "spec", says: /^plan\/spec +done/m },
  { args: "tasks --parent TASK", task: "spec", says: /No tasks here/ },
  { args: "worktrees diff TASK", task: "spec", says: /\+hi/ },
  { args: "worktrees merge TASK --into main", task: "spec", says: /is merged into main/ },
  { args: "pause --task TASK", task: "last", says: /task plan\/last is paused/, live: true },
  { args: "resume --task TASK", task: "last", says: /task plan\/last goes on/, live: true },
  { args: "cancel TASK", task: "last", says: /plan\/last cancelled/ },
  { args: "cancel --where root=TASK", task: "spec", says: /0 tasks cancelled/, live: true },
  { args: "retry TASK", task: "last", says: /plan\/last submitted again/ },
  { args: "approve TASK", task: "ship", says: /plan\/ship approved/ },
];

const call = (place: PlanDirectory, { args }: Row, task: string): ReturnType<PlanDirectory["drover"]> =>
  place.drover(args.replace("TASK", task).split(" "));

function inRepository(): PlanDirectory {
  const place = planDirectory(PLAN);
  place.write(".gitignore", ".drover\nran\nspec.md\n!/.drover/**/spec.md\n");
  git(place.directory, "init", "--quiet", "--initial-branch=main");
  git(place.directory, "config", "user.email", "a@example.org");
  git(place.directory, "config", "user.name", "A");
  git(place.directory, "commit", "--quiet", "--allow-empty", "-m", "first");
  return place;
}

async function checkRows(place: PlanDirectory, isOver: boolean): Promise<void> {
  for (const row of ROWS) {
    const { code, out, err } = await call(place, row, `plan/${row.task}`);
    if (isOver && row.live === true) {
      assert.deepEqual([code, /has run alone, and nothing of it runs now/.test(err)], [4, true], row.args + err);
      continue;
    }
    assert.equal(code, 0, `${row.args}: ${err}`);
    assert.match(out, row.says, row.args);
  }
}

/** What is said of a task that is not there, by every verb alike. */
async function checkTypos(place: PlanDirectory, isOver: boolean): Promise<void> {
  for (const row of ROWS.filter(({ live }) => !isOver || live !== true)) {
    const swapped = `plan/${row.task.slice(0, -2)}${row.task.at(-1)}${row.task.at(-2)}`;
    // What is in no plan is looked for on a server.
    const isAsked = !isOver && !row.args.startsWith("worktrees");
    for (const [task, text] of [
      ["plan/code", /it stands for 2 tasks: 'plan\/code\[a\]', 'plan\/code\[b\]'/],
      [swapped, /did you mean plan\/\w+\?/],
      ...(isAsked ? ([["nix", /no task has the id nix\n/]] as const) : []),
      ...(isAsked ? ([[`paln/${row.task}`, new RegExp(`did you mean plan/${row.task}\\?`)]] as const) : []),
    ] as const) {
      const { code, err } = await call(place, row, task);
      assert.deepEqual([code, text.test(err)], [4, true], `${row.args} ${task}: ${err}`);
    }
  }
}

describe("a task by its name in its plan", LIMIT, () => {
  test("on a server", async () => {
    using place = inRepository();
    await using server = await served(["--slots", "2"], { directory: place.directory });
    const { terminal, ended } = place.start();
    try {
      await terminal.saw("waits for approval of ship");
      await checkTypos(place, false);
      await checkRows(place, false);
    } catch (error) {
      terminal.signal("SIGINT");
      throw error;
    }
    await ended;
    assert.deepEqual(place.ran(), ["ship", "last"]);
    for (const act of ["cancel", "pause", "resume", "retry"]) {
      const { code, out, err } = await place.drover(["plan", "plan", `--${act}`]);
      const text = `error: the plan plan is done; there is nothing to ${act}\n`;
      assert.deepEqual([code, out, err.startsWith(text)], [4, "", true], err);
    }
    await server.stop();
  });

  test("of a run alone that is over", async () => {
    using place = inRepository();
    await place.run();
    await checkTypos(place, true);
    await checkRows(place, true);
    const { code, err } = await place.drover(["task", "paln/spec"]);
    assert.deepEqual([code, /did you mean plan\/spec, which ran alone\?/.test(err)], [3, true], err);
    assert.equal((await place.run()).code, 0);
    assert.deepEqual(place.ran(), ["ship", "last"]);
  });
});
