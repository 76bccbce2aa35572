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
