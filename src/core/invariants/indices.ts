/**
 * The indices, built anew and compared: queues and turns, shapes and their bits, timers, the tree over workers.
 *
 * An index that lags behind its facts loses a wake-up or starts what it should not, long after the mistake was
 * made; comparing after every event names the event that did it.
 */

import type { Pin } from "../base/brand.ts";
import { bitsOf } from "../collections/bit-set.ts";
import { shapesIn } from "../collections/shape-set.ts";
import { beginningOf, items, type ReadonlySortedList } from "../collections/sorted-list.ts";
import { typeLimit } from "../config/config.ts";
import { isStray } from "../fleet/pin.ts";
import { treeAt } from "../fleet/placement.ts";
import { couldServe, hasRoomFor, newShapes } from "../fleet/shape.ts";
import { keyOfTakes, refusalsOf } from "../fleet/worker-filter.ts";
import { addWorker, emptyTree, newFleet } from "../fleet/worker-tree.ts";
import { isTab, tabCapability } from "../lifecycle/browser-tab.ts";
import { isMet } from "../lifecycle/transitions.ts";
import type {
  ReadonlyAgent,
  ReadonlyGroup,
  ReadonlyProject,
  ReadonlyShape,
  ReadonlyState,
  ReadonlyTask,
} from "../model/read-only.ts";
import { hasEnded, isEndPhase, type Phase, type TreeArrays, type Worker } from "../model/state.ts";
import { EXPRESS_PRIORITY } from "../turn/priority.ts";
import { fixedOf, isRunnable } from "../turn/queue.ts";
import { compareTimers } from "../turn/total-orders.ts";

export type Check = (holds: boolean, claim: string | (() => string)) => void;

export function checkIndices(state: ReadonlyState, complain: Check): void {
  for (const project of state.projects.values()) {
    for (const agent of project.agents.values()) checkGroups(state, agent, complain);
    checkProject(state, project, complain);
  }
  const groups = groupsOf(state).filter(({ shape }) => shape.demand.cpu > 0 || shape.demand.memory > 0);
  checkList("the groups that may need a hold", state.holdCandidates, groups, complain);
  const ready = [...state.projects.values()].filter(({ queued }) => queued > 0);
  checkList("the projects' turn", state.turn, ready, complain);
  checkShapes(state, complain);
  checkDemands(state, complain);
  checkTimers(state, complain);
  checkTabsAndPins(state, complain);
  checkFleet(state, complain);
  checkLabels(state, complain);
  checkGroupsOfTasks(state, complain);
  checkFiles(state, complain);
}

const groupsOf = (state: ReadonlyState): ReadonlyGroup[] =>
  [...state.projects.values()].flatMap(({ agents }) => [...agents.values()].flatMap(({ groups }) => groups));

/** In strict order, complete, nothing twice, no empty chunk. */
export function checkList<Item>(
  name: string,
  list: ReadonlySortedList<Item>,
  expected: readonly Item[],
  complain: Check,
): void {
  const found = [...items(list)];
  const inOrder = found.every((item, index) => index === 0 || list.compare(found[index - 1] as Item, item) < 0);
  complain(inOrder, () => `${name}: in order`);
  const known = new Set(found);
  const isComplete = found.length === expected.length && expected.every((item) => known.has(item));
  complain(isComplete && list.size === found.length, () => `${name}: complete`);
  const hasNoEmpty =
    list.chunks.every((chunk, index) => chunk.length > beginningOf(list, index)) && (list.size > 0 || list.head === 0);
  complain(hasNoEmpty, () => `${name}: without empty chunks`);
}

