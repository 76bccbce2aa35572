/** What other layers may use of this room. */

export { admitAtOnce, askPermit, dropTicket, grantPermit, releasePermit, throttleGate } from "./gate.ts";
export {
  expiredPermits,
  type GateStanding,
  gateStanding,
  isHeld,
  nextGateInstant,
  nextGrant,
  nextPermitExpiry,
  queuedTickets,
  rateLimit,
  roomLimit,
  type Waiting,
  waitingOf,
} from "./limits.ts";
export type { GateClass, GateSettings } from "./settings.ts";
export { CLASS_RANK, classOf, DEFAULT_GATE_SETTINGS, GATE_CLASSES } from "./settings.ts";
export { settledOf } from "./settled.ts";
export { type Gate, type GateTotals, type GrantedPermit, newGate, type ReadonlyGate } from "./state.ts";
export { RollingSum } from "./usage-window.ts";
export type { Ticket } from "./waiting-line.ts";
