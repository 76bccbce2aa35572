/**
 * `drover worktrees`: the worktrees that tasks have left on this machine, what is in them, and how it leaves them.
 *
 * It asks no server: trees lie in the data directories of workers and runs, beside notes that say whose they are.
 */
import { resolve } from "node:path";
import type { LeftTree } from "../../worker/worktree/index.ts";
import { idOf } from "../shell/connection.ts";
import { noSuchTask } from "../shell/meant.ts";
import type { Output } from "../shell/output.ts";
import { asTyped, CliProblem, EXIT, type ExitCode, usageProblem } from "../shell/problem.ts";
import { type Paint, plain, plainLines, shortPath, type Tint } from "../shell/text.ts";
import { type Call, each, type FlagSpec, type Verb, type VerbBody } from "../shell/verb.ts";

type DataFlags = { readonly data?: readonly string[] };
type MergeFlags = DataFlags & { readonly into?: string };
type CleanFlags = DataFlags & { readonly force?: boolean; readonly dryRun?: boolean };

const DATA: FlagSpec = {
  flags: "-d, --data <directory>",
  about:
    "the data directory of a worker or a run; may be given again (default: all in .drover, and of this repository)",
  read: each,
};
const TASK = { name: "<task>", about: "the task: its id, its name in its plan, its branch, or the name of its tree" };

/** Loaded when it is wanted: other verbs need no git. */
const trees = (): Promise<typeof import("../../worker/worktree/index.ts")> => import("../../worker/worktree/index.ts");

async function found({ flags, terminal }: Call<DataFlags>): Promise<LeftTree[]> {
  const { findTrees } = await trees();
  const data = (flags.data ?? [".drover"]).map((directory) => resolve(terminal.cwd, directory));
  return await findTrees(data, flags.data === undefined ? terminal.cwd : null);
}

// ------------------------------------------------------------------------ list

const TINTS: Readonly<Record<LeftTree["standing"], Tint | null>> = {
  running: "cyan",
  waiting: "cyan",
  work: "yellow",
  merged: "green",
  empty: null,
  gone: null,
  elsewhere: null,
};

async function list(call: Call<DataFlags>): Promise<ExitCode> {
  const all = await found(call);
  const { output, terminal } = call;
  output.answer({ worktrees: all.map(viewOf), count: all.length }, () =>
    all.length === 0 ? "No task has left a worktree here.\n" : tableOf(all, output, terminal.cwd),
  );
  return EXIT.ok;
}

function viewOf({ note, standing, state, problem }: LeftTree): Record<string, unknown> {
  const { name, taskId, plan, task, attempt, branch, base, path } = note;
  const { commits, uncommitted, changedFiles, changedCount } = state ?? {};
  const work = { commits, uncommitted, changedFiles, changedCount };
  return { name, taskId, plan, task, attempt, state: standing, branch, base, path, ...work, problem };
}

const tableOf = (all: readonly LeftTree[], output: Output, cwd: string): string =>
  output.table(all, [
    { title: "TREE", of: ({ note }) => note.name, stays: true, shrinks: "last", least: 20 },
    { title: "STATE", of: ({ standing }) => standing, tint: ({ standing }) => TINTS[standing], stays: true },
    { title: "COMMITS", of: ({ state }) => count(state?.commits), align: "right" },
    { title: "FILES", of: ({ state }) => count(state?.changedCount), align: "right" },
    { title: "BRANCH", of: ({ note }) => note.branch, shrinks: "last", least: 24 },
    { title: "PATH", of: ({ note }) => shortPath(note.path, cwd), leaves: 1 },
    { title: "NOTE", of: ({ problem = "" }) => problem, shrinks: true },
  ]);

const count = (number: number | undefined): string => (number === undefined || number === 0 ? "" : String(number));

const listVerb: Verb<DataFlags> = {
  name: "list",
  summary: "list them, with what is in each",
  flags: [DATA],
  examples: [
    ["drover worktrees list", "the trees of runs and workers here"],
    ["drover worktrees list --data /srv/drover/worker --json", "of another data directory, for a program"],
  ],
  run: list,
};

// ------------------------------------------------------------------ one of them

/** Of several attempts of a task, the latest; of several runs of a plan, that of the newest. */
async function chosen(call: Call<DataFlags>): Promise<LeftTree> {
  const wanted = idOf(call);
  const all = await found(call);
  const exact = all.filter(({ note }) => note.name === wanted || note.branch === wanted);
  const named = exact.length > 0 ? exact : all.filter((tree) => namesOf(tree).includes(wanted));
  const tasks = new Set(named.map(({ note }) => note.taskId));
  if (tasks.size > 1)
    throw usageProblem(`${wanted} is several tasks`, `name a tree: ${named.map(({ note }) => note.name).join(", ")}`);
  const [newest] = named.toSorted((one, other) => other.notedAt - one.notedAt);
  const ofRun = named.filter(({ root }) => root === newest?.root);
  const [latest] = ofRun.toSorted(({ note: one }, { note: other }) => other.attempt - one.attempt);
  if (latest !== undefined) return latest;
  throw noSuchTask({
    message: `no worktree of ${wanted} is here`,
    name: wanted,
    names: all.flatMap(namesOf),
    typed: (name) => name,
    otherwise: "drover worktrees lists those that are",
  });
}

const namesOf = ({ note: { taskId, plan, task, name } }: LeftTree): string[] =>
  task === undefined ? [taskId, name] : [taskId, task, `${plan}/${task}`, name];

