/**
 * What is to be paused or go on, read at the edge: the fleet, a project or a task.
 *
 * No target is the whole fleet. So a name that came out undefined, as `{ project: settings.project }` may, must not be
 * taken for one that was left out.
 */
import { name, readSection } from "../core/base/index.ts";
import type { PauseBody } from "../protocol/index.ts";
import { badInput, refused } from "./writer/drover-error.ts";

type Scope = { readonly scope: "fleet" | "project" | "task"; readonly id: string };

export function readTarget(target: PauseBody): Scope {
  const read = readSection<PauseBody>({ project: name(), task: name() } as never, {}, target, "");
  if (!read.ok) throw refused(read.failure);
  const { project, task } = read.value;
  if (project !== undefined && task !== undefined) throw badInput("task", task, "absent where a project is named");
  if (project !== undefined) return { scope: "project", id: project };
  if (task !== undefined) return { scope: "task", id: task };
  const [unsaid] = Object.keys(target);
  if (unsaid !== undefined)
    throw badInput(unsaid, undefined, `the name of a ${unsaid}; or absent, for the whole fleet`);
  return { scope: "fleet", id: "" };
}
