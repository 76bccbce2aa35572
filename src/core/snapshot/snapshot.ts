/**
 * The facts of a state as lines of JSON, and back.
 *
 *     header · config · spent · projects with their agents · workers · gates · tabs · groups · plans
 *     requirements and tasks, in the order of submission · attempts · holds · artifacts · tombstones · callbacks
 *     schedules · what was used · end
 *
 * Only facts are written, none of the indices: queues, bit sets, trees, counts and timers follow from the
 * facts and are rebuilt by `restore` with the very functions that evolve uses. One line per thing, so that a million
 * tasks are never one string. Requirements, which tasks share, are written just before the first task that has them,
 * and agents and requirements are named by their number in the file.
 *
 * The order is canonical: the same facts give the same bytes, whatever indices were built in between. Where order is
 * itself a fact (who waits for an artifact or a task, which gate or pinned worker is looked at first, which mean was
 * learned last, which tombstone goes first) it is kept; where it means nothing, lines are sorted by id. A tie of an
 * ended task to one that is no longer kept is written as 0: it is counted when dependents are notified, nothing else.
 *
 * The last line says how many went before it, so a file that was cut does not pass for a whole one. Whether
 * bytes were changed is known by their hash, which the store keeps.
 */

import { waiting } from "../collections/fifo.ts";
import { gateFacts } from "../gate/state.ts";
import type { UsageTotals } from "../model/events.ts";
import type { End, EndedExtra } from "../model/extra.ts";
import type {
  ReadonlyAgent,
  ReadonlyAttempt,
  ReadonlyExtra,
  ReadonlyProject,
  ReadonlyRequirements,
  ReadonlyState,
  ReadonlyTask,
  ReadonlyTaskGroup,
  ReadonlyTombstone,
  ReadonlyWorker,
} from "../model/read-only.ts";
import type { EndedTask } from "../model/state.ts";
import * as format from "./format.ts";
import { planRow } from "./plan-rows.ts";

export { SNAPSHOT_FORMAT, SnapshotUnreadable } from "./format.ts";
export { restore, restoring } from "./restore.ts";

/** The state must not change while its lines are being taken. */
export function* snapshotLines(state: ReadonlyState): Generator<string> {
  yield* closed(written(rowsOf(state)));
}

function* rowsOf(state: ReadonlyState): Generator<format.Row> {
  const agents: AgentNumbers = new Map();
  yield* rowsAbove(state, agents);
  const requirements: RequirementsNumbers = new Map();
  for (const task of state.tasks.values()) {
    const known = requirements.size;
    const number = numberOf(requirements, task.requirements);
    if (number === known) yield requirementsRow(task.requirements);
    yield taskRow(state, task, agents.get(task.agent) as number, number);
  }
  yield* rowsBehindTasks(state);
  for (const stone of waiting(state.remembered)) yield stoneRow(stone, stone.children, false);
  yield* rowsBelow(state);
}

/** Agents and requirements are named by their number in the file. */
export type AgentNumbers = Map<ReadonlyAgent, number>;
export type RequirementsNumbers = Map<ReadonlyRequirements, number>;

/** The number they have, or get now. */
export function numberOf(numbers: RequirementsNumbers, requirements: ReadonlyRequirements): number {
  const number = numbers.get(requirements) ?? numbers.size;
  if (number === numbers.size) numbers.set(requirements, number);
  return number;
}

export function* written(rows: Iterable<format.Row>): Generator<string> {
  for (const row of rows) yield JSON.stringify(row);
}

/** With the line that says how many went before it. */
export function* closed(lines: Iterable<string>): Generator<string> {
  let count = 0;
  for (const line of lines) {
    count++;
    yield line;
  }
  const end: format.EndOfFileRow = ["end", count];
  yield JSON.stringify(end);
}

/** All that stands above the tasks. Agents get their numbers. */
export function* rowsAbove(state: ReadonlyState, agents: AgentNumbers): Generator<format.Row> {
  const { seq, at, paused, cursor, levels, totals } = state;
  yield ["drover", format.SNAPSHOT_FORMAT, seq, at, paused, cursor, levels.origin, levels.highest, totalsRow(totals)];
  yield ["config", state.base, state.patch];
  yield ["spent", state.spent.facts()];
  for (const project of state.projects.values()) {
    yield projectRow(project);
    for (const agent of byId(project.agents.values())) {
      agents.set(agent, agents.size);
      yield ["agent", agent.id, agent.lastServed, agentTotalsRow(agent.totals)];
    }
  }
  for (const worker of state.fleet.order) yield workerRow(worker);
  for (const [id, gate] of state.gates) {
    yield ["gate", id, state.shapes.gates.get(id)?.held === true, gateFacts(gate)];
  }
  for (const tab of byId(state.tabs.values())) yield ["tab", tab.id, tab.seq, tab.ownerlessSince];
  for (const group of byId(state.groups.values())) yield groupRow(group);
  for (const plan of byId(state.plans.values())) yield planRow(plan);
}

