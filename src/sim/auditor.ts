/**
 * The auditor: an independent judge of what the engine did.
 *
 * It sees what any observer outside could see: the events in the store, and the answers callers got. It keeps its own
 * simple model (shadow.ts), asks of every event whether it was allowed (audit-*.ts), and of every answer whether what
 * it promised was durable when it was given. At rest it compares the engine with the model: nothing acknowledged is
 * missing, a replay of the log gives the same bytes, every invariant holds, whatever waits can say why, and
 * nothing could start that did not. It never repairs and never stops by itself: it collects complaints.
 */
import { type Instant, seq } from "../core/base/index.ts";
import { decide } from "../core/index.ts";
import { checkInvariants } from "../core/invariants/index.ts";
import { type Event, hasEnded, type State } from "../core/model/index.ts";
import { snapshotLines } from "../core/snapshot/index.ts";
import { why } from "../core/why/index.ts";
import type { Inputs } from "../engine/index.ts";
import { LET_GO_MS, recover } from "../engine/writer/index.ts";
import { decodeEvent, unpackRow } from "../log/format/index.ts";
import { createMemoryLog, type MemoryStore } from "../log/memory/index.ts";
import { auditFiles, auditInputs, auditParked } from "./audit-flow.ts";
import { auditLife } from "./audit-life.ts";
import { auditGates, auditLimits } from "./audit-limits.ts";
import { auditPlans, comparePlans } from "./audit-plans.ts";
import { auditTurns } from "./audit-turns.ts";
import type { PlanPutStep } from "./history.ts";
import { type Complain, newShadow, type Shadow, type ShadowTask, tick } from "./shadow.ts";
import { note } from "./shadow-events.ts";
import type { SimFiles } from "./sim-files.ts";

export type Complaint = { readonly rule: string; readonly detail: string; readonly seq: number };
/** What an answer promised: this has happened, and it is durable. */
type Acknowledged = { readonly what: string; readonly task: string; readonly kind: Event["kind"] };
export type Auditor = {
  readonly complaints: readonly Complaint[];
  readonly shadow: Shadow;
  /** How many events of each kind were committed. */
  readonly counts: ReadonlyMap<string, number>;
  /** Reads what was committed since it last looked. */
  catchUp(): void;
  acknowledged(answer: Acknowledged): void;
  /** A plan was put, and these tasks were named in the answer. */
  acknowledgedPut(step: PlanPutStep, tasks: readonly { readonly name: string; readonly taskId: string }[]): void;
  /** A task was said to be over. */
  saidToBe(task: string, state: string): void;
  complain: Complain;
  /** An attempt was given these inputs. */
  sawInputs(task: string, attempt: number, inputs: Inputs): void;
  /** The engine has nothing to do and nothing under way. */
  atRest(state: State, now: number, files: SimFiles): void;
  /** The same, in passing: only whether it sleeps through something. */
  asleep(state: State, now: number): void;
  /** The log, replayed in two ways, against the live state. */
  replay(state: State | null): Promise<void>;
};

const COMPLAINTS_MAX = 20;

/** For proving the auditor itself: what it is shown instead of an event, and rules it does not report. */
export type Blinkers = { readonly tamper?: (event: Event) => Event[]; readonly deafTo?: readonly string[] };

