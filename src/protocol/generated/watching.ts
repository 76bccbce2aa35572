/**
 * Types of the wire: those of shapes/watching.ts.
 *
 * Written by tools/schema-declarations.ts from the schemas: change those, and run it.
 */

import type { TaskState } from "../wire/task-state.ts";

/** How things stood over a while. */
export type History = {
  /** Milliseconds between two samples. */
  readonly step: number;
  /** The oldest first, at most 1000. They outlive a restart. */
  readonly samples: readonly Sample[];
};

/** Which samples. */
export type HistoryQuery = {
  /** The first instant; absent: an hour ago. Six hours are kept. */
  readonly from?: string;
  /** How many milliseconds apart they are at least. Default: 10000. */
  readonly step?: number;
  /** Whether each has its projects. Default: true. */
  readonly projects?: boolean;
};

/** Which links of a task, and how many of each direction. */
export type LinksQuery = {
  /** How many of each direction are listed at most. Default: 1000. */
  readonly limit?: number;
  /** How many of what it waits for come before the first that is listed. Default: 0. */
  readonly upSkip?: number;
  /** How many of what waits for it come before the first that is listed. Default: 0. */
  readonly downSkip?: number;
};

/** Whether anything has happened. */
export type Pulse = {
  /** The number of the last event: while it is the same, nothing has happened. */
  readonly seq: number;
  /** The time of the log. */
  readonly at: string;
  /** This start of the server. */
  readonly serverId: string;
  /** The version of the server. */
  readonly version: string;
  /** Whether it is paused. */
  readonly paused: boolean;
  /** How many wait for something other than their turn. */
  readonly waiting: number;
  /** How many wait for their turn. */
  readonly queued: number;
  /** How many run. */
  readonly inFlight: number;
  /** How many are parked: they wait for somebody's word, or for their children. */
  readonly parked: number;
  /** How many of them wait for somebody's word. */
  readonly asking: number;
  /** How many may run at once. */
  readonly maxInFlight: number;
  /** Of a node of a cluster. */
  readonly node?: {
    /** What it is now, as far as it knows. */
    readonly role: "leader" | "follower";
    /**
     * journal-away: it does not reach the journal; behind: it has not all of it; read-only: the journal is
     * full.
     */
    readonly trouble?: "journal-away" | "behind" | "read-only";
    /** What it shows may be as old as this; absent: it is of now. */
    readonly since?: string;
    /** Other nodes that are down: silent for some seconds, within the last hour; absent: none. */
    readonly down?: readonly {
      /** Its id. */
      readonly id: string;
      /** When it was heard of last. */
      readonly since: string;
    }[];
  };
};

/** The config in force. */
export type SettingsView = {
  /** Every knob, in the order of the reference, at most 2000. None where a program gave the config. */
  readonly settings: readonly SettingView[];
  /** How many were left out. */
  readonly omitted?: number;
};

/** Queued tasks that need a person. */
export type Stuck = {
  /** Those that have waited longest first, at most 50. */
  readonly tasks: readonly StuckTask[];
};

/** What a task is tied to. */
export type TaskLinks = {
  /** The id of the task. */
  readonly taskId: string;
  /** What it is below of and what it needs. */
  readonly up: readonly TaskLink[];
  /** What grew below it and what needs it, in the order of submission. */
  readonly down: readonly TaskLink[];
  /** How many there are in all of these. */
  readonly upTotal: number;
  /** How many there are in all of those. */
  readonly downTotal: number;
  /** How many of both come behind the last ones that are listed; upSkip and downSkip reach them. */
  readonly omitted?: number;
};

/** Whether a log is what was written. */
export type Verified = {
  /** Whether every link, signature and body holds. */
  readonly ok: boolean;
  /** The last event up to which all of it is as it was written. */
  readonly upTo: number;
  /** Where the log ended, with the hash that was found there or is claimed. */
  readonly head: LogPlace;
  /** Where it begins: what is before was pruned. */
  readonly base: LogPlace;
  /** How many events were hashed anew. */
  readonly events: number;
  /** How many bodies were. */
  readonly payloads: number;
  /** How many snapshots carry a signature that holds. */
  readonly checkpoints: number;
  /** From this event on no signature covers it yet. */
  readonly unsignedFrom?: number;
  /** The sha256 of the key of the signatures. */
  readonly key?: string;
  /**
   * Of a node of a cluster: the others that have signed this history with the keys that the log names
   * for them.
   */
  readonly witnesses?: readonly {
    /** Its name. */
    readonly node: string;
    /** The event up to which it has signed. */
    readonly seq: number;
  }[];
  /** What is wrong; empty where nothing is. */
  readonly problems: readonly VerifiedProblem[];
};

