/**
 * A plan file as JSON, for the compiler.
 *
 * Written by tools/schema-declarations.ts from the schemas: change those, and run it.
 */

import type { GateInput, SchedulerInput } from "./config-input.ts";

/** What holds for every task that says nothing else. */
export type PlanTaskDefaults = {
  /** Who submits it: agents of a project take turns. Default: me. */
  readonly agent?: string;
  /** Who pays. Default: default. */
  readonly project?: string;
  /**
   * plan, spec, phase, code, or any name; if absent, command, agent or its action. limits.perType counts
   * by it.
   */
  readonly type?: string;
  /** critical, high, normal, low, or a whole number; lower is sooner. Default: normal. */
  readonly priority?: number | "critical" | "high" | "normal" | "low";
  /** The gate its command goes through, such as anthropic/default; see gates. */
  readonly provider?: string | null;
  /** Variables for the command, by name. */
  readonly env?: Readonly<Record<string, string | number | boolean>>;
  /** Variables of yours it may see; * stands for any. */
  readonly passEnv?: string | readonly string[];
  /** Where it runs, from the plan file's directory. Default: .. */
  readonly cwd?: string;
  /** false: the line is split into words and run without a shell. Default: true. */
  readonly shell?: boolean;
  /** A git worktree and branch of its own for each attempt. Default: false. */
  readonly worktree?:
    | boolean
    | {
        /** The branch, tag or commit it begins from. Default: HEAD. */
        readonly base?: string;
      };
  /** How long one attempt may take, such as 30s, 10m, 2h. */
  readonly timeout?: number | string | null;
  /** How long it may write nothing. */
  readonly idleTimeout?: number | string | null;
  /** How often it is tried before it has failed. Default: 1. */
  readonly attempts?: number;
  /** What its worker must offer, such as gpu; on a server only: a run alone offers none. */
  readonly capabilities?: string | readonly string[];
  /** The zone it prefers, where placement looks at zones. */
  readonly zone?: string;
  /** At most 32 texts by name, by which tasks are found: { team: web }. */
  readonly labels?: Readonly<Record<string, string>>;
  /** How many tokens it will use, as far as is known. */
  readonly tokens?: number;
  /** run: it runs also if what it needs did not end well. Default: skip. */
  readonly onDependencyFailure?: "skip" | "run";
  /** fail: it fails if it had begun when drover run was killed. Default: retry. */
  readonly onLoss?: "retry" | "fail";
};

/** A task. */
export type PlanTaskDocument = {
  /** A command line for /bin/sh -e, or a list of words that is run without a shell. */
  readonly run?: string | readonly string[];
  /** A coding agent instead of a command; prompt is its instruction. */
  readonly preset?: "claude" | "codex" | "aider";
  /** What the agent is to do. */
  readonly prompt?: string;
  /** The agent's model. */
  readonly model?: string;
  /** Further words for the agent's command line. */
  readonly args?: readonly string[];
  /** What the command reads from its standard input; nothing if absent. */
  readonly input?: string;
  /**
   * An action instead of a command: for whatever worker of the server takes it, such as one of your own
   * program.
   */
  readonly action?: string;
  /** What that worker is given; an expression that is a whole text becomes its value. */
  readonly params?: Readonly<Record<string, unknown>>;
  /** Tasks that must be done first. */
  readonly needs?: string | readonly string[];
  /** It runs only if this is true once all it needs has ended; otherwise it is skipped. */
  readonly if?: string | boolean;
  /** Names only one running task may hold at a time. */
  readonly locks?: string | readonly string[];
  /** Somebody must approve it before it starts. */
  readonly approval?:
    | true
    | {
        /** What is asked. */
        readonly question?: string;
        /** After so long without an answer it has failed. */
        readonly timeout?: number | string;
      };
  /** children: it is done only when all has ended that its command submits while it runs. */
  readonly wait?: "children";
  /** It runs again until this says that its work is good; what it prints is what the next round sees. */
  readonly loop?: {
    /** A line for /bin/sh, run where the task runs when its command has ended with 0; exit 0: done. */
    readonly until?: string;
    /** How many rounds there may be; needed. */
    readonly max?: number;
  };
  /** Files it leaves for those that need it: paths in its directory, or patterns with *, ? and **. */
  readonly outputs?: string | readonly string[];
  /** One task for each value, which is in this variable; with several variables, for each combination. */
  readonly for?: Readonly<Record<string, readonly (string | number | boolean)[]>>;
  /** Who submits it: agents of a project take turns. Default: me. */
  readonly agent?: string;
  /** Who pays. Default: default. */
  readonly project?: string;
  /**
   * plan, spec, phase, code, or any name; if absent, command, agent or its action. limits.perType counts
   * by it.
   */
  readonly type?: string;
  /** critical, high, normal, low, or a whole number; lower is sooner. Default: normal. */
  readonly priority?: number | "critical" | "high" | "normal" | "low";
  /** The gate its command goes through, such as anthropic/default; see gates. */
  readonly provider?: string | null;
  /** Variables for the command, by name. */
  readonly env?: Readonly<Record<string, string | number | boolean>>;
  /** Variables of yours it may see; * stands for any. */
  readonly passEnv?: string | readonly string[];
  /** Where it runs, from the plan file's directory. Default: .. */
  readonly cwd?: string;
  /** false: the line is split into words and run without a shell. Default: true. */
  readonly shell?: boolean;
  /** A git worktree and branch of its own for each attempt. Default: false. */
  readonly worktree?:
    | boolean
    | {
        /** The branch, tag or commit it begins from. Default: HEAD. */
        readonly base?: string;
        /** A need: it begins from the branch that need left. */
        readonly from?: string;
        /** Needs: the branches they left are merged into its base, in this order. */
        readonly merge?: string | readonly string[];
      };
  /** How long one attempt may take, such as 30s, 10m, 2h. */
  readonly timeout?: number | string | null;
  /** How long it may write nothing. */
  readonly idleTimeout?: number | string | null;
  /** How often it is tried before it has failed. Default: 1. */
  readonly attempts?: number;
  /** What its worker must offer, such as gpu; on a server only: a run alone offers none. */
  readonly capabilities?: string | readonly string[];
  /** The zone it prefers, where placement looks at zones. */
  readonly zone?: string;
  /** At most 32 texts by name, by which tasks are found: { team: web }. */
  readonly labels?: Readonly<Record<string, string>>;
  /** How many tokens it will use, as far as is known. */
  readonly tokens?: number;
  /** run: it runs also if what it needs did not end well. Default: skip. */
  readonly onDependencyFailure?: "skip" | "run";
  /** fail: it fails if it had begun when drover run was killed. Default: retry. */
  readonly onLoss?: "retry" | "fail";
};