function checkGroups(state: ReadonlyState, agent: ReadonlyAgent, complain: Check): void {
  const say = (claim: string) => () => `${agent.id} of ${agent.project.id}: ${claim}`;
  complain(agent.groupByKey.size === agent.groups.length, say("each group has one key"));
  let queued = 0;
  for (const [index, group] of agent.groups.entries()) {
    const tasks = [...items(group.tasks)];
    queued += tasks.length;
    complain(group.index === index && agent.groupByKey.get(group.key) === group, say("a group knows its index"));
    checkList(`group ${group.key}`, group.tasks, tasks, complain);
    const head = tasks[0];
    complain(head?.runnableAt === group.headAt && head.seq === group.headSeq, say(`the head of ${group.key} is known`));
    for (const task of tasks) {
      const isHere = task.group === group && task.agent === agent && isRunnable(task);
      complain(isHere, say(`${task.id} is in its group and runnable`));
      const isLike = task.priority === group.priority && fixedOf(state, task) === group.fixedScore;
      const isRight = isLike && Math.sign(task.estimate) === group.estimateSign;
      complain(isRight && isOfShape(state, task, group.shape), say(`${task.id} is in the right group`));
    }
  }
  complain(queued === agent.queued, say("all its runnable tasks are in groups"));
}

function isOfShape({ fleet }: ReadonlyState, task: ReadonlyTask, shape: ReadonlyShape): boolean {
  const { requirements, pin, project } = task;
  const { demand, gate, locks } = shape;
  return (
    shape.type.type === requirements.type &&
    (gate?.name ?? null) === requirements.provider &&
    demand.cpu === requirements.cpu &&
    demand.memory === requirements.memory &&
    demand.pin === pin &&
    demand.treeAt === treeAt(task) &&
    demand.refusedBy.join("\n") === refusalsOf(fleet, requirements, project.id).join("\n") &&
    demand.capabilities.join(" ") === requirements.capabilities.join(" ") &&
    locks.map(({ key }) => key).join(" ") === requirements.locks.join(" ")
  );
}

function checkProject(state: ReadonlyState, project: ReadonlyProject, complain: Check): void {
  const counts = new Map<number, number>();
  for (const agent of project.agents.values()) {
    for (const { shape, tasks } of agent.groups) counts.set(shape.id, (counts.get(shape.id) ?? 0) + tasks.size);
  }
  const say = (claim: string) => () => `project ${project.id} ${claim}`;
  complain(isSame(bitsOf(project.shapes), counts.keys()), say("has a bit for each shape it has queued"));
  const areCounted = project.shapeCounts.every((count, id) => count === (counts.get(id) ?? 0));
  complain(areCounted, say("counts its tasks by shape"));
  const waiting = [...project.agents.values()].filter(({ queued, load }) => queued > 0 && !load.isFull);
  checkList(`the agents' turn in ${project.id}`, project.turn, waiting, complain);
  const isKnown = state.expressProjects.has(project) === project.settings.maxPriority <= EXPRESS_PRIORITY;
  complain(isKnown, say("may use the express lane if its maxPriority says so"));
}

const isSame = (left: Iterable<number>, right: Iterable<number>): boolean =>
  [...left].sort((a, b) => a - b).join() === [...right].sort((a, b) => a - b).join();