/** What keeps git from it, in words. */
async function orRefused<Value>(action: () => Promise<Value>): Promise<Value> {
  const { WorkspaceRefusal } = await trees();
  try {
    return await action();
  } catch (error) {
    const { name, message } = error as Error;
    if (error instanceof WorkspaceRefusal) throw new CliProblem({ message, code: "conflict", exit: EXIT.refused });
    if (name !== "GitError") throw error;
    throw new CliProblem({ message, code: "git", exit: EXIT.broken });
  }
}

const diffVerb: Verb<DataFlags> = {
  name: "diff",
  summary: "show what a task changed since it began, committed, merged or neither, as a patch",
  takes: [TASK],
  flags: [DATA],
  examples: [["drover worktrees diff impl", "what impl did"]],
  run: async (call) => {
    const tree = await chosen(call);
    const { patchOf } = await trees();
    const { output, terminal } = call;
    const diff = await orRefused(() => patchOf(tree.note));
    // For a program it is as it is; what a person sees cannot write into the terminal.
    output.answer({ ...viewOf(tree), diff }, () => (terminal.width === null ? diff : painted(diff, output.paint)));
    return EXIT.ok;
  },
};

const LINE_TINTS: readonly (readonly [start: string, tint: Tint])[] = [
  ["diff ", "bold"],
  ["--- ", "bold"],
  ["+++ ", "bold"],
  ["@@", "cyan"],
  ["+", "green"],
  ["-", "red"],
];

function painted(diff: string, paint: Paint): string {
  const lines = diff.split("\n").map((line) => {
    const shown = plainLines(line.replaceAll("\t", "    "));
    const tint = LINE_TINTS.find(([start]) => line.startsWith(start))?.[1];
    return tint === undefined ? shown : paint(tint, shown);
  });
  return lines.join("\n");
}

const mergeVerb: Verb<MergeFlags> = {
  name: "merge",
  summary: "merge what a task did into a branch of yours",
  takes: [TASK],
  flags: [{ flags: "--into <branch>", about: "the branch it goes into, such as main" }, DATA],
  examples: [["drover worktrees merge impl --into main", "what it had not committed goes along, as a commit"]],
  run: async (call) => {
    const { into } = call.flags;
    if (into === undefined) throw usageProblem("--into is missing", "say which branch, such as --into main");
    const tree = await chosen(call);
    const { mergeInto } = await trees();
    const { commit, isNew, path } = await orRefused(() => mergeInto(tree, into));
    const { branch, name } = tree.note;
    call.output.answer({ name, branch, into, commit, isNew, path }, () => {
      if (!isNew) return `${plain(into)} has all of ${plain(branch)} already\n`;
      const where = path === null ? "" : `, which is checked out in ${shortPath(path, call.terminal.cwd)}`;
      const clean = asTyped("drover worktrees clean");
      return `${plain(branch)} is merged into ${plain(into)}${where}; ${clean} removes its tree\n`;
    });
    return EXIT.ok;
  },
};

const cleanVerb: Verb<CleanFlags> = {
  name: "clean",
  summary: "remove trees and branches whose work is merged, or that have none",
  takes: [{ name: "[tasks...]", about: "only of these tasks (default: all)" }],
  flags: [
    { flags: "-f, --force", about: "also those with work in them, which is lost" },
    { flags: "--dry-run", about: "only say what would go and what would stay" },
    DATA,
  ],
  examples: [
    ["drover worktrees clean --dry-run", "what would go, and what would stay and why"],
    ["drover worktrees clean", "nothing with work in it goes"],
    ["drover worktrees clean impl --force", "this one, whatever is in it"],
  ],
  run: async (call) => {
    const { flags, args, output, terminal } = call;
    const some = args.map((task) => chosen({ ...call, args: [task] }));
    const all = args.length === 0 ? await found(call) : await Promise.all(some);
    const { cleanTree } = await trees();
    const removed: string[] = [];
    const kept: { readonly name: string; readonly path: string; readonly why: string }[] = [];
    for (const tree of all) {
      const { name, path } = tree.note;
      const why = await cleanTree(tree, { force: flags.force === true, onlyLooks: flags.dryRun === true });
      if (why === null) removed.push(name);
      else kept.push({ name, path, why });
    }
    const [goes, stays] = flags.dryRun === true ? ["would go  ", "would stay"] : ["removed", "kept   "];
    output.answer({ removed, kept }, () => {
      const lines = [
        ...removed.map((name) => `${goes}  ${plain(name)}`),
        ...kept.map(
          ({ name, path, why }) => `${stays}  ${plain(name)} (${shortPath(path, terminal.cwd)}): ${plain(why)}`,
        ),
      ];
      return `${lines.length === 0 ? "There is nothing to clean." : lines.join("\n")}\n`;
    });
    return EXIT.ok;
  },
};

export const worktreesVerb: VerbBody<DataFlags> = {
  about:
    "Worktrees with work in them are kept until you have looked at them. A tree is running while an attempt is in " +
    "it, it is waiting while its task is parked or between rounds, it has work nowhere else, its work is merged " +
    "(into a branch of yours or of a remote), or it is empty. No server is asked.",
  flags: [DATA],
  examples: [
    ["drover worktrees", "what tasks have left here"],
    ["drover worktrees diff impl && drover worktrees merge impl --into main", "look at it, then take it"],
  ],
  verbs: [listVerb, diffVerb, mergeVerb, cleanVerb] as readonly Verb<never>[],
  run: list,
};
