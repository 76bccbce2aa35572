/** What other layers may use of this room. */

export { type Attempt, type AttemptTools, startAttempt } from "./attempt.ts";
export { type ExecContext, type ExecOutcome, type ExecTask, type SweepReport, taskDocument } from "./contract.ts";
export { createFileCache } from "./file-cache.ts";
export { createExecHandler } from "./handler.ts";
export { type ReadFile, wholeInputs } from "./inputs.ts";
export { type ExecOptions, type ExecSetup, readExecOptions } from "./options.ts";
export type { Preset } from "./presets.ts";
export { createSessions } from "./sessions.ts";
export { watchRoom } from "./worktree-room.ts";
