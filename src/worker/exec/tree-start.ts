/**
 * What the worktree of a task begins from, as its `params.worktree` says.
 *
 *     true | { base?: REF, from?: NEED } | { base?: REF, merge: [NEED, …] }
 *
 * A need is named by its key in `inputs`. What it left is in its result, under `workspace` (outcome.ts). Everything
 * here came over the wire: what makes no sense is refused for good, in words.
 */
import { isRecord, nearest } from "../../core/base/index.ts";
import { EXEC } from "../../core/fleet/index.ts";
import type { Input } from "../../protocol/index.ts";
import { refused } from "../worktree/refusal.ts";
import type { LeftWork, TreeStart } from "../worktree/start.ts";
import type { ExecTask } from "./contract.ts";
import { type ReadFile, wholeInputs } from "./inputs.ts";
import type { ExecSetup } from "./options.ts";

const FIELDS = ["base", "from", "merge"];
const MERGED_MAX = 100;

/** Null if it has none. */
export async function treeStartOf(
  task: ExecTask,
  { isolation, preset }: Pick<ExecSetup, "isolation" | "preset">,
  readFile: ReadFile | undefined,
): Promise<TreeStart | null> {
  const given = task.params?.worktree;
  if (isolation === "none") {
    // The params of another action are its program's own, unless they can mean nothing else.
    const isOurs = task.action === EXEC || preset !== null || given === true || isWish(given);
    if (given === undefined || given === false || !isOurs) return null;
    throw refused("params.worktree asks for a worktree, and this worker makes none; start it with --worktree");
  }
  if (given === undefined || given === false) return isolation === "by-task" ? null : {};
  const { base, from, merge = [] } = readWish(given);
  const keys = from === undefined ? merge : [from];
  const works = await Promise.all(keys.map((key) => leftBy(task, key, readFile)));
  return {
    ...(base === undefined ? {} : { base }),
    ...(from === undefined ? { merge: works } : { from: works[0] as LeftWork }),
  };
}

type Wish = { readonly base?: string; readonly from?: string; readonly merge?: readonly string[] };

const isWish = (given: unknown): boolean => isRecord(given) && Object.keys(given).every((key) => FIELDS.includes(key));

function readWish(given: unknown): Wish {
  if (given === true) return {};
  if (!isRecord(given)) throw refused("params.worktree must be true, or an object with base, from or merge");
  const stray = Object.keys(given).find((key) => !FIELDS.includes(key));
  if (stray !== undefined) throw refused(`params.worktree has no ${JSON.stringify(stray)}; it has base, from, merge`);
  const { base, from, merge } = given;
  if (base !== undefined && !isText(base)) throw refused("params.worktree.base must be a branch, tag or commit");
  if (from !== undefined && !isText(from)) throw refused("params.worktree.from must be the name of a need");
  if (merge !== undefined && !isNames(merge))
    throw refused(`params.worktree.merge must be names of needs, at most ${MERGED_MAX}`);
  if (from !== undefined && (merge ?? base) !== undefined)
    throw refused("params.worktree.from says where it begins; it goes with neither base nor merge");
  return given as Wish;
}

const isText = (value: unknown): value is string => typeof value === "string" && value !== "";
const isNames = (value: unknown): boolean => Array.isArray(value) && value.length <= MERGED_MAX && value.every(isText);

async function leftBy(task: ExecTask, key: string, readFile: ReadFile | undefined): Promise<LeftWork> {
  const inputs = task.inputs ?? {};
  const input = Object.hasOwn(inputs, key) ? inputs[key] : undefined;
  if (input === undefined) {
    const meant = nearest(key, Object.keys(inputs));
    throw refused(`params.worktree names ${key}, which is no need of it${meant === null ? "" : `; is it ${meant}?`}`);
  }
  const { [key]: whole = input } = await wholeInputs({ [key]: input }, readFile);
  return leftIn(key, whole);
}

/** What is not said counts as not known. */
function leftIn(key: string, { taskId, state, result, branch }: Input): LeftWork {
  const { workspace } = isRecord(result) ? result : {};
  const said: Record<string, unknown> = isRecord(workspace) ? workspace : {};
  const text = (value: unknown): string | null => (isText(value) ? value : null);
  return {
    key,
    taskId,
    state,
    branch: branch ?? null,
    base: text(said.base),
    commit: text(said.commit),
    host: text(said.host),
    isUncommitted: Number(said.uncommitted) > 0,
    changedFiles: Array.isArray(said.changedFiles) ? said.changedFiles.filter(isText) : [],
  };
}

/** What people call a task of a plan. */
export function nameInPlan({ params }: ExecTask): { readonly plan?: string; readonly task?: string } {
  const { plan, task } = params ?? {};
  return isText(plan) && isText(task) ? { plan, task } : {};
}
