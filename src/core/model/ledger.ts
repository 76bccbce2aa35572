/**
 * What attempts used, day by day: by project, agent and type, and by label. Bounded: the oldest rows go first.
 */
import type { AgentId, ProjectId } from "../base/brand.ts";
import type { UsageTotals } from "./events.ts";

/** What an agent used in a project on a day (UTC): by tasks of a type, or by tasks with a label. */
export type LedgerRow = {
  /** Days since 1970. */
  readonly day: number;
  readonly project: ProjectId;
  readonly agent: AgentId;
  /** The type, or the label as `key=value`. */
  readonly of: string;
  /** How many attempts said what they used. */
  attempts: number;
  usage: UsageTotals;
};
export type LedgerPart = {
  /** By all that tells rows apart, in the order in which they began. */
  readonly rows: Map<string, LedgerRow>;
  /** The last day of which a row had to go; -1: none had to. */
  goneDay: number;
};
/** Every attempt is booked once by its type, and once for each of its labels. */
export type Ledger = { readonly types: LedgerPart; readonly labels: LedgerPart };
