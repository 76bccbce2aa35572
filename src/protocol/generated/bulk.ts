/**
 * Types of the wire: those of shapes/bulk.ts.
 *
 * Written by tools/schema-declarations.ts from the schemas: change those, and run it.
 */

/** What calls that travelled together are answered. */
export type BulkAnswer = {
  /** One for each call, in their order. */
  readonly answers: readonly BulkItem[];
};

/** Calls that travel together. */
export type BulkBody = {
  /**
   * 1 to 1000. They are begun in their order, and one may name what an earlier one makes. What is wrong
   * with one does not fail the others. None may wait: waitMs is 0.
   */
  readonly calls: readonly BulkCall[];
};

/** A call that travels with others. */
export type BulkCall = {
  /** Which call, by its operationId. */
  readonly call: "submit" | "submitBatch" | "cancel" | "askPermit" | "settlePermit" | "dropPermit";
  /** What stands in the path of the call. */
  readonly id?: string;
  /** What stands in its query. */
  readonly query?: Readonly<Record<string, unknown>>;
  /** Its body. */
  readonly body?: unknown;
};

/** What has ended of the tasks that are waited for. */
export type WaitAnyAnswer = {
  /** One for each task that has ended, or that is refused; none when the time is over. */
  readonly answers: readonly WaitAnyItem[];
};

/** Tasks that are waited for together. */
export type WaitAnyBody = {
  /** The tasks. */
  readonly ids: readonly string[];
  /** How long to wait for the first at most. Default: 30000. */
  readonly timeoutMs?: number;
};

/** Which of the permits wait no more. */
export type WaitPermitsAnswer = {
  /** Those that wait no more; none when the time is over. */
  readonly ids: readonly string[];
};

/** Permits that are waited for together. */
export type WaitPermitsBody = {
  /** The permits that were asked for. */
  readonly ids: readonly string[];
  /** How long to wait for the first at most. Default: 30000. */
  readonly timeoutMs?: number;
  /** The session that joining gave. A worker token must say it. */
  readonly session?: string;
};

/** What a call of a bulk is answered. */
export type BulkItem = {
  /** The status that the call would have alone. */
  readonly status: number;
  /** The body that it would have: its answer, or an error. */
  readonly body: unknown;
  /** When the same call may succeed, in seconds; as Retry-After says it. */
  readonly retryAfterS?: number;
};

/** What a wait for one of many tasks is answered. */
export type WaitAnyItem = {
  /** The task. */
  readonly id: string;
  /** The status that a wait for it alone would have. */
  readonly status: number;
  /** The task as it has ended, or an error. */
  readonly body: unknown;
  /** When the same call may succeed, in seconds; as Retry-After says it. */
  readonly retryAfterS?: number;
};
