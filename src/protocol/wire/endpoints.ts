/**
 * Where each call is, and how it behaves on the way: all that a caller must know to make it.
 *
 * Apart from the shapes on purpose: a client, a worker or a command starts without building a single schema.
 */

/**
 * One number for the whole protocol. It rises when a call, a field or a code changes its meaning or goes away; a field
 * or a call that is added does not raise it, so callers pass over fields of an answer they do not know.
 */
export const PROTOCOL_VERSION = 1;
/** Every answer carries the version. A caller may send it too: another one is refused at once, and in words. */
export const PROTOCOL_HEADER = "drover-protocol";
/**
 * Says in which order bulks of one client are begun: its name, the number of the bulk, and of the one it follows. The
 * answer repeats it.
 */
export const BULK_HEADER = "drover-bulk";

// Nodes of a cluster and their callers say how far the log is, and who leads. A caller that sends the highest seq it
// was told as `X-Drover-After` sees its own writes on every node.

/** On a request: a node has sent it on, and this is its id. It is sent on once. */
export const FORWARDED_HEADER = "x-drover-forwarded";
/** On such a request: that it was a node of the same cluster. */
export const FORWARD_SEAL_HEADER = "x-drover-forward-seal";
/** On a read: the number of an event that is to be applied before it is answered. */
export const AFTER_HEADER = "x-drover-after";
/** For how long such a read is held back at most. */
export const AFTER_WAIT_MS = 5000;

/** On an answer: where the leader is reached. */
export const LEADER_HEADER = "x-drover-leader";
/** On an answer: the number of an event that is durable. All that a write has changed is at or below it. */
export const SEQ_HEADER = "x-drover-seq";
/** On the answer of a node that follows: for how long it may have missed what the leader has done, in milliseconds. */
export const AGE_HEADER = "x-drover-age-ms";

/** How many tasks, and how many events, one page holds at most. */
export const PAGE_MAX = 1000;
/** So many are passed over at most. */
export const SKIP_MAX = 10_000_000;
export const EVENTS_MAX = 1000;

/** What may travel with others in one `bulk`, and how many of them. Each is safe to repeat. */
export const BULK_CALLS = ["submit", "submitBatch", "cancel", "askPermit", "settlePermit", "dropPermit"] as const;
export type BulkName = (typeof BULK_CALLS)[number];
export const BULK_MAX = 1000;

/** Every call of the wire, by name. */
export type CallName =
  | ("bulk" | "waitAny" | "waitPermits")
  | ("submit" | "submitBatch" | "tasks" | "task" | "patch" | "cancel" | "cancelWhere" | "retry" | "why" | "wait")
  | ("logs" | "putFile" | "file" | "approve")
  | ("group" | "waitGroup" | "cancelGroup" | "retryGroup")
  | ("plans" | "plan" | "putPlan" | "cancelPlan" | "retryPlan" | "pausePlan" | "resumePlan" | "removePlan")
  | "usage"
  | ("projects" | "project" | "putProject" | "workers" | "joinWorker" | "sync" | "handInLog" | "drainWorker")
  | "leaveWorker"
  | ("schedules" | "schedule" | "putSchedule" | "removeSchedule" | "askPermit" | "settlePermit" | "dropPermit")
  | ("gates" | "gate" | "resetGate" | "removeGate")
  | ("stats" | "queue" | "line" | "config" | "patchConfig" | "reload" | "pause" | "resume" | "events" | "health")
  | ("ready" | "metrics" | "openapi" | "cluster")
  | ("links" | "history" | "stuck" | "whoami" | "pulse" | "settings" | "verify");
export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
export type Endpoint = {
  readonly method: Method;
  /** With parameters as in `/tasks/{id}`. */
  readonly path: string;
  /** Whether the very same request may be sent again after a lost answer. */
  readonly repeatable: boolean;
  /** A query with which it is something else each time. */
  readonly onceWith?: string;
  /** Whether it may hold its answer back for a while. */
  readonly waits: boolean;
  /** The media types of its answer. */
  readonly produces: readonly string[];
  /** The media type of its body, where that is not JSON and is read as it comes. */
  readonly consumes?: string;
};

/** Contents that are not looked into. */
export const BYTES = "application/octet-stream";

const endpoint = (method: Method, path: string, more: Partial<Endpoint> = {}): Endpoint => ({
  method,
  path,
  repeatable: method !== "POST" && method !== "PATCH",
  waits: false,
  produces: ["application/json"],
  ...more,
});

