/**
 * Everything that must always be true, counted anew from the facts.
 *
 * The core keeps many numbers so that no decision has to count: what is in flight, what is reserved, who waits for
 * whom. Each of them is recounted here the slow and obvious way, from tasks and their attempts alone. What comes
 * back is a list of sentences, empty when all is well; simulations and laws ask after every event. It costs time in
 * proportion to the whole state and is not for production.
 *
 * A limit that was lowered may be exceeded by what was already running, so limits are not judged here: the laws
 * judge them at the moment of a start. The indices (queues, shapes, the tree over workers) are in
 * indices.ts.
 */
import type { TaskId } from "../base/brand.ts";
import { waiting } from "../collections/fifo.ts";
import { items } from "../collections/sorted-list.ts";
import { groupOfPlan } from "../lifecycle/plans.ts";
import { dependenciesOf, namedIn } from "../lifecycle/transitions.ts";
import type { ReadonlyAttempt, ReadonlyState, ReadonlyTask } from "../model/read-only.ts";
import { endedBadly, hasEnded } from "../model/state.ts";
import { isOversize, isRunnable } from "../turn/queue.ts";
import { type Check, checkIndices, checkList } from "./indices.ts";

export function checkInvariants(state: ReadonlyState): string[] {
  const complaints: string[] = [];
  const complain: Check = (holds, claim) => {
    if (!holds) complaints.push(typeof claim === "string" ? claim : claim());
  };
  for (const task of state.tasks.values()) {
    checkTask(state, task, complain);
    if (task.attempt !== null) checkAttempt(state, task, task.attempt, complain);
  }
  checkCounts(state, complain);
  checkLoads(state, complain);
  checkWorkers(state, complain);
  checkTies(state, complain);
  checkGrowth(state, complain);
  checkChildren(state, complain);
  checkEnds(state, complain);
  checkTombstones(state, complain);
  checkPlans(state, complain);
  checkGates(state, complain);
  checkCallbacks(state, complain);
  checkIndices(state, complain);
  return complaints;
}

const standsInQueue = (state: ReadonlyState, task: ReadonlyTask): boolean =>
  isRunnable(task) && !isOversize(state, task);

function checkTask(state: ReadonlyState, task: ReadonlyTask, complain: Check): void {
  const say = (claim: string) => () => `${task.id} (${task.phase}) ${claim}`;
  const ended = hasEnded(task);
  const runs = task.phase === "assigned" || task.phase === "running";
  complain(ended === (task.end !== null), say("has an end if and only if it has ended"));
  complain(!runs || task.attempt !== null, say("runs, so it has an attempt"));
  const isParked = task.phase === "parked";
  const hasTime = task.phase === "waiting" ? task.runnableAt < 0 : ended || isParked || task.runnableAt >= 0;
  complain(hasTime, say("has a runnable time"));
  const holds = task.attempt !== null || task.group !== null || task.pin !== null || task.restUntil >= 0;
  complain(!isParked || !holds, say("is parked, so it holds nothing"));
  complain(!ended || (task.restUntil < 0 && task.pin === null), say("has ended, so it neither rests nor is pinned"));
  const isTooLarge = isRunnable(task) && isOversize(state, task);
  complain(standsInQueue(state, task) === (task.group !== null), say("is in a queue if and only if it is runnable"));
  complain(task.project.oversize.has(task) === isTooLarge, say("is known to be too large for a budget if it is"));
  complain(task.pin === null || task.phase === "queued", say("is pinned only while queued"));
  complain(task.seq <= task.lastSeq && task.lastSeq <= state.seq, say("was last touched by an event that has been"));
  complain(task.agent.project === task.project, say("is of its agent's project"));
  complain(state.requirements.get(task.requirements.key) === task.requirements, say("asks for what is known"));
  complain(task.requeues + task.throttles <= task.attempts, say("came back no oftener than it was tried"));
  const mayFail = task.losses >= 0 && task.ownFailures >= 0 && task.ownFailures < task.requirements.maxAttempts;
  complain(mayFail, say("may still fail"));
}

function checkCallbacks({ callbacks, tasks, seq }: ReadonlyState, complain: Check): void {
  for (const task of callbacks.wanted.keys())
    complain(tasks.has(task), () => `${task} wants a callback, so its record is still there`);
  for (const { end, task } of callbacks.due.values())
    complain(end <= seq, () => `the end of ${task} whose callback is due has been`);
}