function checkShapes(state: ReadonlyState, complain: Check): void {
  const { shapes } = state;
  const all = [...shapes.byKey.values()];
  const shut = (isShut: (shape: ReadonlyShape) => boolean): number[] => all.filter(isShut).map(({ id }) => id);
  const byType = shut(({ type }) => type.inFlight >= typeLimit(state.config, type.type));
  const byGate = shut(({ gate }) => gate?.held === true);
  const byLock = shut(({ locks }) => locks.some(({ holder }) => holder !== null));
  complain(isSame(bitsOf(shapes.shutByType), byType), "shapes are shut by their type when it is at its limit");
  complain(isSame(bitsOf(shapes.shutByGate), byGate), "shapes are shut by their gate while it is held");
  complain(isSame(bitsOf(shapes.shutByLock), byLock), "shapes are shut by a lock while it is taken");
  const otherwise = new Set([...byType, ...byGate, ...byLock]);
  complain(isSame(bitsOf(shapes.shutOtherwise), otherwise), "all causes but the workers are together in one set");
  const byWorkers = shut(({ demand }) => demand.feasible === 0);
  complain(isSame(bitsOf(shapes.shutByWorkers), byWorkers), "shapes are shut by workers when none has room");
  const groups = groupsOf(state);
  for (const shape of all) {
    const queued = groups.reduce((sum, group) => sum + (group.shape === shape ? group.tasks.size : 0), 0);
    complain(shape.queued === queued, () => `shape ${shape.key} counts its queued tasks`);
    complain(shapes.byId[shape.id] === shape, () => `shape ${shape.key} has its number`);
  }
  const areIdleKnown = shapes.idle === all.filter(({ queued }) => queued === 0).length;
  complain(areIdleKnown, "shapes that no task queues for are counted");
  complain(shapes.idsUsed - shapes.freeIds.length === all.length, "every number of a shape is used or free");
  for (const group of groups) complain(shapes.byId[group.shape.id] === group.shape, "a group's shape is known");
  const uses = [
    ...shapes.types.values(),
    ...shapes.locks.values(),
    ...shapes.gates.values(),
    ...shapes.demands.values(),
  ];
  for (const use of uses) {
    const users = all.filter(({ type, demand, gate, locks }) => [type, demand, gate, ...locks].includes(use as never));
    const ids = users.map(({ id }) => id);
    const areKnown = isSame(shapesIn(use.mask), ids) && use.shapes === ids.length;
    complain(areKnown, "a type, lock, gate or demand knows its shapes");
  }
}

function checkDemands(state: ReadonlyState, complain: Check): void {
  const { order, room } = state.fleet;
  for (const demand of state.shapes.demands.values()) {
    const capable = order.filter((worker) => couldServe(worker, demand));
    const feasible = capable.filter((worker) => hasRoomFor(worker, demand, room));
    complain(demand.capable === capable.length, () => `demand ${demand.key}: workers that could serve it`);
    complain(demand.feasible === feasible.length, () => `demand ${demand.key}: workers with room`);
    for (const worker of order) {
      const times = worker.demands.filter((other) => other === demand).length;
      const isKnown = times === (capable.includes(worker) ? 1 : 0);
      complain(isKnown, () => `worker ${worker.id} knows the demand ${demand.key}`);
    }
  }
  for (const worker of order) {
    const areKnown = worker.demands.every((demand) => state.shapes.demands.get(demand.key) === demand);
    complain(areKnown, () => `worker ${worker.id} knows only demands that are there`);
  }
}

/** The timers a task should have, by its facts; a pin's instant is a fact of its own. */
function timersOf(task: ReadonlyTask): string[] {
  const { attempt } = task;
  const { timeoutMs } = task.requirements;
  const waits = (task.phase === "waiting" && isMet(task)) || task.phase === "queued";
  const pin = task.timers?.find(({ kind }) => kind === "pin")?.at;
  const until = task.extra?.approval?.until ?? -1;
  return [
    ...(task.phase === "parked" && until >= 0 ? [`approval ${until}`] : []),
    ...(task.deadline >= 0 && !hasEnded(task) ? [`deadline ${task.deadline}`] : []),
    ...(task.pin === null ? [] : [`pin ${pin}`]),
    ...(attempt?.state === "stopping" ? [`stop ${attempt.stopBy}`] : []),
    ...(attempt?.state === "running" && timeoutMs !== null ? [`timeout ${attempt.startedAt + timeoutMs}`] : []),
    ...(waits && task.restUntil >= 0 ? [`wake ${task.restUntil}`] : []),
  ];
}

function checkTimers(state: ReadonlyState, complain: Check): void {
  for (const task of state.tasks.values()) {
    const found = (task.timers ?? []).map(({ kind, at }) => `${kind} ${at}`).sort();
    const expected = timersOf(task);
    complain(found.join() === expected.join(), () => `${task.id} has timers ${found}, should have ${expected}`);
  }
  const tabs = [...state.tabs.values()].flatMap(({ timer }) => (timer === null ? [] : [timer]));
  const all = [...[...state.tasks.values()].flatMap(({ timers }) => timers ?? []), ...tabs].sort(compareTimers);
  checkList("timers", state.timers, all, complain);
}

