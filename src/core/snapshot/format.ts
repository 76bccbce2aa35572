/**
 * The lines of a snapshot, one kind each: what stands where.
 *
 * Every line is an array whose first value says its kind. A value is added at the end of a kind, with a new
 * format number; SnapshotUnreadable says what is wrong with lines that cannot be taken.
 */
import type { Config } from "../config/config.ts";
import type { ConfigPatch } from "../config/config-patch.ts";
import type { GateFacts } from "../gate/state.ts";
import type { RollingFacts } from "../gate/usage-window.ts";
import type { Takes } from "../model/events.ts";
import type { Approval, Round } from "../model/extra.ts";
import type { Plan } from "../model/plan.ts";
import type { Attempt, EndPhase, LivePhase, Project, Requirements, Worker } from "../model/state.ts";

/**
 * Format 2 added schedules, callbacks, a patch of the config and where push workers are; format 3, when a task that is
 * a tombstone was created; format 4, what a task that was lost is to become, its requeues, which worker ran one that is
 * a tombstone, how many were rejected, and how a task had ended whose callback is due; format 5, plans.
 */
export const SNAPSHOT_FORMAT = 5;
/** How a phase is written. The number is its index here: add to the end only. */
export const PHASES: readonly (LivePhase | EndPhase)[] = [
  ...(["waiting", "queued", "assigned", "running"] as const),
  ...(["done", "failed", "cancelled", "skipped"] as const),
  "parked",
];

export const END_PHASES: readonly EndPhase[] = ["done", "failed", "cancelled", "skipped"];

export type Numbers = readonly number[];
export type HeaderRow = [
  ...[tag: "drover", format: number, seq: number, at: number, paused: boolean, cursor: string | null],
  ...[origin: number, highest: number, totals: Numbers],
];
export type ConfigRow = [tag: "config", base: Config, patch?: ConfigPatch | null];
type SpentRow = [tag: "spent", spent: RollingFacts];
export type ProjectRow = [
  ...[tag: "project", id: string, settings: Project["settings"], source: Project["source"], status: Project["status"]],
  ...[level: number, charged: number, spent: RollingFacts, recent: RollingFacts, starts: RollingFacts],
  ...[means: readonly (readonly [type: string, count: number, tokens: number])[], usage?: UsageRow | null],
];
/** An agent belongs to the project written last. */
export type AgentRow = [tag: "agent", id: string, lastServed: number, totals: Numbers];
export type WorkerRow = [
  ...[tag: "worker", id: string, kind: Worker["kind"], session: string, slots: number, capabilities: readonly string[]],
  ...[cpu: number | null, memory: number | null, zone: string | null, status: Worker["status"], joinedAt: number],
  ...WorkerRowEnd,
];
/** What older snapshots may not have. */
export type WorkerRowEnd = [
  ...[offered?: number, endpoint?: string | null, path?: string | null, takes?: Takes | null, note?: string | null],
  ...[worktrees?: number | null],
];
export type GateRow = [tag: "gate", id: string, held: boolean, facts: GateFacts];
type TabRow = [tag: "tab", id: string, seq: number, ownerlessSince: number];
/** Its tag is that of the first format. */
export type RequirementsRow = [
  ...[tag: "ask", type: string, capabilities: readonly string[], cpu: number, memory: number, provider: string | null],
  ...[locks: readonly string[], zone: string | null, tab: string | null, maxAttempts: number],
  ...[timeoutMs: number | null, onDependencyFailure: Requirements["onDependencyFailure"], prioritised: boolean],
  ...[onLoss?: Requirements["onLoss"], action?: string],
];
export type LinksRow = [
  ...[parent: string | null, needs: readonly string[], unmet: number, artifact: string | null],
  ...[dependents: Numbers, notified: number, children: number, due?: boolean, ofRunning?: true],
];
export type EndRow = [
  ...[at: number, seq: number, error: string | null],
  ...[resultHash: string | null, resultSize: number, resultSeq: number | null],
];
export type UsageRow = readonly [input: number, output: number, cached: number, cost: number | null];
/** A group, and what each agent has of it in each project: when that ended, and those whose records are gone. */
export type GroupRow = [tag: "group", id: string, createdAt: number, parts: readonly GroupPartRow[]];
export type GroupPartRow = readonly [
  ...[project: string, agent: string, endedAt: number, gone: Numbers, usage?: UsageRow | null],
];
/** Its tasks are in pairs: the name, the id. */
export type PlanRow = [
  ...[tag: "plan", id: string, createdAt: number, seq: number, putAt: number, project: string],
  ...[directory: string | null, run: number, failsFast: boolean, paused: Plan["paused"], hasFailed: boolean],
  ...[endedAt: number, adopted: number, tasks: readonly string[], agent?: string | null],
  ...[others?: readonly string[], documentHash?: string, keptSince?: number, dropped?: number],
];
/** What few tasks have, by name: absent is what nearly all have. */
export type ExtraRow = {
  usage?: UsageRow;
  attempts?: readonly (readonly [attempt: number, worker: string, usage: UsageRow])[];
  labels?: readonly string[];
  group?: string;
  loop?: LoopRow;
  growth?: GrowthRow;
  files?: readonly FileRow[];
  approval?: ApprovalRow;
  wait?: WaitRow;
};
/** What its attempt has answered, while it waits for what grew below it; empty before and after. */
export type WaitRow = readonly [] | readonly [attempt: number, seq: number, hash: string | null, size: number];
export type FileRow = [path: string, hash: string, size: number];
export type ApprovalRow = [
  ...[required: Approval["required"], question: string | null, until: number, note: string | null, at: number],
  ...[askedBy?: number],
];
export type LoopRow = [max: number, ...rounds: RoundRow[]];
export type RoundRow = readonly [
  ...[iteration: number, attempt: number, outcome: Round["outcome"], note: string | null, tokens: number | null],
  usage?: UsageRow | null,
];
/** The root of its tree, by the event that submitted it; how many have grown there; how many of those are its own. */
export type GrowthRow = readonly [root: number, grown: number, children: number];
/** What few tasks have comes last, and is left out where nothing of it is there. */
export type TaskRow = [
  ...[tag: "task", id: string, seq: number, agent: number, requirements: number, bodyHash: string, createdAt: number],
  ...[depth: number, phase: number, priority: number, iteration: number, estimate: number, runnableAt: number],
  ...[lastSeq: number],
  more?: TaskMore,
];
export type TaskMore = [
  ...[paused: boolean, ownFailures: number, losses: number, attempts: number, restUntil: number, deadline: number],
  ...[lastWorker: string | null, startedAt: number, pin: string | null, pinUntil: number],
  ...[links: LinksRow | null, end: EndRow | null, requeues?: number, throttles?: number],
  extra?: ExtraRow | null,
];
export type AttemptRow = [
  ...[tag: "attempt", task: number, worker: string, number: number, assignedAt: number, charge: number],
  ...[express: boolean, state: Attempt["state"], startedAt: number, reserve: number, reported: number],
  ...[permitted: number, known: boolean, stopCause: Attempt["stopCause"], stopBy: number],
  ...[gateTold?: boolean, permitUsage?: UsageRow],
];
type HoldRow = [tag: "hold", task: number, worker: string];
type ArtifactRow = [tag: "artifact", name: string, waiters: Numbers];
export type StoneRow = [
  ...[tag: "tombstone", id: string, bodyHash: string, phase: number, depth: number, priority: number],
  ...[parent: string | null, endedAt: number, seq: number, endSeq: number, children: number, due: boolean],
  ...[createdAt?: number, lastWorker?: string | null],
];
/** A task that wants a callback when it ends, or an end whose callback is due. */
export type CallbackRow = [
  tag: "callback",
  task: string,
  end?: number | null,
  phase?: number | null,
  ended?: EndedRow | null,
  host?: string,
];
/** How it had ended. */
export type EndedRow = [
  ...[seq: number, project: string, agent: string, createdAt: number, depth: number, priority: number],
  ...[iteration: number, ownFailures: number, attempts: number, runnableAt: number, startedAt: number],
  ...[deadline: number, lastWorker: string | null, onLoss: Requirements["onLoss"], end: EndRow],
  extra?: ExtraRow | null,
];
export type ScheduleRow = [
  ...[tag: "schedule", id: string, body: string, nextAt: number | null, lastAt: number | null],
  ...[lastTask: string | null],
];
type NodeRow = [tag: "node", id: string, url: string, key: string, leads: boolean];
/** In the order in which they were settled. */
type SettledRow = [tag: "settled", permit: string, until: number, mayReturn: boolean];
type RejectedRow = [tag: "rejected", agent: string, count: number];
/** What was used on a day, by type or by label. */
type LedgerRow = [
  ...[tag: "used", kind: "types" | "labels", day: number, project: string, agent: string, of: string],
  ...[attempts: number, usage: UsageRow],
];
/** The last days of which rows had to go. */
type LedgerGoneRow = [tag: "used-gone", types: number, labels: number];
export type EndOfFileRow = [tag: "end", lines: number];