function checkAttempt(state: ReadonlyState, task: ReadonlyTask, attempt: ReadonlyAttempt, complain: Check): void {
  const say = (claim: string) => () => `attempt ${attempt.number} of ${task.id} (${attempt.state}) ${claim}`;
  const { worker } = attempt;
  const isStopping = attempt.state === "stopping";
  complain(attempt.task === task, say("is that task's"));
  complain(attempt.number === task.attempts, say("is the last"));
  complain(state.fleet.byId.get(worker.id) === worker, say("is on a worker that is here"));
  complain(worker.attempts.has(attempt), say("is among its worker's"));
  complain(worker.status !== "unreachable", say("is not on a worker that was given up"));
  complain(isStopping === (attempt.stopCause !== null && attempt.stopBy >= 0), say("stops for a cause, by an instant"));
  complain(isStopping || task.phase === attempt.state, say("is in its task's phase"));
  const hasTaskEnded = attempt.stopCause === "cancelled" || attempt.stopCause === "deadline";
  complain(!hasEnded(task) || (isStopping && hasTaskEnded), say("of an ended task is stopping because of it"));
  complain(attempt.reserve >= Math.max(attempt.reported, attempt.permitted), say("reserves what it used at least"));
  for (const lock of task.requirements.locks) {
    complain(state.shapes.locks.get(lock)?.holder === attempt, say(`holds its lock ${lock}`));
  }
}

function checkCounts(state: ReadonlyState, complain: Check): void {
  const tasks = [...state.tasks.values()];
  const attempts = tasks.flatMap((task) => (task.attempt === null ? [] : [task.attempt]));
  const count = (what: string, counted: number, kept: number): void =>
    complain(counted === kept, () => `${what}: counted ${counted}, kept ${kept}`);
  const reserves = (some: readonly ReadonlyAttempt[]): number => some.reduce((sum, { reserve }) => sum + reserve, 0);
  const inPhase = (some: readonly ReadonlyTask[], ...phases: string[]): number =>
    some.filter(({ phase }) => phases.includes(phase)).length;
  count("in flight", attempts.length, state.inFlight);
  count("in the express lane", attempts.filter(({ express }) => express).length, state.express);
  count("reserved", reserves(attempts), state.reserved);
  count("waiting", inPhase(tasks, "waiting"), state.waiting);
  count("queued", inPhase(tasks, "queued"), state.queued);
  count("parked", inPhase(tasks, "parked"), state.parked);
  count("awaiting", tasks.filter(({ extra }) => (extra?.wait?.answer ?? null) !== null).length, state.awaiting);
  const ended = tasks.filter((task) => hasEnded(task) && task.links?.due !== true);
  count("results", inPhase(ended, "done", "cancelled"), state.results);
  count("failures", inPhase(ended, "failed", "skipped"), state.failures);
  for (const project of state.projects.values()) {
    const mine = tasks.filter((task) => task.project === project);
    const live = attempts.filter(({ task }) => task.project === project);
    count(`in flight of ${project.id}`, live.length, project.inFlight);
    count(`reserved of ${project.id}`, reserves(live), project.reserved);
    count(
      `charges of ${project.id}`,
      live.reduce((sum, { charge }) => sum + charge, 0),
      project.chargesOut,
    );
    count(`backlog of ${project.id}`, inPhase(mine, "waiting", "queued", "parked"), project.backlog);
    count(`parked of ${project.id}`, inPhase(mine, "parked"), project.parked);
    const free = mine.filter(({ extra }) => (extra?.group?.group.plan?.paused ?? null) === null);
    count(`ready of ${project.id}`, inPhase(free, "queued"), project.ready);
    count(`runnable of ${project.id}`, mine.filter((task) => standsInQueue(state, task)).length, project.queued);
    const plain = mine.filter((task) => task.estimate <= 0 && standsInQueue(state, task));
    count(`runnable that may expect no tokens of ${project.id}`, plain.length, project.mayExpectNone);
    complain(Number.isFinite(project.level), `the level of ${project.id} is a number`);
    for (const agent of project.agents.values()) {
      const own = mine.filter((task) => task.agent === agent);
      const name = `${agent.id} of ${project.id}`;
      count(`in flight of ${name}`, live.filter(({ task }) => task.agent === agent).length, agent.inFlight);
      count(`backlog of ${name}`, inPhase(own, "waiting", "queued", "parked"), agent.backlog);
      count(`parked of ${name}`, inPhase(own, "parked"), agent.parked);
      count(`runnable of ${name}`, own.filter((task) => standsInQueue(state, task)).length, agent.queued);
      count(`records of ${name}`, own.length, agent.records);
    }
  }
  count("registrations", state.projects.size, state.registrations);
  for (const { type, inFlight } of state.shapes.types.values()) {
    count(`in flight of type ${type}`, attempts.filter(({ task }) => task.requirements.type === type).length, inFlight);
  }
  for (const requirements of state.requirements.values())
    count("users", tasks.filter((task) => task.requirements === requirements).length, requirements.users);
}