/** Who has which label. */
function checkLabels(state: ReadonlyState, complain: Check): void {
  const known = new Map<string, ReadonlyTask[]>();
  for (const task of state.tasks.values()) {
    const labels = task.extra?.labels ?? [];
    const areKnown = labels.every((label) => state.labels.get(label.text) === label);
    complain(areKnown, () => `the labels of ${task.id} are known`);
    for (const { text } of labels) known.set(text, [...(known.get(text) ?? []), task]);
  }
  complain(state.labels.size === known.size, "a label is known only while a task has it");
  for (const [id, load] of state.loads) {
    const own = [...known.values()].filter(([oldest]) => oldest?.agent.load === load);
    complain(load.labels === own.length, () => `${id} has ${load.labels} labels, counted ${own.length}`);
  }
  for (const { text, tasks } of state.labels.values())
    checkList(`the tasks with label ${text}`, tasks, known.get(text) ?? [], complain);
}

/** Which tasks a group has, and how far they are. */
function checkGroupsOfTasks(state: ReadonlyState, complain: Check): void {
  const tasks = [...state.tasks.values()];
  const planned = [...state.groups.values()].filter(({ plan }) => plan !== null);
  const known = new Set([...tasks.flatMap(({ extra }) => extra?.group?.group ?? []), ...planned]);
  complain(
    known.size === state.groups.size && [...known].every((group) => state.groups.get(group.id) === group),
    "a group is known while it has a record or a plan, and no longer",
  );
  for (const group of state.groups.values()) {
    const mine = tasks.filter(({ extra }) => extra?.group?.group === group);
    checkList(`the tasks of group ${group.id}`, group.tasks, mine, complain);
    for (const part of group.parts.values()) {
      const say = (claim: string) => () => `group ${group.id}, what ${part.agent} has in ${part.project}, ${claim}`;
      const some = mine.filter(({ extra }) => extra?.group === part);
      const areOwn = some.every(({ project, agent }) => project.id === part.project && agent.id === part.agent);
      complain(areOwn && part.extra.group === part && part.extra.labels === null, say("is its own"));
      for (const phase of Object.keys(part.counts) as Phase[]) {
        const counted = some.filter((task) => task.phase === phase).length;
        const gone = part.gone[phase];
        const isRight = part.counts[phase] === counted + gone && (gone === 0 || isEndPhase(phase));
        complain(isRight, say(`is counted in phase ${phase}`));
      }
      const live = some.filter((task) => !hasEnded(task)).length;
      complain(part.live === live && part.endedAt < 0 === live > 0, say("has ended if nothing of it lives"));
    }
  }
}

/** Which task lists which file. */
function checkFiles(state: ReadonlyState, complain: Check): void {
  const known = new Map<string, Set<ReadonlyTask>>();
  for (const task of state.tasks.values())
    for (const { hash } of task.extra?.files ?? []) known.set(hash, (known.get(hash) ?? new Set()).add(task));
  complain(state.files.size === known.size, "a file is known only while a task lists it");
  for (const [hash, tasks] of known) {
    const found = state.files.get(hash);
    const isSame = found?.size === tasks.size && [...tasks].every((task) => found.has(task));
    complain(isSame, () => `the tasks that list file ${hash} are known`);
  }
}

const isIn = (list: ReadonlySortedList<ReadonlyTask> | undefined, task: ReadonlyTask): boolean =>
  list !== undefined && [...items(list)].includes(task);

