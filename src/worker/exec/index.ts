/** What other layers may use of this room. */

export { answerOf } from "./answer.ts";
export type { Attempt } from "./attempt.ts";
export type { ExecContext, ExecOutcome, ExecTask, SweepReport } from "./contract.ts";
export { createTaskCommands, passed, type TaskCommandOptions, type TaskCommands } from "./task-commands.ts";
export { watchRoom } from "./worktree-room.ts";
