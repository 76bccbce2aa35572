/**
 * The conditions between a task and its start, one function each, with the numbers that decide.
 *
 * A condition says whether it lets the task through, in words and in numbers. `numbers.until` stands only where the
 * clock alone opens a condition that is shut now; a condition without it waits for somebody: a task that ends, a
 * worker that comes, a person who resumes. Every condition is listed, open or shut, so that nothing holds a task up
 * unseen.
 */

import { instantText } from "../base/instant-text.ts";
import { entryOf } from "../config/config.ts";
import { isHeld, waitingOf } from "../gate/limits.ts";
import type { RollingSum } from "../gate/usage-window.ts";
import { dependenciesOf } from "../lifecycle/transitions.ts";
import type { ReadonlyAttempt, ReadonlyProject, ReadonlyState, ReadonlyTask } from "../model/read-only.ts";
import { hasEnded } from "../model/state.ts";
import { reserveFor, setAside } from "../turn/budget.ts";
import { chargeFor, shownLevel } from "../turn/fairness.ts";
import { baseScore, shownScore } from "../turn/priority.ts";
import { countAhead, fixedOf, pausedPlanOf } from "../turn/queue.ts";
import { asRunnable, deficitsWith, type Question } from "./turn.ts";

/** The name of a condition between a task and its start. */
export type WhyCode =
  | ("ended" | "running" | "approval" | "children" | "fleet-paused" | "project-paused")
  | ("plan-paused" | "task-paused")
  | ("dependency" | "artifact" | "not-before" | "backing-off" | "stopping" | "deadline")
  | ("fleet-in-flight" | "fleet-budget" | "project-in-flight" | "project-budget")
  | ("express-lane" | "project-turn" | "agent-in-flight" | "agent-turn" | "position")
  | ("type-limit" | "lock" | "provider" | "permit")
  | ("no-workers" | "never-fits" | "worker-room" | "affinity" | "hold" | "tab");

/** One condition between a task and its start. */
export type WhyCondition = {
  /** Which condition it is. */
  readonly code: WhyCode;
  /** Whether it is open. */
  readonly ok: boolean;
  /** One sentence, for people. */
  readonly detail: string;
  /** The numbers it goes by; instants are in milliseconds. */
  readonly numbers: Readonly<Record<string, number | string | null>>;
  /** The end of `detail`, where workers say it of themselves: it may name what is not everybody's. */
  readonly notes?: string;
};

/** The numbers that are instants, in milliseconds here; on the wire they are text. */
export const INSTANT_NUMBERS: ReadonlySet<string> = new Set([
  ...["until", "deadline", "endedAt", "assignedAt", "blockedUntil", "nextExpiry", "failsAt"],
]);

const DEPENDENCIES_NAMED_MAX = 20;

/** A condition with the words for when it is open and for when it is shut. */
export function finding(
  code: WhyCode,
  ok: boolean,
  numbers: WhyCondition["numbers"],
  [open, shut]: readonly [open: string, shut: string],
): WhyCondition {
  return { code, ok, detail: ok ? open : shut, numbers };
}

/** An instant inside a sentence. */
export const when = (at: number | null | undefined): string => (typeof at === "number" ? instantText(at) : "");

/** What concerns the task alone: pauses, what it waits for, the clock. */
export function taskConditions(state: ReadonlyState, task: ReadonlyTask, now: number): WhyCondition[] {
  const isActive = task.project.status === "active";
  return [
    finding("fleet-paused", !state.paused, {}, ["the fleet is not paused", "the whole fleet is paused"]),
    finding("project-paused", isActive, { project: task.project.id }, [
      `project ${task.project.id} is active`,
      `project ${task.project.id} is paused`,
    ]),
    planCondition(task),
    finding("task-paused", !task.paused, {}, ["the task is not paused", "the task itself is paused"]),
    ...dependencyConditions(state, task),
    artifactCondition(task),
    notBeforeCondition(task, now),
    restCondition(task, now),
    stoppingCondition(task),
    deadlineCondition(task, now),
  ];
}

