/** What other layers may use of this room. */

export type { GateView } from "./gate-view.ts";
export { readLinks } from "./links.ts";
export { queuedOf } from "./queue-view.ts";
export { fleetSpending, projectViews, workerStatus } from "./stats.ts";
export { stuckTasks } from "./stuck.ts";
export { whyJson } from "./why-json.ts";
