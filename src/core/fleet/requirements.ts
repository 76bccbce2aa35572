/**
 * What tasks require, each kept once.
 *
 * A million tasks require the same few things, so a task only points to its requirements. An agent mostly repeats
 * itself: the requirements of its last task are compared first, field by field, and only if they differ is the table
 * looked up by a key that spells everything out.
 */
import type { TaskSubmitted } from "../model/events.ts";
import type { Agent, Requirements, State } from "../model/state.ts";
import { EXEC_WORKTREE } from "./worker-filter.ts";

/** The requirements of a new task of this agent. */
export function requirementsFor(state: State, agent: Agent, event: TaskSubmitted): Requirements {
  const { lastRequirements } = agent;
  // Those without users are in the table no more.
  if (lastRequirements !== null && lastRequirements.users > 0 && requireTheSame(lastRequirements, event))
    lastRequirements.users++;
  else agent.lastRequirements = internRequirements(state, event);
  return agent.lastRequirements as Requirements;
}

const requireTheSame = (requirements: Requirements, event: TaskSubmitted): boolean =>
  requirements.type === event.type &&
  requirements.action === event.action &&
  requirements.cpu === event.cpu &&
  requirements.memory === event.memory &&
  requirements.provider === event.provider &&
  requirements.zone === event.zone &&
  requirements.tab === event.tab &&
  requirements.maxAttempts === event.maxAttempts &&
  requirements.timeoutMs === event.timeoutMs &&
  requirements.onDependencyFailure === event.onDependencyFailure &&
  requirements.prioritised === event.prioritised &&
  requirements.onLoss === event.onLoss &&
  areSame(requirements.capabilities, event.capabilities) &&
  areSame(requirements.locks, event.locks);

function areSame(left: readonly string[], right: readonly string[]): boolean {
  if (left.length !== right.length) return false;
  for (let index = 0; index < left.length; index++) if (left[index] !== right[index]) return false;
  return true;
}

type Asked = Omit<Requirements, "key" | "users" | "shape" | "worktrees">;

/** The requirements of a task, shared with all that have the same. */
export function internRequirements(state: State, event: Asked): Requirements {
  const { type, action, capabilities, cpu, memory, provider, locks, zone, tab } = event;
  const { maxAttempts, timeoutMs, onDependencyFailure, onLoss, prioritised } = event;
  // Names hold no blanks and no control characters, so these separators cannot be in them.
  const wants = `${type}\n${action}\n${cpu}\n${memory}\n${provider}\n${zone}\n${tab}`;
  const tries = `${maxAttempts}\n${timeoutMs}\n${onDependencyFailure}\n${prioritised}\n${onLoss}`;
  const key = `${wants}\n${tries}\n${capabilities.join(" ")}\n${locks.join(" ")}`;
  let requirements = state.requirements.get(key);
  if (requirements === undefined) {
    const rules = { maxAttempts, timeoutMs, onDependencyFailure, onLoss, prioritised };
    const needs = { type, action, capabilities, cpu, memory, provider, locks, zone, tab };
    requirements = { key, ...needs, ...rules, worktrees: action === EXEC_WORKTREE ? 1 : 0, users: 0, shape: null };
    state.requirements.set(key, requirements);
  }
  requirements.users++;
  return requirements;
}