function planCondition({ extra }: ReadonlyTask): WhyCondition {
  const id = extra?.group?.group.plan?.id ?? null;
  const paused = extra === null ? null : pausedPlanOf(extra);
  const why = paused?.paused === "failed" ? ", since one of its tasks failed" : "";
  return finding("plan-paused", paused === null, id === null ? {} : { plan: id }, [
    id === null ? "it is of no plan" : `the plan ${id} is not paused`,
    `the plan ${id} is paused${why} (drover plan ${id} --resume)`,
  ]);
}

/** One condition for each dependency that is not met, at most twenty, or one that says all are. */
function dependencyConditions(state: ReadonlyState, task: ReadonlyTask): WhyCondition[] {
  const { unmet, parent } = task.links ?? { unmet: 0, parent: null };
  const all = task.links === null ? [] : dependenciesOf(task.links);
  const open = (detail: string): WhyCondition =>
    finding("dependency", true, { dependencies: all.length, unmet }, [detail, ""]);
  if (task.phase !== "waiting" || all.length === 0) {
    return [open(all.length === 0 ? "it depends on no other task" : `all ${all.length} dependencies have ended`)];
  }
  const conditions: WhyCondition[] = [];
  for (const id of all) {
    const found = state.tasks.get(id);
    if (found === undefined || (hasEnded(found) && !state.unnotified.has(found))) continue;
    const role = id === parent ? "parent" : "need";
    const numbers = { dependency: id, role, state: found.phase, dependencies: all.length, unmet };
    conditions.push(finding("dependency", false, numbers, ["", `its ${role} ${id} is ${found.phase}`]));
    if (conditions.length >= DEPENDENCIES_NAMED_MAX) break;
  }
  return conditions.length === 0 ? [open(`all ${all.length} dependencies have ended`)] : conditions;
}

function artifactCondition(task: ReadonlyTask): WhyCondition {
  const artifact = task.links?.artifact ?? null;
  return finding("artifact", artifact === null, { artifact }, [
    "it waits for no artifact",
    `its input artifact ${artifact} does not exist yet`,
  ]);
}

function notBeforeCondition(task: ReadonlyTask, now: number): WhyCondition {
  const until = task.phase === "waiting" && task.restUntil > now ? task.restUntil : null;
  return finding("not-before", until === null, until === null ? {} : { until, waitMs: until - now }, [
    "its earliest instant has come, or it has none",
    `it must not start before ${when(until)}`,
  ]);
}

function restCondition(task: ReadonlyTask, now: number): WhyCondition {
  const until = task.phase === "queued" && task.restUntil > now ? task.restUntil : null;
  const { ownFailures: failures, losses, requeues, throttles, attempts } = task;
  const tally = { failures, losses, requeues, rateLimits: throttles, attempts };
  // A task whose worker is lost does not rest: one that rests after losses alone was stopped by its budget last.
  const isStopped = losses > 0 && failures + requeues + throttles === 0;
  const counts = [
    counted(failures, "failure"),
    isStopped && losses === 1 ? "a stop by its budget" : counted(losses, "loss", "losses"),
    isStopped && losses > 1 ? "the last a stop by its budget" : "",
    ...[counted(requeues, "requeue"), counted(throttles, "rate limit")],
  ];
  const after = counts.filter((text) => text !== "");
  return finding("backing-off", until === null, until === null ? tally : { ...tally, until, waitMs: until - now }, [
    "it is not backing off",
    `it is backing off until ${when(until)} after ${after.join(", ")}`,
  ]);
}

const counted = (times: number, one: string, many = `${one}s`): string =>
  times === 0 ? "" : `${times} ${times === 1 ? one : many}`;

function stoppingCondition(task: ReadonlyTask): WhyCondition {
  const attempt = task.attempt;
  if (attempt === null) return finding("stopping", true, {}, ["no former attempt is still stopping", ""]);
  const numbers = { attempt: attempt.number, worker: attempt.worker.id, until: attempt.stopBy };
  return finding("stopping", false, numbers, [
    "",
    `its attempt ${attempt.number} is still stopping on worker ${attempt.worker.id}, ` +
      `until ${when(attempt.stopBy)} at most`,
  ]);
}

