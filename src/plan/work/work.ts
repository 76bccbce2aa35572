/**
 * What a task of a plan does: its command, where and with what it runs, and what it leaves.
 *
 * It is plain data, as a task's `params.work` carries it. Expressions in it are not filled in yet.
 */

/** The coding agents that are known by name. */
export const PRESET_NAMES = ["claude", "codex", "aider"] as const;
/** One of them. */
export type PresetName = (typeof PRESET_NAMES)[number];

export type Command =
  | { readonly kind: "line"; readonly line: string }
  | { readonly kind: "words"; readonly words: readonly string[] }
  | {
      readonly kind: "agent";
      readonly preset: PresetName;
      readonly prompt: string;
      readonly model: string | null;
      readonly args: readonly string[];
    }
  /** No command: an action that any worker may take, with its params. */
  | { readonly kind: "call"; readonly action: string; readonly params: Readonly<Record<string, unknown>> }
  /** It only stands for what it needs. */
  | { readonly kind: "nothing" };

/** What its worktree begins from: a base, the branch of a need, or a base with the branches of needs merged. */
export type PlanWorktree = { readonly base: string; readonly from?: string; readonly merge?: readonly string[] };

/** What a task does. Two tasks with the same work, whose needs have the same work, have the same outcome. */
export type Work = {
  readonly command: Command;
  /** As written, from the plan file's directory. */
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly passEnv: readonly string[];
  readonly input: string;
  readonly worktree: PlanWorktree | null;
  /** The expression that must be true; absent: it runs. */
  readonly if?: string;
  /** Of a loop: the line that says whether it is done. A shell finds the values of `for` in its environment. */
  readonly until?: string;
  /** The files it leaves; absent: none. */
  readonly outputs?: readonly string[];
};
