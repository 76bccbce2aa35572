/**
 * What was used, by project, agent, type, label or day: the rows of the ledger, summed up by what is asked for.
 *
 * It costs what the ledger holds, which is bounded, and nothing that grows with tasks or with the log. Attempts without
 * the label that is asked for are in no row.
 */
import { name, type Reader, whole } from "../../core/base/index.ts";
import { beginOfDay, dayOf, summed } from "../../core/lifecycle/index.ts";
import type { LedgerRow, State, UsageTotals } from "../../core/model/index.ts";
import type { UsageReport, UsageSum } from "../../protocol/index.ts";
import { readShape } from "../../protocol/schema/index.ts";
import { USAGE_ROWS_DEFAULT, USAGE_ROWS_MAX, usageBy } from "../../protocol/shapes/index.ts";
import { isoTime } from "../../std/index.ts";
import { readOptions } from "../base/call-options.ts";
import { usageView } from "../base/charged-tokens.ts";
import { namesOf } from "../tasks/read-tasks.ts";
import { instantField } from "../tasks/task-body.ts";

/** Whose usage, since when, and by what it is summed up. */
export type UsageOptions = {
  /** `project`, `agent`, `type`, `day`, or `label:` and the key of a label. */
  readonly by?: string;
  /** Only of this project, or these. */
  readonly project?: string | readonly string[];
  /** Only of this agent. */
  readonly agentId?: string;
  /** Only since the day of this instant (UTC), which is text or milliseconds since 1970. */
  readonly since?: string | number;
  /** How many rows at most. */
  readonly limit?: number;
};

const BY = usageBy();
const readBy: Reader<string> = (value, field) => readShape(BY, value, field);
const OPTIONS = {
  by: readBy,
  project: namesOf,
  agentId: name(),
  since: instantField as Reader<string | number>,
  limit: whole(1, USAGE_ROWS_MAX),
};
const LABEL = "label:";

export function usageOf({ ledger }: State, given: unknown): UsageReport {
  const {
    by = "project",
    project,
    agentId,
    since,
    limit = USAGE_ROWS_DEFAULT,
  } = readOptions<UsageOptions>(OPTIONS, given);
  const { rows, goneDay } = by.startsWith(LABEL) ? ledger.labels : ledger.types;
  const projects = project === undefined ? null : new Set<string>([project].flat());
  const from = since === undefined ? 0 : dayOf(since as number);
  const keyOf = keyReader(by);
  const sums = new Map<string, Sum>();
  const total: Sum = { attempts: 0, usage: null };
  for (const row of rows.values()) {
    if (row.day < from || (projects !== null && !projects.has(row.project))) continue;
    const key = agentId === undefined || row.agent === agentId ? keyOf(row) : null;
    if (key === null) continue;
    const sum = sums.get(key) ?? { attempts: 0, usage: null };
    sums.set(key, sum);
    add(sum, row);
    add(total, row);
  }
  const found = [...sums].sort(by === "day" ? ([left], [right]) => (left < right ? 1 : -1) : mostFirst);
  const shown = found.slice(0, limit).map(([key, sum]) => ({ key, ...sumView(sum) }));
  const isPart = goneDay >= 0 && goneDay >= from;
  return {
    by,
    rows: shown,
    count: shown.length,
    total: sumView(total),
    ...(found.length > shown.length ? { omitted: found.length - shown.length } : {}),
    ...(isPart ? { completeSince: isoTime(beginOfDay(goneDay + 1)) } : {}),
  };
}

type Sum = { attempts: number; usage: UsageTotals | null };

/** The text by which a row is summed up; null: it is not meant. */
function keyReader(by: string): (row: LedgerRow) => string | null {
  if (by === "project") return (row) => row.project;
  if (by === "agent") return (row) => row.agent;
  if (by === "type") return (row) => row.of;
  if (by === "day") return (row) => isoTime(beginOfDay(row.day)).slice(0, "2026-01-31".length);
  const start = `${by.slice(LABEL.length)}=`;
  return ({ of }) => (of.startsWith(start) ? of.slice(start.length) : null);
}

function add(sum: Sum, { attempts, usage }: LedgerRow): void {
  sum.attempts += attempts;
  sum.usage = summed(sum.usage, usage);
}

const tokensOf = ({ usage }: Sum): number => (usage === null ? 0 : usage.inputTokens + usage.outputTokens);

function mostFirst([key, sum]: [string, Sum], [otherKey, other]: [string, Sum]): number {
  return tokensOf(other) - tokensOf(sum) || (key < otherKey ? -1 : 1);
}

const NOTHING: UsageTotals = { inputTokens: 0, outputTokens: 0, cachedTokens: 0, cost: null };
const sumView = ({ attempts, usage }: Sum): UsageSum => ({ attempts, usage: usageView(usage ?? NOTHING) });
