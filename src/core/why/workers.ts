/**
 * What the workers say to a task: who is here, who could ever run it, who has room, and what the rest lack.
 *
 * A worker without room counts under one reason, the one that would have to change first: one that lacks a capability
 * is not also one that is full. So the counts add up to the workers.
 */
import { workerOf, zoneOf } from "../fleet/pin.ts";
import { heldPlacement, neededBy } from "../fleet/placement.ts";
import { couldServe, freeOf, hasRoomFor, hasTreeFor } from "../fleet/shape.ts";
import { refusedInWords, takesSuch } from "../fleet/worker-filter.ts";
import { tabCapability } from "../lifecycle/browser-tab.ts";
import type { ReadonlyState, ReadonlyTask, ReadonlyWorker } from "../model/read-only.ts";
import { finding, type WhyCondition, when } from "./conditions.ts";

const NAMED_MAX = 3;

/** Why a worker has no room, in the order in which that would have to change. */
const LACKS = {
  /** It says that it does not take such a task. */
  refusing: "not taking such tasks",
  capability: "lacking",
  size: "too small for it",
  status: "not taking work",
  slots: "without a free slot",
  cpu: "short of CPU",
  memory: "short of memory",
  worktrees: "without room for a worktree",
  /** It would have room but for a hold. */
  held: "held for another task",
} as const;
type Lack = keyof typeof LACKS;
const LACK_NAMES = Object.keys(LACKS) as Lack[];

const newCensus = () => ({
  known: 0,
  reachable: 0,
  capable: 0,
  feasible: 0,
  lacks: Object.fromEntries(LACK_NAMES.map((name) => [name, 0])) as Record<Lack, number>,
  /** How many workers do not offer a capability, whatever else they lack. */
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
  const { room } = state.fleet;
  const demand = { ...neededBy(state, task), pin: null };
  const isCapable = couldServe(worker, demand);
  const hasTree = hasTreeFor(worker, freeOf(worker), demand);
  census.known++;
  if (worker.status === "ready" || worker.status === "overloaded") census.reachable++;
  if (isCapable) census.capable++;
  if (isCapable && hasRoomFor(worker, demand, room)) census.feasible++;
  if (worker.note !== null && isCapable && isSaidOf(worker, { demand, room, hasTree }))
    census.notes.add(`worker ${worker.id}: ${worker.note}`);
  for (const capability of lackingOf(worker, task))
    census.missing.set(capability, (census.missing.get(capability) ?? 0) + 1);
  const lack = lackOf(worker, task, { room, hasTree });
  if (lack !== null) census.lacks[lack]++;
}

const lackingOf = (worker: ReadonlyWorker, { requirements }: ReadonlyTask): readonly string[] =>
  requirements.capabilities.filter((capability) => !worker.capabilitySet.has(capability));

/** What would have to change first so that it had room; null if it has. */
function lackOf(worker: ReadonlyWorker, task: ReadonlyTask, { room, hasTree }: Omit<Asked, "demand">): Lack | null {
  const { cpu, memory } = task.requirements;
  if (!takesSuch(worker.takes, task.requirements, task.project.id)) return "refusing";
  if (lackingOf(worker, task).length > 0) return "capability";
  if (worker.cpu < cpu || worker.memory < memory) return "size";
  if (worker.status !== "ready") return "status";
  if (worker.slots < 1 || worker.attempts.size >= worker.slots + room) return "slots";
  if (worker.cpu - worker.usedCpu < cpu) return "cpu";
  if (worker.memory - worker.usedMemory < memory) return "memory";
  if (!hasTree) return "worktrees";
  return worker.hold === null || worker.hold.task === task ? null : "held";
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
      known === 1
        ? "the one known worker is here"
        : `${reachable} of ${known} known workers ${isOrAre(reachable)} here`,
      nobodyHere(known),
    ]),
    finding("never-fits", capable > 0 || reachable === 0, { reachable, capable, ...asked(task) }, [
      reachable === 0
        ? "there is no worker to ask"
        : `${ofAll(capable, reachable)} could run it if ${capable === 1 ? "it were" : "they were"} empty`,
      `no worker here could ever run it: it needs ${needs.join(", ")}${whatIsMissing(census)}`,
    ]),
  ];
}

const isOrAre = (count: number): string => (count === 1 ? "is" : "are");
const ofAll = (count: number, all: number): string => (all === 1 ? "the one worker" : `${count} of ${all} workers`);

function nobodyHere(known: number): string {
  if (known === 0) return "no worker is known; start one";
  return known === 1
    ? "the one known worker is not here; start one"
    : `none of the ${known} known workers is here; start one`;
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
  const { known, capable, feasible, lacks } = census;
  const isHeldForIt = heldPlacement(state, task) !== null;
  const numbers = { known, capable, feasible, ...lacks, ...asked(task) };
  const notes = [...census.notes].slice(0, NAMED_MAX);
  const said = notes.length === 0 ? "" : `; ${notes.join("; ")}`;
  const room = finding("worker-room", feasible > 0 || isHeldForIt, numbers, [
    feasible > 0
      ? `${ofAll(feasible, known)} ${feasible === 1 ? "has" : "have"} room for it`
      : "the worker held for it has room",
    known === 0
      ? "there is no worker"
      : `${noneOf(known)} has ${known === 1 ? "no " : ""}room for it: ${shortages(census)}${said}`,
  ]);
  return room.ok || said === "" ? room : { ...room, notes: said };
}

const noneOf = (known: number): string => (known === 1 ? "the one worker" : `none of ${known} workers`);

/** How many lack what; of a single worker it goes without saying. */
function shortages({ known, lacks, missing }: Census): string {
  const wordsOf = (name: Lack): string =>
    name === "capability" ? `${LACKS[name]} ${[...missing.keys()].slice(0, NAMED_MAX).join(", ")}` : LACKS[name];
  return LACK_NAMES.filter((name) => lacks[name] > 0)
    .map((name) => (known === 1 ? wordsOf(name) : `${lacks[name]} ${wordsOf(name)}`))
    .join(", ");
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
  const { held } = census.lacks;
  const isOwn = hold?.task === task;
  const inItsWay = census.feasible === 0 && !isOwn && held > 0;
  const numbers = { holds: state.holds.size, inItsWay: held, worker: isOwn ? hold.worker.id : null };
  return finding("hold", !inItsWay, numbers, [
    isOwn ? `worker ${hold.worker.id} takes nothing else until it fits there` : "no hold is in its way",
    held === 1
      ? "1 worker has room but is held for an overdue task"
      : `${held} workers have room but are held for overdue tasks`,
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