export type Row =
  | (
      | HeaderRow
      | ConfigRow
      | SpentRow
      | ProjectRow
      | AgentRow
      | WorkerRow
      | GateRow
      | TabRow
      | RequirementsRow
      | TaskRow
    )
  | PlanRow
  | (GroupRow | AttemptRow | HoldRow | ArtifactRow | StoneRow | CallbackRow | ScheduleRow | RejectedRow)
  | (NodeRow | SettledRow | EndOfFileRow)
  | (LedgerRow | LedgerGoneRow);
export type RowOf<Tag extends Row[0]> = Extract<Row, readonly [Tag, ...unknown[]]>;

/** Fewest and most values of each kind of line. */
export const LENGTHS: Readonly<Record<Row[0], readonly [least: number, most: number]>> = {
  drover: [9, 9],
  config: [2, 3],
  spent: [2, 2],
  project: [11, 12],
  agent: [4, 4],
  worker: [11, 17],
  gate: [4, 4],
  tab: [4, 4],
  ask: [13, 15],
  task: [14, 15],
  attempt: [15, 17],
  group: [4, 4],
  plan: [14, 19],
  hold: [3, 3],
  artifact: [3, 3],
  tombstone: [12, 14],
  callback: [2, 6],
  schedule: [6, 6],
  node: [5, 5],
  settled: [4, 4],
  rejected: [3, 3],
  used: [8, 8],
  "used-gone": [3, 3],
  end: [2, 2],
};

/** Thrown by `restore`: the lines are no snapshot of a format that can be read. */
export class SnapshotUnreadable extends Error {
  override readonly name: string = "SnapshotUnreadable";
  /** Whether lines are missing, wrong, or of a format that is not known yet. */
  readonly problem: "cut" | "corrupt" | "newer-format";
  /** The line at fault, from 1. */
  readonly line: number;

  constructor(problem: "cut" | "corrupt" | "newer-format", line: number, detail: string) {
    super(`the snapshot cannot be read: line ${line}: ${detail}`);
    this.problem = problem;
    this.line = line;
  }
}