/** What agents have waiting and out over all their projects. */
function checkLoads(state: ReadonlyState, complain: Check): void {
  const { maxPerAgentInFlight } = state.config.scheduler;
  const tasks = [...state.tasks.values()];
  const known = [...state.projects.values()].flatMap(({ agents }) => [...agents.values()]);
  for (const agent of known) complain(state.loads.get(agent.id) === agent.load, `${agent.id} is one agent everywhere`);
  for (const [id, load] of state.loads) {
    const mine = tasks.filter((task) => task.agent.id === id);
    const say = (claim: string) => () => `${id}, over all its projects, ${claim}`;
    const entries = known.filter((agent) => agent.id === id);
    const isComplete = entries.length === load.agents.length && entries.every((agent) => load.agents.includes(agent));
    complain(isComplete && entries.length > 0, say("is known where it has been"));
    const isCounted = load.inFlight === mine.filter(({ attempt }) => attempt !== null).length;
    complain(isCounted, say("counts what it has in flight"));
    const backlog = mine.filter(({ phase }) => phase === "waiting" || phase === "queued" || phase === "parked");
    complain(load.backlog === backlog.length, say("counts what waits"));
    complain(load.isFull === load.inFlight >= maxPerAgentInFlight, say("is full if it has in flight what it may"));
  }
}

function checkWorkers(state: ReadonlyState, complain: Check): void {
  for (const worker of state.fleet.order) {
    const say = (claim: string) => () => `worker ${worker.id} ${claim}`;
    let cpu = 0;
    let memory = 0;
    let worktrees = 0;
    for (const { task } of worker.attempts) {
      cpu += task.requirements.cpu;
      memory += task.requirements.memory;
      worktrees += task.requirements.worktrees;
      complain(task.attempt?.worker === worker && state.tasks.get(task.id) === task, say(`runs ${task.id}`));
    }
    complain(worker.usedCpu === cpu && worker.usedMemory === memory, say("uses what its attempts asked for"));
    complain(worker.usedWorktrees === worktrees, say("has a worktree for each attempt that wants one"));
    complain(worker.hold === null || worker.hold.worker === worker, say("is held for one task"));
    complain(worker.hold === null || worker.status === "ready", say("is held only while it can take work"));
  }
  const holds = [...state.projects.values()].flatMap(({ hold }) => (hold === null ? [] : [hold]));
  const areTheSame = holds.length === state.holds.size && holds.every((hold) => state.holds.has(hold));
  complain(areTheSame, "each hold is a project's");
  for (const hold of state.holds) {
    complain(hold.worker.hold === hold, () => `the hold of ${hold.task.id} is its worker's`);
    complain(hold.task.project.hold === hold, () => `the hold of ${hold.task.id} is its project's`);
    complain(isRunnable(hold.task), () => `${hold.task.id}, which has a hold, is runnable`);
  }
  for (const { key, holder } of state.shapes.locks.values()) {
    const isLive = holder === null || (holder.task.attempt === holder && holder.task.requirements.locks.includes(key));
    complain(isLive, () => `lock ${key} is held by a live attempt that asked for it`);
  }
}

/** The tasks that are there and that this one names; while its own time is up, the one it grew on. */
function namedBy(state: ReadonlyState, { links, seq }: ReadonlyTask): ReadonlyTask[] {
  if (links === null) return [];
  const names = links.due ? [links.ofRunning ? (links.parent as TaskId) : []].flat() : namedIn(links);
  const found = names.map((id) => state.tasks.get(id));
  // A later task may have taken the id of one that was forgotten.
  return found.filter((task) => task !== undefined && task.seq < seq) as ReadonlyTask[];
}

