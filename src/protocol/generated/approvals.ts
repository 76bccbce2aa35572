/**
 * Types of the wire: those of shapes/approvals.ts.
 *
 * Written by tools/schema-declarations.ts from the schemas: change those, and run it.
 */

/** What somebody must approve. */
export type ApprovalBody = {
  /** What is asked. */
  readonly question?: string;
  /** After so long without an answer it has failed; absent: never. */
  readonly timeoutMs?: number;
};

/** What somebody is asked, or has answered. */
export type ApprovalView = {
  /** What is or was asked. */
  readonly question?: string;
  /** As submitted. */
  readonly timeoutMs?: number;
  /** When it fails if nobody answers. */
  readonly until?: string;
  /** When it was approved. */
  readonly at?: string;
  /** What was said then. */
  readonly note?: string;
};

/** What somebody answers. */
export type ApproveBody = {
  /** What the next attempt sees; with deny, why. */
  readonly note?: string;
  /** It is denied, and fails. */
  readonly deny?: boolean;
};
