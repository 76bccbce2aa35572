/**
 * What a handler has beside its task, in the engine's own process and in any other.
 */
import type { Ask } from "../std/index.ts";
import type { FileRef, PriorityName, Submitted, Usage } from "./generated/index.ts";
import type { FileContent } from "./wire/file-content.ts";

/** How urgent a call is, and who pays. */
export type PermitOptions = {
  /** The project that pays; absent: the task's, else the default. */
  readonly project?: string;
  /** How urgent it is; absent: by the task, else as the gate says. */
  readonly class?: PriorityName;
  /** An estimate, for token windows and budgets. */
  readonly tokens?: number;
  /** Gives the call up while it waits. */
  readonly signal?: AbortSignal;
};
/** The right to make one call, while the call is made. */
export type HeldPermit = {
  /** The id of the permit. */
  readonly id: string;
  /** Reports what the call used; may be called again with more. */
  usage(usage: Usage): void;
};
/** Makes a call when its gate lets it out. */
export type WithPermit = <Value>(
  gate: string,
  call: (permit: HeldPermit) => Promise<Value> | Value,
  options?: PermitOptions,
) => Promise<Value>;

/** What a handler has beside its task. `Child` is what it may say of a task that it submits. */
export type TaskContextOf<Child extends object> = {
  /** Fires when the attempt must stop: cancelled, out of time or budget, its lease lost, its worker closing. */
  readonly signal: AbortSignal;
  /** The number of the attempt. */
  readonly attempt: number;
  /** Something to show while it runs; kept in memory, not in the log. */
  progress(value: unknown): void;
  /** Tokens used so far by this attempt, in all. */
  usage(usage: Usage): void;
  /**
   * Leaves a file under a path of its own: the task lists it, and those that need the task find it in their inputs.
   * Resolves when it is kept. The same path again takes the place of what was there.
   */
  output(path: string, content: FileContent): Promise<FileRef>;
  /** The content of a file that one of its needs has left, or of a result that was too large to be handed along. */
  file(hash: string): AsyncIterable<Uint8Array>;
  /** Asks a person: the attempt ends here, and the next one sees `task.approval`. */
  readonly ask: Ask;
  /** Makes an LLM call when its gate lets it out. */
  readonly withPermit: WithPermit;
  /** Submits a child of this task, which does not wait for it to end. It has parent, project and agent from it. */
  submit(task: Child): Promise<Submitted>;
  /** By which another process submits children of this task over HTTP, while the attempt lasts; null if it has none. */
  readonly token: string | null;
};
