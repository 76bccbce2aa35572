/**
 * Workers, projects, gates and schedules as tables.
 */
import type { GateJson, ProjectView, ScheduleView, WorkerView } from "../../protocol/index.ts";
import { RUNS_OUT } from "../../protocol/wire/index.ts";
import type { Output } from "../shell/output.ts";
import { plain, type Tint } from "../shell/text.ts";
import { tokensOf } from "./task-view.ts";
import { age, cost, count, span } from "./time.ts";

export const WORKER_TINTS: Readonly<Record<WorkerView["status"], Tint | null>> = {
  idle: "green",
  busy: "cyan",
  overloaded: "yellow",
  draining: "yellow",
  unreachable: "red",
};

export const workerTable = (workers: readonly WorkerView[], output: Output): string =>
  [tableOf(workers, output), ...workers.map(noteOf)].join("");

/** Why it takes nothing, in its own words. */
const noteOf = ({ id, note }: WorkerView): string => (note === undefined ? "" : `${plain(id)}: ${plain(note)}\n`);

const tableOf = (workers: readonly WorkerView[], output: Output): string =>
  output.table(workers, [
    { title: "ID", of: ({ id }) => id, stays: true },
    { title: "KIND", of: ({ kind }) => kind },
    { title: "STATUS", of: ({ status }) => status, tint: ({ status }) => WORKER_TINTS[status] },
    { title: "BUSY", of: ({ inFlight, slots }) => `${inFlight} of ${slots}`, align: "right" },
    { title: "ZONE", of: ({ zone }) => zone ?? "" },
    { title: "HELD FOR", of: ({ heldFor }) => heldFor ?? "" },
    { title: "CAPABILITIES", of: ({ capabilities }) => capabilities.join(", "), shrinks: true },
  ]);

export const percent = (share: number): string => `${(share * 100).toFixed(Math.abs(share) < 0.1 ? 1 : 0)}%`;

/** Where there is little room: whether it may go on, what it may spend, and what waits. */
export const projectTable = (projects: readonly ProjectView[], output: Output): string => {
  const now = output.now();
  return output.table(projects, [
    { title: "PROJECT", of: ({ id }) => id, stays: true },
    { title: "STATUS", of: ({ status }) => (status === "active" ? "" : status), tint: () => "yellow" },
    { title: "WEIGHT", of: ({ weight }) => String(weight), align: "right", leaves: 3 },
    { title: "SHARE", of: ({ share }) => percent(share), align: "right", leaves: 2 },
    { title: "TARGET", of: ({ target }) => percent(target), align: "right", leaves: 6 },
    { title: "DEFICIT", of: ({ deficit }) => percent(deficit), align: "right", leaves: 9 },
    { title: "TO RUN", of: ({ queued }) => count(queued), align: "right", leaves: 1 },
    {
      title: "RUNNING",
      of: ({ inFlight, maxConcurrent }) => `${inFlight} of ${count(maxConcurrent)}`,
      align: "right",
      leaves: 1,
    },
    { title: "CHARGED", of: ({ charged }) => count(Math.round(charged)), align: "right", leaves: 8 },
    { title: "TOKENS", of: ({ usage }) => tokensOf(usage), align: "right", leaves: 4 },
    { title: "COST", of: ({ usage }) => cost(usage?.cost), align: "right", leaves: 5 },
    { title: "LEVEL", of: ({ level }) => count(Math.round(level)), align: "right", leaves: 10 },
    {
      title: "BUDGET",
      of: (project) => shownBudget(project) + freesIn(project, now),
      tint: (project) => (isSpent(project) ? "red" : null),
    },
    { title: "PROVIDER", of: ({ provider }) => provider ?? "", leaves: 7 },
  ]);
};

/** When there is more room, where there is little. */
function freesIn({ budget, spent, reserved, freesAt }: ProjectView, now: number): string {
  const isFull = budget.limit !== null && spent + reserved >= RUNS_OUT * budget.limit;
  return isFull && freesAt !== undefined ? `, more ${age(freesAt, now)}` : "";
}

