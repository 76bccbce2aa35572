/**
 * Gates as people look at them: how each stands, and of one also what it has done and who is at it.
 *
 * A gate that only the config names is shown as its first call would find it. Calls are listed as the library lists
 * them, those that are out in the order of their start and then those that wait, next first; the first so many of them.
 */
import type { GateId } from "../../core/base/index.ts";
import { gateSettings } from "../../core/config/index.ts";
import type { GateStanding, GateTotals, ReadonlyGate, Ticket } from "../../core/gate/index.ts";
import { gateStanding, newGate, queuedTickets } from "../../core/gate/index.ts";
import { isConfigured } from "../../core/lifecycle/index.ts";
import type { State } from "../../core/model/index.ts";
import type { GateCall } from "../../protocol/index.ts";
import { refused } from "../base/drover-error.ts";

const CALLS_MAX = 1000;

/** A gate as Drover shows it. */
export type GateView = GateStanding & {
  /** Its id. */
  readonly id: string;
};
/** A gate with its totals and its calls. */
export type GateWithCalls = GateView & {
  /** What it has done altogether. */
  readonly stats: Readonly<GateTotals>;
  /** The calls that are out, then those that wait. */
  readonly calls: readonly GateCall[];
};

/** Those that were used, then those that only the config names. */
export function gateViews({ gates, config }: State, now: number): GateView[] {
  const used = [...gates].map(([id, gate]) => ({ id, ...gateStanding(gate, now) }));
  const idle = Object.entries(config.gates.named).filter(([id]) => !gates.has(id as GateId));
  return [...used, ...idle.map(([id, settings]) => ({ id, ...gateStanding(newGate(settings), now) }))];
}

export function gateDetail(state: State, id: GateId, now: number): GateWithCalls {
  const gate = state.gates.get(id) ?? (isConfigured(state, id) ? newGate(gateSettings(state.config, id)) : undefined);
  if (gate === undefined) throw refused({ type: "gate-unknown", gate: id });
  return { id, ...gateStanding(gate, now), stats: { ...gate.totals }, calls: callsOf(gate, now) };
}

function callsOf(gate: ReadonlyGate, now: number): GateCall[] {
  const calls: GateCall[] = [];
  for (const permit of gate.held.values()) {
    if (calls.length === CALLS_MAX) return calls;
    calls.push(callOf(permit, "running", now - permit.grantedAt));
  }
  const waiting = queuedTickets(gate, now, CALLS_MAX - calls.length);
  return calls.concat(waiting.map((ticket) => callOf(ticket, "queued", now - ticket.askedAt)));
}

const callOf = (ticket: Ticket, state: GateCall["state"], ms: number): GateCall => ({
  id: ticket.id,
  class: ticket.class,
  state,
  seconds: Math.max(0, ms) / 1000,
  project: ticket.project,
  ...(ticket.task === undefined ? {} : { task: ticket.task }),
});