function checkTabsAndPins(state: ReadonlyState, complain: Check): void {
  const pinned = new Map<Pin, number>();
  const needed = new Map<string, number>();
  for (const task of state.tasks.values()) {
    const { tab } = task.requirements;
    if (task.pin !== null) {
      pinned.set(task.pin, (pinned.get(task.pin) ?? 0) + 1);
      complain(isIn(state.pins.get(task.pin), task), () => `${task.id} is known to wait for ${task.pin}`);
    }
    if (tab === null || task.phase !== "queued") continue;
    needed.set(tab, (needed.get(tab) ?? 0) + 1);
    complain(isIn(state.tabs.get(tab)?.tasks, task), () => `${task.id} is known to need tab ${tab}`);
  }
  complain(state.pins.size === pinned.size, "a worker is waited for only by tasks that are there");
  for (const [pin, tasks] of state.pins) {
    complain(tasks.size === pinned.get(pin), () => `those who wait for ${pin} are counted`);
    const isKnown = state.strayPins.has(pin) === isStray(state, pin);
    complain(isKnown, () => `it is known whether ${pin} is waited for in vain`);
  }
  const areWaitedFor = [...state.strayPins].every((pin) => state.pins.has(pin));
  complain(areWaitedFor, "a pin without tasks is not a stray one");
  complain(state.tabs.size === needed.size, "a tab is known only while a queued task needs it");
  for (const tab of state.tabs.values()) {
    const isOwned = state.fleet.offered.has(tabCapability(tab.id));
    const due = tab.ownerlessSince + state.config.scheduler.placement.unresolvedAfter;
    complain(tab.tasks.size === needed.get(tab.id), () => `those who need tab ${tab.id} are counted`);
    complain(isOwned === tab.ownerlessSince < 0, () => `the clock of tab ${tab.id} runs while no worker owns it`);
    complain((tab.timer?.at ?? -1) === (isOwned ? -1 : due), () => `tab ${tab.id} has a timer while no worker owns it`);
  }
}

function checkFleet(state: ReadonlyState, complain: Check): void {
  const { fleet } = state;
  const fresh = newFleet();
  fresh.room = fleet.room;
  const shapes = newShapes();
  for (const worker of fleet.order) addWorker(fresh, shapes, { ...worker, demands: [] } as unknown as Worker);
  complain(fleet.room === state.config.scheduler.placement.maxQueuePerWorker, "room on workers is as configured");
  const areCounted = fleet.byId.size === fleet.order.length && fleet.able === fresh.able;
  complain(areCounted, "workers that can take work are counted");
  const areInOrder = fleet.order.every(({ id }, index) => fresh.order[index]?.id === id);
  complain(areInOrder, "workers stand in the order of ids");
  for (const [leaf, worker] of fleet.leaves.entries()) {
    complain(worker.leaf === leaf && fresh.leaves[leaf]?.id === worker.id, () => `${worker.id} knows its leaf`);
    complain(fleet.byId.get(worker.id) === worker, () => `${worker.id} is known by its id`);
    complain(worker.capabilitySet.size === worker.capabilities.length, () => `${worker.id} knows its capabilities`);
  }
  const tabs = fleet.order.flatMap(({ capabilities }) => capabilities.filter(isTab));
  complain(new Set(tabs).size === tabs.length, "a tab has one owner");
  const offers = (all: ReadonlyMap<string, number>): string =>
    [...all]
      .map((pair) => pair.join("="))
      .sort()
      .join();
  const said = new Map<string, number>();
  for (const { takes, filter } of fleet.order) {
    complain(filter === (takes === null ? null : keyOfTakes(takes)), "a worker knows the key of what it takes");
    if (filter !== null) said.set(filter, (said.get(filter) ?? 0) + 1);
  }
  const heard = new Map([...fleet.filters].map(([key, { workers }]) => [key, workers]));
  complain(offers(heard) === offers(said), "what workers say they take is known, by how many say it");
  complain(offers(fleet.offered) === offers(fresh.offered), "offered capabilities are counted");
  // A tree without workers may be older than the last one that left.
  if (fleet.order.length === 0) return;
  for (const key of Object.keys(emptyTree(1)) as (keyof TreeArrays)[]) {
    complain(Array.from(fleet[key]).join() === fresh[key].join(), () => `the tree over workers knows ${key}`);
  }
}