function deadlineCondition(task: ReadonlyTask, now: number): WhyCondition {
  const deadline = task.deadline < 0 ? null : task.deadline;
  const isPast = deadline !== null && deadline <= now;
  return finding("deadline", !isPast, { deadline, leftMs: deadline === null ? null : deadline - now }, [
    deadline === null ? "it has no deadline" : `its deadline ${when(deadline)} has not come`,
    `its deadline ${when(deadline)} has passed: it fails with the next pump`,
  ]);
}

/** What concerns its type, its locks and its provider. */
export function shapeConditions(state: ReadonlyState, task: ReadonlyTask, now: number): WhyCondition[] {
  const { type, provider } = task.requirements;
  const running = state.shapes.types.get(type)?.inFlight ?? 0;
  const limit = entryOf(state.config.scheduler.perType, type);
  const typeCondition = finding(
    "type-limit",
    limit === undefined || running < limit,
    { running, limit: limit ?? null },
    [
      limit === undefined ? `type ${type} has no limit` : `${running} of ${limit} tasks of type ${type} run`,
      `type ${type} has ${running} in flight, and at most ${limit} may run`,
    ],
  );
  return [typeCondition, ...lockConditions(state, task), providerCondition(state, provider, now)];
}

function lockConditions(state: ReadonlyState, task: ReadonlyTask): WhyCondition[] {
  if (task.requirements.locks.length === 0) return [finding("lock", true, { locks: 0 }, ["it needs no lock", ""])];
  return task.requirements.locks.map((lock) => {
    const holder = state.shapes.locks.get(lock)?.holder ?? null;
    const numbers = { lock, task: holder?.task.id ?? null, attempt: holder?.number ?? null };
    return finding("lock", holder === null, { ...numbers, worker: holder?.worker.id ?? null }, [
      `lock ${lock} is free`,
      `lock ${lock} is held by ${holder?.task.id} on worker ${holder?.worker.id}`,
    ]);
  });
}

function providerCondition(state: ReadonlyState, provider: string | null, now: number): WhyCondition {
  if (provider === null) return finding("provider", true, {}, ["it names no provider", ""]);
  const gate = state.gates.get(provider as Parameters<ReadonlyState["gates"]["get"]>[0]);
  const isBlocked = gate !== undefined && isHeld(gate, now);
  const throttles = gate?.throttles ?? 0;
  const numbers = isBlocked
    ? { provider, throttles, blockedUntil: gate.blockedUntil, until: gate.blockedUntil }
    : { provider, throttles, blockedUntil: null };
  return finding("provider", !isBlocked, numbers, [
    `provider ${provider} is not blocked`,
    `provider ${provider} said stop: blocked until ${when(gate?.blockedUntil)} after ${counted(throttles, "throttle")}`,
  ]);
}

const PERMITS_NAMED_MAX = 3;

/** The calls of a running task that wait for a permit: the first few. */
export function permitConditions(state: ReadonlyState, attempt: ReadonlyAttempt, now: number): WhyCondition[] {
  const found: WhyCondition[] = [];
  for (const permit of attempt.permits ?? []) {
    if (found.length === PERMITS_NAMED_MAX) break;
    const id = state.permits.get(permit);
    const gate = id === undefined ? undefined : state.gates.get(id);
    const waiting = gate === undefined ? null : waitingOf(gate, permit, now);
    if (id === undefined || waiting === null) continue;
    const until = waiting.status === "rate-limited" ? now + waiting.retryAfterMs : null;
    const numbers = { gate: id, permit, position: waiting.position, ...(until === null ? {} : { until }) };
    const held = until === null ? "" : `, which lets nothing out until ${when(until)}`;
    const ahead = waiting.position - 1;
    const place = ahead === 0 ? "it is next" : `${counted(ahead, "call goes", "calls go")} first`;
    found.push(
      finding("permit", false, numbers, ["", `a call of it waits for a permit of gate ${id}${held}; ${place}`]),
    );
  }
  return found;
}