/** Who a token speaks for. */
export type WhoAmI = {
  /** What the token allows; admin where the server has no tokens. */
  readonly role: "admin" | "agent" | "worker" | "viewer";
  /** The one project that the token is scoped to. */
  readonly project?: string;
  /** All that it is scoped to; absent: every project. */
  readonly projects?: readonly string[];
  /** The one agent that it speaks for; absent: every agent. */
  readonly agentId?: string;
};

/** A task that another is tied to. */
export type TaskLink = {
  /** The id of the task. */
  readonly taskId: string;
  /** Where it stands. */
  readonly state: TaskState;
  /** parent and need are waited for; child and dependent wait, or grew below. */
  readonly kind: "parent" | "need" | "child" | "dependent";
};

/** A queued task that needs a person. */
export type StuckTask = {
  /** The first of them in line. */
  readonly taskId: string;
  /** The project it is of. */
  readonly project: string;
  /** The agent it is of. */
  readonly agentId: string;
  /**
   * never-fits: no worker that is here could ever run it; overdue: it has waited for
   * priority.starvationAfter.
   */
  readonly why: "never-fits" | "overdue";
  /** How long it has waited. */
  readonly waitMs: number;
  /** How many tasks of its agent stand in the same line. */
  readonly count: number;
};

/** A knob of the config, and who set it. */
export type SettingView = {
  /** Where it stands in drover.yml. */
  readonly path: string;
  /** What is in force. Secrets are left out. */
  readonly value: unknown;
  /** What it is where nobody sets it; absent: nothing. */
  readonly default?: unknown;
  /** Who set it. leader: the config of the node that leads, which differs from that of this one. */
  readonly origin: "default" | "file" | "variable" | "flag" | "patch" | "leader";
  /** File and line, the variable, the flag, the call that patched it, or the node that leads. */
  readonly where?: string;
  /** What this node's own config says, where another is in force. It would hold if this node led. */
  readonly own?: {
    /** null: nothing. */
    readonly value: unknown;
    /** Who set it. */
    readonly origin: "default" | "file" | "variable" | "flag" | "patch" | "leader";
    /** File and line, the variable or the flag. */
    readonly where?: string;
  };
  /** What it means. */
  readonly about?: string;
};

/** Where the log ended, with the hash that was found there or is claimed. */
export type LogPlace = {
  /** The number of the event; 0: before the first. */
  readonly seq: number;
  /** The hash of the chain there. */
  readonly hash: string;
};

/** What is wrong with a log. */
export type VerifiedProblem = {
  /** The event; 0: none alone. */
  readonly seq: number;
  /** What is wrong there. */
  readonly message: string;
};

/** How things stood at an instant. */
export type Sample = {
  /** When it happened, in log time. */
  readonly at: string;
  /** How many wait for something other than their turn. */
  readonly waiting: number;
  /** How many wait for their turn. */
  readonly queued: number;
  /** How many run. */
  readonly inFlight: number;
  /** How many were parked: they waited for somebody's word, or for their children. */
  readonly parked: number;
  /** Tasks that were let in, since the log began. */
  readonly submitted: number;
  /** Tasks that were done, since the log began. */
  readonly done: number;
  /** Tasks that failed, since the log began. */
  readonly failed: number;
  /** Attempts that were given to a worker, since the log began. */
  readonly starts: number;
  /** Half of the tasks that started since the sample before had waited no longer. */
  readonly waitP50Ms?: number;
  /** 95 in 100 had waited no longer. */
  readonly waitP95Ms?: number;
  /** The busiest, at most 20. */
  readonly projects: readonly ProjectSample[];
};

/** How a project stood at an instant. */
export type ProjectSample = {
  /** Its id. */
  readonly id: string;
  /** Waiting and queued. */
  readonly queued: number;
  /** How many run. */
  readonly inFlight: number;
  /** What it was charged lately ÷ what all were. */
  readonly share: number;
  /** Its weight ÷ the weights of all. */
  readonly target: number;
  /** Tokens in the budget's window. */
  readonly spent: number;
};