/** Who waits for whom, and for what. */
function checkTies(state: ReadonlyState, complain: Check): void {
  const edges = new Map<ReadonlyTask, number>();
  const children = new Map<string, number>();
  const names = new Map<ReadonlyTask, number>();
  const countChild = (parent: string | null): void => {
    if (parent !== null) children.set(parent, (children.get(parent) ?? 0) + 1);
  };
  for (const task of state.tasks.values()) {
    countChild(task.links?.parent ?? null);
    for (const dependent of task.links?.dependents.slice(task.links.notified) ?? []) {
      edges.set(dependent, (edges.get(dependent) ?? 0) + 1);
    }
    for (const named of namedBy(state, task)) names.set(named, (names.get(named) ?? 0) + 1);
    // A plan that is known holds the records of its tasks.
    const plan = task.extra?.group?.group.plan ?? null;
    if (plan !== null && (plan.members.has(task.id) || plan.others.has(task.id)))
      names.set(task, (names.get(task) ?? 0) + 1);
  }
  for (const stone of state.tombstones.values()) countChild(stone.parent);
  for (const task of state.tasks.values()) {
    const { links } = task;
    const say = (claim: string) => () => `${task.id} (${task.phase}) ${claim}`;
    complain((links?.children ?? 0) === (children.get(task.id) ?? 0), say("counts its children"));
    complain((links?.namedBy ?? 0) === (names.get(task) ?? 0), say("counts the tasks that name it"));
    complain(links?.due !== true || (hasEnded(task) && links.namedBy > 0), say("stays for a task that names it"));
    const isAwaited = state.artifacts.get(links?.artifact ?? "")?.has(task) === true;
    const awaits = links !== null && links.artifact !== null && task.phase === "waiting";
    complain(isAwaited === awaits, say("waits for its artifact, if it waits for one"));
    if (task.phase === "waiting")
      complain((links?.unmet ?? 0) === (edges.get(task) ?? 0), say("counts what it waits for"));
    else complain(hasEnded(task) || !edges.has(task), say("waits for no task any longer"));
    // One that runs after a failure too was notified, and does not wait for a second end.
    if (task.phase !== "waiting" || links === null || task.requirements.onDependencyFailure === "run") continue;
    for (const id of dependenciesOf(links)) {
      const found = state.tasks.get(id);
      // A later task may have taken the id of one that was forgotten.
      const isOpen = found !== undefined && found.seq < task.seq && !hasEnded(found);
      const hears = links.unmet > 0 || found?.links?.dependents.includes(task) === true;
      complain(!isOpen || hears, say(`will hear of the end of ${id}, or waits for another first`));
    }
  }
  for (const stone of state.tombstones.values()) {
    const { id } = stone;
    complain(stone.children === (children.get(id) ?? 0), () => `tombstone ${id} counts its children`);
  }
  const waiters = [...state.artifacts.values()].every((tasks) => tasks.size > 0);
  complain(waiters, "an artifact is known only while somebody waits for it");
}

/** What grew while its parent ran. */
function checkGrowth(state: ReadonlyState, complain: Check): void {
  const children = new Map<ReadonlyTask, ReadonlyTask[]>();
  for (const task of state.tasks.values()) {
    const growth = task.extra?.growth ?? null;
    if (task.links?.ofRunning !== true) continue;
    const parent = state.tasks.get(task.links.parent as TaskId);
    complain(growth !== null, () => `${task.id}, which a running task submitted, is of a tree`);
    // A later task may have taken the id of one that was forgotten.
    if (parent === undefined || parent.seq > task.seq) continue;
    complain(parent.extra?.growth?.tree === growth?.tree, () => `${task.id} is of the tree of its parent`);
    children.set(parent, [...(children.get(parent) ?? []), task]);
  }
  const openBelow = (task: ReadonlyTask): number =>
    (children.get(task) ?? []).reduce((sum, child) => sum + (hasEnded(child) ? 0 : 1) + openBelow(child), 0);
  for (const task of state.tasks.values()) {
    const growth = task.extra?.growth ?? null;
    const say = (claim: string) => () => `${task.id} (${task.phase}) ${claim}`;
    const open = openBelow(task);
    complain((growth?.open ?? 0) === open, say("counts what grew below it and has not ended"));
    complain((growth?.children ?? 0) >= (children.get(task)?.length ?? 0), say("counts the children it submitted"));
    const answer = task.extra?.wait?.answer ?? null;
    complain(answer === null || task.phase === "parked", say("waits for its children, so it is parked"));
    complain(state.closing.has(task) === (answer !== null && open === 0), say("is done once its children have ended"));
    complain((growth?.tree.grown ?? 0) >= (growth?.children ?? 0), say("has no more children than its tree has tasks"));
  }
}