/** Tasks, permits and workers are safe to ask for twice if they have an id, and the client sees to that. */
export const ENDPOINTS: Readonly<Record<CallName, Endpoint>> = {
  bulk: endpoint("POST", "/bulk", { repeatable: true }),
  waitAny: endpoint("POST", "/tasks/wait", { repeatable: true, waits: true }),
  waitPermits: endpoint("POST", "/permits/wait", { repeatable: true, waits: true }),
  submit: endpoint("POST", "/tasks", { repeatable: true }),
  submitBatch: endpoint("POST", "/tasks/batch", { repeatable: true }),
  tasks: endpoint("GET", "/tasks"),
  task: endpoint("GET", "/tasks/{id}"),
  patch: endpoint("PATCH", "/tasks/{id}", { repeatable: true }),
  cancel: endpoint("POST", "/tasks/{id}/cancel", { repeatable: true }),
  cancelWhere: endpoint("POST", "/tasks/cancel", { repeatable: true }),
  retry: endpoint("POST", "/tasks/{id}/retry"),
  approve: endpoint("POST", "/tasks/{id}/approve"),
  why: endpoint("GET", "/tasks/{id}/why"),
  wait: endpoint("GET", "/tasks/{id}/wait", { waits: true }),
  logs: endpoint("GET", "/tasks/{id}/logs"),
  links: endpoint("GET", "/tasks/{id}/links"),
  group: endpoint("GET", "/groups/{id}"),
  waitGroup: endpoint("GET", "/groups/{id}/wait", { waits: true }),
  cancelGroup: endpoint("POST", "/groups/{id}/cancel", { repeatable: true }),
  retryGroup: endpoint("POST", "/groups/{id}/retry"),
  plans: endpoint("GET", "/plans"),
  plan: endpoint("GET", "/plans/{id}"),
  putPlan: endpoint("PUT", "/plans/{id}", { onceWith: "fresh" }),
  cancelPlan: endpoint("POST", "/plans/{id}/cancel", { repeatable: true }),
  retryPlan: endpoint("POST", "/plans/{id}/retry", { repeatable: true }),
  pausePlan: endpoint("POST", "/plans/{id}/pause", { repeatable: true }),
  resumePlan: endpoint("POST", "/plans/{id}/resume", { repeatable: true }),
  removePlan: endpoint("DELETE", "/plans/{id}"),
  putFile: endpoint("PUT", "/files/{hash}", { consumes: BYTES }),
  file: endpoint("GET", "/files/{hash}", { produces: [BYTES] }),
  usage: endpoint("GET", "/usage"),
  projects: endpoint("GET", "/projects"),
  project: endpoint("GET", "/projects/{id}"),
  putProject: endpoint("PUT", "/projects/{id}"),
  workers: endpoint("GET", "/workers"),
  joinWorker: endpoint("POST", "/workers", { repeatable: true }),
  sync: endpoint("POST", "/workers/{id}/sync", { repeatable: true, waits: true }),
  handInLog: endpoint("POST", "/workers/{id}/logs", { repeatable: true }),
  drainWorker: endpoint("POST", "/workers/{id}/drain", { repeatable: true }),
  leaveWorker: endpoint("DELETE", "/workers/{id}"),
  schedules: endpoint("GET", "/schedules"),
  schedule: endpoint("GET", "/schedules/{id}"),
  putSchedule: endpoint("PUT", "/schedules/{id}"),
  removeSchedule: endpoint("DELETE", "/schedules/{id}"),
  askPermit: endpoint("POST", "/permits", { repeatable: true, waits: true }),
  settlePermit: endpoint("POST", "/permits/{id}/settle", { repeatable: true }),
  dropPermit: endpoint("DELETE", "/permits/{id}"),
  gates: endpoint("GET", "/gates"),
  gate: endpoint("GET", "/gates/{id}"),
  resetGate: endpoint("POST", "/gates/{id}/reset", { repeatable: true }),
  removeGate: endpoint("DELETE", "/gates/{id}"),
  stats: endpoint("GET", "/scheduler/stats"),
  queue: endpoint("GET", "/scheduler/queue"),
  line: endpoint("GET", "/scheduler/line"),
  config: endpoint("GET", "/scheduler/config"),
  patchConfig: endpoint("PATCH", "/scheduler/config", { repeatable: true }),
  reload: endpoint("POST", "/scheduler/reload", { repeatable: true }),
  pause: endpoint("POST", "/scheduler/pause", { repeatable: true }),
  resume: endpoint("POST", "/scheduler/resume", { repeatable: true }),
  events: endpoint("GET", "/events", { waits: true, produces: ["application/json", "text/event-stream"] }),
  history: endpoint("GET", "/stats/history"),
  stuck: endpoint("GET", "/scheduler/stuck"),
  whoami: endpoint("GET", "/whoami"),
  pulse: endpoint("GET", "/pulse", { waits: true, produces: ["application/json", "text/event-stream"] }),
  settings: endpoint("GET", "/config"),
  verify: endpoint("GET", "/events/verify", { waits: true }),
  health: endpoint("GET", "/healthz"),
  ready: endpoint("GET", "/readyz"),
  metrics: endpoint("GET", "/metrics", { produces: ["text/plain"] }),
  openapi: endpoint("GET", "/openapi.json"),
  cluster: endpoint("GET", "/cluster"),
};

/** Whether a call changes nothing, so that every node of a cluster answers it from what it has. */
export const isRead = (name: CallName): boolean => ENDPOINTS[name].method === "GET" || name === "waitAny";

/** A budget or a window is said to run out from the first part on, and to be all but used up from the second. */
export const RUNS_OUT = 0.75;
export const USED_UP = 0.95;

/** Lists that many look at, each again and again: an answer may be told to all who ask alike and say so. */
export const LOOKS: ReadonlySet<CallName> = new Set<CallName>([
  ...(["line", "queue", "stats", "projects", "workers", "gates"] as const),
  ...(["tasks", "plans", "usage", "stuck", "history"] as const),
]);
/** For how long one is kept, and by `Cache-Control: max-age` wanted, at most. */
export const LOOK_MS = 1000;