/** What stands between the tasks and the tombstones whose time is not up. */
export function* rowsBehindTasks(state: ReadonlyState): Generator<format.Row> {
  // By facts, not by the order in a table, which may hang on what is no longer there.
  for (const worker of state.fleet.order) for (const attempt of worker.attempts.inOrder()) yield attemptRow(attempt);
  for (const { hold } of state.projects.values()) if (hold !== null) yield ["hold", hold.task.seq, hold.worker.id];
  for (const name of [...state.artifacts.keys()].sort()) {
    yield ["artifact", name, Array.from(state.artifacts.get(name) ?? [], (task) => task.seq)];
  }
}

export function* rowsBelow(state: ReadonlyState): Generator<format.Row> {
  if (state.tombstones.size > state.remembered.length)
    for (const stone of byId(dueStones(state))) yield stoneRow(stone, stone.children, true);
  const { nodes, leader } = state.cluster;
  for (const [id, { url, key }] of nodes) yield ["node", id, url, key, id === leader];
  for (const { id, until, mayReturn } of waiting(state.settled.order)) yield ["settled", id, until, mayReturn];
  for (const [agent, count] of state.rejected) yield ["rejected", agent, count];
  for (const task of [...state.callbacks.wanted.keys()].sort())
    yield ["callback", task, null, null, null, state.callbacks.wanted.get(task) as string];
  for (const { task, end, phase, ended, host } of state.callbacks.due.values()) {
    yield ["callback", task, end, format.PHASES.indexOf(phase), ended === null ? null : endedRow(ended), host];
  }
  for (const { id, body, nextAt, lastAt, lastTask } of byId(state.schedules.values())) {
    yield ["schedule", id, body, nextAt, lastAt, lastTask];
  }
  yield* ledgerRows(state.ledger);
}

/** Those that stay only because a child names them. */
function* dueStones({ tombstones }: ReadonlyState): Generator<ReadonlyTombstone> {
  for (const stone of tombstones.values()) if (stone.due) yield stone;
}

/** In the order in which they began: the first goes first. */
function* ledgerRows({ types, labels }: ReadonlyState["ledger"]): Generator<format.Row> {
  if (types.goneDay >= 0 || labels.goneDay >= 0) yield ["used-gone", types.goneDay, labels.goneDay];
  for (const [kind, part] of [["types", types] as const, ["labels", labels] as const])
    for (const { day, project, agent, of, attempts, usage } of part.rows.values())
      yield ["used", kind, day, project, agent, of, attempts, usageRow(usage)];
}

const byId = <Item extends { readonly id: string }>(items: Iterable<Item>): Item[] =>
  [...items].sort((left, right) => (left.id < right.id ? -1 : 1));

const totalsRow = (totals: ReadonlyState["totals"]): format.Numbers => [
  ...[totals.submitted, totals.completed, totals.failed, totals.cancelled, totals.expired, totals.skipped],
  ...[totals.starts, totals.waitMs, totals.runMs, totals.ends, totals.rejected],
];

const agentTotalsRow = ({ submitted, completed, failed, cancelled }: ReadonlyAgent["totals"]): format.Numbers => [
  ...[submitted, completed, failed, cancelled],
];

function projectRow(project: ReadonlyProject): format.ProjectRow {
  const { id, settings, source, status, level, charged, spent, recent, starts, usage } = project;
  const means = Array.from(project.means, ([type, { count, tokens }]) => [type, count, tokens] as const);
  return [
    ...(["project", id, settings, source, status, level, charged] as const),
    ...([spent.facts(), recent.facts(), starts.facts(), means, usage === null ? null : usageRow(usage)] as const),
  ];
}