export function createAuditor(store: MemoryStore, blinkers: Blinkers = {}): Auditor {
  const { tamper = (event) => [event], deafTo = [] } = blinkers;
  const shadow = newShadow();
  const complaints: Complaint[] = [];
  const counts = new Map<string, number>();
  const seen = new Set<string>();
  let read = 0;

  function complain(rule: string, detail: string): void {
    if (complaints.length < COMPLAINTS_MAX && !deafTo.includes(rule))
      complaints.push({ rule, detail, seq: shadow.seq + 1 });
  }

  function judge(event: Event): void {
    if (event.at < shadow.at) complain("time", `${event.kind} at ${event.at} comes after an event at ${shadow.at}`);
    tick(shadow, event.at);
    const before = complaints.length;
    for (const rule of [auditLife, auditLimits, auditTurns, auditGates, auditPlans]) rule(shadow, event, complain);
    const kind = event.kind === "task-submitted" && event.ofRunning ? "child-submitted" : event.kind;
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
    if ("plan" in event) seen.add(`${event.kind} ${event.plan}`);
    if ("task" in event && event.task !== null) seen.add(`${event.kind} ${event.task}`);
    const isNonsense = complaints.slice(before).some(({ rule }) => rule === "known-task");
    if (!isNonsense) note(shadow, event);
  }

  function catchUp(): void {
    if (store.head.seq === read) return;
    if (store.head.seq < read) {
      complain("durable", `the log ends at event ${store.head.seq}, but event ${read} was committed`);
      read = store.head.seq;
      return;
    }
    for (const row of store.rows) {
      if (row.lastSeq <= read) continue;
      if (row.firstSeq > read + 1) complain("durable", `events ${read + 1} to ${row.firstSeq - 1} are gone`);
      for (const [index, { bytes }] of unpackRow(row, seq(row.firstSeq - 1)).records.entries()) {
        for (const event of tamper(decodeEvent(bytes, seq(row.firstSeq + index)).event)) judge(event);
      }
      read = row.lastSeq;
    }
  }

  function acknowledged({ what, task, kind }: Acknowledged): void {
    catchUp();
    if (!seen.has(`${kind} ${task}`)) complain("durable", `${what} was acknowledged, but no ${kind} of it is stored`);
  }

  return {
    complaints,
    shadow,
    counts,
    catchUp,
    complain,
    acknowledged,
    acknowledgedPut({ plan, document, options }, tasks) {
      const what = `put of ${plan}`;
      acknowledged({ what, task: plan, kind: "plan-put" });
      for (const { taskId } of tasks) acknowledged({ what, task: taskId, kind: "task-submitted" });
      const missing = (options.only ?? Object.keys(document.tasks)).filter(
        (name) => !tasks.some((task) => task.name === name),
      );
      if (missing.length > 0) complain("plan-whole", `${plan} is put without ${missing.join(", ")}`);
    },
    saidToBe(task, state) {
      catchUp();
      const outcome = shadow.tasks.get(task)?.outcome ?? null;
      if (outcome !== state) complain("durable", `${task} was said to be ${state}, but is ${outcome ?? "not over"}`);
    },
    sawInputs(task, attempt, inputs) {
      catchUp();
      if (shadow.tasks.get(task)?.attempt?.number === attempt) auditInputs(shadow, task, inputs, complain);
    },
    atRest(state, now, files) {
      catchUp();
      for (const claim of checkInvariants(state)) complain("invariant", claim);
      if (state.seq === read) {
        compare(shadow, state, complain);
        auditRecords(shadow, state, complain);
        compareGates(shadow, state, complain);
        auditFiles(shadow, state, files, now, complain);
        auditParked(shadow, state, complain);
        comparePlans(shadow, state, complain);
      }
      auditSleep(state, now, complain);
      auditReasons(state, now, complain);
    },
    asleep: (state, now) => auditSleep(state, now, complain),
    replay: (state) => auditReplay(store, state, complain),
  };
}

/** Nothing that was committed is missing from the engine's state, and nothing else is in it. */
function compare(shadow: Shadow, state: State, complain: Complain): void {
  for (const [id, task] of shadow.tasks) {
    const found = state.tasks.get(id as never) ?? state.tombstones.get(id as never);
    const phase = found?.phase ?? null;
    if (!agrees(shadow, task, phase))
      complain("lost", `${id} is ${task.outcome ?? task.phase}, but ${phase ?? "unknown"}`);
  }
  for (const { id } of state.tasks.values()) if (!shadow.tasks.has(id)) complain("lost", `${id} was never submitted`);
  const reserved = [...shadow.tasks.values()].reduce((sum, { attempt }) => sum + (attempt?.reserve ?? 0), 0);
  if (reserved !== state.reserved) complain("budget", `${reserved} tokens are reserved, but it says ${state.reserved}`);
}

