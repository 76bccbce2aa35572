/**
 * What comes before a task, of those that are let in together or not at all: how it changes what the task is held
 * against. A task that is cancelled with them takes as much away.
 */

import type { AgentId, ProjectId } from "../base/brand.ts";

export type Ahead = {
  /** Tasks that wait or are queued: all of them, and those of a project or an agent. */
  backlog: number;
  readonly ofProjects: Map<ProjectId, number>;
  readonly ofAgents: Map<AgentId, number>;
  /** Labels that no task has yet, and how many of them are an agent's. */
  readonly labels: Set<string>;
  readonly labelsOf: Map<AgentId, number>;
  /** Projects that are not there yet, and how many unregistered ones an agent is new in. */
  readonly projects: Set<ProjectId>;
  readonly projectsOf: Map<AgentId, number>;
};