/** Unlimited room is written as null: JSON has no infinity. */
function workerRow(worker: ReadonlyWorker): format.WorkerRow {
  const { id, kind, session, slots, capabilities, cpu, memory, zone, status, joinedAt, offered, target } = worker;
  const { takes, note, worktrees } = worker;
  const orNull = (room: number): number | null => (room === Number.POSITIVE_INFINITY ? null : room);
  return [
    ...(["worker", id, kind, session, slots, capabilities, orNull(cpu), orNull(memory), zone, status] as const),
    ...([joinedAt, offered, target?.endpoint ?? null, target?.path ?? null, takes, note] as const),
    orNull(worktrees),
  ];
}

export function requirementsRow(requirements: ReadonlyRequirements): format.RequirementsRow {
  const { type, capabilities, cpu, memory, provider, locks, zone, tab } = requirements;
  const { maxAttempts, timeoutMs, onDependencyFailure, prioritised, onLoss, action } = requirements;
  return [
    ...(["ask", type, capabilities, cpu, memory, provider, locks, zone, tab] as const),
    ...([maxAttempts, timeoutMs, onDependencyFailure, prioritised, onLoss, action] as const),
  ];
}

/** What is told of a task only if it is not as most are. */
export type MoreFacts = Pick<
  ReadonlyTask,
  | ("paused" | "ownFailures" | "losses" | "attempts" | "restUntil" | "deadline" | "lastWorker" | "startedAt")
  | ("pin" | "timers" | "end" | "requeues" | "throttles")
>;

export function taskRow(state: ReadonlyState, task: ReadonlyTask, agent: number, requirements: number): format.TaskRow {
  const { id, seq, bodyHash, createdAt, depth, priority, iteration, estimate, runnableAt, lastSeq } = task;
  const phase = format.PHASES.indexOf(task.phase);
  const links = linksRow(state, task);
  const extra = task.extra === null ? null : extraRow(task.extra);
  // Spelled out for each case: this runs a million times.
  return isPlain(task) && links === null && extra === null
    ? [
        "task",
        id,
        seq,
        agent,
        requirements,
        bodyHash,
        createdAt,
        depth,
        phase,
        priority,
        iteration,
        estimate,
        runnableAt,
        lastSeq,
      ]
    : [
        ...(["task", id, seq, agent, requirements, bodyHash, createdAt, depth, phase, priority] as const),
        ...([iteration, estimate, runnableAt, lastSeq, moreOf(task, links, extra)] as const),
      ];
}

/** Of which little is told: it has not started. */
export const isPlain = (task: ReadonlyTask): boolean =>
  !task.paused &&
  task.attempts === 0 &&
  task.ownFailures === 0 &&
  task.losses === 0 &&
  task.restUntil < 0 &&
  task.deadline < 0 &&
  task.pin === null &&
  task.end === null;

export function moreOf(task: MoreFacts, links: format.LinksRow | null, extra: format.ExtraRow | null): format.TaskMore {
  const { paused, ownFailures, losses, attempts, restUntil, deadline, lastWorker, startedAt, pin, end } = task;
  const pinUntil = task.timers?.find((timer) => timer.kind === "pin")?.at ?? -1;
  const how = end === null ? null : endRow(end);
  return [
    ...([paused, ownFailures, losses, attempts, restUntil, deadline] as const),
    ...([lastWorker, startedAt, pin, pinUntil, links, how, task.requeues, task.throttles, extra] as const),
  ];
}

/** Null also where it is there and holds nothing. */
export function extraRow(extra: ReadonlyExtra): format.ExtraRow | null {
  const { labels, growth, wait } = extra;
  if (Object.values(extra).every((one) => one === null)) return null;
  return {
    ...(labels === null ? {} : { labels: labels.map(({ text }) => text) }),
    ...(growth === null ? {} : { growth: [growth.tree.root, growth.tree.grown, growth.children] }),
    ...(wait === null ? {} : { wait: waitRow(wait) }),
    ...endedExtraRow(extra),
  };
}

function endedExtraRow({ usage, attempts, loop, files, approval, group }: EndedExtra): format.ExtraRow {
  return {
    ...(usage === null ? {} : { usage: usageRow(usage) }),
    ...(attempts === null ? {} : { attempts: attempts.map((one) => [one.attempt, one.worker, usageRow(one.usage)]) }),
    ...(group === null ? {} : { group: group.group.id }),
    ...(loop === null ? {} : { loop: loopRow(loop) }),
    ...(files === null ? {} : { files: files.map(({ path, hash, size }): format.FileRow => [path, hash, size]) }),
    ...(approval === null ? {} : { approval: approvalRow(approval) }),
  };
}

