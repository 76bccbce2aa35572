/**
 * A command that comes with its task: `params.command`, a line for the shell or a list of words.
 *
 * So the worker that `drover serve` brings along can run a first task without knowing beforehand what tasks there
 * will be. It also means that a caller who may submit may run anything here, as the person who started the server: see
 * `local-worker.ts` for when it is there.
 */
import { type AssignedTask, type Preset, taskDocument } from "../../worker/exec/index.ts";
import { createEventReader } from "../../worker/output/index.ts";

/** Without -e a command of several lines would go on after one that failed. */
const SHELL = ["/bin/sh", "-e", "-c"] as const;

/** The words to run; null if the task has no command, or one that is neither text nor words. */
export function commandOf({ params }: Pick<AssignedTask, "params">): readonly string[] | null {
  const command: unknown = params?.command;
  if (typeof command === "string") return command.trim() === "" ? null : [...SHELL, command];
  const isWords = Array.isArray(command) && command.length > 0 && command.every((word) => typeof word === "string");
  return isWords && command[0] !== "" ? (command as string[]) : null;
}

/** The command as a preset of the exec worker: like a coding agent whose command line is the task's own. */
export function taskCommand(cwd: string): Preset {
  return function command(task) {
    return {
      argv: commandOf(task) ?? ["false"],
      stdin: taskDocument(task, task.attempt, cwd),
      env: {},
      createReader: createEventReader,
    };
  };
}
