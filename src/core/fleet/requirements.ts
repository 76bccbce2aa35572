/**
 * What tasks ask for, each kept once.
 *
 * A million tasks ask for the same few things, so a task only points to what it asks for. Whoever submits mostly
 * repeats itself: the ask of an agent's last task is compared first, field by field, and only if it differs is the
 * table looked up by a key that spells everything out.
 */
import type { TaskSubmitted } from "../model/events.ts";
import type { Agent, Ask, State } from "../model/state.ts";

/** What a new task of this agent asks for. */
export function askFor(state: State, agent: Agent, event: TaskSubmitted): Ask {
  const { lastAsk } = agent;
  // One without users is in the table no more.
  if (lastAsk !== null && lastAsk.users > 0 && asksTheSame(lastAsk, event)) lastAsk.users++;
  else agent.lastAsk = internAsk(state, event);
  return agent.lastAsk as Ask;
}

const asksTheSame = (ask: Ask, event: TaskSubmitted): boolean =>
  ask.type === event.type &&
  ask.action === event.action &&
  ask.cpu === event.cpu &&
  ask.memory === event.memory &&
  ask.provider === event.provider &&
  ask.zone === event.zone &&
  ask.tab === event.tab &&
  ask.maxAttempts === event.maxAttempts &&
  ask.timeoutMs === event.timeoutMs &&
  ask.onDependencyFailure === event.onDependencyFailure &&
  ask.prioritised === event.prioritised &&
  ask.onLoss === event.onLoss &&
  areSame(ask.capabilities, event.capabilities) &&
  areSame(ask.locks, event.locks);

function areSame(left: readonly string[], right: readonly string[]): boolean {
  if (left.length !== right.length) return false;
  for (let index = 0; index < left.length; index++) if (left[index] !== right[index]) return false;
  return true;
}

/** What the task asks for, shared with all that ask for the same. */
export function internAsk(state: State, event: Omit<Ask, "key" | "users" | "shape">): Ask {
  // Names hold no blanks and no control characters, so these separators cannot be in them.
  const { capabilities, locks } = event;
  const { type, action } = event;
  const wants = `${type}\n${action}\n${event.cpu}\n${event.memory}\n${event.provider}\n${event.zone}\n${event.tab}`;
  const tries = `${event.maxAttempts}\n${event.timeoutMs}\n${event.onDependencyFailure}\n${event.prioritised}`;
  const key = `${wants}\n${tries}\n${event.onLoss}\n${capabilities.join(" ")}\n${locks.join(" ")}`;
  let ask = state.asks.get(key);
  if (ask === undefined) {
    const { cpu, memory, provider, zone, tab } = event;
    const { maxAttempts, timeoutMs, onDependencyFailure, onLoss, prioritised } = event;
    const rules = { maxAttempts, timeoutMs, onDependencyFailure, onLoss, prioritised };
    ask = { key, type, action, capabilities, cpu, memory, provider, locks, zone, tab, ...rules, users: 0, shape: null };
    state.asks.set(key, ask);
  }
  ask.users++;
  return ask;
}
