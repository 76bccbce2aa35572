/**
 * Types of the wire: those of shapes/usage.ts.
 *
 * Written by tools/schema-declarations.ts from the schemas: change those, and run it.
 */

/** What one attempt used. */
export type AttemptUsage = {
  /** Its number. */
  readonly attempt: number;
  /** The worker it ran on. */
  readonly worker?: string;
  /** The tokens it used. */
  readonly usage: UsageView;
};

/** What a round of a loop used. */
export type RoundUsage = {
  /** Tokens in all. */
  readonly tokens: number;
  /** Tokens read, with those written into a cache. */
  readonly inputTokens?: number;
  /** Tokens written. */
  readonly outputTokens?: number;
  /** Tokens read from a cache. */
  readonly cachedTokens?: number;
  /** What it cost, in the currency of the workers; absent if none said. */
  readonly cost?: number;
};

/** Whose usage, and by what it is summed up. */
export type UsageQuery = {
  /** What it is summed up by: project, agent, type, day, or label:KEY. Default: project. */
  readonly by?: string;
  /** Only of this project. */
  readonly project?: string;
  /** Only of this agent. */
  readonly agentId?: string;
  /** Only since the day of this instant. Days are those of UTC. */
  readonly since?: string;
  /** How many rows at most. Default: 100. */
  readonly limit?: number;
};

/** What was used, row by row. */
export type UsageReport = {
  /** What the rows are. */
  readonly by: string;
  /** Those that used most tokens first; days with the last first. */
  readonly rows: readonly UsageRow[];
  /** How many rows. */
  readonly count: number;
  /** Of all rows, also those left out. */
  readonly total: UsageSum;
  /** How many rows were left out. */
  readonly omitted?: number;
  /**
   * What was used before is not known in full any more: there were more than 10 000 combinations of day,
   * project, agent and type, or label.
   */
  readonly completeSince?: string;
};

/** What some attempts used together. */
export type UsageSum = {
  /** How many attempts said what they used. */
  readonly attempts: number;
  /** The tokens it used. */
  readonly usage: UsageView;
};

/** The tokens it used. */
export type UsageView = {
  /** Tokens read, with those written into a cache. */
  readonly inputTokens: number;
  /** Tokens written. */
  readonly outputTokens: number;
  /** Tokens read from a cache. */
  readonly cachedTokens: number;
  /** What it cost, in the currency of the workers; absent if none said. */
  readonly cost?: number;
};

/** What was used, of one project, agent, type, label or day. */
export type UsageRow = {
  /** The project, agent, type, day or value of the label. */
  readonly key: string;
  /** How many attempts said what they used. */
  readonly attempts: number;
  /** The tokens it used. */
  readonly usage: UsageView;
};
