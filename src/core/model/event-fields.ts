/**
 * How events are written: the order of their values, and what older logs say otherwise.
 *
 * A field added to a kind goes to the end of its list and needs a default for old logs.
 */
import type { Event, EventKind } from "./events.ts";

type FieldsOf<Kind extends EventKind> = readonly Exclude<keyof Extract<Event, { kind: Kind }>, "kind" | "at">[];

/** The order in which the values of an event are written, after its kind and instant. */
export const FIELDS: { readonly [Kind in EventKind]: FieldsOf<Kind> } = {
  "engine-started": ["coreVersion", "policyHash"],
  "config-changed": ["config", "patch"],
  "project-put": ["project", "settings", "source"],
  "pause-changed": ["scope", "id", "paused"],
  "task-submitted": [
    ...([
      "task",
      "project",
      "agent",
      "named",
      "bodyHash",
      "bodySize",
      "type",
      "capabilities",
      "cpu",
      "memory",
    ] as const),
    ...([
      "provider",
      "locks",
      "zone",
      "tab",
      "priority",
      "prioritised",
      "depth",
      "parent",
      "needs",
      "artifact",
      "notBefore",
    ] as const),
    ...(["deadline", "estimatedTokens", "iteration", "maxAttempts", "timeoutMs", "onDependencyFailure"] as const),
    ...(["runnable", "pin", "onLoss", "action"] as const),
  ],
  "task-queued": ["task", "cause", "pin"],
  "task-assigned": ["task", "attempt", "worker", "reason", "rank", "charge", "reserve"],
  "attempt-started": ["task", "attempt"],
  "attempt-used": ["task", "attempt", "tokens"],
  "attempt-stopping": ["task", "attempt", "cause", "stopBy"],
  "attempt-stopped": ["task", "attempt", "tokens"],
  "attempt-failed": ["task", "attempt", "tokens", "error", "restUntil"],
  "attempt-lost": ["task", "attempt", "tokens", "cause", "estimate", "restUntil", "reason"],
  "task-done": ["task", "attempt", "tokens", "resultHash", "resultSize"],
  "task-failed": ["task", "attempt", "tokens", "reason", "expired", "stopBy"],
  "task-cancelled": ["task", "reason", "stopBy"],
  "task-skipped": ["task", "cause", "dependency", "reason"],
  "task-retried": ["task", "waitFor", "runnable", "pin"],
  "task-patched": ["task", "priority", "deadline"],
  "dependents-notified": ["task", "count"],
  "artifact-appeared": ["artifact"],
  "pin-released": ["task"],
  "hold-placed": ["task", "worker"],
  "hold-released": ["task", "worker"],
  "worker-joined": [
    "worker",
    "workerKind",
    "session",
    "slots",
    "capabilities",
    "cpu",
    "memory",
    "zone",
    "status",
    "endpoint",
    "path",
    "takes",
  ],
  "worker-changed": ["worker", "slots", "capabilities", "cpu", "memory", "zone", "status", "note"],
  "worker-left": ["worker", "lost"],
  "tabs-moved": ["worker", "to", "capabilities"],
  "permit-asked": [
    "permit",
    "gate",
    "task",
    "attempt",
    "project",
    "weight",
    "class",
    "tokens",
    "askedAt",
    "remote",
    "order",
  ],
  "permit-granted": ["permit", "gate"],
  "permit-dropped": ["permit", "gate"],
  "permit-settled": ["permit", "gate", "ok", "tokens", "expired"],
  "gate-throttled": ["gate", "permit", "retryAfterMs"],
  "gate-opened": ["gate"],
  "gate-reset": ["gate"],
  "gate-removed": ["gate"],
  "callback-asked": ["task", "host"],
  "callback-settled": ["task", "end", "ok", "status", "attempts"],
  "schedule-put": ["schedule", "body", "nextAt"],
  "schedule-moved": ["schedule", "lastAt", "lastTask", "nextAt"],
  "schedule-removed": ["schedule"],
  "tasks-rejected": ["counts"],
  "results-expired": ["count"],
  "tombstones-forgotten": ["count"],
};

/** Fields that older logs do not have, and what they mean where they are absent: the last of their kind, in order. */
export const ADDED: { readonly [Kind in EventKind]?: Readonly<Record<string, unknown>> } = {
  "config-changed": { patch: null },
  "task-submitted": { onLoss: "retry", action: "" },
  "attempt-lost": { reason: null },
  "callback-asked": { host: "" },
  "worker-joined": { endpoint: null, path: null, takes: null },
  "worker-changed": { note: null },
  "permit-asked": { remote: false, order: null },
};

/** Kinds that older logs know by another name. */
export const RENAMED: Readonly<Record<string, EventKind>> = {
  "gate-struck": "gate-throttled",
  "dependents-told": "dependents-notified",
};
