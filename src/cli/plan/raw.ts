/**
 * The shape of a plan file as it is written, once its schema has found nothing wrong.
 *
 * The schema (schema.ts) says the same for editors; these are its words for the compiler.
 */

export type Scalar = string | number | boolean;
export type Span = string | number;
export type RawBudget = number | null | { readonly limit?: number | null; readonly window?: Span };

/** What a task may have and `defaults` may give to all of them. */
export type Shared = {
  readonly agent?: string;
  readonly project?: string;
  readonly type?: string;
  readonly priority?: number | "critical" | "high" | "normal" | "low";
  readonly provider?: string | null;
  readonly env?: Readonly<Record<string, Scalar>>;
  readonly passEnv?: string | readonly string[];
  readonly cwd?: string;
  readonly shell?: boolean;
  readonly worktree?: boolean | { readonly base?: string };
  readonly timeout?: Span | null;
  readonly idleTimeout?: Span | null;
  readonly attempts?: number;
  readonly tokens?: number;
  readonly onDependencyFailure?: "skip" | "run";
  readonly onLoss?: "retry" | "fail";
};
export type RawTask = Shared & {
  readonly run?: string | readonly string[];
  readonly preset?: "claude" | "codex" | "aider";
  readonly prompt?: string;
  readonly model?: string;
  readonly args?: readonly string[];
  readonly input?: string;
  readonly needs?: string | readonly string[];
  readonly locks?: string | readonly string[];
  readonly for?: Readonly<Record<string, readonly Scalar[]>>;
};
export type RawTasks = Readonly<Record<string, string | RawTask | null>>;
type Section = Readonly<Record<string, unknown>>;

export type RawPlan = {
  readonly version?: 1;
  readonly name?: string;
  readonly workers?: { readonly slots?: number; readonly killGrace?: Span; readonly maxWorktrees?: number } | null;
  readonly defaults?: Shared | null;
  readonly projects?: Readonly<Record<string, { readonly budget?: RawBudget } | null>> | null;
  readonly budget?: RawBudget;
  readonly limits?: Section | null;
  readonly scheduler?: Section | null;
  readonly gates?: Readonly<Record<string, Section | null>> | null;
  readonly tasks?: RawTasks | null;
};
