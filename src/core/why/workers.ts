/**
 * What the workers say to a task: who is here, who could ever run it, who has room, and what the rest lack.
 *
 * Each worker is asked everything, so that a count per reason tells where the shortage is: a worker that is
 * full and also lacks a capability counts under both.
 */
import { workerOf, zoneOf } from "../fleet/pin.ts";
import { heldPlacement, neededBy } from "../fleet/placement.ts";
import { couldServe, freeOf, hasRoomFor, hasTreeFor } from "../fleet/shape.ts";
import { refusedInWords, takesSuch } from "../fleet/worker-filter.ts";
import { tabCapability } from "../lifecycle/browser-tab.ts";
import type { ReadonlyState, ReadonlyTask, ReadonlyWorker } from "../model/read-only.ts";
import { finding, type WhyCondition, when } from "./conditions.ts";

const NAMED_MAX = 3;

const newCensus = () => ({
  known: 0,
  reachable: 0,
  capable: 0,
  feasible: 0,
  status: 0,
  slots: 0,
  cpu: 0,
  memory: 0,
  worktrees: 0,
  capability: 0,
  /** Workers that say they do not take such a task. */
  refusing: 0,
  held: 0,
  /** Workers that would have room but for a hold. */
  onlyHeld: 0,
  missing: new Map<string, number>(),
  /** What those that could run it say of themselves: why they take nothing, or less than they could. */
  notes: new Set<string>(),
});
type Census = ReturnType<typeof newCensus>;

export function workerConditions(state: ReadonlyState, task: ReadonlyTask): WhyCondition[] {
  const census = newCensus();
  for (const worker of state.fleet.order) count(state, task, worker, census);
  return [
    ...whoIsHere(state, census, task),
    roomCondition(state, task, census),
    affinityCondition(state, task),
    holdCondition(state, task, census),
    ...(task.requirements.tab === null ? [] : [tabCondition(state, task, task.requirements.tab)]),
  ];
}

/** Logs of older versions do not say the name of an action. */
const NAMELESS =
  "(a sentence, or from a log of an older version: cancel and submit it again, or have a worker that takes everything)";

function count(state: ReadonlyState, task: ReadonlyTask, worker: ReadonlyWorker, census: Census): void {
  const { capabilities, cpu, memory } = task.requirements;
  const { room } = state.fleet;
  const demand = { ...neededBy(state, task), pin: null };
  const lacking = capabilities.filter((capability) => !worker.capabilitySet.has(capability));
  const isCapable = couldServe(worker, demand);
  census.known++;
  if (worker.status === "ready" || worker.status === "overloaded") census.reachable++;
  if (isCapable) census.capable++;
  if (isCapable && hasRoomFor(worker, demand, room)) census.feasible++;
  if (worker.status !== "ready") census.status++;
  const hasTree = hasTreeFor(worker, freeOf(worker), demand);
  if (worker.note !== null && isCapable && isSaidOf(worker, { demand, room, hasTree }))
    census.notes.add(`worker ${worker.id}: ${worker.note}`);
  if (worker.attempts.size >= worker.slots + room) census.slots++;
  if (worker.cpu - worker.usedCpu < cpu) census.cpu++;
  if (worker.memory - worker.usedMemory < memory) census.memory++;
  if (!hasTree) census.worktrees++;
  if (lacking.length > 0) census.capability++;
  if (!takesSuch(worker.takes, task.requirements, task.project.id)) census.refusing++;
  for (const capability of lacking) census.missing.set(capability, (census.missing.get(capability) ?? 0) + 1);
  if (worker.hold === null || worker.hold.task === task) return;
  census.held++;
  if (isCapable && hasRoomFor({ ...worker, hold: null }, demand, room)) census.onlyHeld++;
}

type Asked = { readonly demand: ReturnType<typeof neededBy>; readonly room: number; readonly hasTree: boolean };

/** Whether what a worker says of itself is why it has no room: it takes nothing, no worktree, or less than it could. */
function isSaidOf(worker: ReadonlyWorker, { demand, room, hasTree }: Asked): boolean {
  if (worker.status !== "ready" || !hasTree) return true;
  return worker.slots < worker.offered && !hasRoomFor({ ...worker, hold: null }, demand, room);
}

function whoIsHere({ fleet }: ReadonlyState, census: Census, task: ReadonlyTask): WhyCondition[] {
  const { known, reachable, capable } = census;
  const refused = refusedInWords(fleet, task.requirements, task.project.id, NAMELESS);
  const { cpu, memory, capabilities } = task.requirements;
  const needs = [
    ...capabilities,
    ...(cpu > 0 ? [`${cpu} millicores`] : []),
    ...(memory > 0 ? [`${memory} bytes`] : []),
    ...(refused.length > 0 ? [`a worker that takes ${refused.join(", ")}`] : []),
  ];
  return [
    finding("no-workers", reachable > 0, { known, reachable }, [
      `${reachable} of ${known} known workers are here`,
      known === 0 ? "no worker is known; start one" : `none of the ${known} known workers is here; start one`,
    ]),
    finding("never-fits", capable > 0 || reachable === 0, { reachable, capable, ...asked(task) }, [
      reachable === 0
        ? "there is no worker to ask"
        : `${capable} of ${reachable} workers could run it if they were empty`,
      `no worker here could ever run it: it needs ${needs.join(", ")}${whatIsMissing(census)}`,
    ]),
  ];
}