/** The limits of the fleet, the project and the agent, and the budgets. */
export function limitConditions(question: Question): WhyCondition[] {
  const { state, task } = question;
  const { project, agent } = task;
  const { maxInFlight, maxPerAgentInFlight } = state.config.scheduler;
  const { maxConcurrent } = project.settings;
  const { inFlight } = agent.load;
  const elsewhere = inFlight === agent.inFlight ? "" : ` (${agent.inFlight} of them in project ${project.id})`;
  return [
    finding("fleet-in-flight", state.inFlight < maxInFlight, { inFlight: state.inFlight, maxInFlight }, [
      `${state.inFlight} of maxInFlight ${maxInFlight} run`,
      `the fleet has ${state.inFlight} in flight, and maxInFlight is ${maxInFlight}`,
    ]),
    budgetCondition("fleet-budget", question),
    finding("project-in-flight", project.inFlight < maxConcurrent, { inFlight: project.inFlight, maxConcurrent }, [
      `${project.inFlight} of maxConcurrent ${maxConcurrent} of project ${project.id} run`,
      `project ${project.id} has ${project.inFlight} in flight, and its maxConcurrent is ${maxConcurrent}`,
    ]),
    budgetCondition("project-budget", question),
    finding(
      "agent-in-flight",
      inFlight < maxPerAgentInFlight,
      { inFlight, inFlightHere: agent.inFlight, maxPerAgentInFlight },
      [
        `${inFlight} of maxPerAgentInFlight ${maxPerAgentInFlight} of agent ${agent.id} run`,
        `agent ${agent.id} has ${inFlight} in flight${elsewhere}, and maxPerAgentInFlight is ${maxPerAgentInFlight}`,
      ],
    ),
  ];
}

/** Judged on the task next in line, which no task overtakes; on this one if none is in line. */
function budgetCondition(code: "fleet-budget" | "project-budget", question: Question): WhyCondition {
  const { state, task, now, standing } = question;
  const isFleet = code === "fleet-budget";
  const { limit } = isFleet ? state.config.budget : task.project.settings.budget;
  const spent = isFleet ? state.spent : task.project.spent;
  const reserved = setAside(isFleet ? state : task.project);
  const isTooLarge = limit !== null && task.estimate > limit;
  const judged = isTooLarge ? task : (standing.nextInLine ?? task);
  const needed = reserveFor(state, judged);
  const used = spent.total(now);
  const whose = isFleet ? "the fleet" : `project ${task.project.id}`;
  const nextExpiry = isTooLarge ? null : spent.nextExpiry(now);
  const numbers = { used, reserved, needed, limit, judgedOn: judged.id, nextExpiry };
  if (isTooLarge)
    return finding(code, false, numbers, [
      "",
      `its estimate of ${task.estimate} tokens alone exceeds ${whose}'s budget of ${limit}: it never starts under ` +
        "this limit",
    ]);
  if (limit === null) return finding(code, true, numbers, [`${whose} has no token budget`, ""]);
  if (needed === 0) return finding(code, true, numbers, [`${judged.id} expects no tokens and asks no budget`, ""]);
  const isOpen = used + reserved + needed <= limit;
  const until = isOpen ? null : roomAt(spent, limit - reserved - needed, now);
  const sum = `${used} used + ${reserved} reserved + ${needed} for ${judged.id}`;
  return finding(code, isOpen, until === null ? numbers : { ...numbers, until }, [
    `${sum} stay within ${whose}'s budget of ${limit} tokens`,
    `${sum} exceed ${whose}'s budget of ${limit} tokens${isSoon(until, now) ? ` until ${when(until)}` : ""}`,
  ]);
}

/** A budget that is for all time has a window of many years: that is no answer to when. */
const isSoon = (until: number | null, now: number): boolean => until !== null && until - now < NEVER_MS;
const NEVER_MS = 5 * 365 * 24 * 3_600_000;

/** When so little is used that this much is left; null if time alone does not get there. */
const roomAt = (spent: Pick<RollingSum, "belowAt">, left: number, now: number): number | null =>
  left < 0 ? null : spent.belowAt(left + 1, now);

