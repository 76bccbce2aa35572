/**
 * What a token that is tied to a project or an agent may see and touch: its own.
 *
 * The table says for every call what a tied token gets: what belongs to it (`own`), what is the same for all
 * (`common`), or nothing (`nobody`), because the call speaks of everybody's work at once. It is complete: a call that
 * is added does not compile until somebody has decided. A body that claims another agent or project is refused and
 * told which; a task of somebody else is not found, so that asking tells nothing about it.
 */
import type { TaskId } from "../core/brand.ts";
import type { Drover } from "../engine/drover.ts";
import { refused } from "../engine/drover-error.ts";
import type { CallName } from "../protocol/index.ts";
import { type Caller, isTied } from "./access.ts";
import { forbidden } from "./problem.ts";

export const FOR_TIED: Readonly<Record<CallName, "own" | "common" | "nobody">> = {
  submit: "own",
  submitBatch: "own",
  tasks: "own",
  task: "own",
  patch: "own",
  cancel: "own",
  cancelWhere: "own",
  retry: "own",
  why: "own",
  wait: "own",
  logs: "own",
  projects: "own",
  project: "own",
  putProject: "nobody",
  workers: "common",
  joinWorker: "nobody",
  sync: "nobody",
  handInLog: "nobody",
  drainWorker: "nobody",
  leaveWorker: "nobody",
  schedules: "own",
  schedule: "own",
  putSchedule: "own",
  removeSchedule: "own",
  askPermit: "own",
  settlePermit: "own",
  dropPermit: "own",
  gates: "common",
  resetGate: "nobody",
  removeGate: "nobody",
  stats: "own",
  queue: "own",
  config: "common",
  patchConfig: "nobody",
  reload: "nobody",
  pause: "nobody",
  resume: "nobody",
  events: "nobody",
  health: "common",
  ready: "common",
  metrics: "nobody",
  openapi: "common",
};

/** Whose something is. */
export type Owner = { readonly agentId?: string | undefined; readonly project?: string | undefined };

const tieOf = ({ agentId, project }: Caller): string =>
  [agentId === null ? "" : `agent ${agentId}`, project === null ? "" : `project ${project}`].filter(Boolean).join(", ");

/** Throws if the call speaks of everybody's work and the token is tied. */
export function checkTie(name: CallName, caller: Caller): void {
  if (FOR_TIED[name] === "nobody" && isTied(caller))
    throw forbidden(`this token is tied to ${tieOf(caller)}, and this call speaks of the work of all`);
}

/** What is claimed must be the token's own; a project that is not named is the token's. */
export function claimed<Body extends Owner>(caller: Caller, body: Body, at = ""): Body {
  if (!isTied(caller)) return body;
  for (const key of ["agentId", "project"] as const) {
    const [own, given] = [caller[key], body[key]];
    if (own === null || given === undefined || given === own) continue;
    const field = `${at}${key}`;
    throw forbidden(`${field} is ${given}, and this token speaks for ${own} only`, { field, allowed: own });
  }
  return caller.project === null || body.project !== undefined ? body : { ...body, project: caller.project };
}

export const isOwn = (caller: Caller, { agentId, project = "default" }: Owner): boolean =>
  (caller.agentId === null || caller.agentId === agentId) && (caller.project === null || caller.project === project);

/** A filter that names nothing but what is the token's own. */
export function ownFilter<Filter extends Owner>(caller: Caller, filter: Filter): Filter {
  const { agentId, project } = caller;
  return {
    ...claimed(caller, filter),
    ...(agentId === null ? {} : { agentId }),
    ...(project === null ? {} : { project }),
  };
}

/** Throws, as if there were no such task, unless it is the token's own. */
export async function checkTask(drover: Drover, caller: Caller, id: string): Promise<void> {
  if (!isTied(caller)) return;
  const live = drover.state.tasks.get(id as TaskId);
  const owner = live === undefined ? await drover.task(id) : { agentId: live.agent.id, project: live.project.id };
  if (!isOwn(caller, owner)) throw refused({ type: "task-unknown", task: id });
}