function whatIsMissing({ missing, reachable, known }: Census): string {
  const unoffered = [...missing].filter(([, workers]) => workers === known).map(([capability]) => capability);
  return unoffered.length === 0 || reachable === 0
    ? ""
    : `; no worker offers ${unoffered.slice(0, NAMED_MAX).join(", ")}`;
}

const asked = (task: ReadonlyTask): { requiredCpu: number; requiredMemory: number } => ({
  requiredCpu: task.requirements.cpu,
  requiredMemory: task.requirements.memory,
});

function roomCondition(state: ReadonlyState, task: ReadonlyTask, census: Census): WhyCondition {
  const { known, capable, feasible, status, slots, cpu, memory, worktrees, capability, refusing, held } = census;
  const isHeldForIt = heldPlacement(state, task) !== null;
  const shortOf = { status, slots, cpu, memory, worktrees, capability, refusing, held };
  const numbers = { known, capable, feasible, ...shortOf, ...asked(task) };
  const reasons = [
    [status, "not taking work"],
    [slots, "without a free slot"],
    [cpu, "short of CPU"],
    [memory, "short of memory"],
    [worktrees, "without room for a worktree"],
    [capability, `lacking ${[...census.missing.keys()].slice(0, NAMED_MAX).join(", ")}`],
    [refusing, "not taking such tasks"],
    [held, "held for another task"],
  ] as const;
  const shortages = reasons.filter(([workers]) => workers > 0).map(([workers, reason]) => `${workers} ${reason}`);
  const notes = [...census.notes].slice(0, NAMED_MAX);
  const said = notes.length === 0 ? "" : `; ${notes.join("; ")}`;
  const room = finding("worker-room", feasible > 0 || isHeldForIt, numbers, [
    feasible > 0 ? `${feasible} of ${known} workers have room for it` : "the worker held for it has room",
    known === 0 ? "there is no worker" : `none of ${known} workers has room for it: ${shortages.join(", ")}${said}`,
  ]);
  return room.ok || said === "" ? room : { ...room, notes: said };
}

/** Under the affinity strategy a task waits a while for the worker that has its data, or for one in its zone. */
function affinityCondition(state: ReadonlyState, task: ReadonlyTask): WhyCondition {
  const { pin } = task;
  if (pin === null) return finding("affinity", true, {}, ["it waits for no particular worker", ""]);
  const demand = { ...neededBy(state, task), pin };
  const fits = (worker: ReadonlyWorker | undefined): boolean =>
    worker !== undefined && couldServe(worker, demand) && hasRoomFor(worker, demand, state.fleet.room);
  const until = task.timers?.find((timer) => timer.kind === "pin")?.at ?? null;
  const zone = zoneOf(pin);
  if (zone !== null) {
    return finding("affinity", state.fleet.order.some(fits), { zone, until }, [
      `a worker in its zone ${zone} has room`,
      `it waits for a worker in its zone ${zone} until ${when(until)}; then any worker will do`,
    ]);
  }
  return finding("affinity", fits(workerOf(state.fleet, pin)), { worker: pin, until }, [
    `worker ${pin}, which has its data, has room`,
    `it waits for worker ${pin}, which has its data, until ${when(until)}; then any worker will do`,
  ]);
}

function holdCondition(state: ReadonlyState, task: ReadonlyTask, census: Census): WhyCondition {
  const { hold } = task.project;
  const isOwn = hold?.task === task;
  const inItsWay = census.feasible === 0 && !isOwn && census.onlyHeld > 0;
  const numbers = { holds: state.holds.size, inItsWay: census.onlyHeld, worker: isOwn ? hold.worker.id : null };
  return finding("hold", !inItsWay, numbers, [
    isOwn ? `worker ${hold.worker.id} takes nothing else until it fits there` : "no hold is in its way",
    `${census.onlyHeld} ${census.onlyHeld === 1 ? "worker has" : "workers have"} room but are held for overdue tasks`,
  ]);
}

function tabCondition(state: ReadonlyState, task: ReadonlyTask, tab: string): WhyCondition {
  const capability = tabCapability(tab);
  const isOwned = state.fleet.offered.has(capability) || !task.requirements.capabilities.includes(capability);
  const failsAt = state.tabs.get(tab)?.timer?.at ?? null;
  return finding("tab", isOwned, { tab, failsAt }, [
    `a worker owns tab ${tab}`,
    `no worker owns tab ${tab}${failsAt === null ? "" : `; the task fails at ${when(failsAt)} if none comes`}`,
  ]);
}