/** Whose turn it is: the express lane, the project, the agent, the position in the agent's queue. */
export function turnConditions(question: Question): WhyCondition[] {
  const { state, task, standing } = question;
  const { critical } = state.config.scheduler;
  const { express, expressFirst, agentFirst } = standing;
  const lane = { inFlight: state.express, maxInFlight: critical.maxInFlight, first: expressFirst?.id ?? null };
  const ofAgent = { agentInFlight: task.agent.inFlight, lastServed: task.agent.lastServed };
  return [
    finding("express-lane", expressFirst === null, lane, [
      express ? "it goes by the express lane" : "nothing in the express lane goes before it",
      `${expressFirst?.id} of project ${expressFirst?.project.id} goes first, by the express lane`,
    ]),
    projectTurnCondition(question),
    finding("agent-turn", agentFirst === null, { ...ofAgent, ...firstAgent(agentFirst) }, [
      "no other agent of its project goes first",
      `${agentFirst?.id} of agent ${agentFirst?.agent.id} goes first`,
    ]),
    positionCondition(question),
  ];
}

const firstAgent = (first: ReadonlyTask | null): Record<string, number | string | null> =>
  first === null
    ? { first: null }
    : { first: first.id, firstAgent: first.agent.id, firstInFlight: first.agent.inFlight };

function projectTurnCondition({ state, task, now, standing: { projectFirst } }: Question): WhyCondition {
  const mine = task.project;
  const rule = state.config.scheduler.fairness.rule;
  const order = rule === "deficit" ? deficitsWith(state, mine, now) : [];
  const levelOf = (project: ReadonlyProject): number =>
    rule === "level"
      ? shownLevel(state, project, now)
      : (order.find((other) => other.project === project)?.excess ?? 0);
  const { weight } = mine.settings;
  const measure = rule === "level" ? "level" : "share − target";
  const numbers = {
    rule,
    level: levelOf(mine),
    weight,
    charged: mine.charged,
    chargedPerWeight: mine.charged / weight,
    charge: chargeFor(state, task),
    first: projectFirst?.id ?? null,
    ...(projectFirst === null ? {} : firstProject(projectFirst.project, levelOf(projectFirst.project))),
  };
  const first = projectFirst?.project;
  const firstLevel = first === undefined ? 0 : levelOf(first);
  return finding("project-turn", projectFirst === null, numbers, [
    "no other project that could start something goes first",
    `project ${first?.id} goes first: its ${measure} is ${firstLevel}, against ${levelOf(mine)}`,
  ]);
}

const firstProject = (project: ReadonlyProject, level: number): Record<string, number | string> => ({
  firstProject: project.id,
  firstLevel: level,
  firstWeight: project.settings.weight,
  firstChargedPerWeight: project.charged / project.settings.weight,
});

function positionCondition({ state, task, now, standing: { rank, queueFirst } }: Question): WhyCondition {
  const rules = state.config.scheduler.priority;
  const runnable = asRunnable(task, now);
  const fixed = fixedOf(state, task);
  const waitedMs = Math.max(0, now - runnable.runnableAt);
  const ahead = countAhead(state, runnable, now);
  const score = shownScore(fixed, waitedMs, rules);
  const base = baseScore(task.requirements.type, rules);
  const depth = task.depth * rules.depthBoost;
  const numbers = {
    ahead,
    position: ahead + 1,
    priority: rank.priority,
    submittedPriority: task.priority,
    overdue: rank.overdue ? 1 : 0,
    waitedMs,
    score,
    base,
    age: score - fixed,
    depth,
    retry: base + depth - fixed,
    first: queueFirst?.id ?? null,
  };
  return finding("position", queueFirst === null, numbers, [
    ahead === 0 ? `it is first in the queue of agent ${task.agent.id}` : `the ${ahead} ahead of it cannot start now`,
    `agent ${task.agent.id} has ${ahead} ahead of it, ${queueFirst?.id} first`,
  ]);
}
