/**
 * What has happened to a task between two looks at it, for a watcher whose token may not read the events.
 *
 * What began and ended between two looks is told as far as it shows: a short attempt has a start and an end, and those
 * before it are not told.
 */
import { IF_REASON } from "../../plan/index.ts";
import type { PlanTaskView } from "../../protocol/index.ts";
import { type Fact, isLive, type Row } from "./state.ts";

/** `rows` are those of the whole plan. */
export function factsBetween(row: Row, now: PlanTaskView, at: number, rows: readonly Row[]): Fact[] {
  const { id, attempt, state, round } = row;
  if (now.state === "parked" && (state === "parked" || state === "awaiting")) return [];
  const hadEnded = !isLive(row);
  if (hadEnded && now.endedAt !== undefined) return [];
  const began = now.startedAt === undefined ? at : Date.parse(now.startedAt);
  const ended = now.endedAt === undefined ? at : Date.parse(now.endedAt);
  const isNew = now.attempt > attempt;
  const isRunning = now.state === "running" || now.state === "assigned";
  const hadRound =
    state === "running" && now.round !== undefined && now.endedAt === undefined && now.round.number > round;
  return [
    ...(hadEnded ? [{ kind: "retried", id, at } as const] : []),
    ...(state === "parked" && now.endedAt === undefined ? [{ kind: "approved", id, at } as const] : []),
    ...(hadRound ? [{ kind: "round", id, at: began, note: null } as const] : []),
    ...(isNew ? [{ kind: "started", id, at: began, attempt: now.attempt } as const] : []),
    ...endOf(id, now, ended, rows),
    ...((isNew || state === "running") && !isRunning && !hadRound && (now.state === "queued" || now.state === "waiting")
      ? [{ kind: "again", id, at, why: now.reason ?? "it will be tried again", until: at } as const]
      : []),
  ];
}

function endOf(id: string, now: PlanTaskView, at: number, rows: readonly Row[]): Fact[] {
  const { state, reason: why = "", needs } = now;
  switch (state) {
    case "done":
      return [{ kind: "done", id, at }];
    case "failed":
    case "cancelled":
    case "parked":
      return [{ kind: state, id, at, why }];
    case "rejected":
      return [{ kind: "failed", id, at, why }];
    case "skipped":
      return [{ kind: "skipped", id, at, dependency: why.startsWith(IF_REASON) ? null : badOf(needs, rows), why }];
    case "waiting":
    case "queued":
    case "assigned":
    case "running":
      return [];
    default:
      return state satisfies never;
  }
}

/** The first of those it needs that did not go well. */
const badOf = (needs: readonly string[], rows: readonly Row[]): string =>
  rows.find((row) => needs.includes(row.name) && row.state !== "done" && !isLive(row))?.id ?? "another";
