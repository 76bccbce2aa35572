/**
 * A task of a plan as the engine takes it: an exec whose work travels in its params, expressions unfilled.
 *
 * One with an action of its own has that action. Its work travels too while something in it depends on its needs;
 * otherwise its params are the worker's as they are.
 */
import { resolve } from "node:path";
import { calledParams, isWanted, type Matched, type Work } from "../../plan/index.ts";
import { present } from "../../std/index.ts";
import type { TaskInput } from "../tasks/task-body.ts";

const EXEC = "exec";

/** `directory`: what paths in the plan start from; null: they stay as they are, and start where their worker is. */
export function planTaskBody({ task, id, needs }: Matched, plan: string, directory: string | null): TaskInput {
  const { rules, work } = task;
  const { agent, project, type, locks, attempts, onDependencyFailure, onLoss, priority, labels, approval, wait } =
    rules;
  const { maxRounds, capabilities, zone } = rules;
  const { action, params } = callOf(task, plan, directory);
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
    params,
    maxAttempts: attempts,
    onDependencyFailure,
    ...(rules.provider === null ? {} : { provider: rules.provider }),
    ...(rules.timeoutMs === null ? {} : { timeoutMs: rules.timeoutMs }),
    ...present({ onLoss, priority, capabilities, zone, labels, approval, wait }),
    ...present({ estimatedTokens, loop, outputs: work.outputs }),
  };
}

function callOf(
  { name, needs, work, rules }: Matched["task"],
  plan: string,
  directory: string | null,
): Required<Pick<TaskInput, "action" | "params">> {
  const own = { plan, task: name, work: withDirectory(work, directory), ...withoutNull(rules) };
  const { command } = work;
  if (command.kind !== "call") return { action: EXEC, params: own };
  if (needs.length > 0) return { action: command.action, params: own };
  // Nothing in it can change any more; if it is not wanted, whoever runs commands can say so.
  if (isWanted(work, {})) return { action: command.action, params: calledParams(own, {}) ?? {} };
  return { action: EXEC, params: { ...own, work: { ...work, command: { kind: "nothing" } } } };
}

const withoutNull = ({ idleTimeoutMs }: Matched["task"]["rules"]): { readonly idleTimeoutMs?: number } =>
  idleTimeoutMs === null ? {} : { idleTimeoutMs };

const withDirectory = (work: Work, directory: string | null): Work =>
  directory === null ? work : { ...work, cwd: resolve(directory, work.cwd) };
