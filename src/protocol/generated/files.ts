/**
 * Types of the wire: those of shapes/files.ts.
 *
 * Written by tools/schema-declarations.ts from the schemas: change those, and run it.
 */

/** The hash of a file. */
export type FileName = {
  /** The SHA-256 of the content. */
  readonly hash: string;
};

/** By whom a file is asked for. */
export type FileQuery = {
  /**
   * Of this task, or of one that it needs: then a result that was too large to be handed along is found
   * too. A worker token must name an attempt that it runs.
   */
  readonly task?: string;
  /** The number of that attempt. */
  readonly attempt?: number;
  /** As joining gave it. A worker token must say it. */
  readonly session?: string;
};

/** A file that a task left. */
export type FileRef = {
  /** Where it lay in the workspace of its task. */
  readonly path: string;
  /** The SHA-256 of its content. */
  readonly hash: string;
  /** In bytes. */
  readonly size: number;
};

/** The attempt that leaves a file. */
export type PutFileQuery = {
  /** The task of the attempt that asks. */
  readonly task?: string;
  /** The number of that attempt. */
  readonly attempt?: number;
  /** As joining gave it. A worker token must say it. */
  readonly session?: string;
};

/** A file is kept. */
export type StoredFile = {
  /** The SHA-256 of the content. */
  readonly hash: string;
  /** In bytes. */
  readonly size: number;
};
