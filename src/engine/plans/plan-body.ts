/**
 * A task of a plan as the engine takes it: an exec whose work travels in its params, expressions unfilled.
 *
 * One with an action of its own has that action, and its worker is handed the params of its work (tasks/inputs.ts).
 */
import { resolve } from "node:path";
import { EXEC } from "../../core/fleet/index.ts";
import type { Matched, Work } from "../../plan/index.ts";
import { present } from "../../std/index.ts";
import type { TaskInput } from "../tasks/task-body.ts";

/** `directory`: what paths in the plan start from; null: they stay as they are, and start where their worker is. */
export function planTaskBody({ task, id, needs }: Matched, plan: string, directory: string | null): TaskInput {
  const { rules, work } = task;
  const { agent, project, type, locks, attempts, onDependencyFailure, onLoss, priority, labels, approval, wait } =
    rules;
  const { maxRounds, capabilities, zone } = rules;
  const action = work.command.kind === "call" ? work.command.action : EXEC;
  // A command uses no tokens unless the plan says so: it waits for no budget, and is not booked at a guess.
  const estimatedTokens = rules.tokens ?? (work.command.kind === "agent" || action !== EXEC ? undefined : 0);
  const named = Object.fromEntries(task.needs.map((name, index) => [name, needs[index] ?? name]));
  const loop = maxRounds === undefined ? undefined : { max: maxRounds, ...present({ until: work.until }) };
  return {
    id,
    agentId: agent,
    project,
    action,
    type,
    ...(needs.length === 0 ? {} : { needs: named }),
    ...(locks.length === 0 ? {} : { locks }),
    params: { plan, task: task.name, work: withDirectory(work, directory), ...withoutNull(rules) },
    maxAttempts: attempts,
    onDependencyFailure,
    ...(rules.provider === null ? {} : { provider: rules.provider }),
    ...(rules.timeoutMs === null ? {} : { timeoutMs: rules.timeoutMs }),
    ...present({ onLoss, priority, capabilities, zone, labels, approval, wait }),
    ...present({ estimatedTokens, loop, outputs: work.outputs }),
  };
}

const withoutNull = ({ idleTimeoutMs }: Matched["task"]["rules"]): { readonly idleTimeoutMs?: number } =>
  idleTimeoutMs === null ? {} : { idleTimeoutMs };

const withDirectory = (work: Work, directory: string | null): Work =>
  directory === null ? work : { ...work, cwd: resolve(directory, work.cwd) };
