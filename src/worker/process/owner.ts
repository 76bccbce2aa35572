/**
 * Who a run belongs to, and whether that worker still lives.
 *
 * What a run leaves on disk names its worker: the machine, its boot, the pid and the instant the process began. A
 * successor may clean up only after a worker that is certainly gone. One that lives is left alone, and so is one on
 * another machine that shares the directory, since nothing can be known about it from here.
 */
import { hostname } from "node:os";
import type { ProcessTable } from "./table.ts";

export type Owner = {
  readonly host: string;
  readonly place: string;
  readonly pid: number;
  readonly startedAt: string | null;
};
export type OwnerState = "alive" | "dead" | "elsewhere";

export function thisOwner(table: ProcessTable): Owner {
  const startedAt = table.read(process.pid)?.startedAt ?? null;
  return { host: hostname(), place: table.place, pid: process.pid, startedAt };
}

export function stateOf(owner: Owner, table: ProcessTable): OwnerState {
  if (owner.host !== hostname()) return "elsewhere";
  // Another boot, or the same container started anew: its processes went with it.
  if (owner.place !== table.place) return "dead";
  const entry = table.read(owner.pid);
  return entry !== null && !entry.isZombie && entry.startedAt === owner.startedAt ? "alive" : "dead";
}

export function readOwner(value: unknown): Owner | null {
  if (typeof value !== "object" || value === null) return null;
  const { host, place, pid, startedAt } = value as Record<string, unknown>;
  if (typeof host !== "string" || typeof place !== "string" || typeof pid !== "number") return null;
  return { host, place, pid, startedAt: typeof startedAt === "string" ? startedAt : null };
}