const isSpent = ({ budget, spent, reserved }: ProjectView): boolean =>
  budget.limit !== null && spent + reserved >= budget.limit;

export function shownBudget({ budget, spent, reserved }: ProjectView): string {
  if (budget.limit === null) return "";
  const aside = reserved > 0 ? ` + ${count(reserved)} set aside` : "";
  return `${count(spent)}${aside} of ${count(budget.limit)} in ${span(budget.window)}`;
}

export const gateTable = (gates: readonly GateJson[], output: Output): string => {
  const now = output.now();
  return output.table(gates, [
    { title: "GATE", of: ({ id }) => id, stays: true },
    { title: "OUT", of: callsOut, align: "right" },
    { title: "WAITING", of: ({ queued }) => count(queued), align: "right" },
    {
      title: "REQUESTS",
      of: ({ requests, requestsUsed, windowMs }) => `${count(requestsUsed)} of ${count(requests)} in ${span(windowMs)}`,
    },
    { title: "TOKENS", of: (gate) => shownTokens(gate), shrinks: true },
    { title: "THROTTLES", of: ({ throttles }) => (throttles === 0 ? "" : String(throttles)), align: "right" },
    {
      title: "STATE",
      of: (gate) => gateState(gate, now),
      tint: gateTint,
      stays: true,
    },
  ]);
};

/** Of those that may be out now; calls that went out before the limit sank still run, and are no part of it. */
export const callsOut = ({ running, limit }: GateJson): string =>
  running <= limit ? `${running} of ${limit}` : `${running}, limit ${limit}`;

export function shownTokens(
  { tokensUsed: { perMinute, perHour, perDay } }: GateJson,
  shown: (tokens: number) => string = count,
): string {
  return Object.entries({ "1m": perMinute, "1h": perHour, "1d": perDay })
    .flatMap(([name, window]) =>
      window === null ? [] : [`${shown(window.used)} of ${shown(window.limit)} in ${name}`],
    )
    .join(", ");
}

/** That all of its slots are taken is no alarm; that a provider or a window holds it is. */
export function gateTint({ blockedUntil, held }: GateJson): Tint {
  if (isRateLimited({ blockedUntil, held })) return "red";
  return held === null ? "green" : "yellow";
}

/** Whether a block or a window holds it. */
export const isRateLimited = ({ blockedUntil, held }: Pick<GateJson, "held"> & { blockedUntil?: unknown }): boolean =>
  blockedUntil !== undefined || held === "requests" || held?.startsWith("tokens-") === true;

/** What was read a while ago may name an instant that is over by now: that says nothing. */
const ahead = (word: string, instant: string | undefined, now: number): string =>
  instant === undefined || Date.parse(instant) <= now ? "" : `${word} ${age(instant, now)}`;

export function gateState({ blockedUntil, held, heldUntil, slowStart, limit }: GateJson, now: number): string {
  if (blockedUntil !== undefined) return `blocked${ahead(", opens", blockedUntil, now)}`;
  if (held !== null) return `held: ${held}${ahead(", opens", heldUntil, now)}`;
  return slowStart === null ? "open" : `open, slow start at ${limit}`;
}

export const scheduleTable = (schedules: readonly ScheduleView[], output: Output): string => {
  const now = output.now();
  return output.table(schedules, [
    { title: "ID", of: ({ id }) => id, stays: true },
    { title: "CRON", of: ({ cron }) => cron },
    { title: "TIME ZONE", of: ({ timeZone }) => timeZone ?? "UTC" },
    {
      title: "NEXT",
      of: ({ paused, nextAt }) => (paused === true ? "paused" : nextAt === undefined ? "never" : age(nextAt, now)),
      tint: ({ paused }) => (paused === true ? "yellow" : null),
    },
    { title: "LAST", of: ({ lastAt }) => age(lastAt, now) },
    { title: "OVERLAP", of: ({ overlap }) => overlap ?? "skip" },
    { title: "AGENT", of: ({ task }) => task.agentId, shrinks: true },
    { title: "ACTION", of: ({ task }) => task.action, shrinks: true },
  ]);
};