const usageRow = ({ inputTokens, outputTokens, cachedTokens, cost }: UsageTotals): format.UsageRow => [
  ...([inputTokens, outputTokens, cachedTokens, cost] as const),
];

/** Of those whose records are there, the group is counted again. */
function groupRow({ id, createdAt, parts }: ReadonlyTaskGroup): format.GroupRow {
  const sorted = [...parts].sort(([left], [right]) => (left < right ? -1 : 1));
  const rows = sorted.map(([, { project, agent, endedAt, gone, usage }]): format.GroupPartRow => {
    const counts = format.END_PHASES.map((end) => gone[end]);
    return [project, agent, endedAt, counts, usage === null ? null : usageRow(usage)];
  });
  return ["group", id, createdAt, rows];
}

/** An answer that was not given has no instant. */
const approvalRow = ({
  required,
  question,
  until,
  given,
  askedBy,
}: ReadonlyExtra["approval"] & {}): format.ApprovalRow => [
  ...([required, question, until, given?.note ?? null, given?.at ?? -1, askedBy] as const),
];

const waitRow = ({ answer }: NonNullable<ReadonlyExtra["wait"]>): format.WaitRow =>
  answer === null ? [] : [answer.attempt, answer.seq, answer.resultHash, answer.resultSize];

const loopRow = ({ max, rounds }: NonNullable<ReadonlyExtra["loop"]>): format.LoopRow => [
  max,
  ...rounds.map(
    ({ iteration, attempt, outcome, note, tokens, usage }): format.RoundRow => [
      ...([iteration, attempt, outcome, note, tokens, usage === null ? null : usageRow(usage)] as const),
    ],
  ),
];

const endRow = ({ at, seq, error, resultHash, resultSize, resultSeq }: End): format.EndRow => [
  ...([at, seq, error, resultHash, resultSize, resultSeq] as const),
];

function endedRow(ended: EndedTask): format.EndedRow {
  const { seq, project, agent, createdAt, depth, priority, iteration, ownFailures, attempts } = ended;
  return [
    ...([seq, project.id, agent.id, createdAt, depth, priority, iteration, ownFailures, attempts] as const),
    ...([
      ended.runnableAt,
      ended.startedAt,
      ended.deadline,
      ended.lastWorker,
      ended.requirements.onLoss,
      endRow(ended.end),
      ended.extra === null ? null : endedExtraRow(ended.extra),
    ] as const),
  ];
}

/** Null also where links are there and say nothing. */
function linksRow(state: ReadonlyState, task: ReadonlyTask): format.LinksRow | null {
  if (task.links === null) return null;
  const { parent, needs, unmet, artifact, dependents, notified, children, due, ofRunning } = task.links;
  const isEmpty = parent === null && needs.length === 0 && artifact === null && unmet === 0;
  if (isEmpty && dependents.length === 0 && children === 0 && !due) return null;
  const seqs = dependents.map((dependent) => (state.tasks.get(dependent.id) === dependent ? dependent.seq : 0));
  const row: format.LinksRow = [parent, needs, unmet, artifact, seqs, notified, children];
  if (due || ofRunning) row.push(due);
  if (ofRunning) row.push(true);
  return row;
}

function attemptRow(attempt: ReadonlyAttempt): format.AttemptRow {
  const { task, worker, number, assignedAt, charge, express, state, startedAt } = attempt;
  const { reserve, reported, permitted, known, stopCause, stopBy } = attempt;
  const row: format.AttemptRow = [
    ...(["attempt", task.seq, worker.id, number, assignedAt, charge, express, state, startedAt] as const),
    ...([reserve, reported, permitted, known, stopCause, stopBy] as const),
  ];
  const { gateTold, permitUsage } = attempt;
  if (gateTold || permitUsage !== null) row.push(gateTold);
  if (permitUsage !== null) row.push(usageRow(permitUsage));
  return row;
}

export function stoneRow(stone: ReadonlyTombstone, children: number, due: boolean): format.StoneRow {
  const { id, bodyHash, phase, depth, priority, parent, createdAt, endedAt, seq, endSeq, lastWorker } = stone;
  const code = format.PHASES.indexOf(phase);
  // Spelled out: this runs a million times.
  return [
    "tombstone",
    id,
    bodyHash,
    code,
    depth,
    priority,
    parent,
    endedAt,
    seq,
    endSeq,
    children,
    due,
    createdAt,
    lastWorker,
  ];
}