/** A plan file as JSON. */
export type PlanDocument = {
  /** The address of this schema, for editors. */
  readonly $schema?: string;
  /** Of this format. Default: 1. */
  readonly version?: 1;
  /** Names the log, .drover/runs/NAME; if absent, the name of the file. */
  readonly name?: string;
  /** This machine. */
  readonly workers?: {
    /** How many commands run at once; if absent, one for each core. */
    readonly slots?: number;
    /** From the first signal to a command that must stop until it is killed. Default: 10s. */
    readonly killGrace?: number | string;
    /** How many worktrees there may be. Default: 50. */
    readonly maxWorktrees?: number;
  };
  /** What holds for every task that says nothing else. */
  readonly defaults?: PlanTaskDefaults;
  /** Who pays; each by its name. */
  readonly projects?: {
    /** Of tasks that name no project. */
    readonly default?: {
      /** Its share among the projects that have work. Default: 1. */
      readonly weight?: number;
      /** How many of its tasks run at once. Default: 50. */
      readonly maxConcurrent?: number;
      /** The tokens its tasks may use, over all runs of this plan. */
      readonly budget?:
        | number
        | null
        | {
            /** Tokens; null: as many as wanted. Default: null. */
            readonly limit?: number | null;
            /** Within this span; if absent, ever. */
            readonly window?: number | string;
          };
      /** The most urgent its tasks and calls may be; critical opens the express lane. Default: high. */
      readonly maxPriority?: number | "critical" | "high" | "normal" | "low";
      /** The gate of tasks that name none. Default: null. */
      readonly provider?: string | null;
      /** What it may store in a minute: bodies, results, events; null: as much as it likes. Default: 256MiB. */
      readonly bytesPerMinute?: number | string | null;
    };
    /** Others, each by its name. */
    readonly [name: string]:
      | {
          /** Its share among the projects that have work. Default: 1. */
          readonly weight?: number;
          /** How many of its tasks run at once. Default: 50. */
          readonly maxConcurrent?: number;
          /** The tokens its tasks may use, over all runs of this plan. */
          readonly budget?:
            | number
            | null
            | {
                /** Tokens; null: as many as wanted. Default: null. */
                readonly limit?: number | null;
                /** Within this span; if absent, ever. */
                readonly window?: number | string;
              };
          /** The most urgent its tasks and calls may be; critical opens the express lane. Default: high. */
          readonly maxPriority?: number | "critical" | "high" | "normal" | "low";
          /** The gate of tasks that name none. Default: null. */
          readonly provider?: string | null;
          /** What it may store in a minute: bodies, results, events; null: as much as it likes. Default: 256MiB. */
          readonly bytesPerMinute?: number | string | null;
        }
      | undefined;
  };
  /** The tokens of all projects together. */
  readonly budget?:
    | number
    | null
    | {
        /** Tokens; null: as many as wanted. Default: null. */
        readonly limit?: number | null;
        /** Within this span; if absent, ever. */
        readonly window?: number | string;
      };
  /** How many at once. */
  readonly limits?: {
    /** Running tasks, whole fleet. Default: 50. */
    readonly maxInFlight?: number;
    /** Running tasks of one agent, over all its projects. Default: 10. */
    readonly maxPerAgentInFlight?: number;
    /**
     * Running tasks of one type; null takes a limit out. Default:
     * {"plan":2,"spec":5,"phase":20,"code":50}.
     */
    readonly perType?: Readonly<Record<string, number | null>>;
  };
  /** What runs next, and where. */
  readonly scheduler?: SchedulerInput;
  /** Provider accounts and other scarce things; each by its name, such as anthropic/default. */
  readonly gates?: {
    /** What a gate has that says nothing else. */
    readonly default?: GateInput;
    /** Others, each by its name. */
    readonly [name: string]: GateInput | undefined;
  };
  /** The work. */
  readonly tasks?: Readonly<Record<string, string | PlanTaskDocument>>;
};
