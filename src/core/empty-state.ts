/**
 * How a world begins: nothing in it, and the default rules.
 */

import type { AgentId, Instant, ProjectId } from "./base/brand.ts";
import { bitSet } from "./collections/bit-set.ts";
import { fifo } from "./collections/fifo.ts";
import { IdTable } from "./collections/id-table.ts";
import { sortedList } from "./collections/sorted-list.ts";
import { DEFAULT_CONFIG, type ProjectSettings } from "./config/config.ts";
import { newShapes } from "./fleet/shape.ts";
import { newFleet } from "./fleet/worker-tree.ts";
import { createRollingSum } from "./gate/usage-window.ts";
import type { Agent, AgentLoad, Project, State } from "./model/state.ts";
import { newCallbacks } from "./task/callbacks.ts";
import { compareAgents, compareGroups, compareProjects, compareSeqs, compareTimers } from "./turn/total-orders.ts";

export const BUDGET_BUCKETS = 1000;

export function emptyState(): State {
  return {
    seq: 0,
    at: 0 as Instant,
    config: DEFAULT_CONFIG,
    base: DEFAULT_CONFIG,
    patch: null,
    paused: false,
    projects: new Map(),
    registrations: 0,
    loads: new Map(),
    tasks: new IdTable(),
    tombstones: new IdTable(),
    fleet: newFleet(),
    gates: new Map(),
    permits: new Map(),
    asks: new Map(),
    shapes: newShapes(),
    artifacts: new Map(),
    callbacks: newCallbacks(),
    schedules: new Map(),
    tabs: new Map(),
    timers: sortedList(compareTimers),
    pins: new Map(),
    strayPins: new Set(),
    ripe: sortedList(compareSeqs),
    untold: new Set(),
    ended: fifo(),
    results: 0,
    remembered: fifo(),
    turn: sortedList(compareProjects),
    levels: { origin: 0, highest: 0 },
    holds: new Set(),
    oldest: sortedList(compareGroups),
    expressProjects: new Set(),
    spent: createRollingSum({ windowMs: DEFAULT_CONFIG.budget.window, buckets: BUDGET_BUCKETS }),
    reserved: 0,
    callsReserved: 0,
    inFlight: 0,
    express: 0,
    waiting: 0,
    queued: 0,
    cursor: null,
    rejected: new Map(),
    totals: {
      submitted: 0,
      completed: 0,
      failed: 0,
      cancelled: 0,
      expired: 0,
      skipped: 0,
      rejected: 0,
      starts: 0,
      waitMs: 0,
      runMs: 0,
      ends: 0,
    },
  };
}

export function newProject(
  id: ProjectId,
  registration: number,
  settings: ProjectSettings,
  fairWindow: number,
): Project {
  return {
    id,
    registration,
    settings,
    source: "default",
    status: "active",
    level: 0,
    charged: 0,
    spent: createRollingSum({ windowMs: settings.budget.window, buckets: BUDGET_BUCKETS }),
    recent: createRollingSum({ windowMs: fairWindow, buckets: BUDGET_BUCKETS }),
    starts: createRollingSum({ windowMs: fairWindow, buckets: BUDGET_BUCKETS }),
    means: new Map(),
    agents: new Map(),
    turn: sortedList(compareAgents),
    inFlight: 0,
    chargesOut: 0,
    reserved: 0,
    callsReserved: 0,
    backlog: 0,
    ready: 0,
    queued: 0,
    mayExpectNone: 0,
    shapes: bitSet(),
    shapeCounts: [],
    hold: null,
    oversize: new Set(),
  };
}

export const newAgent = (id: AgentId, project: Project, load: AgentLoad): Agent => ({
  id,
  project,
  load,
  inFlight: 0,
  lastServed: 0,
  backlog: 0,
  queued: 0,
  groups: [],
  groupByKey: new Map(),
  records: 0,
  totals: { submitted: 0, completed: 0, failed: 0, cancelled: 0 },
  lastAsk: null,
});