/** Which tasks name which as parent. */
function checkChildren(state: ReadonlyState, complain: Check): void {
  const known = new Map<TaskId, ReadonlyTask[]>();
  for (const task of state.tasks.values()) {
    const parent = task.links?.parent ?? null;
    if (parent !== null) known.set(parent, [...(known.get(parent) ?? []), task]);
  }
  complain(state.children.size === known.size, "children are known of tasks that have some");
  for (const [parent, tasks] of state.children)
    checkList(`the children of ${parent}`, tasks, known.get(parent) ?? [], complain);
}

/** How far plans are, what they hold, and which of them have ended. */
function checkPlans(state: ReadonlyState, complain: Check): void {
  let held = 0;
  for (const plan of state.plans.values()) {
    const say = (claim: string) => () => `plan ${plan.id} ${claim}`;
    const group = state.groups.get(groupOfPlan(plan.id));
    complain(group?.plan === plan, say("is its group's"));
    const tasks = [...state.tasks.values()].filter((task) => task.extra?.group?.group === group);
    const mine = tasks.filter(({ id }) => plan.tasks.some((entry) => entry.id === id));
    const ended = mine.filter(hasEnded).length;
    held += plan.tasks.length + plan.others.size;
    const phases = Object.keys(plan.counts) as (keyof typeof plan.counts)[];
    const areCounted = phases.every((one) => plan.counts[one] === mine.filter(({ phase }) => phase === one).length);
    complain(areCounted, say("counts its tasks by their phase"));
    complain(
      plan.open === plan.tasks.length - plan.adopted - plan.dropped - ended,
      say("counts those that have not ended"),
    );
    const isLost = plan.tasks.length - plan.adopted - plan.dropped < mine.length;
    complain(!isLost, say("gave up only what never came"));
    complain(plan.open > 0 || plan.keptSince >= plan.endedAt, say("has its time from its end on"));
    complain((plan.open === 0) === plan.endedAt >= 0, say("has ended if all its tasks have"));
    const isListed = [...items(state.endedPlans)].includes(plan as never);
    complain(isListed === (plan.open === 0), say("is listed as ended if it has"));
    const isDue = plan.hasFailed && plan.paused === null;
    complain(state.failedPlans.has(plan as never) === isDue, say("is to be paused if it has failed fast"));
    complain(!plan.hasFailed || plan.paused !== "failed", say("is paused once for a failure"));
    complain(!plan.hasFailed || plan.counts.failed > 0, say("has failed while a task of it has"));
    const isStopped = plan.paused !== null && tasks.some((task) => task.group !== null);
    complain(!isStopped, say("has nothing in a queue while it is paused"));
  }
  complain(held === state.heldByPlans, "the tasks that plans hold are counted");
  const areKnown = [...state.groups.values()].every(({ plan }) => plan === null || state.plans.get(plan.id) === plan);
  complain(areKnown, "a group has a plan only while that is known");
}

function checkEnds(state: ReadonlyState, complain: Check): void {
  const lists = [
    { ends: [...waiting(state.ended)], count: state.results, isBad: false },
    { ends: [...waiting(state.endedBadly)], count: state.failures, isBad: true },
  ];
  const kept = lists.flatMap(({ ends, count, isBad }) => {
    const mine = ends.filter(({ task, end }) => task.end === end && state.tasks.get(task.id) === task);
    const areAll = mine.length === count && mine.every(({ task }) => endedBadly(task.phase) === isBad);
    complain(areAll, "every ended task whose time is not up stands once in the order of ends of its kind");
    const seqs = ends.map(({ end }) => end.seq);
    const areInOrder = seqs.every((seq, index) => index === 0 || (seqs[index - 1] as number) < seq);
    complain(areInOrder, "ends are in the order in which they came");
    return mine;
  });
  const unnotified = kept
    .toSorted((left, right) => left.end.seq - right.end.seq)
    .map(({ task }) => task)
    .filter(({ links }) => links !== null && links.notified < links.dependents.length);
  const areKnown =
    unnotified.length === state.unnotified.size &&
    [...state.unnotified].every((task, index) => task === unnotified[index]);
  complain(areKnown, "tasks whose dependents were not all notified are known, in the order of their ends");
}

