/**
 * Where each call is, and how it behaves on the way: all that a caller must know to make it.
 *
 * Apart from the shapes on purpose: a client, a worker or a command starts without building a single schema.
 */
import type { CallName } from "../calls/calls.ts";

/** How many tasks, and how many events, one page holds at most. */
export const PAGE_MAX = 1000;
export const EVENTS_MAX = 1000;

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
export type Place = {
  readonly method: Method;
  /** With parameters as in `/tasks/{id}`. */
  readonly path: string;
  /** Whether the very same request may be sent again after a lost answer. */
  readonly repeatable: boolean;
  /** Whether it may hold its answer back for a while. */
  readonly waits: boolean;
  /** The media types of its answer. */
  readonly produces: readonly string[];
};

const place = (method: Method, path: string, more: Partial<Place> = {}): Place => ({
  method,
  path,
  repeatable: method !== "POST" && method !== "PATCH",
  waits: false,
  produces: ["application/json"],
  ...more,
});

/** Tasks, permits and workers are safe to ask for twice if they have an id, and the client sees to that. */
export const PLACES: { readonly [Name in CallName]: Place } = {
  submit: place("POST", "/tasks", { repeatable: true }),
  submitBatch: place("POST", "/tasks/batch", { repeatable: true }),
  tasks: place("GET", "/tasks"),
  task: place("GET", "/tasks/{id}"),
  patch: place("PATCH", "/tasks/{id}", { repeatable: true }),
  cancel: place("POST", "/tasks/{id}/cancel", { repeatable: true }),
  cancelWhere: place("POST", "/tasks/cancel", { repeatable: true }),
  retry: place("POST", "/tasks/{id}/retry"),
  why: place("GET", "/tasks/{id}/why"),
  wait: place("GET", "/tasks/{id}/wait", { waits: true }),
  logs: place("GET", "/tasks/{id}/logs"),
  projects: place("GET", "/projects"),
  project: place("GET", "/projects/{id}"),
  putProject: place("PUT", "/projects/{id}"),
  workers: place("GET", "/workers"),
  joinWorker: place("POST", "/workers", { repeatable: true }),
  sync: place("POST", "/workers/{id}/sync", { repeatable: true, waits: true }),
  handInLog: place("POST", "/workers/{id}/logs", { repeatable: true }),
  drainWorker: place("POST", "/workers/{id}/drain", { repeatable: true }),
  leaveWorker: place("DELETE", "/workers/{id}"),
  schedules: place("GET", "/schedules"),
  schedule: place("GET", "/schedules/{id}"),
  putSchedule: place("PUT", "/schedules/{id}"),
  removeSchedule: place("DELETE", "/schedules/{id}"),
  askPermit: place("POST", "/permits", { repeatable: true, waits: true }),
  settlePermit: place("POST", "/permits/{id}/settle", { repeatable: true }),
  dropPermit: place("DELETE", "/permits/{id}"),
  gates: place("GET", "/gates"),
  gate: place("GET", "/gates/{id}"),
  resetGate: place("POST", "/gates/{id}/reset", { repeatable: true }),
  removeGate: place("DELETE", "/gates/{id}"),
  stats: place("GET", "/scheduler/stats"),
  queue: place("GET", "/scheduler/queue"),
  config: place("GET", "/scheduler/config"),
  patchConfig: place("PATCH", "/scheduler/config", { repeatable: true }),
  reload: place("POST", "/scheduler/reload", { repeatable: true }),
  pause: place("POST", "/scheduler/pause", { repeatable: true }),
  resume: place("POST", "/scheduler/resume", { repeatable: true }),
  events: place("GET", "/events", { waits: true, produces: ["application/json", "text/event-stream"] }),
  health: place("GET", "/healthz"),
  ready: place("GET", "/readyz"),
  metrics: place("GET", "/metrics", { produces: ["text/plain"] }),
  openapi: place("GET", "/openapi.json"),
};
