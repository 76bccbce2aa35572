/**
 * A busy world for measuring the core: 100 projects of unequal weights, 10 agents each, 1000 workers, every rule on.
 *
 * Tasks come in 12 or 144 shapes (type × capability × resources), four priorities, several depths of failure and
 * unequal estimates; budgets and limits by type and by project bind loosely, so that each is checked and none stops the
 * work. Nothing here is random: the same size gives the same world.
 */
import { agentId, type Instant, instant, projectId, workerId } from "../src/core/base/brand.ts";
import { readConfig } from "../src/core/config/config.ts";
import { decide } from "../src/core/decide.ts";
import { emptyState } from "../src/core/empty-state.ts";
import { evolve } from "../src/core/evolve.ts";
import type { Command, Submission } from "../src/core/model/commands.ts";
import type { Event } from "../src/core/model/events.ts";
import type { State } from "../src/core/model/state.ts";

export const PROJECTS = 100;
export const AGENTS = 10;
export const WORKERS = 1000;
const TYPES = ["plan", "spec", "phase", "code"] as const;
const CAPABILITIES = ["git", "browser", "gpu"] as const;
const PRIORITIES = [-100, 0, 0, 100] as const;
const START = 1_800_000_000_000;
const START_COST = 1000;

export type World = {
  readonly state: State;
  now: Instant;
  readonly running: { task: string; attempt: number; tokens: number }[];
  events: number;
  onEvent: ((event: Event) => void) | null;
};

export function newWorld(onEvent: ((event: Event) => void) | null = null): World {
  const world: World = { state: emptyState(), now: instant(START), running: [], events: 0, onEvent };
  const roomy = { plan: 3000, spec: 3000, phase: 3000, code: 3000 };
  const config = readConfig({
    scheduler: {
      ...{ maxInFlight: 3000, maxQueue: 5_000_000, maxPerAgent: 1_000_000, maxPerAgentInFlight: 50 },
      perType: roomy,
    },
    budget: { limit: 1_000_000_000_000_000 },
    projects: { default: { maxConcurrent: 200, budget: { limit: 10_000_000_000_000 } } },
  });
  if (!config.ok) throw new Error(JSON.stringify(config.failure));
  run(world, { type: "set-config", config: config.value });
  for (let index = 0; index < PROJECTS; index++) {
    const settings = { ...config.value.projects.default, weight: 1 + (index % 5) };
    run(world, { type: "put-project", project: projectId(`project-${index}`), settings });
  }
  for (let index = 0; index < WORKERS; index++) {
    run(world, {
      type: "join-worker",
      worker: workerId(`worker-${index}`),
      kind: "pull",
      session: "bench",
      settings: {
        slots: 4,
        capabilities: CAPABILITIES.slice(0, 1 + (index % CAPABILITIES.length)),
        ...{ cpu: 8000, memory: 16_000_000_000, zone: null, status: "ready" },
      },
    });
  }
  return world;
}

export function run(world: World, command: Command): readonly Event[] {
  const decided = decide(world.state, command, world.now);
  if (!decided.ok) throw new Error(JSON.stringify(decided.failure));
  for (const event of decided.value.events) {
    evolve(world.state, event);
    world.events++;
    world.onEvent?.(event);
  }
  return decided.value.events;
}

export function submission(index: number, shapes: number): Submission {
  const shape = index % shapes;
  return {
    ...{
      id: null,
      project: projectId(`project-${index % PROJECTS}`),
      // Of one project each: an agent's limits count over all its projects.
      agent: agentId(`agent-${index % PROJECTS}-${Math.floor(index / PROJECTS) % AGENTS}`),
    },
    ...{ bodyHash: "", bodySize: 100, type: TYPES[shape % 4] as string },
    capabilities: CAPABILITIES.slice(0, 1 + (Math.floor(shape / 4) % 3)),
    ...{ cpu: 100 * (1 + Math.floor(shape / 12)), memory: 1_000_000, provider: null, locks: [], zone: null, tab: null },
    priority: PRIORITIES[(index * 7) % 4] as number,
    ...{ parent: null, needs: [], artifact: null, artifactReady: false, notBefore: null, deadline: null },
    estimatedTokens: 100 + ((index * 31) % 1000),
    iteration: 1 + ((index * 13) % 4),
    ...{ maxAttempts: null, timeoutMs: null, onDependencyFailure: "skip", action: "work" },
  };
}

export function queue(world: World, count: number, shapes: number, from: number = 0): void {
  for (let index = from; index < from + count; index++) {
    if (index % 10 === 0) world.now = instant(world.now + 1);
    run(world, { type: "submit-task", submission: submission(index, shapes) });
  }
}

/** One step of the pump; remembers what started. Estimates hold: each uses what it was charged for. */
export function step(world: World): boolean {
  const events = run(world, { type: "pump" });
  for (const event of events)
    if (event.kind === "task-assigned")
      world.running.push({ task: event.task, attempt: event.attempt, tokens: event.charge - START_COST });
  return events.length > 0;
}

export function finish(world: World, count: number): void {
  for (const { task, attempt, tokens } of world.running.splice(0, count)) {
    run(world, {
      type: "finish-attempt",
      report: {
        ...{
          task: task as never,
          attempt,
          outcome: "done",
          error: null,
          tokens,
          retryAfterMs: null,
        },
        ...{ resultHash: null, resultSize: 0, permanent: false },
      },
    });
  }
}
