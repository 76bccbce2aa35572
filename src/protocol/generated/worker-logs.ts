/**
 * Types of the wire: those of shapes/worker-logs.ts.
 *
 * Written by tools/schema-declarations.ts from the schemas: change those, and run it.
 */

/** The end of what an attempt wrote, handed in. */
export type LogBody = {
  /** As joining gave it. A worker token must say it. */
  readonly session?: string;
  /** As the answer of a sync named it. */
  readonly id: string;
  /** The last lines; null: there is no such log. */
  readonly text: string | null;
  /** Whether there was more before. Default: false. */
  readonly truncated?: boolean;
  /** Why it could not be read, beside a text of null. */
  readonly error?: string;
};

/** What became of a log that was handed in. */
export type LogStatus = {
  /** late: no caller waits for it any more. */
  readonly status: "taken" | "late";
  /** Its id. */
  readonly id: string;
};
