/**
 * What the events alone say is out: attempts with what they hold, permits, tokens spent.
 *
 * A second bookkeeping, kept from the log and nothing else, against which limits are judged at the moment of a start
 * or a grant. It counts windows exactly; the core's buckets expire late, never early, so what the core
 * lets through must fit here too. When a window is changed, what had left the old one does not come back.
 */
import type { Event } from "../../../src/core/model/events.ts";
import type { State } from "../../../src/core/model/state.ts";

export type Out = {
  readonly task: string;
  readonly project: string;
  readonly agent: string;
  readonly type: string;
  readonly worker: string;
  readonly cpu: number;
  readonly memory: number;
  readonly locks: readonly string[];
  readonly number: number;
  readonly express: boolean;
  reserve: number;
  reported: number;
  permitted: number;
  known: boolean;
};
type Call = Extract<Event, { kind: "permit-asked" }> & { granted: boolean };
type Entry = { readonly name: string; readonly at: number; readonly amount: number };

export type Ledger = {
  readonly out: Map<string, Out>;
  readonly calls: Map<string, Call>;
  entries: Entry[];
  /** By name: the width of its window now, and the instant up to which entries are forgotten. */
  readonly windows: Map<string, { width: number; floor: number }>;
};

export const newLedger = (): Ledger => ({ out: new Map(), calls: new Map(), entries: [], windows: new Map() });

export const FLEET = "fleet";
export const projectName = (id: string): string => `project ${id}`;
export const gateName = (id: string): string => `gate ${id}`;

/** What was booked under a name within its window. */
export function booked(ledger: Ledger, name: string, now: number): number {
  const { width, floor } = ledger.windows.get(name) ?? { width: 0, floor: 0 };
  let total = 0;
  for (const entry of ledger.entries) {
    if (entry.name === name && entry.at > now - width && entry.at > floor) total += entry.amount;
  }
  return total;
}

/** Nothing that was booked under a name counts any more. */
export function forget(ledger: Ledger, name: string): void {
  ledger.entries = ledger.entries.filter((entry) => entry.name !== name);
}

/** Books an event; `state` is the world after it, read for settings and for what a task asked for. */
export function book(ledger: Ledger, state: State, event: Event): void {
  bookTask(ledger, state, event);
  bookPermit(ledger, event);
  setWindow(ledger, FLEET, state.config.budget.window, event.at);
  for (const { id, settings } of state.projects.values()) {
    setWindow(ledger, projectName(id), settings.budget.window, event.at);
  }
  for (const [id, { settings }] of state.gates) setWindow(ledger, gateName(id), settings.windowMs, event.at);
}

function setWindow(ledger: Ledger, name: string, width: number, now: number): void {
  const known = ledger.windows.get(name);
  if (known === undefined) ledger.windows.set(name, { width, floor: Number.NEGATIVE_INFINITY });
  else if (known.width !== width) {
    known.floor = Math.max(known.floor, now - known.width);
    known.width = width;
  }
}

function bookTask(ledger: Ledger, state: State, event: Event): void {
  switch (event.kind) {
    case "task-assigned": {
      const { requirements, project, agent } = state.tasks.get(event.task) as NonNullable<
        ReturnType<State["tasks"]["get"]>
      >;
      ledger.out.set(event.task, {
        ...{ task: event.task, project: project.id, agent: agent.id, type: requirements.type, worker: event.worker },
        ...{
          cpu: requirements.cpu,
          memory: requirements.memory,
          locks: requirements.locks,
          number: event.attempt,
          express: event.rank.express,
        },
        ...{ reserve: event.reserve, reported: 0, permitted: 0, known: false },
      });
      return;
    }
    case "attempt-used": {
      const out = ledger.out.get(event.task) as Out;
      out.reported = event.tokens;
      return noteUse(out);
    }
    case "attempt-lost":
      // What was never begun used nothing, unless somebody said that it did.
      return settle(ledger, event.task, event.cause === "not-begun" ? 0 : event.tokens, event.at);
    case "attempt-stopped":
    case "attempt-failed":
    case "round-ended":
    case "attempt-done":
      return settle(ledger, event.task, event.tokens, event.at);
    case "task-done":
      // One that waited for its children was settled when its attempt was done.
      if (event.resultSeq === null) settle(ledger, event.task, event.tokens, event.at);
      return;
    case "task-parked":
    case "task-failed":
    case "task-skipped":
      if (event.attempt !== null) settle(ledger, event.task, event.tokens, event.at);
  }
}

function noteUse(out: Out): void {
  out.known = true;
  out.reserve = Math.max(out.reserve, out.reported, out.permitted);
}

function settle(ledger: Ledger, task: string, tokens: number | null, at: number): void {
  const out = ledger.out.get(task) as Out;
  ledger.out.delete(task);
  const said = Math.max(out.reported, out.permitted, tokens ?? 0);
  spend(ledger, out.project, out.known || tokens !== null ? said : out.reserve, at);
}

function spend(ledger: Ledger, project: string, amount: number, at: number): void {
  ledger.entries.push({ name: projectName(project), at, amount }, { name: FLEET, at, amount });
}

function bookPermit(ledger: Ledger, event: Event): void {
  if (event.kind === "permit-asked") ledger.calls.set(event.permit, { ...event, granted: false });
  if (event.kind === "permit-granted") {
    (ledger.calls.get(event.permit) as Call).granted = true;
    ledger.entries.push({ name: gateName(event.gate), at: event.at, amount: 1 });
  }
  if (event.kind === "permit-dropped") ledger.calls.delete(event.permit);
  if (event.kind === "engine-started") {
    for (const [id, { granted }] of ledger.calls) if (!granted) ledger.calls.delete(id);
  }
  if (event.kind !== "permit-settled") return;
  const call = ledger.calls.get(event.permit) as Call;
  ledger.calls.delete(event.permit);
  const out = call.task === null ? undefined : ledger.out.get(call.task);
  const tokens = event.tokens ?? call.tokens;
  if (call.task === null) return spend(ledger, call.project, tokens, event.at);
  // A call whose attempt is over was paid for with it.
  if (out === undefined || out.number !== call.attempt) return;
  out.permitted += tokens;
  noteUse(out);
}
