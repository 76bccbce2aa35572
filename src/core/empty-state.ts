/**
 * How a world begins: nothing in it, and the default rules.
 */

import type { Instant, PermitId } from "./base/brand.ts";
import { fifo } from "./collections/fifo.ts";
import { Names } from "./collections/names.ts";
import { sortedList } from "./collections/sorted-list.ts";
import { TaskTable } from "./collections/task-table.ts";
import { DEFAULT_CONFIG } from "./config/config.ts";
import { newShapes } from "./fleet/shape.ts";
import { newFleet } from "./fleet/worker-tree.ts";
import { noneSettled } from "./gate/settled.ts";
import { RollingSum } from "./gate/usage-window.ts";
import { emptyLedger } from "./lifecycle/usage.ts";
import type { Plan } from "./model/plan.ts";
import type { Group, Project, State, Task, Timer } from "./model/state.ts";
import { BUDGET_BUCKETS } from "./turn/members.ts";
import {
  compareGroups,
  compareIds,
  comparePlans,
  compareProjects,
  compareSeqs,
  compareTimers,
} from "./turn/total-orders.ts";

/** How many tasks wait, and how many ends are kept, of good ones and of others. */
const NO_TASKS = { waiting: 0, queued: 0, parked: 0, awaiting: 0, results: 0, failures: 0 };

/** A world in which nothing has happened. */
export function emptyState(): State {
  const names = new Names();
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
    tasks: new TaskTable(names),
    tombstones: new TaskTable(names),
    fleet: newFleet(),
    gates: new Map(),
    permits: new Map(),
    strayPermits: sortedList<PermitId>(compareIds),
    settled: noneSettled(),
    labels: new Map(),
    groups: new Map(),
    plans: new Map(),
    endedPlans: sortedList<Plan>(comparePlans),
    failedPlans: new Set(),
    heldByPlans: 0,
    files: new Map(),
    children: new Map(),
    requirements: new Map(),
    shapes: newShapes(),
    artifacts: new Map(),
    callbacks: { wanted: new Map(), due: new Map() },
    schedules: new Map(),
    cluster: { nodes: new Map(), leader: null },
    tabs: new Map(),
    timers: sortedList<Timer>(compareTimers),
    pins: new Map(),
    strayPins: new Set(),
    ready: sortedList<Task>(compareSeqs),
    closing: new Set(),
    unnotified: new Set(),
    ended: fifo(),
    endedBadly: fifo(),
    ...NO_TASKS,
    remembered: fifo(),
    turn: sortedList<Project>(compareProjects),
    levels: { origin: 0, highest: 0 },
    holds: new Set(),
    holdCandidates: sortedList<Group>(compareGroups),
    expressProjects: new Set(),
    spent: new RollingSum(DEFAULT_CONFIG.budget.window, BUDGET_BUCKETS),
    reserved: 0,
    callsReserved: 0,
    inFlight: 0,
    express: 0,
    cursor: null,
    rejected: new Map(),
    ledger: emptyLedger(),
    totals: noTotals(),
  };
}

const noTotals = (): State["totals"] => ({
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
});
