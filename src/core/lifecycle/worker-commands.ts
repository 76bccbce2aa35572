/**
 * Workers coming, changing and going.
 *
 * A worker that goes, or is given up for lost, loses its attempts: they are queued again under a new
 * number, and each counts as a loss of its task, not as a failure. Local workers are functions in the
 * engine's own process, so none of them outlives it: a new engine begins by giving them up.
 *
 * A tab has one owner. The worker that names it last has it, and the former owner has lost it, reachable or not.
 */
import type { Instant, PermitId, WorkerId } from "../base/brand.ts";
import { fail, ok } from "../base/result.ts";
import { FILTERS_MAX, keyOfTakes } from "../fleet/worker-filter.ts";
import { type CommandOf, type Decided, REPEATED } from "../model/commands.ts";
import type { Event } from "../model/events.ts";
import type { ReadonlyState, ReadonlyWorker } from "../model/read-only.ts";
import { isTab } from "./browser-tab.ts";
import { giveUpAttempt } from "./stop.ts";

const WORKERS_MAX = 100_000;

export function decideJoin(state: ReadonlyState, command: CommandOf<"join-worker">, now: Instant): Decided {
  const id = command.worker ?? (`wrk_${state.seq + 1}` as WorkerId);
  const known = state.fleet.byId.get(id);
  // A worker over the wire that joins again has started anew, and what it held is lost; a function in this process
  // cannot, so its name is taken.
  const isTaken = known !== undefined && known.status !== "unreachable";
  if (isTaken && (known.kind === "local" || command.kind === "local"))
    return fail({ type: "worker-exists", worker: id });
  if (known === undefined && state.fleet.byId.size >= WORKERS_MAX) {
    return fail({ type: "too-many", what: "workers", max: WORKERS_MAX });
  }
  const { kind: workerKind, session, settings, target = null, takes = null } = command;
  const { filters } = state.fleet;
  if (takes !== null && filters.size >= FILTERS_MAX && !filters.has(keyOfTakes(takes))) {
    return fail({ type: "too-many", what: "different filters (takes) of workers", max: FILTERS_MAX });
  }
  const { note: _, worktrees = null, ...offered } = settings;
  const where = { endpoint: target?.endpoint ?? null, path: target?.path ?? null };
  return ok({
    events: [
      ...(isTaken ? leave(state, known, true, now) : []),
      ...takeTabs(state, id, settings.capabilities.filter(isTab), now),
      { kind: "worker-joined", at: now, worker: id, workerKind, session, ...offered, ...where, takes, worktrees },
    ],
    id,
  });
}

/** Those of the tabs that somebody else owns move. */
function takeTabs(state: ReadonlyState, to: WorkerId, tabs: readonly string[], now: Instant): Event[] {
  if (tabs.length === 0) return [];
  const named = new Set(tabs);
  return state.fleet.order.flatMap(({ id, capabilities: held }): Event[] => {
    const capabilities = id === to ? [] : held.filter((capability) => named.has(capability));
    return capabilities.length === 0 ? [] : [{ kind: "tabs-moved", at: now, worker: id, to, capabilities }];
  });
}

export function decideChange(state: ReadonlyState, command: CommandOf<"change-worker">, now: Instant): Decided {
  const worker = state.fleet.byId.get(command.worker);
  if (worker === undefined || worker.status === "unreachable")
    return fail({ type: "worker-unknown", worker: command.worker });
  const { settings } = command;
  const { note = null, worktrees = null, ...offered } = settings;
  // What it alone has it need not take; mostly nothing is named at all. Older logs have tabs of two owners.
  const isNamed = settings.capabilities !== worker.capabilities;
  const isOwn = (tab: string): boolean => worker.capabilitySet.has(tab) && state.fleet.offered.get(tab) === 1;
  const tabs = isNamed ? settings.capabilities.filter((one) => isTab(one) && !isOwn(one)) : [];
  if (tabs.length === 0 && isSame(worker, settings)) return REPEATED;
  const changed: Event = { kind: "worker-changed", at: now, worker: worker.id, ...offered, note, worktrees };
  return ok({ events: [...takeTabs(state, worker.id, tabs, now), changed] });
}

function isSame(worker: ReadonlyWorker, settings: CommandOf<"change-worker">["settings"]): boolean {
  return (
    worker.slots === settings.slots &&
    worker.zone === settings.zone &&
    worker.status === settings.status &&
    worker.note === (settings.note ?? null) &&
    worker.cpu === (settings.cpu ?? Number.POSITIVE_INFINITY) &&
    worker.memory === (settings.memory ?? Number.POSITIVE_INFINITY) &&
    worker.worktrees === (settings.worktrees ?? Number.POSITIVE_INFINITY) &&
    worker.capabilities.length === settings.capabilities.length &&
    worker.capabilities.every((capability, index) => capability === settings.capabilities[index])
  );
}

export function decideLeave(state: ReadonlyState, command: CommandOf<"leave-worker">, now: Instant): Decided {
  const worker = state.fleet.byId.get(command.worker);
  if (worker === undefined || (worker.status === "unreachable" && command.lost)) {
    return fail({ type: "worker-unknown", worker: command.worker });
  }
  return ok({ events: leave(state, worker, command.lost, now) });
}

function leave(state: ReadonlyState, worker: ReadonlyWorker, lost: boolean, now: Instant): Event[] {
  const cause = lost ? "worker-lost" : "worker-left";
  return [
    ...worker.attempts.inOrder().map((attempt) => giveUpAttempt(state, attempt, { cause }, now)),
    { kind: "worker-left", at: now, worker: worker.id, lost },
  ];
}

/**
 * The holder of a permit was in the process that ended: what it used is unknown, and charged at the estimate. Those of
 * other processes are still out, and come back or run out.
 */
function abandonedPermits(state: ReadonlyState, now: Instant): Event[] {
  const settled = { ok: false, tokens: null, expired: true, usage: null };
  return [...state.gates].flatMap(([gate, { held }]) =>
    [...held.values()]
      .filter(({ remote }) => remote !== true)
      .map(({ id }): Event => ({ kind: "permit-settled", at: now, permit: id as PermitId, gate, ...settled })),
  );
}

export function decideEngineStart(state: ReadonlyState, command: CommandOf<"start-engine">, now: Instant): Decided {
  const { coreVersion, policyHash } = command;
  const events: Event[] = [
    { kind: "engine-started", at: now, coreVersion, policyHash },
    ...abandonedPermits(state, now),
  ];
  for (const worker of state.fleet.order) if (worker.kind === "local") events.push(...leave(state, worker, true, now));
  return ok({ events });
}