/** What ended while a task that has not ended named it is still readable. */
function auditRecords(shadow: Shadow, state: State, complain: Complain): void {
  for (const { spec, seq: submitted, phase, openedAt } of shadow.tasks.values()) {
    if (phase === "ended") continue;
    for (const id of spec.parent === null ? spec.needs : [spec.parent, ...spec.needs]) {
      const named = shadow.tasks.get(id);
      if (named === undefined || named.seq > submitted || named.phase !== "ended" || named.endedAt <= openedAt)
        continue;
      if (!state.tasks.has(id)) complain("records", `${spec.task} needs ${id}, whose record is gone`);
    }
  }
}

/** Every gate stands as its reports make it stand: its block, its throttles, how many may go out after them. */
function compareGates(shadow: Shadow, state: State, complain: Complain): void {
  for (const [id, { blockedUntil, throttles, slow }] of shadow.gates) {
    const gate = state.gates.get(id as never);
    const [ours, theirs] = [
      [blockedUntil, throttles, slow],
      [gate?.blockedUntil ?? -1, gate?.throttles ?? 0, gate?.slowStart ?? Number.POSITIVE_INFINITY],
    ];
    if (ours.join() !== theirs.join()) complain("gate", `${id} should stand at ${ours}, but stands at ${theirs}`);
  }
}

function agrees(shadow: Shadow, task: ShadowTask, phase: string | null): boolean {
  if (phase === null) return task.phase === "ended" && task.endedAt + shadow.config.scheduler.remember <= shadow.at;
  if (task.phase === "live") return phase === "assigned" || phase === "running";
  return phase === (task.outcome ?? task.phase);
}

/** What is old may stay for a moment longer, until there is something else to do. */
const LETS_GO: ReadonlySet<string> = new Set(["results-expired", "tombstones-forgotten", "plan-removed"]);

/** Nothing could happen that did not. */
function auditSleep(state: State, now: number, complain: Complain): void {
  const dueAt = (at: number): Event | null => {
    const next = decide(state, { type: "pump" }, Math.max(at, state.at) as Instant);
    return next.ok ? (next.value.events[0] ?? null) : null;
  };
  const due = dueAt(now);
  const event = due !== null && LETS_GO.has(due.kind) ? dueAt(now - LET_GO_MS) : due;
  if (event !== null) complain("wake-up", `the engine is idle, but ${event.kind} is due (${JSON.stringify(event)})`);
}

/** Whatever waits can say why. */
function auditReasons(state: State, now: number, complain: Complain): void {
  const at = Math.max(now, state.at) as Instant;
  for (const task of state.tasks.values()) {
    if (hasEnded(task)) continue;
    const answer = why(state, task.id, at);
    const isSilent = !answer.ok || answer.value.summary === "" || answer.value.conditions.every(({ ok }) => ok);
    if (isSilent) complain("why", `${task.id} is ${task.phase} and cannot say why`);
  }
}

const bytesOf = (state: State): string => [...snapshotLines(state)].join("\n");

async function auditReplay(store: MemoryStore, state: State | null, complain: Complain): Promise<void> {
  const log = createMemoryLog({ store });
  const report = await log.verify();
  for (const { seq: at, message } of report.problems) complain("chain", `event ${at}: ${message}`);
  if (!report.ok) return;
  const recovered = bytesOf((await recover(log)).state);
  if (state !== null && state.seq === store.head.seq && bytesOf(state) !== recovered) {
    complain("replay", `what the log gives differs from the live state: ${difference(bytesOf(state), recovered)}`);
  }
  if (store.base.seq > 0 || store.snapshots.size === 0) return;
  const plain = createMemoryLog({ store: { ...store, checkpoints: [], snapshots: new Map() } });
  const replayed = bytesOf((await recover(plain)).state);
  if (replayed !== recovered) complain("replay", `from the snapshot it differs: ${difference(recovered, replayed)}`);
}

function difference(left: string, right: string): string {
  const [ours, theirs] = [left.split("\n"), right.split("\n")];
  const at = ours.findIndex((line, index) => line !== theirs[index]);
  return `line ${at}: ${ours[at]?.slice(0, 300)} against ${theirs[at]?.slice(0, 300)}`;
}