function checkTombstones(state: ReadonlyState, complain: Check): void {
  const remembered = new Set(waiting(state.remembered));
  const undue = [...state.tombstones.values()].filter(({ due }) => !due);
  const areAll = undue.length === state.remembered.length && undue.every((stone) => remembered.has(stone));
  complain(areAll, "tombstones whose time is not up stand once in the order of their burial");
  for (const stone of state.tombstones.values()) {
    complain(!state.tasks.has(stone.id), () => `${stone.id} is a task or a tombstone, not both`);
    complain(stone.createdAt <= stone.endedAt, () => `tombstone ${stone.id} was created before it ended`);
    const isAwaited = !stone.due || stone.children > 0;
    complain(isAwaited, () => `tombstone ${stone.id} is gone when its time is up and no child is left`);
  }
}

/** What calls of no task have set aside, while they wait and while they are out. */
function checkCalls(state: ReadonlyState, complain: Check): void {
  const calls = [...state.gates.values()].flatMap((gate) => [
    ...[...gate.queue.entries.values()].map(({ ticket }) => ticket),
    ...gate.held.values(),
  ]);
  const own = calls.filter(({ task }) => task === undefined);
  const sum = (some: typeof own): number => some.reduce((total, { tokens }) => total + Math.max(1, tokens), 0);
  complain(state.callsReserved === sum(own), "calls of no task reserve what they asked for");
  for (const project of state.projects.values()) {
    const mine = own.filter((call) => call.project === project.id);
    complain(project.callsReserved === sum(mine), () => `calls of ${project.id} reserve what they asked for`);
  }
}

/** A call is of an attempt that lives, or it is known that it is to be taken back. */
function checkOwners(state: ReadonlyState, complain: Check): void {
  const strays = new Set(items(state.strayPermits));
  complain(strays.size === state.strayPermits.size, "a call is taken back once");
  const known = new Set<string>(strays);
  for (const { attempt } of state.tasks.values()) for (const id of attempt?.permits ?? []) known.add(id);
  let owned = 0;
  for (const [id, gate] of state.permits) {
    const { held, queue } = state.gates.get(gate) ?? { held: null, queue: null };
    const { task, attempt: number } = held?.get(id) ?? queue?.entries.get(id)?.ticket ?? {};
    if (number === undefined) continue;
    owned++;
    const attempt = state.tasks.get(task as TaskId)?.attempt;
    const isLive = attempt?.number === number;
    complain(
      strays.has(id) !== isLive,
      () => `permit ${id} is to be taken back exactly if attempt ${number} of ${task} is over`,
    );
    complain(!isLive || attempt.permits?.has(id) === true, () => `permit ${id} is known to its attempt`);
  }
  complain(known.size === owned, "every call that an attempt is known to have waits or is out");
}

function checkGates(state: ReadonlyState, complain: Check): void {
  checkCalls(state, complain);
  checkOwners(state, complain);
  let permits = 0;
  for (const [id, gate] of state.gates) {
    permits += gate.held.size + gate.queue.entries.size;
    let reserved = 0;
    let fresh = 0;
    for (const permit of gate.held.values()) {
      reserved += permit.tokens;
      if (permit.episode === gate.episode) fresh++;
      complain(state.permits.get(permit.id as never) === id, () => `permit ${permit.id} is known to be at ${id}`);
    }
    for (const ticket of gate.queue.entries.keys()) {
      complain(state.permits.get(ticket as never) === id, () => `ticket ${ticket} is known to be at ${id}`);
    }
    complain(gate.reserved === reserved && gate.fresh === fresh, () => `gate ${id} counts what it handed out`);
  }
  complain(permits === state.permits.size, "every known permit is queued or held");
  for (const { name, held } of state.shapes.gates.values()) {
    const blockedUntil = state.gates.get(name as never)?.blockedUntil ?? null;
    complain(!held || blockedUntil !== null, () => `gate ${name} is held only if it was throttled`);
    const isHeldThen = held || blockedUntil === null || blockedUntil <= state.at;
    complain(isHeldThen, () => `gate ${name} is held while it is blocked`);
  }
}
